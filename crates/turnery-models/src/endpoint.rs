//! The destination of model calls: an address, a key and time limits.

use crate::{
    custom_headers::header_map,
    model::ModelEventSender,
    provider::{CallLimits, ProviderConfig, ProviderSource, strip_credentials},
    providers::{default_key_hint, url_hint},
    redact,
    silence::{SilenceLimits, SilenceTimer},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Url, header::HeaderMap};
use secrecy::{ExposeSecret as _, SecretString};
use std::{path::PathBuf, sync::Arc};

/// Characters of a model name that are encoded in a path.
const ENCODED_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Shortest header value that is masked; shorter ones are words that occur in any text. Unit: bytes.
const MIN_SECRET_BYTES: usize = 8;

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
    /// Headers from the configuration, and their values as written.
    pub(crate) headers: Result<HeaderMap, String>,
    secrets: Vec<SecretString>,
    /// File with further root certificates.
    pub(crate) ca_file: Option<PathBuf>,
    silence: SilenceLimits,
}

impl Endpoint {
    /// Creates the endpoint of `model` at `path` below the provider's base URL, with `{model}` in the path replaced by
    /// the name. Does not access the network.
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
        let path = path.replace("{model}", &percent_encode(model));
        let is_local = config.key_hint.is_empty();
        Self {
            provider: config.name.clone(),
            model: model.to_owned(),
            url: parse_url(base).and_then(|_| parse_url(&format!("{base}{path}"))),
            display_url: strip_credentials(base),
            base_url: config.base_url.clone(),
            key: config.key.clone(),
            live: None,
            key_hint: config.key_hint.clone(),
            url_hint: url_hint(&config.name),
            headers: header_map(&config.headers),
            secrets: config
                .headers
                .iter()
                .map(|(_, value)| value.clone())
                .filter(|value| value.expose_secret().len() >= MIN_SECRET_BYTES)
                .collect(),
            ca_file: config.ca_file.clone(),
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

    /// Returns `text` without the key and the configured headers, in case a server echoed them in any encoding.
    pub(crate) fn without_key(&self, text: &str) -> String {
        let (first, now) = (self.key.as_ref(), self.key());
        let keys = [first, now.as_ref()].into_iter().flatten();
        let keys = keys.chain(&self.secrets);
        keys.fold(text.to_owned(), |text, key| {
            redact::redact_key(&text, key.expose_secret())
        })
    }
}

/// Parses a URL that can be called.
fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        // The scheme is not named: without `//`, it is the user name.
        _ => Err("it must begin with http:// or https://".to_owned()),
    }
}

/// Encodes everything but letters, digits, `-`, `.`, `_` and `~`.
fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED_IN_PATHS).to_string()
}
