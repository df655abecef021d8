//! Setup: what `session/new`, `session/load`, `session/resume` and `session/fork` have in common.

use super::{Call, system_prompt};
use crate::{
    connection::Connection, dialect::Encoder, fault::Fault, files::EditorFiles, outbox::WireOutbox,
    serve::send, servers, terminals::ClientTerminals, till::Till,
};
use agent_client_protocol_schema::v1::{McpServer, SystemPrompt};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use turnery_agent::{OpenRequest, Ports, Session};
use turnery_engine::SessionId;
use turnery_tools::{LocalFiles, Terminals};

/// What a client gives for a session, checked before anything is made.
pub(crate) struct Setup {
    request: OpenRequest,
}

impl Setup {
    /// Folders are absolute (SESS-2, DIR-1). MCP servers that are reached in a way that was not
    /// advertised are refused (MCP-4).
    pub(crate) fn check(
        cwd: PathBuf,
        roots: Vec<PathBuf>,
        servers: &[McpServer],
    ) -> Result<Self, Fault> {
        absolute("cwd", &cwd)?;
        for root in &roots {
            absolute("additionalDirectories", root)?;
        }
        Ok(Self {
            request: OpenRequest {
                cwd,
                roots,
                mcp: servers
                    .iter()
                    .map(servers::from_wire)
                    .collect::<Result<_, _>>()?,
                instructions: None,
            },
        })
    }

    /// The same, with what the client has to say to the model.
    pub(super) fn telling(mut self, prompt: Option<SystemPrompt>) -> Result<Self, Fault> {
        self.request.instructions = system_prompt::from_wire(prompt)?;
        Ok(self)
    }

    /// Make a session.
    pub(crate) async fn create(self, call: &Call) -> Result<Session, Fault> {
        call.connection.logged_in()?;
        let agent = &call.connection.agent;
        let till = Till::empty(agent);
        let made = agent
            .create(self.request.clone(), |id| ports(call, id, false, till))
            .await
            .map_err(|error| call.connection.refused(self.request, error))?;
        Ok(keep(call, made, false).await)
    }

    /// Open a stored session: with `replay` its conversation is shown before this returns. One that
    /// is open already is closed first, and opened again from what is stored; but only if it can be
    /// opened so: a request that is refused ends nobody's prompt.
    pub(crate) async fn open(self, call: &Call, id: &str, replay: bool) -> Result<Session, Fault> {
        call.connection.logged_in()?;
        let agent = &call.connection.agent;
        let session_id = SessionId::from(id);
        if call.connection.session(id).is_ok() {
            let request = self.request.clone();
            let till = Till::default();
            let tried = agent.open(&session_id, request, false, |id| {
                ports(call, id, false, till)
            });
            drop(tried.await?);
        }
        close_if_open(&call.connection, id).await;
        let till = Till::of(agent, &session_id).await;
        let opened = agent
            .open(&session_id, self.request.clone(), replay, |id| {
                ports(call, id, replay, till)
            })
            .await
            .map_err(|error| call.connection.refused(self.request, error))?;
        Ok(keep(call, opened, true).await)
    }

    /// Make a session with a copy of another's history.
    pub(super) async fn fork(self, call: &Call, id: &str) -> Result<Session, Fault> {
        let source = SessionId::from(id);
        call.connection.logged_in()?;
        let agent = &call.connection.agent;
        // What was copied was paid for in its own session.
        let till = Till::empty(agent);
        let made = agent
            .fork(&source, self.request.clone(), |id| {
                ports(call, id, false, till)
            })
            .await
            .map_err(|error| call.connection.refused(self.request, error))?;
        Ok(keep(call, made, false).await)
    }
}

pub(crate) fn absolute(name: &str, path: &Path) -> Result<(), Fault> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(Fault::params(format!(
            "{name}: {:?} has a NUL character in it, which no path can have.",
            path.display().to_string()
        )));
    }
    if path.is_absolute() {
        return Ok(());
    }
    Err(Fault::params(format!(
        "{name}: {:?} is not an absolute path.",
        path.display().to_string()
    )))
}

/// The ports of a session: only what the client said that it can do is used (FS-1, TERM-1).
fn ports(call: &Call, id: &SessionId, replay: bool, till: Till) -> Ports {
    let can = call.connection.abilities();
    let peer = &call.connection.peer;
    let gate = (!replay).then(|| call.scope.answered.clone());
    let barrier = call.connection.barrier.clone();
    let dialect = call.connection.dialect();
    let encoder = Encoder::new(dialect, can.takes, till);
    let outbox = WireOutbox::new(id, peer.out().clone(), barrier, encoder, gate);
    Ports {
        client: dialect.person(peer, can.forms, call.connection.pages()),
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

/// Close the session if it is open here.
pub(super) async fn close_if_open(connection: &Connection, id: &str) {
    if let Some(session) = connection.remove(id) {
        session.close().await;
    }
}

/// Keep an open session. One that was opened meanwhile under the same id gives way. The client is told
/// what there is (CMD-1): of a new session right behind the answer that names it, and not before (SESS-7);
/// of one that it knows before the answer, which is the last line of a load (LOAD-2). What its servers
/// come to follows when it is known.
async fn keep(call: &Call, session: Session, is_known: bool) -> Session {
    let told = call.connection.dialect().offer(&session);
    if is_known {
        send(call.connection.peer.out(), told).await;
    } else {
        let _ = call.scope.after.set(told);
    }
    if let Some(other) = call.connection.add(session.clone()) {
        other.close().await;
    }
    servers::follow(&session, &call.connection, call.scope.answered.clone());
    session
}
