//! Catalogue: which providers there are, and how a name such as `anthropic/claude-sonnet-4-5` becomes a model.

use crate::{Model, ModelInfo};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, sync::Arc};

/// `provider/model`. The model part may hold further slashes (`openrouter/meta/llama`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName {
    /// The part before the first slash.
    pub provider: String,
    /// The rest; empty for providers with one model (`offline`).
    pub model: String,
}

impl ModelName {
    /// The configuration segment of a loop id: letters, digits and dashes only, no dot (D-13).
    #[must_use]
    pub fn segment(&self) -> String {
        self.to_string()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.model.is_empty() {
            f.write_str(&self.provider)
        } else {
            write!(f, "{}/{}", self.provider, self.model)
        }
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for ModelName {
    type Error = UnknownModel;
    fn try_from(text: String) -> Result<Self, UnknownModel> {
        text.parse()
    }
}

impl FromStr for ModelName {
    type Err = UnknownModel;
    /// `scripted:FILE` is read as provider `scripted`, model `FILE`.
    fn from_str(text: &str) -> Result<Self, UnknownModel> {
        let (provider, model) = text
            .split_once('/')
            .filter(|(provider, _)| !provider.starts_with("scripted:"))
            .or_else(|| text.split_once(':').filter(|(p, _)| *p == "scripted"))
            .unwrap_or((text, ""));
        if provider.is_empty() {
            return Err(UnknownModel {
                name: text.to_owned(),
                hint: "write it as provider/model, for example offline or openai/gpt-5".to_owned(),
            });
        }
        Ok(Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }
}

/// A model name that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no model is called {name:?}: {hint}")]
pub struct UnknownModel {
    /// As it was written.
    pub name: String,
    /// What to write instead, or what is missing.
    pub hint: String,
}

/// One provider, as configured.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The part before the slash: `anthropic`, `openai`, `ollama`, ...
    pub name: String,
    /// What it speaks.
    pub api: Api,
    /// For example `https://api.anthropic.com`. No trailing slash.
    pub base_url: String,
    /// From the environment or a 0600 file, never from a project. `None`: none needed, or none found.
    pub key: Option<SecretString>,
    /// Where a key is looked for, for the error that says it is missing: `ANTHROPIC_API_KEY`.
    pub key_hint: String,
    /// Models to offer, for lists; any other name is tried as well.
    pub models: Vec<String>,
}

/// The APIs that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and all servers that copy it.
    OpenAi,
}

/// All models within reach.
pub struct Catalogue {
    _providers: Vec<ProviderConfig>,
}

impl Catalogue {
    /// A catalogue of these providers, besides the built-in `offline` and `scripted`.
    #[must_use]
    pub fn new(providers: Vec<ProviderConfig>) -> Self {
        Self {
            _providers: providers,
        }
    }

    /// The model of that name. Does not touch the network.
    pub fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, UnknownModel> {
        Err(UnknownModel {
            name: name.to_string(),
            hint: String::new(),
        })
    }

    /// The models to offer in a list: those of providers that can be used now, then `offline`.
    #[must_use]
    pub fn list(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}
