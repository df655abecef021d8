//! An agent with real model adapters, a store on disk and a few tools.

use super::{
    dialect::{Dialect, ScriptedResponse},
    server::ModelServer,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use turnery_agent::{
    Agent, ClientPorts, OpenRequest, PromptOptions, PromptResult, Session, Settings, SettingsError,
    SettingsResolver,
};
use turnery_engine::{
    CallDetail, Content, ImageData, SessionId, ToolEnvelope, ToolError, ToolSpec,
};
use turnery_models::{ModelRegistry, Thinking};
use turnery_store::SqliteStore;
use turnery_tools::{Access, PreparedCall, Tool, ToolCx, Toolbox, Workspace};

/// Name of the provider of a dialect.
pub(crate) fn provider_name(dialect: &Dialect) -> String {
    serde_json::to_value(dialect.api)
        .unwrap()
        .as_str()
        .unwrap()
        .replace('_', "-")
}

/// Name of the model of a dialect.
pub(crate) fn model_name(dialect: &Dialect) -> String {
    format!("{}/{}", provider_name(dialect), dialect.model)
}

/// Settings that a test may change between two openings.
#[derive(Clone)]
pub(crate) struct SharedSettings(pub(crate) Arc<Mutex<Settings>>);

impl SettingsResolver for SharedSettings {
    fn settings(&self, _roots: &[std::path::PathBuf]) -> Result<Settings, SettingsError> {
        Ok(self.0.lock().unwrap().clone())
    }
}

/// Agent in a temporary folder.
pub(crate) struct PrefixWorld {
    pub(crate) servers: Vec<ModelServer>,
    pub(crate) settings: SharedSettings,
    folder: tempfile::TempDir,
    /// The open session, for the tool that steers it.
    session: Arc<Mutex<Option<Arc<Session>>>>,
}

impl PrefixWorld {
    /// Creates an agent with a server for each dialect; the first has the default model.
    pub(crate) async fn new(dialects: &'static [Dialect]) -> Self {
        let mut servers = Vec::new();
        for dialect in dialects {
            servers.push(ModelServer::start(dialect).await);
        }
        let model = model_name(&dialects[0]).parse().unwrap();
        let mut settings = Settings::new(model, "Be good.");
        settings.thinking = Thinking::High;
        Self {
            servers,
            settings: SharedSettings(Arc::new(Mutex::new(settings))),
            folder: tempfile::tempdir().unwrap(),
            session: Arc::default(),
        }
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.0.lock().unwrap());
    }

    /// Returns an agent as another process has it.
    fn agent(&self) -> Agent {
        let providers = self.servers.iter();
        let providers = providers.map(|server| server.provider(&provider_name(server.dialect)));
        let tools = ["look", "show", "steer", "hang"].map(|name| {
            Arc::new(FakeTool {
                name,
                session: Arc::clone(&self.session),
            }) as Arc<dyn Tool>
        });
        Agent::new(
            Arc::new(SqliteStore::open(self.folder.path().join("sessions.db"))),
            Arc::new(ModelRegistry::new(providers.collect())),
            Toolbox::new(tools.to_vec()),
            Arc::new(self.settings.clone()),
        )
    }

    pub(crate) async fn create(&self) -> Arc<Session> {
        let agent = self.agent();
        let created = agent.create(self.request(), |_| ClientPorts::silent());
        self.keep(created.await.unwrap())
    }

    /// Closes the session and opens it in another process.
    pub(crate) async fn reopen(&self, session: &Session) -> Arc<Session> {
        session.close().await;
        let id: SessionId = session.id().clone();
        let agent = self.agent();
        let opened = agent.open(&id, self.request(), false, |_| ClientPorts::silent());
        let opened = opened.await.unwrap();
        self.keep(opened)
    }

    fn request(&self) -> OpenRequest {
        OpenRequest::folder(self.folder.path().canonicalize().unwrap())
    }

    fn keep(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        *self.session.lock().unwrap() = Some(Arc::clone(&session));
        session
    }

    /// Runs a prompt to which the first server responds so.
    pub(crate) async fn run(
        &self,
        session: &Session,
        text: &str,
        responses: impl IntoIterator<Item = ScriptedResponse>,
    ) -> PromptResult {
        self.servers[0].play(responses);
        run_prompt(session, vec![Content::text(text)], PromptOptions::default()).await
    }
}

impl Drop for PrefixWorld {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.servers
                .iter()
                .for_each(ModelServer::assert_nothing_refused);
        }
    }
}

pub(crate) async fn run_prompt(
    session: &Session,
    content: Vec<Content>,
    options: PromptOptions,
) -> PromptResult {
    let handle = session.prompt(content, options).unwrap();
    handle.result().await.unwrap()
}

pub(crate) fn picture() -> Content {
    Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "QUJD".into(),
    })
}

/// Tool whose behavior follows from its name.
struct FakeTool {
    name: &'static str,
    session: Arc<Mutex<Option<Arc<Session>>>>,
}

impl Tool for FakeTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "A tool.", json!({"type": "object"}))
    }

    fn describe(&self, _args: &Value, _workspace: &Workspace) -> CallDetail {
        CallDetail::default()
    }

    fn prepare<'a>(
        &'a self,
        _args: &'a Value,
        _cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        Box::pin(async {
            Ok(PreparedCall {
                access: Access::Nothing,
                detail: CallDetail::default(),
            })
        })
    }

    fn can_run_in_parallel(&self, _args: &Value) -> bool {
        self.name == "look"
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            match self.name {
                "show" => ToolEnvelope {
                    result: Ok(vec![Content::text("a picture"), picture()]),
                    ..ToolEnvelope::text("")
                },
                "steer" => {
                    let session = self.session.lock().unwrap().clone();
                    let steered = vec![Content::text("steered")];
                    session.unwrap().steer(steered).unwrap();
                    ToolEnvelope::text("")
                }
                "hang" => {
                    cx.cancel.cancelled().await;
                    ToolEnvelope::text("stopped")
                }
                _ => ToolEnvelope::text(format!("saw {args}")),
            }
        })
    }

    fn timeout(&self, _args: &Value) -> std::time::Duration {
        std::time::Duration::from_secs(3600)
    }
}
