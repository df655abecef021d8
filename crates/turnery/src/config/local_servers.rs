//! Discovers the user's local model servers and their models.
//!
//! Queries the providers that need no key, such as Ollama at its default port, and `openai` at an address that the
//! user configured. All are queried at once, with a short timeout, and answers are cached for a few seconds.

use super::providers::first_model;
use futures_util::future::join_all;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use turnery_models::{ModelName, ProviderConfig, served_models};

/// Environment variable that disables discovery at default addresses if set to `off`.
const LOCAL_SERVERS_VARIABLE: &str = "TURNERY_LOCAL_SERVERS";
/// Timeout of a discovery request.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for which an answer is fresh.
const FRESH: Duration = Duration::from_secs(3);

/// Answers of the local servers.
#[derive(Default)]
pub(crate) struct LocalServers {
    results: Mutex<DiscoveryResults>,
    /// Held during discovery.
    discovery_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct DiscoveryResults {
    asked_at: Option<Instant>,
    /// By provider name: the queried address, and the models if the server answered.
    models: HashMap<String, (String, Option<Vec<String>>)>,
}

impl LocalServers {
    /// Queries the local servers in `all`, unless the last answers are fresh.
    pub(crate) async fn discover(&self, all: &[ProviderConfig]) {
        let _asking = self.discovery_lock.lock().await;
        let asked_at = self.results().asked_at;
        if asked_at.is_some_and(|asked_at| asked_at.elapsed() < FRESH) {
            return;
        }
        let looks_around =
            std::env::var_os(LOCAL_SERVERS_VARIABLE).is_none_or(|value| value != "off");
        let answers = all.iter().filter(|it| is_keyless(it)).map(|it| async {
            let models = match looks_around || !has_well_known_address(it) {
                true => served_models(it, DISCOVERY_TIMEOUT).await,
                false => None,
            };
            (it.name.clone(), (it.base_url.clone(), models))
        });
        let models = join_all(answers).await.into_iter().collect();
        let asked_at = Some(Instant::now());
        *self.results() = DiscoveryResults { asked_at, models };
    }

    /// Returns the providers with the models that their servers report, unless the user has listed some.
    pub(crate) fn apply_models(&self, all: Arc<[ProviderConfig]>) -> Arc<[ProviderConfig]> {
        let answers = self.results();
        let lists = |it: &ProviderConfig| match answers.models_of(it) {
            Some(Some(models)) if !models.is_empty() && !has_configured_models(it) => {
                Some(models.clone())
            }
            Some(_) | None => None,
        };
        if all.iter().all(|it| lists(it).is_none()) {
            return all;
        }
        let with_models = |it: &ProviderConfig| ProviderConfig {
            models: lists(it).unwrap_or_else(|| it.models.clone()),
            ..it.clone()
        };
        all.iter().map(with_models).collect()
    }

    /// Returns true if the provider is a keyless server that did not answer or reported no models.
    pub(crate) fn is_silent(&self, provider: &ProviderConfig) -> bool {
        let is_empty = |models: &Option<Vec<String>>| models.as_ref().is_none_or(Vec::is_empty);
        is_keyless(provider) && self.results().models_of(provider).is_some_and(is_empty)
    }

    /// Returns the providers without the silent ones.
    pub(crate) fn without_silent(&self, all: Arc<[ProviderConfig]>) -> Arc<[ProviderConfig]> {
        let answers = |it: &&ProviderConfig| !self.is_silent(it);
        match all.iter().all(|it| answers(&it)) {
            true => all,
            false => all.iter().filter(answers).cloned().collect(),
        }
    }

    /// Returns a model of a server at a configured address, if the server has answered.
    pub(crate) fn default_model(&self, all: &[ProviderConfig]) -> Option<ModelName> {
        let answers = self.results();
        let has_models = |it: &&ProviderConfig| {
            let models = answers.models_of(it).and_then(Option::as_ref);
            models.is_some_and(|models| !models.is_empty())
        };
        user_servers(all).filter(has_models).find_map(first_model)
    }

    /// Returns the first server at a configured address that did not answer or reported no models.
    pub(crate) fn silent_server<'a>(
        &self,
        all: &'a [ProviderConfig],
    ) -> Option<&'a ProviderConfig> {
        user_servers(all).find(|it| self.is_silent(it))
    }

    fn results(&self) -> MutexGuard<'_, DiscoveryResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiscoveryResults {
    /// Returns the answer of a provider, if its current address was queried.
    fn models_of(&self, provider: &ProviderConfig) -> Option<&Option<Vec<String>>> {
        let (address, models) = self.models.get(&provider.name)?;
        (*address == provider.base_url).then_some(models)
    }
}

/// Returns the keyless servers at addresses that the user configured.
fn user_servers(all: &[ProviderConfig]) -> impl Iterator<Item = &ProviderConfig> {
    all.iter()
        .filter(|it| is_keyless(it) && !has_well_known_address(it))
}

/// Returns true if the provider needs no key and has none.
fn is_keyless(provider: &ProviderConfig) -> bool {
    provider.key.is_none() && provider.key_hint.is_empty()
}

/// Returns true if the provider is at its default address.
pub(crate) fn has_well_known_address(provider: &ProviderConfig) -> bool {
    well_known_provider(provider).is_some_and(|it| it.base_url == provider.base_url)
}

/// Returns true if the user has listed models for the provider.
fn has_configured_models(provider: &ProviderConfig) -> bool {
    match well_known_provider(provider) {
        Some(known) => known.models != provider.models,
        None => !provider.models.is_empty(),
    }
}

/// Returns the built-in definition of the provider with that name.
fn well_known_provider(provider: &ProviderConfig) -> Option<ProviderConfig> {
    let mut all = ProviderConfig::standard_from_env(&|_| None).into_iter();
    all.find(|it| it.name == provider.name)
}
