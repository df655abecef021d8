//! Lists the models that a server currently serves, with what it states about them.

use crate::{
    ProviderConfig,
    endpoint::Endpoint,
    key_check::fetch_list,
    model_list::{ModelList, ServedModel, first_size},
    provider::CallLimits,
};
use futures_util::{StreamExt as _, stream};
use reqwest::Url;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use turnery_engine::{ModelError, ModelErrorKind};

/// Number of models that a server is asked about one by one.
const MAX_DETAILS: usize = 32;
/// Number of such requests at the same time.
const PARALLEL_DETAILS: usize = 8;

/// Returns the models that the server of `provider` lists.
///
/// # Errors
///
/// Returns an error if the server does not respond within `wait`, refuses the key, or does not respond with a list of
/// models.
pub async fn served_models(
    provider: &ProviderConfig,
    wait: Duration,
) -> Result<Vec<ServedModel>, ModelError> {
    let deadline = Instant::now() + wait;
    let asked = async {
        // Most machines run no model server; a plain TCP connect detects that without an HTTP client.
        if let Some((host, port)) = loopback_address(&provider.base_url) {
            let connected = TcpStream::connect((host.as_str(), port)).await;
            connected.map_err(|_| {
                let message = format!(
                    "No server of {} runs at {}.",
                    provider.name,
                    provider.display_url()
                );
                ModelError::new(ModelErrorKind::Network, message)
            })?;
        }
        fetch_list(provider, None).await
    };
    let mut list = timeout_at(deadline, asked).await.unwrap_or_else(|_| {
        let message = format!(
            "{} at {} did not list its models within {} ms.",
            provider.name,
            provider.display_url(),
            wait.as_millis()
        );
        Err(ModelError::new(ModelErrorKind::Timeout, message))
    })?;
    if let Some(program) = ServerProgram::of(provider, &list) {
        // The names alone are useful, too.
        let _ = timeout_at(deadline, program.add_details(provider, &mut list.models)).await;
    }
    Ok(list.models)
}

/// Program of a local server that reports context windows at addresses of its own.
#[derive(Clone, Copy)]
enum ServerProgram {
    LlamaCpp,
    LmStudio,
    Ollama,
}

impl ServerProgram {
    /// Recognizes the program by the name of the provider, or by what its list says. A provider with a key is not
    /// asked at other addresses.
    fn of(provider: &ProviderConfig, list: &ModelList) -> Option<Self> {
        if !provider.is_keyless() {
            return None;
        }
        match (&*provider.name, &*list.owner) {
            ("llamacpp", _) | (_, "llamacpp") => Some(Self::LlamaCpp),
            ("lmstudio", _) | (_, "organization_owner") => Some(Self::LmStudio),
            ("ollama", _) | (_, "library") => Some(Self::Ollama),
            _ => None,
        }
    }

    async fn add_details(self, provider: &ProviderConfig, models: &mut [ServedModel]) {
        let root = ServerRoot::new(provider);
        match self {
            Self::LlamaCpp => {
                let Some(props) = root.get("/props").await else {
                    return;
                };
                let window = first_size(&props, &["/default_generation_settings/n_ctx"]);
                let images = props.pointer("/modalities/vision").and_then(Value::as_bool);
                for model in models {
                    model.context_window = window.or(model.context_window);
                    model.images = images.or(model.images);
                }
            }
            Self::LmStudio => {
                let Ok(list) = fetch_list(&root.0, Some("/api/v0/models")).await else {
                    return;
                };
                for model in models {
                    if let Some(detailed) = list.models.iter().find(|it| it.name == model.name) {
                        model.clone_from(detailed);
                    }
                }
            }
            Self::Ollama => {
                let loaded = root.get("/api/ps").await.unwrap_or_default();
                let root = &root;
                let asked = models.iter_mut().take(MAX_DETAILS).map(|model| async {
                    let body = json!({"model": model.name});
                    let shown = root.post("/api/show", &body).await.unwrap_or_default();
                    model.context_window = ollama_window(&loaded, &shown, &model.name);
                    model.images = shown["capabilities"]
                        .as_array()
                        .map(|all| all.iter().any(|it| it == "vision"));
                });
                let asked: Vec<_> = asked.collect();
                stream::iter(asked)
                    .buffer_unordered(PARALLEL_DETAILS)
                    .collect::<()>()
                    .await;
            }
        }
    }
}

/// Returns the window of a model of Ollama: that of the running model, else the configured one, else the largest one.
fn ollama_window(loaded: &Value, shown: &Value, name: &str) -> Option<u32> {
    let running = loaded["models"].as_array().into_iter().flatten();
    let mut running = running.filter(|it| it["name"] == name || it["model"] == name);
    let running = running.find_map(|it| first_size(it, &["/context_length"]));
    let parameters = shown["parameters"].as_str().unwrap_or_default();
    let configured = || {
        let mut lines = parameters.lines().map(str::split_whitespace);
        lines.find_map(|mut words| {
            (words.next()? == "num_ctx").then(|| words.next()?.parse().ok())?
        })
    };
    let largest = || {
        let info = shown["model_info"].as_object()?;
        let field = info
            .iter()
            .find(|(key, _)| key.ends_with(".context_length"));
        u32::try_from(field?.1.as_u64()?).ok()
    };
    running.or_else(configured).or_else(largest)
}

/// The server without the path of its OpenAI-compatible API.
struct ServerRoot(ProviderConfig);

impl ServerRoot {
    fn new(provider: &ProviderConfig) -> Self {
        let base_url = provider.base_url.trim_end_matches('/');
        let base_url = base_url.strip_suffix("/v1").unwrap_or(base_url).to_owned();
        Self(ProviderConfig {
            base_url,
            ..provider.clone()
        })
    }

    fn endpoint(&self, path: &str) -> Endpoint {
        Endpoint::new(&self.0, "its list of models", path, &CallLimits::default())
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let api = self.0.api.descriptor();
        let text = self.endpoint(path).get(api.key_header, api.headers).await;
        serde_json::from_str(&text.ok()?).ok()
    }

    async fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let api = self.0.api.descriptor();
        let endpoint = self.endpoint(path);
        let text = endpoint
            .ask(body.to_string(), api.key_header, api.headers)
            .await;
        serde_json::from_str(&text.ok()?).ok()
    }
}
/// Returns true if the URL is on this machine.
#[must_use]
pub fn is_loopback(base_url: &str) -> bool {
    loopback_address(base_url).is_some()
}

/// Returns host and port if the URL is on this machine.
fn loopback_address(base_url: &str) -> Option<(String, u16)> {
    let url = Url::parse(base_url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let is_here = match host.parse::<std::net::IpAddr>() {
        Ok(ip) => ip.is_loopback(),
        Err(_) => host == "localhost",
    };
    is_here
        .then(|| Some((host.to_owned(), url.port_or_known_default()?)))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_window_is_that_of_the_running_model() {
        let loaded = json!({"models": [{"name": "a:1", "context_length": 8192}, {"name": "b:1"}]});
        let shown = |parameters: &str| json!({"parameters": parameters, "model_info": {"general.architecture": "q", "q.context_length": 40_960}});
        let both = "stop \"x\"\nnum_ctx                        16384";
        assert_eq!(ollama_window(&loaded, &shown(both), "a:1"), Some(8192));
        assert_eq!(ollama_window(&loaded, &shown(both), "b:1"), Some(16_384));
        assert_eq!(ollama_window(&Value::Null, &shown(""), "b:1"), Some(40_960));
        assert_eq!(ollama_window(&Value::Null, &Value::Null, "b:1"), None);
    }

    #[test]
    fn only_addresses_of_this_machine_are_local() {
        let here = |url: &str| loopback_address(url);
        let at = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(here("http://127.0.0.1:11434/v1"), at("127.0.0.1", 11434));
        assert_eq!(here("http://localhost:8080/v1"), at("localhost", 8080));
        assert_eq!(here("http://[::1]:8000/v1"), at("::1", 8000));
        assert_eq!(here("https://localhost"), at("localhost", 443));
        assert_eq!(here("http://192.168.0.7:8000/v1"), None);
        assert_eq!(here("https://api.openai.com/v1"), None);
        assert_eq!(here("nonsense"), None);
    }
}
