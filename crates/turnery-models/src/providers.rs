//! Table of the providers known by name, one file each, with look-ups by name and by URL.

use crate::{
    openai::quirks::Quirks,
    provider::{Api, ProviderConfig},
};
use reqwest::Url;
use secrecy::SecretString;

/// Declares the module of each provider, and the table of providers in the order in which they are listed.
macro_rules! providers {
    ($($module:ident,)*) => {
        $(mod $module;)*

        const PROVIDERS: &[KnownProvider] = &[$($module::PROVIDER,)*];
    };
}

providers! {
    anthropic,
    openai,
    openrouter,
    mistral,
    deepseek,
    ollama,
    lmstudio,
    llamacpp,
    vllm,
}

/// A provider known by name.
struct KnownProvider {
    /// Part of a model name before the slash.
    name: &'static str,
    /// API of the provider: paths, headers, and how requests are written and responses are read.
    api: Api,
    /// Address, unless the variable sets another.
    base_url: &'static str,
    url_variable: &'static str,
    /// Returns the address for a value of the variable.
    read_url: fn(&str) -> String,
    key_variable: &'static str,
    /// False for servers that usually work without a key.
    needs_key: bool,
    /// True if a model of the provider is the default once there is a key.
    offers_default_model: bool,
    /// Models to list; the first is the default.
    models: &'static [&'static str],
    /// Domain of the servers that `check_path`, `enforces_schemas` and `quirks` describe, under whatever name they are
    /// configured.
    domain: &'static str,
    /// Path of a free request that requires a valid key, if the list of models does not.
    check_path: Option<&'static str>,
    /// True if a tool may be marked as `strict`, so that its arguments fit its schema.
    enforces_schemas: bool,
    /// Deviations from the common ground of Chat Completions.
    quirks: Quirks,
}

impl KnownProvider {
    /// A hosted provider with the API of OpenAI.
    const DEFAULT: Self = Self {
        name: "",
        api: Api::OpenAi,
        base_url: "",
        url_variable: "",
        read_url: without_trailing_slash,
        key_variable: "",
        needs_key: true,
        offers_default_model: false,
        models: &[],
        domain: "",
        check_path: None,
        enforces_schemas: false,
        quirks: Quirks::DEFAULT,
    };

    fn to_config(&self, lookup: &dyn Fn(&str) -> Option<String>) -> ProviderConfig {
        let look = |name: &str| {
            lookup(name)
                .map(|v| v.trim().to_owned())
                .filter(|v| !v.is_empty())
        };
        let url = look(self.url_variable);
        // A custom server under the name of a hosted provider may need no key.
        let needs_key = self.needs_key && url.is_none();
        let base_url = match url {
            Some(url) => (self.read_url)(&url),
            None => self.base_url.to_owned(),
        };
        ProviderConfig {
            key: look(self.key_variable).map(SecretString::from),
            key_hint: if needs_key {
                self.key_variable.to_owned()
            } else {
                String::new()
            },
            models: self.models.iter().map(|&model| model.to_owned()).collect(),
            ..ProviderConfig::new(self.name, self.api, base_url)
        }
    }
}

fn without_trailing_slash(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

impl ProviderConfig {
    /// Returns all providers known by name, configured by the environment variables that `lookup` reads.
    #[must_use]
    pub fn standard_from_env(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<Self> {
        PROVIDERS
            .iter()
            .map(|known| known.to_config(lookup))
            .collect()
    }

    /// Returns true if a model of this provider is the default once there is a key.
    #[must_use]
    pub fn offers_default_model(&self) -> bool {
        find(&self.name).is_some_and(|known| known.offers_default_model)
    }
}

fn find(name: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|known| known.name == name)
}

/// Returns the provider whose server is at `base_url`. The name does not tell: `OPENAI_BASE_URL` often points to
/// another server.
fn served_at(base_url: &str) -> Option<&'static KnownProvider> {
    let url = Url::parse(base_url).ok()?;
    let host = url.host_str()?;
    PROVIDERS.iter().find(|known| {
        !known.domain.is_empty()
            && host
                .strip_suffix(known.domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

pub(crate) fn quirks_at(base_url: &str) -> Quirks {
    served_at(base_url).map_or(Quirks::DEFAULT, |known| known.quirks)
}

/// Returns true if the server at `base_url` can make a model's arguments fit a schema.
pub(crate) fn enforces_schemas_at(base_url: &str) -> bool {
    served_at(base_url).is_some_and(|known| known.enforces_schemas)
}

/// Returns the path that checks a key at `base_url`, if the list of models does not.
pub(crate) fn check_path_at(base_url: &str) -> Option<&'static str> {
    served_at(base_url).and_then(|known| known.check_path)
}

/// Returns how to change the URL of a provider, as an imperative for error messages.
pub(crate) fn url_hint(provider: &str) -> String {
    match find(provider) {
        Some(known) => format!("set {}", known.url_variable),
        None => format!("set base_url of the provider {provider} in the configuration"),
    }
}

/// Returns where to set the key of a provider without a `key_hint`, as a noun phrase for error messages.
pub(crate) fn default_key_hint(provider: &str) -> String {
    match find(provider) {
        Some(known) => known.key_variable.to_owned(),
        None => format!("the key of the provider {provider} in the configuration"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::quirks::LimitField;
    use secrecy::ExposeSecret as _;

    fn configured(name: &str, set: &[(&str, &str)]) -> ProviderConfig {
        let lookup = |variable: &str| {
            set.iter()
                .find(|(name, _)| *name == variable)
                .map(|(_, value)| (*value).to_owned())
        };
        let all = ProviderConfig::standard_from_env(&lookup);
        all.into_iter()
            .find(|provider| provider.name == name)
            .unwrap()
    }

    #[test]
    fn environment_sets_keys_and_urls() {
        let bare = configured("anthropic", &[]);
        assert_eq!(bare.base_url, "https://api.anthropic.com");
        assert_eq!(bare.key_hint, "ANTHROPIC_API_KEY");
        assert!(bare.key.is_none());

        let set = configured(
            "openai",
            &[
                ("OPENAI_API_KEY", " sk-1\n"),
                ("OPENAI_BASE_URL", "http://h:1/v1/"),
            ],
        );
        assert_eq!(set.base_url, "http://h:1/v1");
        assert_eq!(set.key.unwrap().expose_secret(), "sk-1");

        let own_server = configured("openai", &[("OPENAI_BASE_URL", "http://h:1/v1")]);
        assert_eq!(
            own_server.key_hint, "",
            "a server of one's own may need no key"
        );
    }

    #[test]
    fn ollama_host_is_accepted_in_every_form() {
        for (host, url) in [
            ("127.0.0.1", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
            (":11500", "http://127.0.0.1:11500/v1"),
            ("http://box:11434/", "http://box:11434/v1"),
            ("https://box.example/v1", "https://box.example:443/v1"),
            (
                "https://box.example/ollama/",
                "https://box.example:443/ollama/v1",
            ),
            ("[::1]:7", "http://[::1]:7/v1"),
        ] {
            assert_eq!(
                configured("ollama", &[("OLLAMA_HOST", host)]).base_url,
                url,
                "{host}"
            );
        }
        assert_eq!(
            configured("ollama", &[]).base_url,
            "http://127.0.0.1:11434/v1"
        );
    }

    #[test]
    fn debug_shows_no_secret() {
        let mut provider = configured("openai", &[("OPENAI_API_KEY", "sk-secret")]);
        provider.base_url = "https://me:hunter2@h/v1?token=t0ken".to_owned();
        let shown = format!("{provider:?}");
        for secret in ["sk-secret", "hunter2", "t0ken"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("https://h/v1"), "{shown}");
    }

    #[test]
    fn user_limit_is_sent_to_every_server() {
        for (url, field) in [
            ("http://127.0.0.1:8080/v1", LimitField::MaxTokens),
            ("https://api.openai.com/v1", LimitField::MaxCompletionTokens),
        ] {
            let quirks = quirks_at(url).with_user_limit();
            assert_eq!(
                (quirks.limit, quirks.limit_is_chosen),
                (field, true),
                "{url}"
            );
        }
    }

    #[test]
    fn quirks_depend_on_the_host() {
        assert_eq!(quirks_at("http://127.0.0.1:11434/v1"), Quirks::DEFAULT);
        assert_eq!(quirks_at("https://notopenai.com/v1"), Quirks::DEFAULT);
        assert_eq!(
            quirks_at("https://api.openai.com/v1").limit,
            LimitField::MaxCompletionTokens
        );
        assert_eq!(
            quirks_at("https://api.deepseek.com/v1").limit,
            LimitField::MaxTokens
        );
        assert!(!quirks_at("https://api.mistral.ai/v1").asks_usage);
    }
}
