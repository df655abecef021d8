//! Encodes the list of slash commands.

use crate::{commands, transport::update_writer};
use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate,
    UnstructuredCommandInput,
};
use std::borrow::Cow;
use turnery_agent::Session;
use turnery_tools::mcp::McpPrompt;

/// Encodes the update that lists all commands, including prompts of MCP servers (CMD-1).
pub(crate) fn encode_available_commands(session: &Session, mcp_prompts: &[McpPrompt]) -> Vec<u8> {
    let input = |hint: Cow<'_, str>| {
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint))
    };
    let options = session.options();
    let all = commands::list_commands(&options, mcp_prompts).into_iter();
    let all =
        all.map(|it| AvailableCommand::new(it.name, it.description).input(it.hint.map(input)));
    let update = AvailableCommandsUpdate::new(all.collect());
    let id = session.id().as_str();
    update_writer::update_line(id, &SessionUpdate::AvailableCommandsUpdate(update))
}
