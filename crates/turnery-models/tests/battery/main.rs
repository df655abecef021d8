//! Runs the same behaviours over all formats that models are called in, over a real socket. What is peculiar to one
//! format is tested in its own files; `docs/model-behaviours.toml` lists everything.

mod connection;
mod failures;
mod format;
mod requests;
#[path = "../server/mod.rs"]
mod server;
mod streams;

use format::Format;
use server::{ModelServer, call_for_deltas, event_response, serve};
use turnery_engine::{ModelDelta, Response};
use turnery_models::{ModelOverride, ModelRegistry, ModelRequest, ProviderConfig};

/// Returns the response of a server that streams `body`, with its deltas.
async fn read(format: Format, body: &str) -> (Response, Vec<ModelDelta>) {
    let server = serve(vec![event_response(body)]).await;
    let model = server.model_with_retries(format.api(), format.model(), 0);
    let (response, deltas) = call_for_deltas(&*model, server::hello_request()).await;
    (
        response.unwrap_or_else(|error| panic!("{format:?}: {error}")),
        deltas,
    )
}

/// Returns the body of a request.
async fn sent(format: Format, request: ModelRequest) -> serde_json::Value {
    sent_with(format, ModelOverride::default(), request).await
}

/// Returns the body of a request to a model with these facts.
async fn sent_with(
    format: Format,
    facts: ModelOverride,
    request: ModelRequest,
) -> serde_json::Value {
    let server = serve(vec![event_response(&format.text("Hi"))]).await;
    let name = format!("acme/{}", format.model()).parse().expect("a name");
    let registry =
        ModelRegistry::new(vec![provider(format, &server)]).with_overrides([(name, facts)]);
    let name = format!("acme/{}", format.model()).parse().expect("a name");
    let model = registry.model(&name).expect("a model");
    let (response, _) = call_for_deltas(&*model, request).await;
    response.unwrap_or_else(|error| panic!("{format:?}: {error}"));
    server.bodies().remove(0)
}

/// Returns the configuration of a provider at this server.
fn provider(format: Format, server: &ModelServer) -> ProviderConfig {
    ProviderConfig {
        key: Some("sk-test".to_owned().into()),
        key_hint: "ACME_KEY".to_owned(),
        ..ProviderConfig::new(
            "acme",
            format.api(),
            format!("{}{}", server.base_url, format.base_path()),
        )
    }
}
