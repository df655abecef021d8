//! Names of models, such as `anthropic/claude-sonnet-4-5`.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Name of a model: `provider/model`. The model part may contain slashes (`openrouter/meta/llama`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName {
    /// Part before the first slash.
    pub provider: String,
    /// Part after the first slash; empty for providers with one model (`offline`).
    pub model: String,
}

impl ModelName {
    /// Creates the name `provider/model`.
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
        }
    }

    /// Returns the configuration segment of a loop id: letters, digits and dashes only, no dot (D-13).
    #[must_use]
    pub fn loop_id_segment(&self) -> String {
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
    type Error = UnknownModelError;
    fn try_from(text: String) -> Result<Self, UnknownModelError> {
        text.parse()
    }
}

impl FromStr for ModelName {
    type Err = UnknownModelError;
    /// Parses a name. `scripted:FILE` becomes provider `scripted`, model `FILE`.
    fn from_str(text: &str) -> Result<Self, UnknownModelError> {
        let (provider, model) = text
            .split_once('/')
            .filter(|(provider, _)| !provider.starts_with("scripted:"))
            .or_else(|| text.split_once(':').filter(|(p, _)| *p == "scripted"))
            .unwrap_or((text, ""));
        if provider.is_empty() {
            return Err(UnknownModelError {
                name: text.to_owned(),
                hint: "write it as provider/model, for example offline or openai/gpt-5".to_owned(),
            });
        }
        Ok(Self::new(provider, model))
    }
}

/// Error of a name that matches no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no model is called {name:?}: {hint}")]
pub struct UnknownModelError {
    /// Name as written.
    pub name: String,
    /// Advice on how to write the name, or the error of loading a scenario.
    pub hint: String,
}
