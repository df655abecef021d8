//! Checks a key with a free request that requires a valid key.

use crate::{
    endpoint::Endpoint,
    model_list::ModelList,
    provider::{Api, CallLimits, ProviderConfig},
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
    let mut endpoint = list_endpoint(provider, path);
    // The user has just given the key, so no variable or file is to be changed.
    if provider.key.is_some() {
        endpoint.key_hint = "the key that you gave".to_owned();
    }
    endpoint.url_hint = "set --base-url of `turnery login`".to_owned();
    let listed = read_list(&endpoint, provider.api).await?.models;
    Ok(listed.into_iter().map(|model| model.name).collect())
}

/// Fetches the list of models, or the document at `path` below the base URL.
pub(crate) async fn fetch_list(
    provider: &ProviderConfig,
    path: Option<&str>,
) -> Result<ModelList, ModelError> {
    read_list(&list_endpoint(provider, path), provider.api).await
}

fn list_endpoint(provider: &ProviderConfig, path: Option<&str>) -> Endpoint {
    let limits = CallLimits {
        idle: TIMEOUT,
        idle_local: TIMEOUT,
        ..CallLimits::default()
    };
    let path = path.unwrap_or(provider.api.descriptor().models_path);
    Endpoint::new(provider, "its list of models", path, &limits)
}

async fn read_list(endpoint: &Endpoint, api: Api) -> Result<ModelList, ModelError> {
    let api = api.descriptor();
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
