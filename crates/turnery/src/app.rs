//! Builds the agent, its tools and its store from the configuration.

use crate::{
    args::GlobalOptions,
    config::{
        Config, LiveProviders, Paths, StoreLocation, environment,
        model_lists::{QueriedProviders, is_configured},
        providers,
        store_location::STORE_VARIABLE,
        suggestion::describe_unknown_model,
    },
    logs::print_message,
    settings_resolver::SettingsSources,
    store_choice::find_store,
    telemetry,
    toolbox::toolbox,
};
use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::time::timeout;
use turnery_agent::{
    Agent, NotifyTool, Settings, SettingsError, SettingsResolver as _, TraceSink,
    notification_policy,
};
use turnery_models::{
    CallLimits, MissingKeyError, ModelName, ModelOverride, ModelRegistry, ProviderConfig,
    ProviderSource as _,
};
use turnery_store::{Durability, InlineRuntime, Store};
use turnery_tools::{EffectPolicy, Shell};

/// Time after which the user is told that a list of models is awaited.
const PATIENCE: Duration = Duration::from_secs(1);

/// Components that do not depend on the session's folder; created once per process.
pub(crate) struct App {
    /// Paths of configuration, keys and sessions.
    pub(crate) paths: Paths,
    /// All providers, including those without a key.
    pub(crate) live_providers: Arc<LiveProviders>,
    /// Model facts from the user's configuration.
    model_facts: Vec<(ModelName, ModelOverride)>,
    /// Models that take over when another one is not available.
    fallback: Vec<ModelName>,
    /// Timeouts for a silent model.
    call_limits: CallLimits,
    /// Environment variables passed to commands although their names look like those of keys.
    pass_env: Vec<String>,
    /// Where sessions are stored.
    store: anyhow::Result<StoreLocation>,
    /// What stored writes survive.
    durability: Durability,
    /// Sources of a session's settings.
    pub(crate) settings_resolver: SettingsSources,
}

impl App {
    /// Reads the user's configuration. Errors in the file are stored and reported when a session is opened: an editor
    /// shows those to the user, but would hide the message of a process that fails to start.
    pub(crate) fn load(global: &GlobalOptions, mut flags: Config) -> Self {
        flags.store = global.store.clone();
        let lookup = &environment::process_variable;
        let places = Paths::resolve(lookup, global.config.as_deref());
        let path = places.config_file.clone().unwrap_or_default();
        let file = match (&global.config, Config::read(&path)) {
            (Some(_), Ok(None)) => Err(format!("{}: no such file", path.display())),
            (_, Ok(file)) => Ok(file.unwrap_or_default()),
            (_, Err(error)) => Err(error.to_string()),
        };
        let defaults = Config::default();
        let config = file.as_ref().unwrap_or(&defaults);
        let key_files = providers::key_files(&config.providers, &path);
        let passed = config.pass_env.clone();
        let call_limits = config.limits.of_model_call();
        let known = ProviderConfig::standard_from_env(lookup);
        let configured = file.and_then(|file| {
            let providers = &file.providers;
            let providers = providers::configure_providers(known.clone(), providers, &path, lookup);
            Ok((providers.map_err(|error| error.to_string())?, file))
        });
        let (user, providers) = match configured {
            Ok((providers, file)) => (Ok(file), providers),
            Err(error) => (Err(error), known),
        };
        let config = user.as_ref().unwrap_or(&defaults);
        let model_facts = config.model_overrides().collect();
        let fallback = config.fallback.clone();
        let durability = config.durability.unwrap_or_default();
        let live_providers = Arc::new(LiveProviders::new(providers, places.key_file().ok()));
        let environment = Config::from_environment(lookup);
        let store = find_store(&flags, &environment, &user, &places, lookup);
        let mut private = places.private_paths();
        let store_files = store.as_ref().map(StoreLocation::files).unwrap_or_default();
        let is_inside = |file: &PathBuf| private.iter().any(|own| file.starts_with(own));
        let outside: Vec<PathBuf> = store_files
            .into_iter()
            .filter(|it| !is_inside(it))
            .collect();
        private.extend(outside);
        let configured =
            SettingsSources::new(user, environment, flags, Arc::clone(&live_providers))
                .with_commands_folder(places.commands_folder.clone())
                .with_guarded_paths(private, key_files);
        Self {
            paths: places,
            live_providers,
            model_facts,
            fallback,
            call_limits,
            pass_env: passed,
            store,
            durability,
            settings_resolver: configured,
        }
    }

    /// Returns the agent, with `store` as its session store. `trace` receives all that it does.
    pub(crate) fn into_agent(
        self,
        store: Arc<dyn Store>,
        trace: Option<Arc<dyn TraceSink>>,
    ) -> Agent {
        self.warn_of_unknown_fallbacks();
        // Commands never see a variable that holds a key, whatever its name.
        let hidden = self.hidden_env();
        let passed = self.pass_env.iter().filter(|name| !hidden.contains(name));
        let shell =
            Shell::hiding(hidden.iter().map(String::as_str)).passing(passed.map(String::as_str));
        // Of the effects that tools request besides their result, this host delivers notifications (C-22).
        let toolbox = match self.settings_resolver.has_notify() {
            true => toolbox(shell)
                .with_tool(NotifyTool)
                .with_effect_policy(notification_policy()),
            false => toolbox(shell).with_effect_policy(EffectPolicy::deny_all()),
        };
        let agent = Agent::new(
            store,
            Arc::new(self.model_registry()),
            toolbox,
            Arc::new(self.settings_resolver),
        )
        .with_hidden_env(hidden);
        match trace {
            Some(trace) => agent.with_trace(trace),
            None => agent,
        }
    }

    /// Names of environment variables that hold keys or passwords.
    pub(crate) fn hidden_env(&self) -> Vec<String> {
        let environment = self.settings_resolver.environment.as_ref().ok();
        let store = environment.and_then(|it| it.store.as_ref());
        let store = store.filter(|it| it.is_address());
        let providers = self.live_providers.configured().iter();
        let keys = providers.map(|it| it.key_hint.clone());
        keys.chain(telemetry::SECRET_VARIABLES.map(str::to_owned))
            .chain(store.map(|_| STORE_VARIABLE.to_owned()))
            .collect()
    }

    /// Returns the settings of a session in `roots`.
    pub(crate) fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        self.settings_resolver.settings(roots)
    }

    /// Opens the session store. With `inline`, short jobs of a SQLite file run on that runtime.
    pub(crate) fn open_store(
        &self,
        inline: Option<InlineRuntime>,
    ) -> anyhow::Result<Arc<dyn Store>> {
        match &self.store {
            Ok(location) => Ok(location.open(self.durability, inline)),
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        }
    }

    /// Returns all models, with the facts that the user configured.
    pub(crate) fn model_registry(&self) -> ModelRegistry {
        let providers: Arc<LiveProviders> = Arc::clone(&self.live_providers);
        ModelRegistry::from_source(providers)
            .with_overrides(self.model_facts.clone())
            .with_fallback_chain(self.fallback.clone())
            .limits(self.call_limits.clone())
    }

    /// Returns the settings of a session in `cwd`, or an error if the model's provider lacks its key. If no other
    /// provider is connected, the user's local servers are queried for their models first.
    pub(crate) async fn usable_settings(&self, cwd: PathBuf) -> anyhow::Result<Settings> {
        let mut settings = self.settings(std::slice::from_ref(&cwd))?;
        if settings.model.provider == "offline" && !self.settings_resolver.is_model_chosen(&cwd) {
            let providers = self.live_providers.current();
            let configured: Vec<_> = providers.iter().filter(|it| is_configured(it)).collect();
            match configured.first() {
                Some(first) => self.await_lists(first).await,
                None => self.live_providers.discover().await,
            }
            settings = self.settings(std::slice::from_ref(&cwd))?;
            if let Some(silent) = configured.first()
                && settings.model.provider == "offline"
            {
                let lists = self.live_providers.model_lists();
                if let Some(refusal) = configured.iter().find_map(|it| lists.refusal(it)) {
                    anyhow::bail!(
                        "{refusal} You can also choose another model (`turnery models` lists them)."
                    );
                }
                let failures = configured.iter().filter_map(|it| lists.failure(it));
                let failures: Vec<String> = failures.collect();
                anyhow::bail!(
                    "{} at {} does not answer with a list of models: start it, or choose another \
                     model (`turnery models` lists them). {}",
                    silent.name,
                    silent.display_url(),
                    failures.join(" ")
                );
            }
        }
        let name = &settings.model;
        let providers = self.live_providers.current();
        let provider = providers.iter().find(|it| it.name == name.provider);
        if let Some(variable) = provider.and_then(|it| it.unset_variable.as_ref()) {
            anyhow::bail!(
                "{} cannot be used: one of its headers needs the environment variable {variable}, \
                 which is not set; set it, or choose another model (`turnery models` lists them)",
                name.provider
            );
        }
        if let Some(Err(missing)) = provider.map(ProviderConfig::require_key) {
            let MissingKeyError { provider, hint } = missing;
            anyhow::bail!(
                "there is no key for {provider}: run `turnery login {provider}` or set {hint}, or \
                 choose another model (`turnery models` lists them)"
            );
        }
        Ok(settings)
    }

    /// Queries the providers that the user has set up for their models, and says so if that takes long. `first` is one of
    /// them.
    async fn await_lists(&self, first: &ProviderConfig) {
        let mut queries = pin!(
            self.live_providers
                .query_models(QueriedProviders::Configured)
        );
        if timeout(PATIENCE, &mut queries).await.is_err() {
            print_message(&format!(
                "waiting for the list of models of {} at {}",
                first.name,
                first.display_url()
            ));
            queries.await;
        }
    }

    /// Warns of names in the user's `fallback` that are probably misspelt: of an unknown provider, or of a model that is
    /// not known while another one with a similar name is.
    fn warn_of_unknown_fallbacks(&self) {
        if self.fallback.is_empty() {
            return;
        }
        let providers = self.live_providers.current();
        for name in &self.fallback {
            if let Some(warning) = describe_unknown_model(name, &providers) {
                tracing::warn!("config.toml: fallback names {name}, {warning}");
            }
        }
    }

    /// Returns the user's local server that would be used in `cwd` if it had answered with at least one model.
    pub(crate) fn silent_server(&self, settings: &Settings, cwd: &Path) -> Option<ProviderConfig> {
        if settings.model.provider != "offline" || self.settings_resolver.is_model_chosen(cwd) {
            return None;
        }
        self.live_providers
            .model_lists()
            .silent_server(&self.live_providers.current())
            .cloned()
    }
}

/// Returns the absolute working folder: `cwd`, or the current folder.
pub(crate) fn resolve_cwd(cwd: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    use anyhow::Context as _;
    let asked = cwd.unwrap_or_else(|| PathBuf::from("."));
    asked
        .canonicalize()
        .with_context(|| format!("cannot work in {}", asked.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use turnery_engine::ToolEnvelope;
    use turnery_store::MemoryStore;
    use turnery_tools::{ExecuteOptions, ExecuteScope, FunctionTool, Toolbox, Workspace, execute};

    /// Calls a tool that requests an effect through `tools`; returns the effects that reach the caller.
    async fn effects_of_call(tools: Toolbox) -> Vec<Value> {
        let emit = || vec![json!({"kind": "emit", "type": "order.placed"})];
        let busy = FunctionTool::new("busy", "", move |_: Value, _| async move {
            ToolEnvelope::json(json!("done")).with_effects(emit())
        });
        let workspace = Workspace::local(std::env::temp_dir()).unwrap();
        let scope = ExecuteScope::new(Arc::new(workspace)).with_tools(tools.with_tool(busy));
        let done = execute("busy", json!({}), &scope, &ExecuteOptions::default()).await;
        assert!(done.result.is_ok(), "{done:?}");
        done.effects
    }

    // proves: C-22
    #[tokio::test]
    async fn tool_effects_do_not_leave_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        std::fs::write(&config, "").unwrap();
        let global = GlobalOptions {
            config: Some(config),
            store: None,
        };
        let app = App::load(&global, Config::default());
        let agent = app.into_agent(Arc::new(MemoryStore::new()), None);
        assert_eq!(
            effects_of_call(agent.toolbox().clone()).await,
            Vec::<Value>::new()
        );
        // Control: without the server's policy the effect passes.
        assert_eq!(effects_of_call(toolbox(Shell::default())).await.len(), 1);
    }
}
