//! Describes model providers, and the standard ones configured by environment variables.

use crate::RetryPolicy;
use futures_util::future::{BoxFuture, ready};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc, time::Duration};

/// Source of the current providers. Queried on every use, and at every call for its key, so that a new key
/// takes effect at once.
pub trait ProviderSource: Send + Sync + 'static {
    /// Returns all providers. Must not block for long.
    fn now(&self) -> Arc<[ProviderConfig]>;

    /// Starts the work that [`now`](Self::now) would wait for. Must not block.
    fn look_ahead(&self) {}

    /// Finds out which local servers respond and which models they serve, for [`offered`](Self::offered).
    /// Takes a short and bounded time.
    fn discover(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Returns the providers whose models should be offered, as far as known. Must not block for long.
    fn offered(&self) -> Arc<[ProviderConfig]> {
        self.now()
    }
}

/// A fixed list of providers.
impl ProviderSource for Arc<[ProviderConfig]> {
    fn now(&self) -> Arc<[ProviderConfig]> {
        Self::clone(self)
    }
}

/// Error of a provider that needs a key but has none (AUTH-6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("There is no key for {provider}: set {hint}.")]
pub struct MissingKeyError {
    /// Name of the provider.
    pub provider: String,
    /// Where the key can be set.
    pub hint: String,
}

/// Configuration of one provider.
#[derive(Clone)]
pub struct ProviderConfig {
    /// Part of a model name before the slash: `anthropic`, `openai`, `ollama`, ...
    pub name: String,
    /// API of the provider.
    pub api: Api,
    /// For example `https://api.anthropic.com` (without `/v1`) or `http://127.0.0.1:11434/v1` (with it).
    pub base_url: String,
    /// Key from the environment or a file with mode 0600, never from a project. `None` if not needed or not
    /// found.
    pub key: Option<SecretString>,
    /// Where a key can be set, for the error about a missing key: `ANTHROPIC_API_KEY`. Empty if no key is
    /// needed.
    pub key_hint: String,
    /// Models to list; any other name is accepted too.
    pub models: Vec<String>,
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("api", &self.api)
            .field("base_url", &strip_credentials(&self.base_url))
            .field("has_key", &self.key.is_some())
            .field("key_hint", &self.key_hint)
            .field("models", &self.models)
            .finish()
    }
}

/// Supported model APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, also of compatible servers.
    #[serde(rename = "openai", alias = "open_ai")]
    OpenAi,
}

/// Timeouts and retries of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct CallLimits {
    /// Time without any byte after which a call is cancelled. A ping counts as a byte. Models may think
    /// silently for minutes.
    pub idle: Duration,
    /// Like `idle`, for providers without keys: a local server may have to load the model first.
    pub idle_local: Duration,
    /// Time without content after which a call is cancelled, regardless of pings. At least `idle`: a shorter
    /// time counts as `idle`.
    pub content: Duration,
    /// Time without content after which the client is notified; further notices follow each time the silence
    /// has doubled.
    pub notice: Duration,
    /// Retries of calls that failed before their first delta.
    pub retry: RetryPolicy,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(300),
            idle_local: Duration::from_secs(600),
            content: Duration::from_secs(480),
            notice: Duration::from_secs(30),
            retry: RetryPolicy::default(),
        }
    }
}

/// A provider known by name.
struct StandardProvider {
    name: &'static str,
    api: Api,
    base_url: &'static str,
    url_variable: &'static str,
    key_variable: &'static str,
    needs_key: bool,
    models: &'static [&'static str],
}

const STANDARD_PROVIDERS: &[StandardProvider] = &[
    StandardProvider {
        name: "anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com",
        url_variable: "ANTHROPIC_BASE_URL",
        key_variable: "ANTHROPIC_API_KEY",
        needs_key: true,
        models: &[
            "claude-sonnet-4-6",
            "claude-opus-4-8",
            "claude-opus-4-6",
            "claude-haiku-4-5",
        ],
    },
    StandardProvider {
        name: "openai",
        api: Api::OpenAi,
        base_url: "https://api.openai.com/v1",
        url_variable: "OPENAI_BASE_URL",
        key_variable: "OPENAI_API_KEY",
        needs_key: true,
        models: &["gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-4.1"],
    },
    StandardProvider {
        name: "openrouter",
        api: Api::OpenAi,
        base_url: "https://openrouter.ai/api/v1",
        url_variable: "OPENROUTER_BASE_URL",
        key_variable: "OPENROUTER_API_KEY",
        needs_key: true,
        models: &["openrouter/auto"],
    },
    StandardProvider {
        name: "mistral",
        api: Api::OpenAi,
        base_url: "https://api.mistral.ai/v1",
        url_variable: "MISTRAL_BASE_URL",
        key_variable: "MISTRAL_API_KEY",
        needs_key: true,
        models: &[
            "devstral-medium-latest",
            "mistral-medium-latest",
            "mistral-large-latest",
        ],
    },
    StandardProvider {
        name: "deepseek",
        api: Api::OpenAi,
        base_url: "https://api.deepseek.com/v1",
        url_variable: "DEEPSEEK_BASE_URL",
        key_variable: "DEEPSEEK_API_KEY",
        needs_key: true,
        models: &["deepseek-chat", "deepseek-reasoner"],
    },
    StandardProvider {
        name: "ollama",
        api: Api::OpenAi,
        base_url: "http://127.0.0.1:11434/v1",
        url_variable: "OLLAMA_HOST",
        key_variable: "OLLAMA_API_KEY",
        needs_key: false,
        models: &[],
    },
    StandardProvider {
        name: "lmstudio",
        api: Api::OpenAi,
        base_url: "http://127.0.0.1:1234/v1",
        url_variable: "LMSTUDIO_BASE_URL",
        key_variable: "LMSTUDIO_API_KEY",
        needs_key: false,
        models: &[],
    },
    StandardProvider {
        name: "llamacpp",
        api: Api::OpenAi,
        base_url: "http://127.0.0.1:8080/v1",
        url_variable: "LLAMACPP_BASE_URL",
        key_variable: "LLAMACPP_API_KEY",
        needs_key: false,
        models: &[],
    },
    StandardProvider {
        name: "vllm",
        api: Api::OpenAi,
        base_url: "http://127.0.0.1:8000/v1",
        url_variable: "VLLM_BASE_URL",
        key_variable: "VLLM_API_KEY",
        needs_key: false,
        models: &[],
    },
];

impl ProviderConfig {
    /// Returns the URL for display, without user name, password or query.
    #[must_use]
    pub fn display_url(&self) -> String {
        strip_credentials(&self.base_url)
    }

    /// Checks that the provider has the key that it needs.
    pub fn require_key(&self) -> Result<(), MissingKeyError> {
        match self.key.is_some() || self.key_hint.is_empty() {
            true => Ok(()),
            false => Err(MissingKeyError {
                provider: self.name.clone(),
                hint: self.key_hint.clone(),
            }),
        }
    }

    /// Returns all standard providers, configured by the environment variables that `lookup` reads.
    #[must_use]
    pub fn standard_from_env(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<Self> {
        STANDARD_PROVIDERS
            .iter()
            .map(|standard| standard.to_config(lookup))
            .collect()
    }
}

impl StandardProvider {
    fn to_config(&self, lookup: &dyn Fn(&str) -> Option<String>) -> ProviderConfig {
        let look = |name: &str| {
            lookup(name)
                .map(|v| v.trim().to_owned())
                .filter(|v| !v.is_empty())
        };
        let url = look(self.url_variable);
        // A custom server under the name of a hosted provider may need no key.
        let needs_key = self.needs_key && url.is_none();
        ProviderConfig {
            name: self.name.to_owned(),
            api: self.api,
            base_url: match url {
                Some(host) if self.url_variable == "OLLAMA_HOST" => ollama_url(&host),
                Some(url) => url.trim_end_matches('/').to_owned(),
                None => self.base_url.to_owned(),
            },
            key: look(self.key_variable).map(SecretString::from),
            key_hint: if needs_key {
                self.key_variable.to_owned()
            } else {
                String::new()
            },
            models: self.models.iter().map(|&model| model.to_owned()).collect(),
        }
    }
}

/// Tells the user how to change the URL of a provider.
pub(crate) fn url_hint(provider: &str) -> String {
    match STANDARD_PROVIDERS
        .iter()
        .find(|standard| standard.name == provider)
    {
        Some(standard) => format!("set {}", standard.url_variable),
        None => format!("set base_url of the provider {provider} in the configuration"),
    }
}

/// Tells the user where to set a provider's key if its configuration does not say.
pub(crate) fn key_variable(provider: &str) -> String {
    match STANDARD_PROVIDERS
        .iter()
        .find(|standard| standard.name == provider)
    {
        Some(standard) => standard.key_variable.to_owned(),
        None => format!("the key of the provider {provider} in the configuration"),
    }
}

/// Returns the URL for `OLLAMA_HOST`, which is a host, a port, both, or a URL; `0.0.0.0` is a listen address.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let port_at = authority
        .rfind(':')
        .filter(|at| authority[at + 1..].bytes().all(|b| b.is_ascii_digit()));
    let (name, port) = match port_at {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (authority, if scheme == "https" { "443" } else { "11434" }),
    };
    let name = match name {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        name => name,
    };
    let path = path
        .trim_end_matches('/')
        .trim_end_matches("v1")
        .trim_end_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{name}:{port}{slash}{path}/v1")
}

/// Removes user name, password and query from a URL, since they may be secrets.
pub(crate) fn strip_credentials(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else {
        return url.rsplit('@').next().unwrap_or(url).to_owned();
    };
    // These calls fail for URLs without such parts, where there is nothing to remove.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.set_query(None);
    parsed.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn find(name: &str, set: &[(&str, &str)]) -> ProviderConfig {
        let lookup = |variable: &str| {
            set.iter()
                .find(|(name, _)| *name == variable)
                .map(|(_, value)| (*value).to_owned())
        };
        let all = ProviderConfig::standard_from_env(&lookup);
        all.into_iter()
            .find(|provider| provider.name == name)
            .unwrap()
    }

    #[test]
    fn environment_sets_keys_and_urls() {
        let bare = find("anthropic", &[]);
        assert_eq!(bare.base_url, "https://api.anthropic.com");
        assert_eq!(bare.key_hint, "ANTHROPIC_API_KEY");
        assert!(bare.key.is_none());

        let set = find(
            "openai",
            &[
                ("OPENAI_API_KEY", " sk-1\n"),
                ("OPENAI_BASE_URL", "http://h:1/v1/"),
            ],
        );
        assert_eq!(set.base_url, "http://h:1/v1");
        assert_eq!(set.key.unwrap().expose_secret(), "sk-1");

        let own_server = find("openai", &[("OPENAI_BASE_URL", "http://h:1/v1")]);
        assert_eq!(
            own_server.key_hint, "",
            "a server of one's own may need no key"
        );
    }

    #[test]
    fn ollama_host_is_accepted_in_every_form() {
        for (host, url) in [
            ("127.0.0.1", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
            (":11500", "http://127.0.0.1:11500/v1"),
            ("http://box:11434/", "http://box:11434/v1"),
            ("https://box.example/v1", "https://box.example:443/v1"),
            (
                "https://box.example/ollama/",
                "https://box.example:443/ollama/v1",
            ),
            ("[::1]:7", "http://[::1]:7/v1"),
        ] {
            assert_eq!(
                find("ollama", &[("OLLAMA_HOST", host)]).base_url,
                url,
                "{host}"
            );
        }
        assert_eq!(find("ollama", &[]).base_url, "http://127.0.0.1:11434/v1");
    }

    #[test]
    fn debug_shows_no_secret() {
        let mut provider = find("openai", &[("OPENAI_API_KEY", "sk-secret")]);
        provider.base_url = "https://me:hunter2@h/v1?token=t0ken".to_owned();
        let shown = format!("{provider:?}");
        for secret in ["sk-secret", "hunter2", "t0ken"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("https://h/v1"), "{shown}");
    }
}
