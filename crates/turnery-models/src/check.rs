//! Check: whether a key is good, by asking its provider for something cheap that only a good key gets.

use crate::{
    Api, CallLimits, ProviderConfig, anthropic::Anthropic, fault, http::Endpoint, openai::OpenAi,
    remote::Dialect as _,
};
use serde::Deserialize;
use std::{collections::HashSet, time::Duration};
use turnery_engine::{FaultKind, ModelFault};

/// How long a person at a terminal is made to wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many models are named at most.
const MODELS: usize = 200;
/// Longest name of a model. Unit: bytes.
const NAME_LIMIT: usize = 256;

#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    data: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Ask `provider` whether it takes its key. Gives the names of its models, if it tells them. Costs
/// nothing, changes nothing.
pub async fn check_key(provider: &ProviderConfig) -> Result<Vec<String>, ModelFault> {
    let limits = CallLimits {
        idle: PATIENCE,
        idle_local: PATIENCE,
        ..CallLimits::default()
    };
    let endpoint = Endpoint::new(provider, "its list of models", path(provider), &limits);
    let asked = match provider.api {
        Api::Anthropic => endpoint.get(Anthropic::KEY, Anthropic::HEADERS),
        Api::OpenAi => endpoint.get(OpenAi::KEY, OpenAi::HEADERS),
    };
    let text = asked.await?;
    // A page instead of a document: an address that is wrong, or a network that wants a login of its own.
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
        let message = format!(
            "{} at {} did not answer with JSON: check the address.",
            endpoint.provider, endpoint.shown
        );
        return Err(fault::plain(FaultKind::Protocol, message));
    }
    let listed = serde_json::from_str::<Listed>(&text);
    let names = listed.map_or_else(|_| Vec::new(), |listed| listed.data);
    let mut seen = HashSet::new();
    Ok(names
        .into_iter()
        .map(|named| named.id)
        .filter(|name| is_name(name) && seen.insert(name.clone()))
        .take(MODELS)
        .collect())
}

/// Whether a server may call a model so: what people choose from is shown to them, and goes into requests.
fn is_name(name: &str) -> bool {
    let is_shown =
        |c: char| c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && c.is_alphanumeric());
    (1..=NAME_LIMIT).contains(&name.len()) && name.trim() == name && name.chars().all(is_shown)
}

/// Anybody may read the list of models of `openrouter`, so it is asked about the key itself.
fn path(provider: &ProviderConfig) -> &'static str {
    match provider.api {
        Api::Anthropic => "/v1/models",
        Api::OpenAi if provider.base_url.contains("//openrouter.ai/") => "/key",
        Api::OpenAi => "/models",
    }
}
