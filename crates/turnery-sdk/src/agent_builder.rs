//! Builds an agent.

use std::{env, sync::Arc};
use turnery_agent::{Agent, EffectHandler, Settings, TraceSink};
use turnery_engine::Limits;
use turnery_models::{Model, ModelName, ModelRegistry, ProviderConfig, UnknownModelError};
use turnery_store::{MemoryStore, Store};
use turnery_tools::{Tool, Toolbox};

/// Builder of an [`Agent`]. By default it has no tools, its sessions are kept in memory, and the standard
/// providers are configured by their environment variables (`ANTHROPIC_API_KEY`, `OPENAI_BASE_URL`, ...).
#[must_use = "an agent is created by `build`"]
pub struct AgentBuilder {
    settings: Settings,
    models: ModelRegistry,
    tools: Toolbox,
    store: Arc<dyn Store>,
    trace: Option<Arc<dyn TraceSink>>,
}

impl AgentBuilder {
    /// Creates the builder of an agent that uses a model of a standard provider, for example
    /// `anthropic/claude-sonnet-4-6` or `openai/gpt-5-mini`. Fails if the provider is empty. An unknown
    /// model or a missing key is an error of opening a session.
    pub fn new(model: &str) -> Result<Self, UnknownModelError> {
        let providers = ProviderConfig::standard_from_env(&|name| env::var(name).ok());
        Ok(Self::of(model.parse()?, ModelRegistry::new(providers)))
    }

    /// Creates the builder of an agent that uses a model of its own, for example a scripted one in a test.
    pub fn with_model(model: impl Model) -> Self {
        let name = model.info().name.clone();
        let models = ModelRegistry::new(Vec::new()).with_model(Arc::new(model));
        Self::of(name, models)
    }

    fn of(model: ModelName, models: ModelRegistry) -> Self {
        Self {
            settings: Settings::new(model, ""),
            models,
            tools: Toolbox::new(Vec::new()),
            store: Arc::new(MemoryStore::new()),
            trace: None,
        }
    }

    /// Replaces the models that sessions may use, for providers with other addresses or keys.
    pub fn models(mut self, models: ModelRegistry) -> Self {
        self.models = models;
        self
    }

    /// Sets the system prompt.
    pub fn system(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.settings.system = prompt.into();
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools = self.tools.with_tool(tool);
        self
    }

    /// Replaces the tools, for example by [`Toolbox::coding`]. Tools that access files need sessions with a
    /// [folder](crate::SessionBuilder::folder).
    pub fn tools(mut self, tools: Toolbox) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the limits of each prompt.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Delivers the effects that tools request to `handler`, after the commit of their loop and again after a crash.
    /// [`Settings::effect_policy`] says which.
    pub fn effects(mut self, handler: impl EffectHandler) -> Self {
        self.settings.effect_handler = Some(Arc::new(handler));
        self
    }

    /// Changes any of the settings of its sessions: mode, rules, hooks, temperature, ...
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Sets the store of its sessions, for example a [`SqliteStore`](turnery_store::SqliteStore).
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }

    /// Reports every model call to `sink`.
    pub fn trace(mut self, sink: Arc<dyn TraceSink>) -> Self {
        self.trace = Some(sink);
        self
    }

    /// Creates the agent.
    #[must_use]
    pub fn build(self) -> Agent {
        let (models, settings) = (Arc::new(self.models), Arc::new(self.settings));
        let agent = Agent::new(self.store, models, self.tools, settings);
        match self.trace {
            Some(sink) => agent.with_trace(sink),
            None => agent,
        }
    }
}
