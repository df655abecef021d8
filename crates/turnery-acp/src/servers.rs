//! Servers: the MCP servers of a session, as the client names them, and as it is told of them.

use crate::{
    commands::{self, Aside, message_id},
    connection::Connection,
    fault::Fault,
    methods::absolute,
    serve::send,
    stop,
    update::{UpdateWriter, Voice},
};
use agent_client_protocol_schema::v1::{McpServer as WireServer, PromptResponse, StopReason};
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;
use turnery_agent::{PromptError, Session, Ticket};
use turnery_engine::Content;
use turnery_tools::mcp::{McpServer, ServerStatus, Way};

/// A server from the wire, with everything exactly as it was given (MCP-1, MCP-2, MCP-5).
pub(crate) fn from_wire(server: &WireServer) -> Result<McpServer, Fault> {
    let (name, way) = match server {
        WireServer::Stdio(server) => {
            absolute("mcpServers: command", &server.command)?;
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
        WireServer::Sse(server) => return Err(not_advertised(&server.name, "sse")),
        _ => return Err(not_advertised("a server", "an unknown transport")),
    };
    Ok(McpServer {
        name: name.clone(),
        way,
        timeout: None,
    })
}

fn not_advertised(name: &str, transport: &str) -> Fault {
    Fault::params(format!(
        "mcpServers: {name} is reached by {transport}, which this agent does not support; \
         see mcpCapabilities."
    ))
}

/// Tell the client of its session's servers from now on: which prompts they offer, and which of them do
/// not work (MCP-6). Nothing before `answered`, and nothing once they are ended.
pub(crate) fn follow(session: &Session, connection: &Connection, answered: CancellationToken) {
    let Some(servers) = session.servers() else {
        return;
    };
    let (mut news, closed) = (servers.news(), servers.closed());
    let (dialect, takes) = (connection.dialect(), connection.abilities().takes);
    let out = connection.peer.out().clone();
    // Holds the session's handle: ends when the session is closed, not when it is forgotten.
    let session = session.clone();
    let following = async move {
        answered.cancelled().await;
        let mut told = Told::default();
        loop {
            let Some(servers) = session.servers() else {
                return;
            };
            let id = session.id().as_str();
            let mut lines = Vec::new();
            for (server, trouble) in told.troubles(&servers.status()) {
                let title = format!("MCP server {}", turnery_tools::visible_line(&server));
                lines.extend(dialect.warning(id, takes, &title, &trouble));
            }
            let prompts = servers.prompts();
            if told.commands != prompts {
                lines.extend(dialect.offer_with(&session, &prompts));
                told.commands = prompts;
            }
            if !lines.is_empty() {
                send(&out, lines).await;
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

/// What the client has been told of.
#[derive(Default)]
struct Told {
    commands: Vec<turnery_tools::mcp::McpPrompt>,
    troubles: HashMap<String, String>,
}

impl Told {
    /// What is new of it, by server: each trouble once, as long as it lasts.
    fn troubles(&mut self, all: &[ServerStatus]) -> Vec<(String, String)> {
        let mut new = Vec::new();
        for server in all {
            let trouble = trouble(server);
            let known = self.troubles.get(&server.name);
            if known == trouble.as_ref() {
                continue;
            }
            match trouble {
                Some(trouble) => {
                    new.push((server.name.clone(), trouble.clone()));
                    self.troubles.insert(server.name.clone(), trouble);
                }
                None => {
                    self.troubles.remove(&server.name);
                }
            }
        }
        new
    }
}

/// What a person should know of a server.
fn trouble(server: &ServerStatus) -> Option<String> {
    match (&server.trouble, server.left_out) {
        (Some(why), _) => Some(format!(
            "It does not work: {why}. Its tools fail or are missing; everything else goes on."
        )),
        (None, 0) => None,
        (None, count) => Some(format!(
            "{count} of its tools are left out: together the servers have more than models take, or \
             the tools are too large."
        )),
    }
}

/// The prompt of a server that a prompt is.
pub(crate) struct Found {
    /// Its name as a command.
    pub(crate) command: String,
    /// What was typed after that.
    pub(crate) typed: String,
    /// What came with it.
    pub(crate) rest: Vec<Content>,
}

/// The prompt of a server that a prompt is, if it is one: found like a command of ours (CMD-2).
pub(crate) fn command(input: &[Content], is_text: &[bool], session: &Session) -> Option<Found> {
    let servers = session.servers()?;
    let split = |text: &str| {
        let rest = text.strip_prefix('/')?;
        let (name, typed) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let found = servers.may_have_prompt(name);
        found.then(|| (name.to_owned(), typed.trim().to_owned()))
    };
    let ((command, typed), rest) = commands::among(input, is_text, split)?;
    Some(Found {
        command,
        typed,
        rest,
    })
}

/// Answer a prompt that a server writes; if it does not, that is said in words and kept, like a command's
/// answer. `whole` is the prompt as it came.
pub(crate) async fn answer(
    ticket: Ticket,
    whole: Vec<Content>,
    session: &Session,
    connection: &Connection,
) -> Result<PromptResponse, Fault> {
    let aside = Aside::typed(&message_id(session), whole);
    match ticket.result().await {
        Ok(result) => stop::to_wire(&result, connection.abilities().prompt_usage),
        Err(error @ PromptError::Server(_)) => {
            let (id, text) = (message_id(session), format!("{error}."));
            aside.answered(&id, &text, session).await;
            let mut writer = UpdateWriter::new(session.id().as_str());
            writer.text(Voice::Agent, &id, &text);
            send(connection.peer.out(), writer.lines).await;
            Ok(PromptResponse::new(StopReason::EndTurn))
        }
        Err(error) => Err(stop::not_stored(&error)),
    }
}
