//! Table of the providers known by name, one file each, with look-ups by name and by URL.

use crate::{
    openai::{
        model_families,
        quirks::{Quirks, ThinkingSwitch},
    },
    provider::{Api, ProviderConfig},
    schema_dialect::SchemaDialect,
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
    azure,
    google,
    openrouter,
    vercel,
    mistral,
    deepseek,
    moonshot,
    moonshot_cn,
    zai,
    zai_coding,
    qwen,
    qwen_cn,
    minimax,
    xai,
    groq,
    cerebras,
    together,
    fireworks,
    huggingface,
    nvidia,
    deepinfra,
    sambanova,
    nebius,
    perplexity,
    ollama,
    lmstudio,
    llamacpp,
    vllm,
}

/// Part of a built-in address that each customer must replace.
const ADDRESS_PLACEHOLDER: &str = "YOUR-RESOURCE";

/// A provider known by name.
struct KnownProvider {
    /// Part of a model name before the slash.
    name: &'static str,
    /// API of the provider: paths, headers, and how requests are written and responses are read. Responses stands for
    /// Chat Completions at addresses other than OpenAI's.
    api: Api,
    /// Address, unless the variable sets another.
    base_url: &'static str,
    url_variable: &'static str,
    /// Returns the address for a value of the variable.
    read_url: fn(&str) -> String,
    key_variable: &'static str,
    /// Variable of the key if `key_variable` is not set.
    key_variable_fallback: &'static str,
    /// False for servers that usually work without a key.
    needs_key: bool,
    /// True if a model of the provider is the default once there is a key.
    offers_default_model: bool,
    /// Models to list; the first is the default.
    models: &'static [&'static str],
    /// Domain of the servers that `check_path`, `enforces_schemas` and `quirks` describe, under whatever name they are
    /// configured.
    domain: &'static str,
    other_domains: &'static [&'static str],
    /// Path of a free request that requires a valid key, if the list of models does not.
    check_path: Option<&'static str>,
    /// True if a tool may be marked as `strict`, so that its arguments fit its schema.
    enforces_schemas: bool,
    /// True if Chat Completions accepts documents.
    takes_documents: bool,
    /// True if Responses wants the calls of a response directly before their outputs.
    groups_calls: bool,
    /// Schemas that Chat Completions accepts; `None` if they depend on the model.
    schemas: Option<SchemaDialect>,
    /// Deviations from the common ground of Chat Completions.
    quirks: Quirks,
    /// Returns the quirks for the model with a family name, from those of the host for its family.
    for_model: fn(&str, Quirks) -> Quirks,
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
        key_variable_fallback: "",
        needs_key: true,
        offers_default_model: false,
        models: &[],
        domain: "",
        other_domains: &[],
        check_path: None,
        enforces_schemas: false,
        takes_documents: false,
        groups_calls: false,
        schemas: None,
        quirks: Quirks::DEFAULT,
        for_model: |_, quirks| quirks,
    };

    /// Returns true if the provider serves `host`.
    fn serves(&self, host: &str) -> bool {
        [self.domain]
            .iter()
            .chain(self.other_domains)
            .any(|domain| !domain.is_empty() && is_in_domain(host, domain))
    }

    fn to_config(&self, lookup: &dyn Fn(&str) -> Option<String>) -> ProviderConfig {
        let look = |name: &str| {
            lookup(name)
                .map(|v| v.trim().to_owned())
                .filter(|v| !v.is_empty())
        };
        let url = look(self.url_variable);
        // A custom server under the name of a hosted provider may need no key.
        let is_custom = |url: &String| host_of(url).is_none_or(|host| !self.serves(&host));
        let needs_key = self.needs_key && !url.as_ref().is_some_and(is_custom);
        let base_url = match url {
            Some(url) => (self.read_url)(&url),
            None => self.base_url.to_owned(),
        };
        let api = self.api_at(&base_url);
        ProviderConfig {
            key: look(self.key_variable)
                .or_else(|| look(self.key_variable_fallback))
                .map(SecretString::from),
            key_hint: if needs_key {
                self.key_variable.to_owned()
            } else {
                String::new()
            },
            models: self.models.iter().map(|&model| model.to_owned()).collect(),
            ..ProviderConfig::new(self.name, api, base_url)
        }
    }

    /// Returns the API that the provider speaks by default at `base_url`.
    fn api_at(&self, base_url: &str) -> Api {
        match self.api {
            Api::OpenAiResponses if !is_openai_at(base_url) => Api::OpenAi,
            api @ (Api::Anthropic | Api::OpenAi | Api::OpenAiResponses | Api::Gemini) => api,
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

    /// Moves the provider to another address, completed with the path of its API if that of its servers lacks it. Its API
    /// follows, unless another one than the default was chosen.
    pub fn move_to(&mut self, base_url: &str) {
        let Some(known) = find(&self.name) else {
            return base_url.clone_into(&mut self.base_url);
        };
        let is_its_own = host_of(base_url).is_some_and(|host| known.serves(&host));
        let base_url = match is_its_own {
            true => (known.read_url)(base_url),
            false => base_url.to_owned(),
        };
        if known.api_at(&self.base_url) == self.api {
            self.api = known.api_at(&base_url);
        }
        self.base_url = base_url;
    }

    /// Returns true if the provider is known by name and at its default address.
    #[must_use]
    pub fn has_default_address(&self) -> bool {
        find(&self.name).is_some_and(|known| known.base_url == self.base_url)
    }

    /// Returns true if the address is a placeholder: each customer of the provider has another one.
    #[must_use]
    pub fn has_placeholder_address(&self) -> bool {
        self.base_url.contains(ADDRESS_PLACEHOLDER)
    }

    /// Returns the variable that sets the address, if that is still the placeholder: it may belong to somebody else.
    pub(crate) fn missing_address(&self) -> Option<&'static str> {
        self.has_placeholder_address()
            .then(|| find(&self.name).map(|known| known.url_variable))?
    }

    /// Returns true if the provider lists the built-in models of its name; a provider of another name has none.
    #[must_use]
    pub fn has_default_models(&self) -> bool {
        find(&self.name).map_or(&[][..], |known| known.models) == self.models
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

/// Returns true if `host` is `domain` or below it.
pub(crate) fn is_in_domain(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

pub(crate) fn host_of(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

/// Returns the provider whose server is at `base_url`. The name does not tell: `OPENAI_BASE_URL` often points to
/// another server.
fn served_at(base_url: &str) -> Option<&'static KnownProvider> {
    let host = host_of(base_url)?;
    PROVIDERS.iter().find(|known| known.serves(&host))
}

/// Returns true if OpenAI's models are served at `base_url` by OpenAI, or by Azure with the same API.
pub(crate) fn is_openai_at(base_url: &str) -> bool {
    let has_path = |url: Url| url.path().trim_end_matches('/') == "/openai/v1";
    match served_at(base_url).map(|known| known.name) {
        Some("openai") => true,
        Some("azure") => Url::parse(base_url).is_ok_and(has_path),
        Some(_) | None => false,
    }
}

/// Returns the quirks of `model` on the server at `base_url`.
pub(crate) fn quirks_at(base_url: &str, model: &str) -> Quirks {
    let name = model_families::family_name(model);
    match served_at(base_url) {
        Some(known) => (known.for_model)(&name, model_families::adapt(&name, known.quirks)),
        None => adapt_own_server(
            base_url,
            &name,
            model_families::adapt(&name, Quirks::DEFAULT),
        ),
    }
}

/// Returns how Ollama lets a model think.
pub(crate) fn thinking_on_ollama(model: &str) -> ThinkingSwitch {
    let name = model_families::family_name(model);
    model_families::adapt(&name, Quirks::DEFAULT).thinking
}

/// Default port of Ollama, which has levels for Qwen too and ignores arguments of the template.
const OLLAMA_PORT: u16 = 11434;

/// Returns the quirks of a server that is no known provider: most often llama.cpp, vLLM or SGLang, where the template of
/// Qwen's models decides whether they think: <https://qwen.readthedocs.io/en/latest/deployment/vllm.html>.
fn adapt_own_server(base_url: &str, name: &str, quirks: Quirks) -> Quirks {
    let port = Url::parse(base_url).ok().and_then(|url| url.port());
    match name.starts_with("qwen3") && port != Some(OLLAMA_PORT) {
        true if qwen::has_one_mode(name) => Quirks {
            thinking: ThinkingSwitch::None,
            ..quirks
        },
        true => Quirks {
            thinking: ThinkingSwitch::TemplateArgument,
            ..quirks
        },
        false => quirks,
    }
}

/// Returns true if the server at `base_url` can make a model's arguments fit a schema.
pub(crate) fn enforces_schemas_at(base_url: &str) -> bool {
    served_at(base_url).is_some_and(|known| known.enforces_schemas)
}

/// Returns true if the server at `base_url` accepts documents.
pub(crate) fn takes_documents_at(base_url: &str) -> bool {
    served_at(base_url).is_some_and(|known| known.takes_documents)
}

/// Returns true if the server at `base_url` wants the calls of a response directly before their outputs.
pub(crate) fn groups_calls_at(base_url: &str) -> bool {
    served_at(base_url).is_some_and(|known| known.groups_calls)
}

/// Returns the schemas that Chat Completions accepts at `base_url`; `None` if they depend on the model.
pub(crate) fn schemas_at(base_url: &str) -> Option<SchemaDialect> {
    served_at(base_url).and_then(|known| known.schemas)
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

    /// The placeholder of the address is never called: it may belong to somebody else.
    #[test]
    fn azure_key_needs_an_endpoint() {
        let key = ("AZURE_OPENAI_API_KEY", "k");
        let missing = configured("azure", &[key]).require_key().unwrap_err();
        assert_eq!(
            missing.hint,
            "AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY"
        );
        let endpoint = ("AZURE_OPENAI_ENDPOINT", "https://acme.openai.azure.com");
        assert_eq!(configured("azure", &[key, endpoint]).require_key(), Ok(()));
    }

    #[test]
    fn azure_endpoint_is_accepted_in_every_form() {
        for endpoint in [
            "https://acme.openai.azure.com",
            "https://acme.openai.azure.com/",
            "https://acme.openai.azure.com/openai",
            "https://acme.openai.azure.com/openai/v1/",
        ] {
            let azure = configured("azure", &[("AZURE_OPENAI_ENDPOINT", endpoint)]);
            assert_eq!(azure.base_url, "https://acme.openai.azure.com/openai/v1");
            assert_eq!(azure.key_hint, "AZURE_OPENAI_API_KEY", "{endpoint}");
            assert_eq!(azure.api, Api::OpenAiResponses, "{endpoint}");
            let mut moved = configured("azure", &[]);
            moved.move_to(endpoint);
            assert_eq!(moved.base_url, azure.base_url, "{endpoint}");
            assert_eq!(moved.api, Api::OpenAiResponses, "{endpoint}");
        }
    }

    #[test]
    fn hosts_of_a_provider_share_its_quirks() {
        for (one, other) in [
            ("https://api.moonshot.ai/v1", "https://api.moonshot.cn/v1"),
            (
                "https://api.z.ai/api/paas/v4",
                "https://open.bigmodel.cn/api/paas/v4",
            ),
            ("https://api.together.ai/v1", "https://api.together.xyz/v1"),
            (
                "https://api.openai.com/v1",
                "https://acme.openai.azure.com/openai/v1",
            ),
            (
                "https://acme.openai.azure.com/openai/v1",
                "https://acme.openai.azure.us/openai/v1",
            ),
            (
                "https://acme.openai.azure.com/openai/v1",
                "https://acme.openai.azure.cn/openai/v1",
            ),
            ("https://api.moonshot.ai/v1", "https://api.kimi.com/v1"),
        ] {
            let quirks = |url| quirks_at(url, "kimi-k2.6");
            assert_eq!(quirks(one), quirks(other), "{one}");
            assert_ne!(quirks(one), quirks("http://127.0.0.1/v1"), "{one}");
        }
        for near in [
            "https://notopenai.com/v1",
            "https://openai.com.example/v1",
            "no url",
        ] {
            assert_eq!(quirks_at(near, "m"), Quirks::DEFAULT, "{near}");
        }
    }

    /// Each provider can be told apart, and has what its user needs to set it up.
    #[test]
    fn providers_are_complete_and_distinct() {
        let mut seen = std::collections::HashSet::new();
        for known in PROVIDERS {
            assert!(seen.insert(known.name), "{}", known.name);
            assert!(seen.insert(known.url_variable), "{}", known.url_variable);
            assert!(seen.insert(known.base_url), "{}", known.base_url);
            assert!(known.key_variable.ends_with("_KEY") || known.key_variable == "HF_TOKEN");
            let serves_itself = host_of(known.base_url).is_some_and(|host| known.serves(&host));
            assert_eq!(serves_itself, known.needs_key, "{}", known.name);
        }
    }

    #[test]
    fn google_has_two_key_variables_and_a_version() {
        let key = |set: &[(&str, &str)]| {
            let key = configured("google", set).key;
            key.map(|key| key.expose_secret().to_owned())
        };
        let (first, second) = (("GEMINI_API_KEY", "g1"), ("GOOGLE_API_KEY", "g2"));
        assert_eq!(key(&[first, second]).as_deref(), Some("g1"));
        assert_eq!(key(&[second]).as_deref(), Some("g2"));
        assert_eq!(configured("google", &[]).key_hint, "GEMINI_API_KEY");
        for (url, expected) in [
            ("https://proxy.example/", "https://proxy.example/v1beta"),
            ("http://h:1/gemini/v1/", "http://h:1/gemini/v1"),
        ] {
            let provider = configured("google", &[("GEMINI_BASE_URL", url)]);
            assert_eq!(provider.base_url, expected);
        }
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
            let quirks = quirks_at(url, "m").with_user_limit();
            assert_eq!(
                (quirks.limit, quirks.has_user_limit),
                (field, true),
                "{url}"
            );
        }
    }

    /// Quirk 36.
    // proves: RESPONSES-36
    #[test]
    fn responses_is_the_default_at_openai_only() {
        let chosen = |url: &str| configured("openai", &[("OPENAI_BASE_URL", url)]).api;
        assert_eq!(configured("openai", &[]).api, Api::OpenAiResponses);
        for url in [
            "https://api.openai.com/v1",
            "https://eu.api.openai.com/v1",
            "https://desk.openai.azure.com/openai/v1/",
            "https://desk.services.ai.azure.com/openai/v1",
            "https://desk.openai.azure.us/openai/v1",
            "https://desk.openai.azure.cn/openai/v1",
        ] {
            assert_eq!(chosen(url), Api::OpenAiResponses, "{url}");
        }
        for url in [
            "http://127.0.0.1:8080/v1",
            "https://notopenai.com/v1",
            "https://openai.com.example/v1",
            "https://desk.openai.azure.com/openai/deployments/gpt",
            "https://proxy.example/openai/v1",
            "https://notazure.com/openai/v1",
        ] {
            assert_eq!(chosen(url), Api::OpenAi, "{url}");
        }
        assert_eq!(configured("ollama", &[]).api, Api::OpenAi);
    }

    #[test]
    fn api_follows_the_address_unless_chosen() {
        let mut provider = configured("openai", &[]);
        provider.move_to("http://h/v1");
        assert_eq!(
            (provider.api, provider.base_url.as_str()),
            (Api::OpenAi, "http://h/v1")
        );
        provider.move_to("https://api.openai.com/v1");
        assert_eq!(provider.api, Api::OpenAiResponses);
        provider.api = Api::OpenAi;
        provider.move_to("https://eu.api.openai.com/v1");
        assert_eq!(provider.api, Api::OpenAi);
        let mut google = configured("google", &[]);
        google.move_to("https://generativelanguage.googleapis.com");
        assert!(google.has_default_address(), "{google:?}");
        google.move_to("https://proxy.example/gemini");
        assert_eq!(google.base_url, "https://proxy.example/gemini");
        let mut own = ProviderConfig::new("desk", Api::OpenAiResponses, "http://h/v1");
        own.move_to("http://i/v1");
        assert_eq!(own.api, Api::OpenAiResponses);
    }
}
