//! The destination of model calls: an address, a key and time limits.

use crate::{
    model::ModelEventSender,
    provider::{CallLimits, ProviderConfig, ProviderSource, strip_credentials},
    providers::{default_key_hint, url_hint},
    redact,
    silence::{SilenceLimits, SilenceTimer},
};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use std::sync::Arc;

/// Destination of the calls to one provider.
pub(crate) struct Endpoint {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) url: Result<Url, String>,
    /// Base URL for display.
    pub(crate) display_url: String,
    base_url: String,
    /// Key when the endpoint was created.
    key: Option<SecretString>,
    /// Source of the current key.
    live: Option<Arc<dyn ProviderSource>>,
    pub(crate) key_hint: String,
    pub(crate) url_hint: String,
    silence: SilenceLimits,
}

impl Endpoint {
    /// Creates the endpoint of `model` at `path` below the provider's base URL. Does not access the network.
    pub(crate) fn new(
        config: &ProviderConfig,
        model: &str,
        path: &str,
        limits: &CallLimits,
    ) -> Self {
        let base = config.base_url.trim_end_matches('/');
        let path = match path.strip_prefix("/v1") {
            Some(rest) if base.ends_with("/v1") => rest,
            Some(_) | None => path,
        };
        let is_local = config.key_hint.is_empty();
        Self {
            provider: config.name.clone(),
            model: model.to_owned(),
            url: Url::parse(&format!("{base}{path}")).map_err(|error| error.to_string()),
            display_url: strip_credentials(base),
            base_url: config.base_url.clone(),
            key: config.key.clone(),
            live: None,
            key_hint: config.key_hint.clone(),
            url_hint: url_hint(&config.name),
            silence: SilenceLimits::new(limits, is_local),
        }
    }

    /// Starts the timers of a new attempt. `out` receives the notices.
    pub(crate) fn start_silence_timer<'a>(
        &self,
        out: Option<&'a ModelEventSender>,
    ) -> SilenceTimer<'a> {
        SilenceTimer::new(self.silence, out)
    }

    /// Returns the endpoint with its key looked up at each call.
    pub(crate) fn with_key_source(self, providers: Arc<dyn ProviderSource>) -> Self {
        Self {
            live: Some(providers),
            ..self
        }
    }

    /// Returns the current key. A key for another URL is never sent to this one.
    pub(crate) fn key(&self) -> Option<SecretString> {
        let providers = self.live.as_ref().map(|live| live.current());
        let here = |it: &&ProviderConfig| it.name == self.provider && it.base_url == self.base_url;
        match providers.as_ref().and_then(|all| all.iter().find(here)) {
            Some(provider) => provider.key.clone(),
            None => self.key.clone(),
        }
    }

    /// Returns where to change the key, as a noun phrase for error messages.
    pub(crate) fn key_location(&self) -> String {
        if self.key_hint.is_empty() {
            default_key_hint(&self.provider)
        } else {
            self.key_hint.clone()
        }
    }

    /// Returns `text` without the key, in case a server echoed it in any encoding.
    pub(crate) fn without_key(&self, text: &str) -> String {
        let (first, now) = (self.key.as_ref(), self.key());
        let keys = [first, now.as_ref()].into_iter().flatten();
        keys.fold(text.to_owned(), |text, key| {
            redact::redact_key(&text, key.expose_secret())
        })
    }
}
