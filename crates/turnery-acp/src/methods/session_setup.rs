//! Creates and opens sessions: the common part of `session/new`, `session/load`, `session/resume` and
//! `session/fork`.

use super::{MethodCall, system_prompt};
use crate::{
    client::{editor_files::EditorFiles, terminals::ClientTerminals},
    methods::mcp_servers,
    server::{
        acp_version::Encoder, connection::Connection, outbox::WireOutbox, rpc_error::RpcError,
        serve::send_line,
    },
    view::session_cost::SessionCost,
};
use agent_client_protocol_schema::v1::{McpServer, SystemPrompt};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_agent::{ClientPorts, OpenRequest, Session};
use turnery_engine::SessionId;
use turnery_tools::{LocalFiles, Terminals};

/// Parameters of a session, validated before anything is created.
pub(crate) struct SessionSetup {
    request: OpenRequest,
}

impl SessionSetup {
    /// Validates the parameters. Folders must be absolute (SESS-2, DIR-1); MCP transports that were not
    /// advertised are rejected (MCP-4).
    pub(crate) fn from_params(
        cwd: PathBuf,
        roots: Vec<PathBuf>,
        servers: &[McpServer],
    ) -> Result<Self, RpcError> {
        check_absolute("cwd", &cwd)?;
        for root in &roots {
            check_absolute("additionalDirectories", root)?;
        }
        Ok(Self {
            request: OpenRequest {
                cwd,
                roots,
                mcp: servers
                    .iter()
                    .map(mcp_servers::parse_server)
                    .collect::<Result<_, _>>()?,
                instructions: None,
            },
        })
    }

    /// Adds the client's system prompt.
    pub(super) fn with_system_prompt(
        mut self,
        prompt: Option<SystemPrompt>,
    ) -> Result<Self, RpcError> {
        self.request.instructions = system_prompt::parse_system_prompt(prompt)?;
        Ok(self)
    }

    /// Creates a session.
    pub(crate) async fn create(self, call: &MethodCall) -> Result<Session, RpcError> {
        call.connection.check_logged_in()?;
        let agent = &call.connection.agent;
        let session_cost = SessionCost::new(agent);
        let made = agent
            .create(self.request.clone(), |id| {
                session_ports(call, id, false, session_cost)
            })
            .await
            .map_err(|error| call.connection.record_open_error(self.request, error))?;
        Ok(register_session(call, made, false).await)
    }

    /// Opens a stored session; with `replay`, its conversation is shown before this returns. A session that is
    /// already open is closed and reopened, but only after checking that it can be opened: a rejected request
    /// must not end a running prompt.
    pub(crate) async fn open(
        self,
        call: &MethodCall,
        id: &str,
        replay: bool,
    ) -> Result<Session, RpcError> {
        call.connection.check_logged_in()?;
        let agent = &call.connection.agent;
        let session_id = SessionId::from(id);
        if call.connection.session(id).is_ok() {
            let request = self.request.clone();
            let session_cost = SessionCost::default();
            let tried = agent.open(&session_id, request, false, |id| {
                session_ports(call, id, false, session_cost)
            });
            drop(tried.await?);
        }
        close_if_open(&call.connection, id).await;
        let session_cost = SessionCost::load(agent, &session_id).await;
        let opened = agent
            .open(&session_id, self.request.clone(), replay, |id| {
                session_ports(call, id, replay, session_cost)
            })
            .await
            .map_err(|error| call.connection.record_open_error(self.request, error))?;
        Ok(register_session(call, opened, true).await)
    }

    /// Creates a session with a copy of another's history.
    pub(super) async fn fork(self, call: &MethodCall, id: &str) -> Result<Session, RpcError> {
        let source = SessionId::from(id);
        call.connection.check_logged_in()?;
        let agent = &call.connection.agent;
        // The copied history was paid for in its own session.
        let session_cost = SessionCost::new(agent);
        let made = agent
            .fork(&source, self.request.clone(), |id| {
                session_ports(call, id, false, session_cost)
            })
            .await
            .map_err(|error| call.connection.record_open_error(self.request, error))?;
        Ok(register_session(call, made, false).await)
    }
}

pub(crate) fn check_absolute(name: &str, path: &Path) -> Result<(), RpcError> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(RpcError::invalid_params(format!(
            "{name}: {:?} has a NUL character in it, which no path can have.",
            path.display().to_string()
        )));
    }
    if path.is_absolute() {
        return Ok(());
    }
    Err(RpcError::invalid_params(format!(
        "{name}: {:?} is not an absolute path.",
        path.display().to_string()
    )))
}

/// Returns the ports of a session. Only methods that the client declared are used (FS-1, TERM-1).
fn session_ports(
    call: &MethodCall,
    id: &SessionId,
    replay: bool,
    session_cost: SessionCost,
) -> ClientPorts {
    let can = call.connection.client_features();
    let peer = &call.connection.peer;
    let gate = (!replay).then(|| call.scope.responded.clone());
    let barrier = call.connection.barrier.clone();
    let version = call.connection.version();
    let encoder = Encoder::new(version, can.optional_updates, session_cost);
    let outbox = WireOutbox::new(id, peer.out().clone(), barrier, encoder, gate);
    ClientPorts {
        client: version.permission_client(peer, can.forms, call.connection.key_page_opener()),
        outbox: Box::new(outbox),
        files: if can.read_files || can.write_files {
            let (reads, writes) = (can.read_files, can.write_files);
            Arc::new(EditorFiles::new(
                Arc::clone(peer),
                id.clone(),
                reads,
                writes,
            ))
        } else {
            Arc::new(LocalFiles)
        },
        terminals: can.terminals.then(|| -> Arc<dyn Terminals> {
            let peer = Arc::clone(peer);
            Arc::new(ClientTerminals::new(peer, id.clone(), can.quirks))
        }),
    }
}

/// Closes the session if it is open here.
pub(super) async fn close_if_open(connection: &Connection, id: &str) {
    if let Some(session) = connection.remove_session(id) {
        session.close().await;
    }
}

/// Registers an open session; one opened meanwhile under the same id is closed. Sends the commands (CMD-1):
/// for a new session right after the response that names it (SESS-7), for a known one before the response,
/// which is the last line of a load (LOAD-2). Reports on its MCP servers follow later.
async fn register_session(call: &MethodCall, session: Session, is_known: bool) -> Session {
    let commands = call.connection.version().encode_initial_commands(&session);
    if is_known {
        send_line(call.connection.peer.out(), commands).await;
    } else {
        let _ = call.scope.trailing_lines.set(commands);
    }
    if let Some(other) = call.connection.insert_session(session.clone()) {
        other.close().await;
    }
    mcp_servers::watch_servers(&session, &call.connection, call.scope.responded.clone());
    session
}
