//! Opens sessions.

use std::{path::PathBuf, sync::Arc};
use turnery_agent::{
    Agent, Client, ClientPorts, FinalAnswerFormat, Instructions, OpenError, OpenRequest, Session,
    SilentClient,
};
use turnery_engine::SessionId;
use turnery_store::StoreError;
use turnery_tools::McpServer;

/// Opens sessions of an agent without a front end.
pub trait AgentExt {
    /// Prepares the session `id`, which is created unless the store has it. The id must not be empty, nor
    /// contain dots, spaces or control characters.
    fn session(&self, id: impl Into<SessionId>) -> SessionBuilder<'_>;

    /// Prepares a session with an id of its own.
    fn new_session(&self) -> SessionBuilder<'_>;
}

impl AgentExt for Agent {
    fn session(&self, id: impl Into<SessionId>) -> SessionBuilder<'_> {
        SessionBuilder::new(self, Some(id.into()))
    }

    fn new_session(&self) -> SessionBuilder<'_> {
        SessionBuilder::new(self, None)
    }
}

/// Builder of an open session. By default it has no folder, and calls that need permission are rejected.
#[must_use = "a session is opened by `open`"]
pub struct SessionBuilder<'a> {
    agent: &'a Agent,
    id: Option<SessionId>,
    request: OpenRequest,
    client: Arc<dyn Client>,
}

impl<'a> SessionBuilder<'a> {
    fn new(agent: &'a Agent, id: Option<SessionId>) -> Self {
        Self {
            agent,
            id,
            request: OpenRequest::without_folder(),
            client: Arc::new(SilentClient),
        }
    }

    /// Sets the folder that tools may access: absolute, must exist. A stored session must be opened in its
    /// folder.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.request.cwd = folder.into();
        self
    }

    /// Sets who answers permission requests and questions of the model.
    pub fn client(mut self, client: Arc<dyn Client>) -> Self {
        self.client = client;
        self
    }

    /// Connects to an MCP server while the session is open.
    pub fn mcp_server(mut self, server: McpServer) -> Self {
        self.request.mcp.push(server);
        self
    }

    /// Changes the system prompt of this session.
    pub fn instructions(mut self, instructions: Instructions) -> Self {
        self.request.instructions = Some(instructions);
        self
    }

    /// Sets the usual form of final values while the session is open (LASH-121). A schema of a prompt overrules it.
    pub fn final_answer_format(mut self, format: FinalAnswerFormat) -> Self {
        self.request.final_answer_format = Some(format);
        self
    }

    /// Opens the session, or creates it. Must be called inside a tokio runtime.
    pub async fn open(self) -> Result<Session, OpenError> {
        let Self {
            agent,
            id,
            request,
            client,
        } = self;
        let ports = || ClientPorts::local(Arc::clone(&client), Box::new(SilentClient));
        let Some(id) = id else {
            return agent.create(request, |_| ports()).await;
        };
        match agent.info(&id).await {
            Ok(_) => {}
            Err(StoreError::NotFound(_)) => {
                let created = agent
                    .create_with_id(id.clone(), request.clone(), |_| ports())
                    .await;
                match created {
                    // Another process was faster.
                    Err(OpenError::Store(StoreError::Exists(_))) => {}
                    created => return created,
                }
            }
            Err(error) => return Err(error.into()),
        }
        agent.open(&id, request, false, |_| ports()).await
    }
}
