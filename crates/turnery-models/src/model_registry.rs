//! Resolves names such as `anthropic/claude-sonnet-4-5` to models of the configured providers.

use crate::{
    endpoint::Endpoint,
    fallback::FallbackModel,
    model::{Model, ModelInfo},
    model_catalogue::{self, CataloguePrice},
    model_name::{ModelName, UnknownModelError},
    model_overrides::{ModelOverride, ModelOverrides},
    offline::OfflineModel,
    provider::{CallLimits, MissingKeyError, ProviderConfig, ProviderSource, strip_credentials},
    scripted::ScriptedModel,
};
use futures_util::future::BoxFuture;
use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use turnery_engine::Price;

/// All available models.
pub struct ModelRegistry {
    providers: Arc<dyn ProviderSource>,
    limits: CallLimits,
    own: Vec<Arc<dyn Model>>,
    overrides: ModelOverrides,
    fallback: Vec<ModelName>,
    last_lookup: Mutex<Option<CatalogueLookup>>,
}

/// Last lookup of a price in the catalogue: each turn has several for the same model.
struct CatalogueLookup {
    base_url: String,
    model: String,
    price: Option<CataloguePrice>,
}

/// Output limit of models without a known one, also sent to servers without a key: a model on one's own machine that does
/// not stop would run for minutes. Unit: tokens.
pub const DEFAULT_MAX_OUTPUT: u32 = 8192;

/// Largest output limit of well-known models on servers without a key. Unit: tokens.
const MAX_LOCAL_OUTPUT: u32 = 16_384;

/// Largest output limit that is requested of a model whose context window holds input and output together. Unit: tokens.
const MAX_SHARED_OUTPUT: u32 = 65_536;

/// Where a price comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceSource {
    /// The user's configuration.
    Configuration,
    /// The built-in catalogue of this date (`YYYY-MM-DD`), from this page.
    Catalogue {
        /// Date.
        date: &'static str,
        /// Page of the provider.
        page: &'static str,
    },
    /// The provider's list of models.
    Provider,
    /// A built-in model, which is free.
    BuiltIn,
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
            fallback: Vec::new(),
            last_lookup: Mutex::default(),
        }
    }

    /// Sets the models that take over in [`with_fallbacks`](Self::with_fallbacks), in order.
    #[must_use]
    pub fn with_fallback_chain(mut self, chain: Vec<ModelName>) -> Self {
        self.fallback = chain;
        self
    }

    /// Returns `model` with its fallbacks: the models of the chain, or those after its own place in the chain. When a
    /// call fails before its first delta because the model is not available, the next model that can be used makes it;
    /// see [`RetryNotice::takeover`](crate::RetryNotice::takeover). `needs_price`: models without a known price are
    /// passed over.
    #[must_use]
    pub fn with_fallbacks(
        self: &Arc<Self>,
        model: &Arc<dyn Model>,
        needs_price: bool,
    ) -> Arc<dyn Model> {
        let name = &model.info().name;
        let place = self.fallback.iter().position(|it| it == name);
        let rest = self
            .fallback
            .iter()
            .skip(place.map_or(0, |place| place + 1));
        let rest: Vec<ModelName> = rest.filter(|it| *it != name).cloned().collect();
        match rest.is_empty() {
            true => Arc::clone(model),
            false => Arc::new(FallbackModel {
                first: Arc::clone(model),
                rest,
                registry: Arc::clone(self),
                needs_price,
            }),
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

    /// Returns the price of a model, if known.
    #[must_use]
    pub fn price(&self, name: &ModelName) -> Option<Price> {
        self.price_and_source(name).map(|(price, _)| price)
    }

    /// Returns the price of a model and where it comes from: the user's configuration, else the built-in catalogue, else
    /// the list of models of its provider. Built-in models are free.
    #[must_use]
    pub fn price_and_source(&self, name: &ModelName) -> Option<(Price, PriceSource)> {
        if let Some(price) = self.overrides.of(name).price {
            return Some((price, PriceSource::Configuration));
        }
        if name.provider == "offline" {
            return Some((Price::default(), PriceSource::BuiltIn));
        }
        let providers = self.providers.current();
        let provider = providers.iter().find(|it| it.name == name.provider)?;
        if let Some(known) = self.catalogue_price(&provider.base_url, &name.model) {
            let CataloguePrice {
                price,
                source: page,
                date,
            } = known;
            return Some((price, PriceSource::Catalogue { date, page }));
        }
        let served = self.providers.served_model(provider, &name.model)?;
        Some((served.price?, PriceSource::Provider))
    }

    fn catalogue_price(&self, base_url: &str, model: &str) -> Option<CataloguePrice> {
        let last = self.last_lookup.lock();
        let mut last = last.unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.base_url == base_url
            && last.model == model
        {
            return last.price;
        }
        let price = model_catalogue::price_at(base_url, model);
        *last = Some(CatalogueLookup {
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            price,
        });
        price
    }

    /// Returns true if the user configured the price of a model.
    #[must_use]
    pub fn is_price_configured(&self, name: &ModelName) -> bool {
        self.overrides.of(name).price.is_some()
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
        let info = self.info(provider, &ServerFacts::new(provider), name.clone());
        let path = provider.api.descriptor().path;
        let endpoint = Endpoint::new(provider, &name.model, path, &self.limits);
        let endpoint = endpoint.with_key_source(Arc::clone(&self.providers));
        let is_limit_chosen = provider.is_keyless() || self.overrides.of(name).max_output.is_some();
        let limits = &self.limits;
        Ok(provider
            .api
            .model(info, endpoint, limits, &provider.base_url, is_limit_chosen))
    }

    /// Starts looking up the keys that the next call will need.
    pub fn prefetch_keys(&self) {
        self.providers.prefetch();
    }

    /// Finds out which servers without a key respond, for [`list_models`](Self::list_models). Takes a short and bounded
    /// time.
    pub async fn discover_servers(&self) {
        self.providers.discover().await;
    }

    /// Queries providers with a key for the models that [`list_models`](Self::list_models) lacks; `None` if it has them.
    /// Takes a bounded time.
    #[must_use]
    pub fn missing_lists(&self) -> Option<BoxFuture<'static, ()>> {
        self.providers.missing_lists()
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
        let providers = self.providers.current();
        providers
            .iter()
            .filter(|provider| self.is_listed(provider))
            .flat_map(|provider| {
                let server = ServerFacts::new(provider);
                let info = move |model| {
                    self.info(provider, &server, ModelName::new(&provider.name, model))
                };
                provider.models.iter().map(info)
            })
            .chain(self.own.iter().map(|own| own.info().clone()))
            .chain([OfflineModel::default().info().clone()])
            .collect()
    }

    /// Returns the names of the models that [`list_models`](Self::list_models) returns, in the same order.
    #[must_use]
    pub fn list_names(&self) -> Vec<ModelName> {
        let providers = self.providers.current();
        let listed = providers.iter().filter(|provider| self.is_listed(provider));
        listed
            .flat_map(|provider| {
                let name = |model| ModelName::new(&provider.name, model);
                provider.models.iter().map(name)
            })
            .chain(self.own.iter().map(|own| own.info().name.clone()))
            .chain([OfflineModel::default().info().name.clone()])
            .collect()
    }

    fn is_listed(&self, provider: &ProviderConfig) -> bool {
        !provider.models.is_empty()
            && self.providers.is_offered(provider)
            && provider.require_key().is_ok()
    }

    /// Returns the known facts about a model of `provider`: built-in ones, then what its server states, then the user's.
    fn info(&self, provider: &ProviderConfig, server: &ServerFacts, name: ModelName) -> ModelInfo {
        let known = model_catalogue::look_up(&name.model);
        let served = self.providers.served_model(provider, &name.model);
        let served = served.unwrap_or_default();
        let window = served.context_window.or(known.map(|known| known.context));
        let output = served.max_output.or(known.map(|known| known.output));
        let mut info = ModelInfo {
            display_name: name.model.clone(),
            context_window: window,
            max_output: match provider.is_keyless() {
                true => local_max_output(output, window),
                false => max_output(output, window),
            },
            images: served
                .images
                .unwrap_or_else(|| known.is_none_or(|known| known.images)),
            audio: known.is_some_and(|known| known.audio),
            documents: known.is_some_and(|known| known.documents),
            reasoning: known.is_none_or(|known| known.reasoning),
            api: provider.api.descriptor().record_name,
            base_url: Some(server.shown_url.clone()),
            name,
        };
        self.apply_overrides(&mut info);
        // Overrides do not matter: not every API has a format for audio.
        info.audio &= provider.api.descriptor().takes_audio;
        info.documents &= server.takes_documents;
        info
    }

    /// Applies the user's overrides, which take precedence over built-in facts.
    fn apply_overrides(&self, info: &mut ModelInfo) {
        let facts = self.overrides.of(&info.name);
        info.context_window = facts.context_window.or(info.context_window);
        info.max_output = facts.max_output.unwrap_or(info.max_output);
        info.images = facts.images.unwrap_or(info.images);
        info.audio = facts.audio.unwrap_or(info.audio);
        info.documents = facts.documents.unwrap_or(info.documents);
        info.reasoning = facts.reasoning.unwrap_or(info.reasoning);
    }
}

/// Facts that a provider's address tells about all of its models.
struct ServerFacts {
    /// Address without credentials.
    shown_url: String,
    takes_documents: bool,
}

impl ServerFacts {
    fn new(provider: &ProviderConfig) -> Self {
        Self {
            shown_url: strip_credentials(&provider.base_url),
            takes_documents: provider.api.takes_documents(&provider.base_url),
        }
    }
}

/// Returns the output limit to request. A limit of more than half of the window is that of input and output together:
/// requested in full, it would leave no room for the input.
fn max_output(stated: Option<u32>, window: Option<u32>) -> u32 {
    let Some(stated) = stated else {
        return DEFAULT_MAX_OUTPUT;
    };
    match window {
        Some(window) if stated > window / 2 => stated.min(window / 4).clamp(1, MAX_SHARED_OUTPUT),
        Some(_) | None => stated,
    }
}

/// Returns the output limit of a model on a server without a key. Some of these servers reject requests whose input and
/// limit exceed the window, so the limit is at most a quarter of it.
fn local_max_output(stated: Option<u32>, window: Option<u32>) -> u32 {
    let limit = stated.map_or(DEFAULT_MAX_OUTPUT, |stated| stated.min(MAX_LOCAL_OUTPUT));
    window.map_or(limit, |window| limit.min(window / 4).max(1))
}
