//! Chooses the model of a session for which nobody has chosen one.

use turnery_models::{ModelName, ProviderConfig};

/// Returns the default model, from the first that applies:
///
/// 1. a provider that is known for general use and has a key, from the environment, the configuration or `turnery login`;
/// 2. a provider whose key `turnery login` has stored (`stored`), in the order of their names;
/// 3. any other provider with a key, in the order of the list;
/// 4. a server without a key that has answered: one at an address that the user configured; if none is configured, one at
///    a default address;
/// 5. the offline model.
pub(crate) fn choose_default_model(
    all: &[ProviderConfig],
    stored: &[String],
    has_answered: impl Fn(&ProviderConfig) -> bool,
) -> ModelName {
    let with_key = |it: &&ProviderConfig| it.key.is_some() && it.require_key().is_ok();
    let general = all
        .iter()
        .filter(|it| it.offers_default_model() && with_key(it));
    let logged_in = stored.iter().filter_map(|name| {
        let mut all = all.iter();
        all.find(|it| it.name == *name && it.require_key().is_ok())
    });
    let own = |it: &&ProviderConfig| it.is_keyless() && !it.has_default_address();
    let has_own = all.iter().any(|it| own(&it));
    let servers = all
        .iter()
        .filter(|it| it.is_keyless() && (own(it) || !has_own) && has_answered(it));
    general
        .chain(logged_in)
        .chain(all.iter().filter(with_key))
        .chain(servers)
        .find_map(first_model)
        .unwrap_or_else(|| ModelName::new("offline", ""))
}

/// Returns the first model that a provider offers, other than one for embeddings.
fn first_model(provider: &ProviderConfig) -> Option<ModelName> {
    let mut models = provider.models.iter();
    let model = models.find(|name| !name.to_ascii_lowercase().contains("embed"))?;
    Some(ModelName::new(&provider.name, model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_models::Api;

    fn provider(name: &str, url: &str, key: Option<&str>, models: &[&str]) -> ProviderConfig {
        ProviderConfig {
            key: key.map(|key| key.to_owned().into()),
            key_hint: match url.starts_with("http://") {
                true => String::new(),
                false => "A_KEY".to_owned(),
            },
            models: models.iter().map(|&model| model.to_owned()).collect(),
            ..ProviderConfig::new(name, Api::OpenAi, url)
        }
    }

    /// Each row adds a better choice to those below it.
    #[test]
    fn keys_come_before_servers_before_offline() {
        let ollama = provider(
            "ollama",
            "http://127.0.0.1:11434/v1",
            None,
            &["nomic-embed-text", "qwen3"],
        );
        let own = provider("desk", "http://desk/v1", None, &["own"]);
        let mistral = provider("mistral", "https://api.mistral.ai/v1", Some("k"), &["m1"]);
        let lab = provider("lab", "https://lab/v1", Some("k"), &["l1"]);
        let openai = provider("openai", "https://api.openai.com/v1", Some("k"), &["g1"]);
        let keyless = provider("anthropic", "https://api.anthropic.com", None, &["c1"]);
        let choose = |all: &[&ProviderConfig], stored: &[&str]| {
            let all: Vec<ProviderConfig> = all.iter().map(|&it| it.clone()).collect();
            let stored: Vec<String> = stored.iter().map(|&it| it.to_owned()).collect();
            choose_default_model(&all, &stored, |_| true).to_string()
        };
        assert_eq!(choose(&[&keyless], &[]), "offline");
        assert_eq!(choose(&[&keyless, &ollama], &[]), "ollama/qwen3");
        assert_eq!(choose(&[&keyless, &ollama, &own], &[]), "desk/own");
        assert_eq!(choose(&[&mistral, &ollama, &own], &[]), "mistral/m1");
        assert_eq!(choose(&[&mistral, &lab, &own], &["lab"]), "lab/l1");
        assert_eq!(choose(&[&mistral, &openai, &lab], &["lab"]), "openai/g1");
    }

    /// Its usual deployments are named after the models. Without an address nobody can be asked.
    #[test]
    fn azure_is_chosen_if_nothing_else_is_set_up() {
        let chosen = |variables: &[(&str, &str)]| {
            let lookup = |name: &str| {
                let mut all = variables.iter();
                all.find(|it| it.0 == name).map(|it| it.1.to_owned())
            };
            let all = ProviderConfig::standard_from_env(&lookup);
            choose_default_model(&all, &[], |_| false)
        };
        let key = ("AZURE_OPENAI_API_KEY", "k");
        let address = ("AZURE_OPENAI_ENDPOINT", "https://acme.openai.azure.com");
        assert_eq!(chosen(&[key, address]).provider, "azure");
        assert_eq!(chosen(&[key]).provider, "offline");
        let other = ("MISTRAL_API_KEY", "k");
        assert_eq!(chosen(&[key, other]).provider, "mistral");
    }

    #[test]
    fn silent_server_is_not_chosen() {
        let ollama = provider("ollama", "http://127.0.0.1:11434/v1", None, &["qwen3"]);
        let own = provider("desk", "http://desk/v1", None, &["own"]);
        let choose = |all: &[ProviderConfig], name: &str| {
            choose_default_model(all, &[], |it| it.name == name).to_string()
        };
        assert_eq!(choose(std::slice::from_ref(&ollama), "none"), "offline");
        // The user named a server: another program on this machine does not replace it.
        assert_eq!(choose(&[ollama.clone(), own.clone()], "ollama"), "offline");
        assert_eq!(choose(&[ollama, own], "desk"), "desk/own");
    }
}
