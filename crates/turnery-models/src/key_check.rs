//! Checks a key with a free request that requires a valid key.

use crate::{
    endpoint::Endpoint,
    model_list::ModelList,
    provider::{CallLimits, ProviderConfig},
    providers,
};
use std::time::Duration;
use turnery_engine::{ModelError, ModelErrorKind};

/// Timeout of the check, while the user waits at a terminal.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Checks that `provider` accepts its key. Returns the names of its models, if it lists them. Free of charge
/// and without side effects.
pub async fn check_key(provider: &ProviderConfig) -> Result<Vec<String>, ModelError> {
    let path = providers::check_path_at(&provider.base_url);
    let listed = fetch_list(provider, path).await?.models;
    Ok(listed.into_iter().map(|model| model.name).collect())
}

/// Fetches the list of models, or the document at `path` below the base URL.
pub(crate) async fn fetch_list(
    provider: &ProviderConfig,
    path: Option<&str>,
) -> Result<ModelList, ModelError> {
    let limits = CallLimits {
        idle: TIMEOUT,
        idle_local: TIMEOUT,
        ..CallLimits::default()
    };
    let api = provider.api.descriptor();
    let path = path.unwrap_or(api.models_path);
    let endpoint = Endpoint::new(provider, "its list of models", path, &limits);
    let text = endpoint.get(api.key_header, api.headers).await?;
    // HTML instead of JSON: a wrong address, or a network that requires a login.
    ModelList::parse(&text).ok_or_else(|| {
        let message = format!(
            "{} at {} did not answer with JSON: check the address.",
            endpoint.provider, endpoint.display_url
        );
        ModelError::new(ModelErrorKind::Protocol, message)
    })
}
