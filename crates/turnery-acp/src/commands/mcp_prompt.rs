//! Runs prompts of MCP servers, which are called like slash commands.

use crate::{
    commands::{
        find_command::find_in_blocks,
        transcript::{CommandTranscript, new_message_id},
    },
    server::{connection::Connection, prompt_content::PromptContent, rpc_error::RpcError},
    transport::{update_writer::UpdateWriter, writer::send_line},
    v1::prompt_response::to_prompt_response,
    view::stop_reason,
};
use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use turnery_agent::{PromptError, PromptHandle, Session};
use turnery_engine::Content;

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
pub(crate) fn find_mcp_prompt(prompt: &PromptContent, session: &Session) -> Option<McpPromptCall> {
    let servers = session.servers()?;
    let split = |text: &str| {
        let rest = text.strip_prefix('/')?;
        let (name, typed) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let found = servers.may_have_prompt(name);
        found.then(|| (name.to_owned(), typed.trim().to_owned()))
    };
    let ((command, typed), rest) = find_in_blocks(prompt, split)?;
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
        Ok(result) => to_prompt_response(&result, connection.client_features().prompt_usage),
        Err(error @ PromptError::Server(_)) => {
            let (id, text) = (new_message_id(session), format!("{error}."));
            transcript.record_answer(&id, &text, session).await;
            let mut writer = UpdateWriter::new(session.id().as_str());
            writer.write_text(turnery_agent::view::ChunkAuthor::Agent, &id, &text);
            send_line(connection.peer.out(), writer.lines).await;
            Ok(PromptResponse::new(StopReason::EndTurn))
        }
        Err(error) => Err(stop_reason::prompt_error(&error)),
    }
}
