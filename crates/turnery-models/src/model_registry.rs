//! Resolves names such as `anthropic/claude-sonnet-4-5` to models of the configured providers.

use crate::{
    endpoint::Endpoint,
    model::{Model, ModelInfo},
    model_catalogue,
    model_name::{ModelName, UnknownModelError},
    model_overrides::{ModelOverride, ModelOverrides},
    offline::OfflineModel,
    provider::{CallLimits, MissingKeyError, ProviderConfig, ProviderSource, strip_credentials},
    scripted::ScriptedModel,
};
use std::{path::Path, sync::Arc};
use turnery_engine::Price;

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
        self.price(&ModelName::new(provider, model))
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
            "offline" => return Ok(Arc::new(OfflineModel::default())),
            "scripted" => {
                let scripted = ScriptedModel::open(Path::new(&name.model));
                let mut scripted = scripted.map_err(|error| unknown(error.to_string()))?;
                self.apply_overrides(scripted.info_mut());
                return Ok(Arc::new(scripted));
            }
            _ => {}
        }
        let providers = self.providers.current();
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
        let path = provider.api.descriptor().path;
        let endpoint = Endpoint::new(provider, &name.model, path, &self.limits);
        let endpoint = endpoint.with_key_source(Arc::clone(&self.providers));
        let is_limit_chosen = self.overrides.of(name).max_output.is_some();
        let limits = &self.limits;
        Ok(provider
            .api
            .model(info, endpoint, limits, &provider.base_url, is_limit_chosen))
    }

    /// Starts looking up the keys that the next call will need.
    pub fn prefetch_keys(&self) {
        self.providers.prefetch();
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
        let providers = self.providers.current();
        match providers.iter().find(|it| it.name == name.provider) {
            Some(provider) => provider.require_key(),
            None => Ok(()),
        }
    }

    /// Returns true if there is a key for this model.
    #[must_use]
    pub fn has_key(&self, name: &ModelName) -> bool {
        let providers = self.providers.current();
        let its = providers.iter().find(|it| it.name == name.provider);
        its.is_some_and(|provider| provider.key.is_some())
    }

    /// Returns the models to list: those of usable providers, then those added with
    /// [`with_model`](Self::with_model), then `offline`.
    #[must_use]
    pub fn list_models(&self) -> Vec<ModelInfo> {
        let providers = self.providers.offered();
        providers
            .iter()
            .filter(|provider| provider.require_key().is_ok())
            .flat_map(|provider| {
                let names = provider.models.iter();
                names.map(|model| self.info(provider, ModelName::new(&provider.name, model)))
            })
            .chain(self.own.iter().map(|own| own.info().clone()))
            .chain([OfflineModel::default().info().clone()])
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
            api: provider.api.descriptor().record_name,
            base_url: Some(strip_credentials(&provider.base_url)),
            name,
        };
        self.apply_overrides(&mut info);
        // Overrides do not matter: not every API has a format for audio.
        info.audio &= provider.api.descriptor().takes_audio;
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
