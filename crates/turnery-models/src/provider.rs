//! Configuration of model providers, and the timeouts and retries of their calls.

use crate::{RetryPolicy, custom_headers::header_map, model_list::ServedModel};
use futures_util::future::{BoxFuture, ready};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

/// Source of the current providers. Queried on every use, and at every call for its key, so that a new key
/// takes effect at once.
pub trait ProviderSource: Send + Sync + 'static {
    /// Returns all providers. Must not block for long.
    fn current(&self) -> Arc<[ProviderConfig]>;

    /// Starts the work that [`current`](Self::current) would wait for. Must not block.
    fn prefetch(&self) {}

    /// Finds out which servers without a key respond and which models they serve, for [`is_offered`](Self::is_offered).
    /// Takes a short and bounded time.
    fn discover(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Queries the other providers for their models; `None` if their lists are known. Takes a bounded time.
    fn missing_lists(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Returns true if the models of a provider should be offered, as far as known. Must not block.
    fn is_offered(&self, _provider: &ProviderConfig) -> bool {
        true
    }

    /// Returns what the server of a provider has stated about a model, as far as known. Must not block.
    fn served_model(&self, _provider: &ProviderConfig, _model: &str) -> Option<ServedModel> {
        None
    }
}

/// A fixed list of providers.
impl ProviderSource for Arc<[ProviderConfig]> {
    fn current(&self) -> Arc<[ProviderConfig]> {
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
    /// Headers of every request besides those of the API. Values may be secrets.
    pub headers: Vec<(String, SecretString)>,
    /// Environment variable that a header needs and that is not set: the provider cannot be used.
    pub unset_variable: Option<String>,
    /// File with root certificates (PEM) that are trusted besides those of the system.
    pub ca_file: Option<PathBuf>,
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
            .field(
                "headers",
                &self
                    .headers
                    .iter()
                    .map(|(name, _)| name)
                    .collect::<Vec<_>>(),
            )
            .field("unset_variable", &self.unset_variable)
            .field("ca_file", &self.ca_file)
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
    /// OpenAI Responses.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Gemini `generateContent`.
    Gemini,
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

impl ProviderConfig {
    /// Creates a provider that needs no key and lists no models.
    #[must_use]
    pub fn new(name: impl Into<String>, api: Api, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            api,
            base_url: base_url.into(),
            key: None,
            key_hint: String::new(),
            models: Vec::new(),
            headers: Vec::new(),
            unset_variable: None,
            ca_file: None,
        }
    }

    /// Checks that the headers can be sent.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the first header that cannot be sent, without its value.
    pub fn check_headers(&self) -> Result<(), String> {
        header_map(&self.headers).map(drop)
    }

    /// Returns the URL for display, without user name, password or query.
    #[must_use]
    pub fn display_url(&self) -> String {
        strip_credentials(&self.base_url)
    }

    /// Returns true for a server without a key, which is usually one's own.
    #[must_use]
    pub fn is_keyless(&self) -> bool {
        self.key.is_none() && self.key_hint.is_empty() && self.unset_variable.is_none()
    }

    /// Checks that the provider has the key and the headers that it needs, and an address to send them to.
    pub fn require_key(&self) -> Result<(), MissingKeyError> {
        if let Some(variable) = &self.unset_variable {
            return Err(MissingKeyError {
                provider: self.name.clone(),
                hint: format!("{variable} (needed by a header)"),
            });
        }
        if let Some(variable) = self.missing_address() {
            return Err(MissingKeyError {
                provider: self.name.clone(),
                hint: format!("{variable} and {}", self.key_hint),
            });
        }
        match self.key.is_some() || self.key_hint.is_empty() {
            true => Ok(()),
            false => Err(MissingKeyError {
                provider: self.name.clone(),
                hint: self.key_hint.clone(),
            }),
        }
    }
}

/// Removes user name, password, query and fragment from a URL, since they may be secrets.
pub(crate) fn strip_credentials(url: &str) -> String {
    match reqwest::Url::parse(url) {
        Ok(mut parsed) if parsed.has_host() => {
            // These calls fail for URLs without such parts, where there is nothing to remove.
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            parsed.set_query(None);
            parsed.set_fragment(None);
            parsed.as_str().trim_end_matches('/').to_owned()
        }
        // Without `//`, a user name is parsed as the scheme.
        Ok(_) | Err(_) => {
            let rest = url.rsplit('@').next().unwrap_or(url);
            let end = rest.find(['?', '#']).unwrap_or(rest.len());
            rest[..end].trim_end_matches('/').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_url_has_no_credentials() {
        for (url, shown) in [
            (
                "https://me:hunter2@h/v1/?key=hunter2#hunter2",
                "https://h/v1",
            ),
            ("user:hunter2@box:8080/v1", "box:8080/v1"),
            ("user:/hunter2@box:8080/v1", "box:8080/v1"),
            ("user:hunter2@box:8080/v1?key=hunter2", "box:8080/v1"),
            ("user@hunter2:hunter2@box/v1#hunter2", "box/v1"),
            ("https://me:hunter2@h:99999/v1?key=hunter2", "h:99999/v1"),
            ("localhost:8080/v1", "localhost:8080/v1"),
            ("box/v1/", "box/v1"),
        ] {
            assert_eq!(strip_credentials(url), shown, "{url}");
        }
    }
}
