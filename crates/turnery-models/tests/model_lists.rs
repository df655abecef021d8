//! Tests the lists of models of local servers and providers, over real HTTP, and the facts that follow from them.

mod server;

use secrecy::SecretString;
use serde_json::{Value, json};
use server::{event_response, hello_request};
use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use turnery_models::{
    Api, DEFAULT_MAX_OUTPUT, ModelEventSender, ModelName, ModelRegistry, PriceSource,
    ProviderConfig, ProviderSource, Scenario, ScriptedModel, ServedModel, served_models,
};

const WAIT: Duration = Duration::from_secs(20);

/// Serves JSON documents by `METHOD path`; everything else is not found. Returns the address.
async fn serve_documents(documents: Vec<(&'static str, Value)>) -> String {
    let documents: HashMap<&str, Value> = documents.into_iter().collect();
    let documents = Arc::new(documents);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let documents = Arc::clone(&documents);
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                    match socket.read_buf(&mut bytes).await {
                        Ok(1..) => {}
                        Ok(0) | Err(_) => return,
                    }
                }
                let head = String::from_utf8_lossy(&bytes).into_owned();
                let line = head.lines().next().unwrap_or_default();
                let key = line.trim_end_matches(" HTTP/1.1");
                let (status, body) = match documents.get(key) {
                    Some(document) => ("200 OK", document.to_string()),
                    None => ("404 Not Found", "{}".to_owned()),
                };
                let response = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _ = socket.write_all(response.as_bytes()).await;
            });
        }
    });
    format!("http://{address}")
}

fn keyless(name: &str, base_url: String) -> ProviderConfig {
    ProviderConfig::new(name, Api::OpenAi, base_url)
}

/// Returns the name, the window and whether images are accepted.
fn facts(models: &[ServedModel]) -> Vec<(&str, Option<u32>, Option<bool>)> {
    let models = models.iter();
    models
        .map(|model| (&*model.name, model.context_window, model.images))
        .collect()
}

fn list(owner: &str, names: &[&str]) -> Value {
    let rows = names
        .iter()
        .map(|name| json!({"id": name, "object": "model", "owned_by": owner}));
    json!({"object": "list", "data": rows.collect::<Vec<_>>()})
}

#[tokio::test]
async fn llama_cpp_states_its_window_in_props() {
    let props =
        json!({"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": true}});
    let url = serve_documents(vec![
        ("GET /v1/models", list("llamacpp", &["gemma"])),
        ("GET /props", props),
    ])
    .await;
    // Recognized by what it says, under whatever name.
    for name in ["llamacpp", "desk"] {
        let models = served_models(&keyless(name, format!("{url}/v1")), WAIT)
            .await
            .expect("a list");
        assert_eq!(
            facts(&models),
            [("gemma", Some(8192), Some(true))],
            "{name}"
        );
    }
}

#[tokio::test]
async fn lm_studio_states_the_window_of_the_loaded_model() {
    let details = json!({"data": [
        {"id": "qwen", "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 4096},
        {"id": "vision", "type": "vlm", "state": "not-loaded", "max_context_length": 32_768},
        {"id": "embed", "type": "embeddings", "max_context_length": 2048},
    ]});
    let url = serve_documents(vec![
        (
            "GET /v1/models",
            list("organization_owner", &["qwen", "vision"]),
        ),
        ("GET /api/v0/models", details),
    ])
    .await;
    let models = served_models(&keyless("desk", format!("{url}/v1")), WAIT)
        .await
        .expect("a list");
    assert_eq!(
        facts(&models),
        [
            ("qwen", Some(4096), Some(false)),
            ("vision", Some(32_768), Some(true))
        ]
    );
}

#[tokio::test]
async fn ollama_is_asked_about_each_model() {
    let shown = json!({"capabilities": ["completion", "tools", "vision"], "model_info": {"gemma3.context_length": 131_072}});
    let running =
        json!({"models": [{"name": "small:1b", "model": "small:1b", "context_length": 4096}]});
    let url = serve_documents(vec![
        ("GET /v1/models", list("library", &["small:1b", "large:4b"])),
        ("GET /api/ps", running),
        ("POST /api/show", shown),
    ])
    .await;
    let models = served_models(&keyless("ollama", format!("{url}/v1")), WAIT)
        .await
        .expect("a list");
    assert_eq!(
        facts(&models),
        [
            ("small:1b", Some(4096), Some(true)),
            ("large:4b", Some(131_072), Some(true))
        ]
    );
}

/// A server without the further addresses still lists its names.
#[tokio::test]
async fn names_suffice_without_details() {
    for owner in ["library", "llamacpp", "organization_owner"] {
        let url = serve_documents(vec![("GET /v1/models", list(owner, &["m"]))]).await;
        let models = served_models(&keyless("desk", format!("{url}/v1")), WAIT)
            .await
            .expect("a list");
        assert_eq!(facts(&models)[0].0, "m", "{owner}");
    }
}

/// A server that holds the connection is given up after the wait; one that is not there, at once.
#[tokio::test]
async fn silence_is_reported_in_a_sentence() {
    let held = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", held.local_addr().expect("an address"));
    let began = Instant::now();
    let wait = Duration::from_millis(50);
    let error = served_models(&keyless("desk", url.clone()), wait)
        .await
        .expect_err("silent");
    assert_eq!(
        error.message,
        format!("desk at {url} did not list its models within 50 ms.")
    );
    assert!(began.elapsed() < Duration::from_secs(15));
    drop(held);
    let error = served_models(&keyless("desk", url.clone()), WAIT)
        .await
        .expect_err("gone");
    assert_eq!(error.message, format!("No server of desk runs at {url}."));
    let url = serve_documents(Vec::new()).await;
    let error = served_models(&keyless("desk", format!("{url}/v1")), WAIT)
        .await
        .expect_err("404");
    assert!(
        error.message.starts_with("There is nothing at "),
        "{error:?}"
    );
}

/// Providers with what their servers have stated.
struct Served(Arc<[ProviderConfig]>, Vec<ServedModel>);

impl ProviderSource for Served {
    fn current(&self) -> Arc<[ProviderConfig]> {
        Arc::clone(&self.0)
    }

    fn served_model(&self, _: &ProviderConfig, model: &str) -> Option<ServedModel> {
        self.1.iter().find(|it| it.name == model).cloned()
    }
}

/// What a server states wins over built-in facts, and servers without a key are always told an output limit.
#[tokio::test]
async fn local_models_have_an_output_limit() {
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = server::serve(vec![event_response(events); 4]).await;
    let url = format!("{}/v1", server.base_url);
    let stated = |name: &str, window| ServedModel {
        name: name.to_owned(),
        context_window: window,
        ..ServedModel::default()
    };
    let served = vec![
        stated("tiny", Some(4096)),
        stated("gpt-oss:20b", Some(131_072)),
    ];
    let source = Served(vec![keyless("ollama", url)].into(), served);
    let registry = ModelRegistry::from_source(Arc::new(source));
    let cases = [
        ("unknown", None, DEFAULT_MAX_OUTPUT),
        ("tiny", Some(4096), 1024),
        // Well-known: more, but not all of it.
        ("gpt-oss:20b", Some(131_072), 16_384),
    ];
    for (name, window, limit) in cases {
        let model = registry
            .model(&ModelName::new("ollama", name))
            .expect("a model");
        let info = model.info();
        assert_eq!(
            (info.context_window, info.max_output),
            (window, limit),
            "{name}"
        );
        let (sender, _events) = ModelEventSender::new(64);
        model
            .call(hello_request(), sender)
            .await
            .expect("an answer");
        let bodies = server.bodies();
        assert_eq!(
            bodies.last().expect("a request")["max_tokens"],
            limit,
            "{name}"
        );
    }
}

#[test]
fn price_of_the_list_is_used_where_no_other_is_known() {
    let price = turnery_engine::Price {
        input: 7,
        ..turnery_engine::Price::default()
    };
    let model = |name: &str| ServedModel {
        name: name.to_owned(),
        price: Some(price),
        ..ServedModel::default()
    };
    let provider = |name: &str, url: &str| ProviderConfig::new(name, Api::OpenAi, url);
    let providers = vec![
        provider("openrouter", "https://openrouter.ai/api/v1"),
        provider("openai", "https://api.openai.com/v1"),
    ];
    let source = Served(providers.into(), vec![model("a/m"), model("gpt-5")]);
    let registry = ModelRegistry::from_source(Arc::new(source));
    let source = |name: &str| registry.price_and_source(&name.parse().expect("a name"));
    assert_eq!(
        source("openrouter/a/m"),
        Some((price, PriceSource::Provider))
    );
    assert_eq!(source("openrouter/a/n"), None);
    let (known, origin) = source("openai/gpt-5").expect("a price");
    assert_eq!(known.input, 1_250_000);
    assert!(
        matches!(origin, PriceSource::Catalogue { .. }),
        "{origin:?}"
    );
    assert_eq!(source("offline").map(|it| it.1), Some(PriceSource::BuiltIn));
}

/// Providers of which `quiet` should not be offered.
struct OneQuiet(Arc<[ProviderConfig]>);

impl ProviderSource for OneQuiet {
    fn current(&self) -> Arc<[ProviderConfig]> {
        Arc::clone(&self.0)
    }

    fn is_offered(&self, provider: &ProviderConfig) -> bool {
        provider.name != "quiet"
    }
}

/// The names come without the facts, which take longer.
#[test]
fn listed_names_are_those_of_the_listed_models() {
    let provider = |name: &str, key: Option<&str>, hint: &str, models: &[&str]| ProviderConfig {
        key: key.map(SecretString::from),
        key_hint: hint.to_owned(),
        models: models.iter().map(|&model| model.to_owned()).collect(),
        ..ProviderConfig::new(name, Api::OpenAi, "http://127.0.0.1:9/v1")
    };
    let registry = ModelRegistry::from_source(Arc::new(OneQuiet(Arc::from([
        provider("first", Some("k"), "KEY", &["b", "a"]),
        provider("keyless", None, "", &["c"]),
        provider("locked", None, "KEY", &["d"]),
        provider("quiet", None, "", &["e"]),
        provider("empty", None, "", &[]),
    ]))));
    let scenario = json!({"name": "own", "answers": [{}]}).to_string();
    let scenario = Scenario::parse(&scenario, Path::new("own.json")).expect("a scenario");
    let registry = registry.with_model(Arc::new(ScriptedModel::new(scenario)));
    let names = ["first/b", "first/a", "keyless/c", "scripted/own", "offline"];
    let listed = registry.list_models();
    let listed: Vec<String> = listed.iter().map(|it| it.name.to_string()).collect();
    assert_eq!(listed, names);
    let listed = registry.list_names();
    let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
    assert_eq!(listed, names);
}

/// Prices asked for in turn are not mixed up: another model or server has another price.
#[test]
fn price_is_that_of_the_model_at_its_server() {
    let provider = |name: &str, url: &str| ProviderConfig::new(name, Api::OpenAi, url);
    let registry = ModelRegistry::new(vec![
        provider("openai", "https://api.openai.com/v1"),
        provider("proxy", "https://proxy.test/v1"),
    ]);
    let input = |name: &str| {
        let price = registry.price(&name.parse().expect("a name"));
        price.map(|price| price.input)
    };
    for _ in 0..2 {
        assert_eq!(input("openai/gpt-5"), Some(1_250_000));
        assert_eq!(input("openai/gpt-5-mini"), Some(250_000));
        assert_eq!(input("proxy/gpt-5-mini"), None);
        assert_eq!(input("proxy/gpt-5"), None);
    }
}
