//! Parses the MCP servers of a session from the wire, and reports their prompts and problems to the client.

use crate::{
    commands::{self, CommandTranscript, new_message_id},
    methods::check_absolute,
    server::{connection::Connection, rpc_error::RpcError, serve::send_line},
    transport::update_writer::{ChunkAuthor, UpdateWriter},
    view::stop_reason,
};
use agent_client_protocol_schema::v1::{McpServer as WireServer, PromptResponse, StopReason};
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;
use turnery_agent::{PromptError, PromptHandle, Session};
use turnery_engine::Content;
use turnery_tools::mcp::{McpServer, ServerStatus, Way};

/// Parses a server from the wire; its command, arguments, headers and environment are kept unchanged (MCP-1,
/// MCP-2, MCP-5).
pub(crate) fn parse_server(server: &WireServer) -> Result<McpServer, RpcError> {
    let (name, way) = match server {
        WireServer::Stdio(server) => {
            check_absolute("mcpServers: command", &server.command)?;
            let env = server.env.iter();
            let way = Way::Stdio {
                command: server.command.clone(),
                args: server.args.clone(),
                env: env.map(|it| (it.name.clone(), it.value.clone())).collect(),
            };
            (&server.name, way)
        }
        WireServer::Http(server) => {
            let headers = server.headers.iter();
            let way = Way::Http {
                url: server.url.clone(),
                headers: headers
                    .map(|it| (it.name.clone(), it.value.clone()))
                    .collect(),
            };
            (&server.name, way)
        }
        WireServer::Sse(server) => return Err(unsupported_transport_error(&server.name, "sse")),
        _ => {
            return Err(unsupported_transport_error(
                "a server",
                "an unknown transport",
            ));
        }
    };
    Ok(McpServer {
        name: name.clone(),
        way,
        timeout: None,
    })
}

fn unsupported_transport_error(name: &str, transport: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "mcpServers: {name} uses {transport}, which this agent does not support; \
         see mcpCapabilities."
    ))
}

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
    let (mut news, closed) = (servers.news(), servers.closed());
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
                let title = format!("MCP server {}", turnery_tools::visible_line(&server));
                lines.extend(version.encode_warning(id, takes, &title, &trouble));
            }
            let prompts = servers.prompts();
            if reported.prompts != prompts {
                lines.extend(version.encode_commands(&session, &prompts));
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
    fn take_new_problems(&mut self, all: &[ServerStatus]) -> Vec<(String, String)> {
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
fn describe_problem(server: &ServerStatus) -> Option<String> {
    match (&server.trouble, server.left_out) {
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

/// Invocation of an MCP prompt as a slash command.
pub(crate) struct McpPromptCall {
    /// Command name.
    pub(crate) command: String,
    /// Text after the name, trimmed.
    pub(crate) args: String,
    /// Other content of the same prompt.
    pub(crate) attachments: Vec<Content>,
}

/// Finds an MCP prompt in a prompt, by the same rules as a built-in command (CMD-2).
pub(crate) fn find_mcp_prompt(
    input: &[Content],
    is_text: &[bool],
    session: &Session,
) -> Option<McpPromptCall> {
    let servers = session.servers()?;
    let split = |text: &str| {
        let rest = text.strip_prefix('/')?;
        let (name, typed) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let found = servers.may_have_prompt(name);
        found.then(|| (name.to_owned(), typed.trim().to_owned()))
    };
    let ((command, typed), rest) = commands::find_in_blocks(input, is_text, split)?;
    Some(McpPromptCall {
        command,
        args: typed,
        attachments: rest,
    })
}

/// Waits for a prompt whose text comes from an MCP server and returns the response. If the server fails, the
/// error is shown and stored like the answer of a command. `prompt` is the content as received.
pub(crate) async fn run_mcp_prompt(
    ticket: PromptHandle,
    prompt: Vec<Content>,
    session: &Session,
    connection: &Connection,
) -> Result<PromptResponse, RpcError> {
    let transcript = CommandTranscript::new(&new_message_id(session), prompt);
    match ticket.result().await {
        Ok(result) => {
            stop_reason::to_prompt_response(&result, connection.client_features().prompt_usage)
        }
        Err(error @ PromptError::Server(_)) => {
            let (id, text) = (new_message_id(session), format!("{error}."));
            transcript.record_answer(&id, &text, session).await;
            let mut writer = UpdateWriter::new(session.id().as_str());
            writer.write_text(ChunkAuthor::Agent, &id, &text);
            send_line(connection.peer.out(), writer.lines).await;
            Ok(PromptResponse::new(StopReason::EndTurn))
        }
        Err(error) => Err(stop_reason::prompt_error(&error)),
    }
}
