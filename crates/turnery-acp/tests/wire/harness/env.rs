//! Test environment: a folder, a scenario for the model, and a store that outlives connections.

use super::{client::TestClient, tools::RunLog, tools::toolbox};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use turnery_acp::ServeOptions;
use turnery_agent::{Agent, Settings, SettingsResolver};
use turnery_models::{Model, ModelRegistry};
use turnery_store::{MemoryStore, Store, oracle::OracleGuard};
use turnery_tools::Toolbox;

/// Environment shared by connections.
pub(crate) struct TestEnv {
    folder: TempDir,
    pub(crate) store: Arc<dyn Store>,
    model_name: String,
    /// Calls that tools really executed.
    pub(crate) run_log: RunLog,
    /// Checks at the end of every test that the store follows the grammar.
    _store_guard: OracleGuard,
}

impl TestEnv {
    /// Creates an environment whose model gives these answers.
    pub(crate) fn new(answers: Value) -> Self {
        Self::with_store(Arc::new(MemoryStore::new()), answers)
    }

    /// Like [`Self::new`], with sessions in this store.
    pub(crate) fn with_store(store: Arc<dyn Store>, answers: Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder");
        let path = folder.path().join("scenario.json");
        let scenario = json!({"name": "test", "answers": answers});
        std::fs::write(&path, scenario.to_string()).expect("a file");
        Self {
            model_name: format!("scripted:{}", path.display()),
            folder,
            _store_guard: OracleGuard::new(Arc::clone(&store)),
            store,
            run_log: RunLog::default(),
        }
    }

    /// Creates an environment whose model gives no answers.
    pub(crate) fn without_answers() -> Self {
        Self::new(json!([]))
    }

    /// Replaces the answers of the model, which then also accepts audio.
    pub(crate) fn with_audio_answers(self, answers: Value) -> Self {
        let path = self.folder.path().join("scenario.json");
        let scenario = json!({"name": "test", "audio": true, "answers": answers});
        std::fs::write(&path, scenario.to_string()).expect("a file");
        self
    }

    /// Returns the working directory of its sessions.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.cwd().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the settings of its sessions.
    pub(crate) fn settings(&self) -> Settings {
        let model = self.model_name.parse();
        Settings::new(model.expect("a model's name"), "You are a test.")
    }

    pub(crate) fn agent(&self) -> Arc<Agent> {
        self.agent_with_settings(Arc::new(self.settings()))
    }

    /// Creates an agent with other settings.
    pub(crate) fn agent_with_settings(&self, settings: Arc<dyn SettingsResolver>) -> Arc<Agent> {
        let registry = ModelRegistry::new(Vec::new());
        self.build_agent(registry, toolbox(&self.run_log), settings)
    }

    /// Creates an agent with other tools.
    pub(crate) fn agent_with_tools(&self, tools: Toolbox) -> Arc<Agent> {
        let registry = ModelRegistry::new(Vec::new());
        self.build_agent(registry, tools, Arc::new(self.settings()))
    }

    /// Creates an agent with this additional model as the default of its sessions.
    pub(crate) fn agent_with_model(&self, model: Arc<dyn Model>) -> Arc<Agent> {
        let settings = Settings::new(model.info().name.clone(), "You are a test.");
        let registry = ModelRegistry::new(Vec::new()).with_model(model);
        self.build_agent(registry, toolbox(&self.run_log), Arc::new(settings))
    }

    fn build_agent(
        &self,
        registry: ModelRegistry,
        tools: Toolbox,
        settings: Arc<dyn SettingsResolver>,
    ) -> Arc<Agent> {
        let store = Arc::clone(&self.store);
        Arc::new(Agent::new(store, Arc::new(registry), tools, settings))
    }

    /// Connects without sending anything.
    pub(crate) fn connect(&self) -> TestClient {
        TestClient::connect(self.agent(), ServeOptions::default())
    }

    /// Connects and initializes with these capabilities.
    pub(crate) fn client(&self, abilities: Value) -> TestClient {
        let mut client = self.connect();
        client.initialize(abilities);
        client
    }

    /// Connects and initializes with v2.
    pub(crate) fn client_v2(&self) -> TestClient {
        let mut client = self.connect_v2();
        client.initialize_v2();
        client
    }

    /// Connects to an agent with v2 enabled, without sending anything.
    pub(crate) fn connect_v2(&self) -> TestClient {
        let options = ServeOptions {
            v2: true,
            ..ServeOptions::default()
        };
        TestClient::connect(self.agent(), options)
    }

    /// Connects with v2 and creates a session.
    pub(crate) fn session_v2(&self) -> (TestClient, String) {
        let mut client = self.client_v2();
        let made = client.request("session/new", json!({"cwd": self.cwd()}));
        let id = made["result"]["sessionId"].as_str().expect("an id");
        (client, id.to_owned())
    }

    /// Returns parameters of `session/new`.
    pub(crate) fn new_session_params(&self) -> Value {
        json!({"cwd": self.cwd(), "mcpServers": []})
    }

    /// Connects without capabilities and creates a session.
    pub(crate) fn session(&self) -> (TestClient, String) {
        self.session_with(json!({}))
    }

    /// Connects with these capabilities and creates a session.
    pub(crate) fn session_with(&self, abilities: Value) -> (TestClient, String) {
        let mut client = self.client(abilities);
        let made = client.request("session/new", self.new_session_params());
        let id = made["result"]["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        (client, id)
    }
}

/// Returns parameters of a prompt with one text.
pub(crate) fn prompt_params(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Returns a step of the model that calls a tool without arguments.
pub(crate) fn tool_step(tool: &str) -> Value {
    json!({"tool_call": {"name": tool, "args": {}}})
}
