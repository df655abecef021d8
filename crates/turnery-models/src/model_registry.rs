//! Resolves names such as `anthropic/claude-sonnet-4-5` to models of the configured providers.

use crate::{
    Api, CallLimits, MissingKeyError, Model, ModelInfo, OfflineModel, ProviderConfig,
    ProviderSource, ScriptedModel,
    anthropic::{self, Anthropic},
    http::Endpoint,
    model_catalogue,
    model_overrides::{ModelOverride, ModelOverrides},
    openai::{self, OpenAi},
    provider::strip_credentials,
    remote_model::RemoteModel,
};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, str::FromStr, sync::Arc};
use turnery_engine::Price;

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
        Ok(Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }
}

/// Error of a name that matches no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no model is called {name:?}: {hint}")]
pub struct UnknownModelError {
    /// Name as written.
    pub name: String,
    /// What to write instead, or what is missing.
    pub hint: String,
}

/// All available models.
pub struct ModelRegistry {
    providers: Arc<dyn ProviderSource>,
    limits: CallLimits,
    own: Vec<Arc<dyn Model>>,
    overrides: ModelOverrides,
}

impl ModelRegistry {
    /// Creates a registry of these providers, in addition to the built-in `offline` and `scripted`.
    #[must_use]
    pub fn new(providers: Vec<ProviderConfig>) -> Self {
        let fixed: Arc<[ProviderConfig]> = providers.into();
        Self::from_source(Arc::new(fixed))
    }

    /// Creates a registry whose providers and keys may change at run time.
    #[must_use]
    pub fn from_source(providers: Arc<dyn ProviderSource>) -> Self {
        Self {
            providers,
            limits: CallLimits::default(),
            own: Vec::new(),
            overrides: ModelOverrides::default(),
        }
    }

    /// Adds facts configured by the user. For models added with [`with_model`](Self::with_model) only the
    /// price is used.
    #[must_use]
    pub fn with_overrides(
        mut self,
        facts: impl IntoIterator<Item = (ModelName, ModelOverride)>,
    ) -> Self {
        self.overrides.extend(facts);
        self
    }

    /// Returns the configured price of a model.
    #[must_use]
    pub fn price(&self, name: &ModelName) -> Option<Price> {
        self.overrides.of(name).price
    }

    /// Returns true if any model has a configured price.
    #[must_use]
    pub fn has_prices(&self) -> bool {
        self.overrides.has_prices()
    }

    /// Returns the price of a model by the `provider/model` of a record.
    #[must_use]
    pub fn recorded_price(&self, recorded: &str) -> Option<Price> {
        let (provider, model) = recorded.split_once('/')?;
        self.price(&ModelName {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }

    /// Adds a model of the host under the name that the model reports.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn Model>) -> Self {
        self.own.push(model);
        self
    }

    /// Sets the limits of all calls.
    #[must_use]
    pub fn limits(self, limits: CallLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the model with this name. Does not access the network; a missing key is reported by the call.
    pub fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, UnknownModelError> {
        let unknown = |hint: String| UnknownModelError {
            name: name.to_string(),
            hint,
        };
        if let Some(own) = self.own.iter().find(|own| own.info().name == *name) {
            return Ok(Arc::clone(own));
        }
        match name.provider.as_str() {
            "offline" => return Ok(Arc::new(OfflineModel::new())),
            "scripted" => {
                let scripted = ScriptedModel::open(Path::new(&name.model));
                let mut scripted = scripted.map_err(|error| unknown(error.to_string()))?;
                self.apply_overrides(scripted.info_mut());
                return Ok(Arc::new(scripted));
            }
            _ => {}
        }
        let providers = self.providers.now();
        let Some(provider) = providers.iter().find(|p| p.name == name.provider) else {
            let names: Vec<&str> = providers.iter().map(|p| p.name.as_str()).collect();
            let known = names.join(", ");
            return Err(unknown(format!(
                "write it as provider/model; the providers are {known}, and offline"
            )));
        };
        if name.model.is_empty() {
            let example = provider.models.first().map_or("MODEL", String::as_str);
            return Err(unknown(format!(
                "name the model too, as in {}/{example}",
                provider.name
            )));
        }
        let info = self.info(provider, name.clone());
        let endpoint = |path| {
            let live = Arc::clone(&self.providers);
            Endpoint::new(provider, &name.model, path, &self.limits).live(live)
        };
        Ok(match provider.api {
            Api::Anthropic => {
                let endpoint = endpoint(anthropic::PATH);
                Arc::new(RemoteModel::new(info, endpoint, &self.limits, Anthropic))
            }
            Api::OpenAi => {
                let endpoint = endpoint(openai::PATH);
                let mut dialect = OpenAi::new(&provider.base_url);
                if self.overrides.of(name).max_output.is_some() {
                    dialect = dialect.choosing_limit();
                }
                Arc::new(RemoteModel::new(info, endpoint, &self.limits, dialect))
            }
        })
    }

    /// Starts looking up the keys that the next call will need.
    pub fn prefetch_keys(&self) {
        self.providers.look_ahead();
    }

    /// Finds out which local servers respond, for [`list_models`](Self::list_models). Takes a short and
    /// bounded time.
    pub async fn discover_servers(&self) {
        self.providers.discover().await;
    }

    /// Checks that the provider of a model has the key that it needs, as far as known without a request to it.
    pub fn require_key(&self, name: &ModelName) -> Result<(), MissingKeyError> {
        if self.own.iter().any(|own| own.info().name == *name) {
            return Ok(());
        }
        let providers = self.providers.now();
        match providers.iter().find(|it| it.name == name.provider) {
            Some(provider) => provider.require_key(),
            None => Ok(()),
        }
    }

    /// Returns true if there is a key for this model.
    #[must_use]
    pub fn has_key(&self, name: &ModelName) -> bool {
        let providers = self.providers.now();
        let its = providers.iter().find(|it| it.name == name.provider);
        its.is_some_and(|provider| provider.key.is_some())
    }

    /// Returns the models to list: those of usable providers, then `offline`.
    #[must_use]
    pub fn list_models(&self) -> Vec<ModelInfo> {
        let providers = self.providers.offered();
        providers
            .iter()
            .filter(|provider| provider.require_key().is_ok())
            .flat_map(|provider| {
                provider.models.iter().map(|model| {
                    let name = ModelName {
                        provider: provider.name.clone(),
                        model: model.clone(),
                    };
                    self.info(provider, name)
                })
            })
            .chain(self.own.iter().map(|own| own.info().clone()))
            .chain([OfflineModel::new().info().clone()])
            .collect()
    }

    /// Returns the known facts about a model of `provider`.
    fn info(&self, provider: &ProviderConfig, name: ModelName) -> ModelInfo {
        let known = model_catalogue::look_up(&name.model);
        let mut info = ModelInfo {
            display_name: name.model.clone(),
            context_window: known.map(|known| known.context),
            max_output: known.map_or(8192, |known| known.output),
            images: known.is_none_or(|known| known.images),
            audio: known.is_some_and(|known| known.audio),
            reasoning: known.is_none_or(|known| known.reasoning),
            api: match provider.api {
                Api::Anthropic => anthropic::API_NAME,
                Api::OpenAi => openai::API_NAME,
            },
            base_url: Some(strip_credentials(&provider.base_url)),
            name,
        };
        self.apply_overrides(&mut info);
        // Overrides do not matter: this API has no format for audio.
        info.audio &= provider.api != Api::Anthropic;
        info
    }

    /// Applies the user's overrides, which take precedence over built-in facts.
    fn apply_overrides(&self, info: &mut ModelInfo) {
        let facts = self.overrides.of(&info.name);
        info.context_window = facts.context_window.or(info.context_window);
        info.max_output = facts.max_output.unwrap_or(info.max_output);
        info.images = facts.images.unwrap_or(info.images);
        info.audio = facts.audio.unwrap_or(info.audio);
        info.reasoning = facts.reasoning.unwrap_or(info.reasoning);
    }
}
