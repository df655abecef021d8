//! Parts: the agent and what it is made of, put together from the configuration.

use crate::{
    args::Global,
    config::{Choice, ConfigFile, Places, Reach, environment, providers},
    projects::Configured,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_agent::{Agent, Projects as _, Settings, SettingsError, SubAgents};
use turnery_engine::Price;
use turnery_models::{
    CallLimits, Catalogue, MissingKey, ModelFacts, ModelName, ProviderConfig, Providers as _,
};
use turnery_store::{SqliteStore, Store};
use turnery_tools::{EffectPolicy, Shell, Toolbox};

/// Everything but the folder: read once per process.
pub(crate) struct Parts {
    /// Where things lie.
    pub(crate) places: Places,
    /// All providers, also those without a key.
    pub(crate) reach: Arc<Reach>,
    /// What the user says of models.
    models: Vec<(ModelName, ModelFacts)>,
    /// How long a silent model is waited for.
    call_limits: CallLimits,
    /// Variables that commands see though their names look like those of keys.
    passed: Vec<String>,
    /// The configuration.
    pub(crate) configured: Configured,
}

impl Parts {
    /// Read the user's configuration. A fault in it is kept, and told when a session is opened: an
    /// editor shows that to the person, where it would hide a process that does not start.
    pub(crate) fn read(global: &Global, flags: Choice) -> Self {
        let lookup = &environment::process;
        let places = Places::find(lookup, global.config.as_deref());
        let path = places.config.clone().unwrap_or_default();
        let file = match (&global.config, ConfigFile::read(&path)) {
            (Some(_), Ok(None)) => Err(format!("{}: no such file", path.display())),
            (_, Ok(file)) => Ok(file.unwrap_or_default()),
            (_, Err(error)) => Err(error.to_string()),
        };
        let listed = file.as_ref().map(ConfigFile::listed).unwrap_or_default();
        let key_files = file.as_ref().map_or_else(
            |_| Vec::new(),
            |file| providers::key_files(&file.providers, &path),
        );
        let choice = file.as_ref().map(|file| &file.choice);
        let passed = choice.map_or_else(|_| Vec::new(), |choice| choice.pass_env.clone());
        let call_limits = choice.map_or_else(|_| CallLimits::default(), Choice::call_limits);
        let known = ProviderConfig::well_known(lookup);
        let (user, providers, models) = match file {
            Ok(file) => match providers::all(known.clone(), &file.providers, &path, lookup) {
                Ok(providers) => (Ok(file.choice), providers, file.models),
                Err(error) => (Err(error.to_string()), known, Vec::new()),
            },
            Err(error) => (Err(error), known, Vec::new()),
        };
        let reach = Arc::new(Reach::new(providers, places.keys().ok()));
        let configured =
            Configured::new(user, environment::choice(lookup), flags, Arc::clone(&reach))
                .with_commands(places.commands.clone())
                .with_listed(listed)
                .guarding(places.own(), key_files);
        Self {
            places,
            reach,
            models,
            call_limits,
            passed,
            configured,
        }
    }

    /// The agent, with this store of sessions.
    pub(crate) fn agent_over(self, store: Arc<dyn Store>) -> Agent {
        // Where a key stands in the environment, commands do not see it, whatever its name.
        let hidden = self.hidden_env();
        // Nobody here carries out what tools ask for besides their result (C-22).
        let passed = self.passed.iter().filter(|name| !hidden.contains(name));
        let shell =
            Shell::hiding(hidden.iter().map(String::as_str)).passing(passed.map(String::as_str));
        let toolbox = toolbox(shell).narrowed(EffectPolicy::deny_all());
        Agent::new(
            store,
            Arc::new(
                Catalogue::over(self.reach)
                    .with_facts(self.models)
                    .limits(self.call_limits),
            ),
            toolbox,
            Arc::new(self.configured),
        )
        .hiding(hidden)
    }

    /// Variables of the environment that hold keys.
    pub(crate) fn hidden_env(&self) -> Vec<String> {
        let providers = self.reach.configured().iter();
        providers.map(|it| it.key_hint.clone()).collect()
    }

    /// What holds for a session in these folders.
    pub(crate) fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        self.configured.settings(roots)
    }

    /// The store of sessions.
    pub(crate) fn store(&self) -> anyhow::Result<SqliteStore> {
        Ok(SqliteStore::open(self.places.sessions()?.to_owned()))
    }

    /// What the user says that a model costs, by its `provider/model` in records.
    pub(crate) fn price(&self, model: &str) -> Option<Price> {
        let said = Catalogue::new(Vec::new()).with_facts(self.models.clone());
        said.price_of(model)
    }

    /// What holds for a session in `cwd`, if the provider of its model has the key that it needs. Where nothing else
    /// is connected, servers of the user's own are asked for their models.
    pub(crate) async fn usable_settings(&self, cwd: PathBuf) -> anyhow::Result<Settings> {
        let mut settings = self.settings(std::slice::from_ref(&cwd))?;
        if settings.model.provider == "offline" && !self.configured.chooses_model(&cwd) {
            self.reach.discover().await;
            settings = self.settings(std::slice::from_ref(&cwd))?;
            if let Some(silent) = self.silent_server(&settings, &cwd) {
                anyhow::bail!(
                    "{} at {} does not answer with a list of models: start it, or choose another \
                     model (`turnery models` lists them)",
                    silent.name,
                    silent.shown_url()
                );
            }
        }
        let name = &settings.model;
        let providers = self.reach.now();
        let provider = providers.iter().find(|it| it.name == name.provider);
        if let Some(Err(missing)) = provider.map(ProviderConfig::ready) {
            let MissingKey { provider, hint } = missing;
            anyhow::bail!(
                "there is no key for {provider}: run `turnery login {provider}` or set {hint}, or \
                 choose another model (`turnery models` lists them)"
            );
        }
        Ok(settings)
    }

    /// The user's own server whose models would be used in `cwd`, if it was asked for them and has none.
    pub(crate) fn silent_server(&self, settings: &Settings, cwd: &Path) -> Option<ProviderConfig> {
        if settings.model.provider != "offline" || self.configured.chooses_model(cwd) {
            return None;
        }
        self.reach.served().silent(&self.reach.now()).cloned()
    }
}

/// All tools that there are.
pub(crate) fn toolbox(shell: Shell) -> Toolbox {
    Toolbox::coding_with(shell).and(SubAgents::new())
}

/// The folder to work in: as given, or the current one.
pub(crate) fn folder(cwd: Option<PathBuf>) -> anyhow::Result<PathBuf> {
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
    use turnery_tools::{Action, Options, Scope, Workspace, execute};

    /// A tool that asks its host for something, called from this toolbox: what of that comes through.
    async fn effects(tools: Toolbox) -> Vec<Value> {
        let emit = || vec![json!({"kind": "emit", "type": "order.placed"})];
        let busy = Action::new("busy", "", move |_: Value, _| async move {
            ToolEnvelope::json(json!("done")).with_effects(emit())
        });
        let workspace = Workspace::local(std::env::temp_dir()).unwrap();
        let scope = Scope::new(Arc::new(workspace)).with_tools(tools.and(busy));
        let done = execute("busy", json!({}), &scope, &Options::default()).await;
        assert!(done.result.is_ok(), "{done:?}");
        done.effects
    }

    // proves: C-22
    #[tokio::test]
    async fn nothing_that_a_tool_asks_for_besides_its_result_leaves_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.toml");
        std::fs::write(&config, "").unwrap();
        let global = Global {
            config: Some(config),
        };
        let parts = Parts::read(&global, Choice::default());
        let agent = parts.agent_over(Arc::new(MemoryStore::new()));
        assert_eq!(effects(agent.toolbox().clone()).await, Vec::<Value>::new());
        // Without the server's policy it would.
        assert_eq!(effects(toolbox(Shell::default())).await.len(), 1);
    }
}
