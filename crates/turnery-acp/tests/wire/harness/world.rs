//! World: a folder, a scenario for the model, a store that outlives connections.

use super::{client::Client, tools::Ran, tools::toolbox};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use turnery_acp::ServeOptions;
use turnery_agent::{Agent, Projects, Settings, SettingsError};
use turnery_models::{Catalogue, Model, ModelName};
use turnery_store::{MemoryStore, Store, oracle::Guard};
use turnery_tools::Toolbox;

/// What connections have in common.
pub(crate) struct World {
    folder: TempDir,
    store: Arc<dyn Store>,
    scenario: String,
    /// What tools were really run.
    pub(crate) ran: Ran,
    /// Whatever the test is about, in the end all that is stored must keep the grammar.
    _guard: Guard,
}

struct Fixed(String);

impl Projects for Fixed {
    fn settings(&self, _roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        let model = self.0.parse::<ModelName>();
        let model = model.map_err(|error| SettingsError(error.to_string()))?;
        Ok(Settings::new(model, "You are a test."))
    }

    fn usual_model(&self) -> Option<ModelName> {
        self.0.parse().ok()
    }
}

impl World {
    /// A world in which the model gives these answers.
    pub(crate) fn new(answers: Value) -> Self {
        Self::over(Arc::new(MemoryStore::new()), answers)
    }

    /// Like the constructor above, with sessions in this store.
    pub(crate) fn over(store: Arc<dyn Store>, answers: Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder");
        let path = folder.path().join("scenario.json");
        let scenario = json!({"name": "test", "answers": answers});
        std::fs::write(&path, scenario.to_string()).expect("a file");
        Self {
            scenario: format!("scripted:{}", path.display()),
            folder,
            _guard: Guard::over(Arc::clone(&store)),
            store,
            ran: Ran::default(),
        }
    }

    /// A world in which the model says nothing.
    pub(crate) fn silent() -> Self {
        Self::new(json!([]))
    }

    /// The same, with a model that gives these answers.
    pub(crate) fn answering(self, answers: Value) -> Self {
        let path = self.folder.path().join("scenario.json");
        let scenario = json!({"name": "test", "answers": answers});
        std::fs::write(&path, scenario.to_string()).expect("a file");
        self
    }

    /// The same, with a model that gives these answers and takes recordings.
    pub(crate) fn hearing(self, answers: Value) -> Self {
        let path = self.folder.path().join("scenario.json");
        let scenario = json!({"name": "test", "audio": true, "answers": answers});
        std::fs::write(&path, scenario.to_string()).expect("a file");
        self
    }

    /// The working directory of its sessions.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.cwd().join(name)
    }

    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn agent(&self) -> Arc<Agent> {
        self.agent_of(Arc::new(Fixed(self.scenario.clone())))
    }

    /// What holds in its sessions.
    pub(crate) fn settings(&self) -> Settings {
        let settings = Fixed(self.scenario.clone()).settings(&[]);
        settings.expect("a model's name")
    }

    /// An agent that reads its settings from elsewhere.
    pub(crate) fn agent_of(&self, projects: Arc<dyn Projects>) -> Arc<Agent> {
        Arc::new(Agent::new(
            Arc::clone(&self.store),
            Arc::new(Catalogue::new(Vec::new())),
            toolbox(&self.ran),
            projects,
        ))
    }

    /// An agent with other tools.
    pub(crate) fn agent_with_tools(&self, tools: Toolbox) -> Arc<Agent> {
        Arc::new(Agent::new(
            Arc::clone(&self.store),
            Arc::new(Catalogue::new(Vec::new())),
            tools,
            Arc::new(Fixed(self.scenario.clone())),
        ))
    }

    /// An agent with this model and no other.
    pub(crate) fn agent_with(&self, model: Arc<dyn Model>) -> Arc<Agent> {
        Arc::new(Agent::new(
            Arc::clone(&self.store),
            Arc::new(Catalogue::new(Vec::new()).with_model(Arc::clone(&model))),
            toolbox(&self.ran),
            Arc::new(Fixed(model.info().name.to_string())),
        ))
    }

    /// A connection on which nothing was said yet.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.agent(), ServeOptions::default())
    }

    /// A connection of a client that can do these things.
    pub(crate) fn client(&self, abilities: Value) -> Client {
        let mut client = self.connect();
        client.initialize(abilities);
        client
    }

    /// A client that the second version is spoken with.
    pub(crate) fn client_v2(&self) -> Client {
        let mut client = self.connect_v2();
        client.initialize_v2();
        client
    }

    /// A connection that could speak the second version, on which nothing was said yet.
    pub(crate) fn connect_v2(&self) -> Client {
        let options = ServeOptions {
            v2: true,
            ..ServeOptions::default()
        };
        Client::connect(self.agent(), options)
    }

    /// A client of the second version, and a session of its.
    pub(crate) fn session_v2(&self) -> (Client, String) {
        let mut client = self.client_v2();
        let made = client.call("session/new", json!({"cwd": self.cwd()}));
        let id = made["result"]["sessionId"].as_str().expect("an id");
        (client, id.to_owned())
    }

    /// Parameters of `session/new`.
    pub(crate) fn new_session(&self) -> Value {
        json!({"cwd": self.cwd(), "mcpServers": []})
    }

    /// A client that can do nothing in particular, and a session of its.
    pub(crate) fn session(&self) -> (Client, String) {
        self.session_with(json!({}))
    }

    /// A client that can do these things, and a session of its.
    pub(crate) fn session_with(&self, abilities: Value) -> (Client, String) {
        let mut client = self.client(abilities);
        let made = client.call("session/new", self.new_session());
        let id = made["result"]["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        (client, id)
    }
}

/// Parameters of a prompt that is one text.
pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}
