//! Creates and opens sessions: the common part of `session/new`, `session/load`, `session/resume` and
//! `session/fork`.

use super::system_prompt;
use crate::{
    methods::session_ports::session_ports,
    server::{
        command_updates, connection::Connection, encoder::SharedEncoder, mcp_server_reports,
        method_call::MethodCall, model_list_updates, params::check_absolute, rpc_error::RpcError,
    },
    transport::writer::send_line,
    v1::mcp_servers,
};
use agent_client_protocol_schema::v1::{McpServer, SystemPrompt};
use std::{path::PathBuf, sync::Arc};
use turnery_agent::{OpenRequest, Session, view::SessionCost};
use turnery_engine::SessionId;

/// Parameters of a session, validated before anything is created.
pub(crate) struct SessionSetup {
    request: OpenRequest,
}

impl SessionSetup {
    /// Validates the parameters. Folders must be absolute (SESS-2, DIR-1); MCP transports that were not
    /// advertised are rejected (MCP-4). `prompt` is the client's system prompt.
    pub(crate) fn from_params(
        cwd: PathBuf,
        roots: Vec<PathBuf>,
        servers: &[McpServer],
        prompt: Option<SystemPrompt>,
    ) -> Result<Self, RpcError> {
        check_absolute("cwd", &cwd)?;
        for root in &roots {
            check_absolute("additionalDirectories", root)?;
        }
        Ok(Self {
            request: OpenRequest {
                roots,
                mcp: servers
                    .iter()
                    .map(mcp_servers::parse_server)
                    .collect::<Result<_, _>>()?,
                instructions: system_prompt::parse_system_prompt(prompt)?,
                ..OpenRequest::folder(cwd)
            },
        })
    }

    /// Creates a session; its history is empty, or a copy of that of `source`.
    pub(crate) async fn create(
        self,
        call: &MethodCall,
        source: Option<&SessionId>,
    ) -> Result<Session, RpcError> {
        call.connection.check_logged_in()?;
        let agent = &call.connection.agent;
        // A copied history was paid for in its own session.
        let session_cost = SessionCost::new(agent.models());
        let encoder = new_encoder(&call.connection);
        let request = self.request.clone();
        let ports = |id: &SessionId| session_ports(call, id, false, session_cost, encoder.clone());
        let created = match source {
            Some(source) => agent.fork(source, request, ports).await,
            None => agent.create(request, ports).await,
        };
        let session =
            created.map_err(|error| call.connection.record_open_error(self.request, error))?;
        Ok(register_session(call, session, encoder, false).await)
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
                session_ports(call, id, false, session_cost, new_encoder(&call.connection))
            });
            drop(tried.await?);
        }
        call.connection.close_session(id).await;
        let session_cost = SessionCost::for_stored_session(agent.models());
        let encoder = new_encoder(&call.connection);
        let opened = agent
            .open(&session_id, self.request.clone(), replay, |id| {
                session_ports(call, id, replay, session_cost, encoder.clone())
            })
            .await
            .map_err(|error| call.connection.record_open_error(self.request, error))?;
        Ok(register_session(call, opened, encoder, true).await)
    }
}

fn new_encoder(connection: &Connection) -> SharedEncoder {
    let features = connection.client_features();
    SharedEncoder::new(connection.version(), features.optional_updates)
}

/// Registers an open session; one opened meanwhile under the same id is closed. Sends the commands (CMD-1):
/// for a new session right after the response that names it (SESS-7), for a known one before the response,
/// which is the last line of a load (LOAD-2). Reports on its MCP servers follow later.
async fn register_session(
    call: &MethodCall,
    session: Session,
    encoder: SharedEncoder,
    is_known: bool,
) -> Session {
    let commands = command_updates::encode_initial_commands(call.connection.version(), &session);
    if is_known {
        send_line(call.connection.peer.out(), commands).await;
    } else {
        let _ = call.scope.trailing_lines.set(commands);
    }
    if let Some(other) = call.connection.insert_session(session.clone(), encoder) {
        other.close().await;
    }
    let responded = &call.scope.responded;
    mcp_server_reports::watch_servers(&session, &call.connection, responded.clone());
    model_list_updates::send_later_models(&session, &call.connection, responded.clone());
    let (agent, responded) = (Arc::clone(&call.connection.agent), responded.clone());
    tokio::spawn(async move {
        responded.cancelled().await;
        agent.prepare();
    });
    session
}
