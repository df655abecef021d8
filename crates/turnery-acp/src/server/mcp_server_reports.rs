//! Reports the prompts and problems of a session's MCP servers to the client.

use crate::{
    server::{command_updates, connection::Connection, session_updates},
    transport::writer::send_line,
};
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;
use turnery_agent::Session;
use turnery_tools::mcp::McpServerStatus;

/// Starts a task that reports the session's servers to the client: the prompts they offer, and which servers
/// do not work (MCP-6). Reports nothing before `answered` fires, and stops when the servers are shut down.
pub(crate) fn watch_servers(
    session: &Session,
    connection: &Connection,
    answered: CancellationToken,
) {
    let Some(servers) = session.servers() else {
        return;
    };
    let (mut news, closed) = (servers.changes(), servers.closed());
    let (version, takes) = (
        connection.version(),
        connection.client_features().optional_updates,
    );
    let out = connection.peer.out().clone();
    // The task owns a session handle: it ends when the session is closed, not when it is dropped elsewhere.
    let session = session.clone();
    let following = async move {
        answered.cancelled().await;
        let mut reported = ReportedServers::default();
        loop {
            let Some(servers) = session.servers() else {
                return;
            };
            let id = session.id().as_str();
            let mut lines = Vec::new();
            for (server, trouble) in reported.take_new_problems(&servers.status()) {
                let title = format!(
                    "MCP server {}",
                    turnery_tools::escape_invisible_line(&server)
                );
                lines.extend(session_updates::encode_warning(
                    version, id, takes, &title, &trouble,
                ));
            }
            let prompts = servers.prompts();
            if reported.prompts != prompts {
                lines.extend(command_updates::encode_commands(
                    version, &session, &prompts,
                ));
                reported.prompts = prompts;
            }
            if !lines.is_empty() {
                send_line(&out, lines).await;
            }
            if news.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = closed => {}
            () = following => {}
        }
    });
}

/// Prompts and problems already reported to the client.
#[derive(Default)]
struct ReportedServers {
    prompts: Vec<turnery_tools::mcp::McpPrompt>,
    problems: HashMap<String, String>,
}

impl ReportedServers {
    /// Returns new problems as pairs of server name and text. Each problem is returned once while it lasts.
    fn take_new_problems(&mut self, all: &[McpServerStatus]) -> Vec<(String, String)> {
        let mut new = Vec::new();
        for server in all {
            let trouble = describe_problem(server);
            let known = self.problems.get(&server.name);
            if known == trouble.as_ref() {
                continue;
            }
            match trouble {
                Some(trouble) => {
                    new.push((server.name.clone(), trouble.clone()));
                    self.problems.insert(server.name.clone(), trouble);
                }
                None => {
                    self.problems.remove(&server.name);
                }
            }
        }
        new
    }
}

/// Describes the problem of a server for the user.
fn describe_problem(server: &McpServerStatus) -> Option<String> {
    match (&server.error, server.omitted_tools) {
        (Some(why), _) => Some(format!(
            "It does not work: {why}. Its tools fail or are missing; everything else still works."
        )),
        (None, 0) => None,
        (None, count) => Some(format!(
            "{count} of its tools are left out: together the servers have more than models take, or \
             the tools are too large."
        )),
    }
}
