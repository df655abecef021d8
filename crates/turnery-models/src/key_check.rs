//! Checks a key with a free request that requires a valid key.

use crate::{
    endpoint::Endpoint,
    provider::{CallLimits, ProviderConfig},
    providers,
};
use serde::Deserialize;
use std::{collections::HashSet, time::Duration};
use turnery_engine::{ModelError, ModelErrorKind};

/// Timeout of the check, while the user waits at a terminal.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of models returned.
const MAX_MODELS: usize = 200;
/// Longest model name. Unit: bytes.
const MAX_NAME_BYTES: usize = 256;

#[derive(Deserialize)]
struct ModelList {
    #[serde(default)]
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

/// Checks that `provider` accepts its key. Returns the names of its models, if it lists them. Free of charge
/// and without side effects.
pub async fn check_key(provider: &ProviderConfig) -> Result<Vec<String>, ModelError> {
    let limits = CallLimits {
        idle: TIMEOUT,
        idle_local: TIMEOUT,
        ..CallLimits::default()
    };
    let api = provider.api.descriptor();
    let path = providers::check_path_at(&provider.base_url).unwrap_or(api.models_path);
    let endpoint = Endpoint::new(provider, "its list of models", path, &limits);
    let text = endpoint.get(api.key_header, api.headers).await?;
    // HTML instead of JSON: a wrong address, or a network that requires a login.
    if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
        let message = format!(
            "{} at {} did not answer with JSON: check the address.",
            endpoint.provider, endpoint.display_url
        );
        return Err(ModelError::new(ModelErrorKind::Protocol, message));
    }
    let listed = serde_json::from_str::<ModelList>(&text);
    let names = listed.map_or_else(|_| Vec::new(), |listed| listed.data);
    let mut seen = HashSet::new();
    Ok(names
        .into_iter()
        .map(|named| named.id)
        .filter(|name| is_valid_model_name(name) && seen.insert(name.clone()))
        .take(MAX_MODELS)
        .collect())
}

/// Returns true if a model name is safe to show and to send in requests.
fn is_valid_model_name(name: &str) -> bool {
    let is_shown =
        |c: char| c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && c.is_alphanumeric());
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.trim() == name && name.chars().all(is_shown)
}
