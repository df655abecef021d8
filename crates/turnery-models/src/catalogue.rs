//! Catalogue: which providers there are, and how a name such as `anthropic/claude-sonnet-4-5` becomes a model.

use crate::{
    Api, CallLimits, MissingKey, Model, ModelInfo, Offline, ProviderConfig, Providers, Scripted,
    anthropic::{self, Anthropic},
    facts::{Facts, ModelFacts},
    http::Endpoint,
    known,
    openai::{self, OpenAi},
    provider::without_credentials,
    remote::Remote,
};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path, str::FromStr, sync::Arc};
use turnery_engine::Price;

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

/// All models within reach.
pub struct Catalogue {
    providers: Arc<dyn Providers>,
    limits: CallLimits,
    own: Vec<Arc<dyn Model>>,
    facts: Facts,
}

impl Catalogue {
    /// A catalogue of these providers, besides the built-in `offline` and `scripted`.
    #[must_use]
    pub fn new(providers: Vec<ProviderConfig>) -> Self {
        let fixed: Arc<[ProviderConfig]> = providers.into();
        Self::over(Arc::new(fixed))
    }

    /// The same, of providers whose keys may change meanwhile.
    #[must_use]
    pub fn over(providers: Arc<dyn Providers>) -> Self {
        Self {
            providers,
            limits: CallLimits::default(),
            own: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// The same, with what a person says of these models. Models that a host brings along say
    /// everything but their price themselves.
    #[must_use]
    pub fn with_facts(mut self, facts: impl IntoIterator<Item = (ModelName, ModelFacts)>) -> Self {
        self.facts.extend(facts);
        self
    }

    /// What the model of that name costs, if somebody said so.
    #[must_use]
    pub fn price(&self, name: &ModelName) -> Option<Price> {
        self.facts.of(name).price
    }

    /// Whether somebody said what any model costs.
    #[must_use]
    pub fn has_prices(&self) -> bool {
        self.facts.have_prices()
    }

    /// The price of a model, by the `provider/model` of a record.
    #[must_use]
    pub fn price_of(&self, recorded: &str) -> Option<Price> {
        let (provider, model) = recorded.split_once('/')?;
        self.price(&ModelName {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }

    /// The same, and this model by the name that it gives itself: for models that a host brings along.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn Model>) -> Self {
        self.own.push(model);
        self
    }

    /// The same, with other limits for all calls.
    #[must_use]
    pub fn limits(self, limits: CallLimits) -> Self {
        Self { limits, ..self }
    }

    /// The model of that name. Does not touch the network. A missing key is found out by the call.
    pub fn model(&self, name: &ModelName) -> Result<Arc<dyn Model>, UnknownModel> {
        let unknown = |hint: String| UnknownModel {
            name: name.to_string(),
            hint,
        };
        if let Some(own) = self.own.iter().find(|own| own.info().name == *name) {
            return Ok(Arc::clone(own));
        }
        match name.provider.as_str() {
            "offline" => return Ok(Arc::new(Offline::new())),
            "scripted" => {
                let scripted = Scripted::open(Path::new(&name.model));
                let mut scripted = scripted.map_err(|error| unknown(error.to_string()))?;
                self.tell(scripted.info_mut());
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
                Arc::new(Remote::new(info, endpoint, &self.limits, Anthropic))
            }
            Api::OpenAi => {
                let endpoint = endpoint(openai::PATH);
                let mut dialect = OpenAi::new(&provider.base_url);
                if self.facts.of(name).max_output.is_some() {
                    dialect = dialect.choosing_limit();
                }
                Arc::new(Remote::new(info, endpoint, &self.limits, dialect))
            }
        })
    }

    /// Has the keys looked up that a call of a model needs, which is about to be made.
    pub fn look_ahead(&self) {
        self.providers.look_ahead();
    }

    /// Finds out which servers of the user's own answer, for [`list`](Self::list). Takes a short and bounded time.
    pub async fn discover(&self) {
        self.providers.discover().await;
    }

    /// Whether the model of that name has the key that it needs, as far as can be said without asking
    /// its provider.
    pub fn ready(&self, name: &ModelName) -> Result<(), MissingKey> {
        if self.own.iter().any(|own| own.info().name == *name) {
            return Ok(());
        }
        let providers = self.providers.now();
        match providers.iter().find(|it| it.name == name.provider) {
            Some(provider) => provider.ready(),
            None => Ok(()),
        }
    }

    /// Whether there is a key for the model of that name.
    #[must_use]
    pub fn has_key(&self, name: &ModelName) -> bool {
        let providers = self.providers.now();
        let its = providers.iter().find(|it| it.name == name.provider);
        its.is_some_and(|provider| provider.key.is_some())
    }

    /// The models to offer in a list: those of providers that can be used now, then `offline`.
    #[must_use]
    pub fn list(&self) -> Vec<ModelInfo> {
        let providers = self.providers.offered();
        providers
            .iter()
            .filter(|provider| provider.ready().is_ok())
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
            .chain([Offline::new().info().clone()])
            .collect()
    }

    /// What is known of a model of `provider`.
    fn info(&self, provider: &ProviderConfig, name: ModelName) -> ModelInfo {
        let known = known::look_up(&name.model);
        let mut info = ModelInfo {
            display_name: name.model.clone(),
            context_window: known.map(|known| known.context),
            max_output: known.map_or(8192, |known| known.output),
            images: known.is_none_or(|known| known.images),
            audio: known.is_some_and(|known| known.audio),
            reasoning: known.is_none_or(|known| known.reasoning),
            api: match provider.api {
                Api::Anthropic => anthropic::API,
                Api::OpenAi => openai::API,
            },
            base_url: Some(without_credentials(&provider.base_url)),
            name,
        };
        self.tell(&mut info);
        // Whatever is said of the model: there is no way to send it one.
        info.audio &= provider.api != Api::Anthropic;
        info
    }

    /// What a person says of a model counts more than its name.
    fn tell(&self, info: &mut ModelInfo) {
        let facts = self.facts.of(&info.name);
        info.context_window = facts.context_window.or(info.context_window);
        info.max_output = facts.max_output.unwrap_or(info.max_output);
        info.images = facts.images.unwrap_or(info.images);
        info.audio = facts.audio.unwrap_or(info.audio);
        info.reasoning = facts.reasoning.unwrap_or(info.reasoning);
    }
}
