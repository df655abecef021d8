//! Encodes the list of slash commands.

use crate::{commands, transport::update_writer};
use agent_client_protocol_schema::v2::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, Command, SessionUpdate,
    TextCommandInput,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::mcp::McpPrompt;

/// Encodes the list of all commands, including prompts of MCP servers.
pub(super) fn list_available_commands(
    options: &SessionOptions,
    prompts: &[McpPrompt],
) -> Vec<AvailableCommand> {
    let all = commands::list_commands(options, prompts).into_iter();
    let all = all.map(|it| {
        let input = it
            .hint
            .map(|hint| AvailableCommandInput::Text(TextCommandInput::new(hint)));
        AvailableCommand::Command(Command::new(it.name, it.description).input(input))
    });
    all.collect()
}

/// Encodes an update with all commands.
pub(crate) fn encode_available_commands(session: &Session, prompts: &[McpPrompt]) -> Vec<u8> {
    let update = AvailableCommandsUpdate::new(list_available_commands(&session.options(), prompts));
    let id = session.id().as_str();
    update_writer::update_line(id, &SessionUpdate::AvailableCommandsUpdate(update))
}
