//! Encodes mode, model and thinking level of a session as v2 config options, and its commands. In v2 the mode
//! is only a config option.

use crate::{
    commands,
    transport::update_writer,
    v1::config_options::{MODE, MODEL, THINKING, THINKING_LEVELS, mode_description, mode_name},
};
use agent_client_protocol_schema::v2::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, Command, ConfigOptionUpdate,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionUpdate,
    TextCommandInput,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::{Mode, mcp::McpPrompt};

/// Encodes all options, most important first. Each has values, which include the current one (V2-21).
pub(super) fn encode_config_options(options: &SessionOptions) -> Vec<SessionConfigOption> {
    let modes: Vec<_> = Mode::ALL
        .into_iter()
        .map(|mode| {
            SessionConfigSelectOption::new(mode.as_str(), mode_name(mode))
                .description(mode.description().to_owned())
        })
        .collect();
    let models: Vec<_> = options
        .models
        .iter()
        .map(|model| {
            SessionConfigSelectOption::new(model.name.to_string(), model.display_name.clone())
        })
        .collect();
    let thinking: Vec<_> = THINKING_LEVELS
        .into_iter()
        .map(|(level, name)| SessionConfigSelectOption::new(level.as_str(), name))
        .collect();
    vec![
        SessionConfigOption::select(MODE, "Mode", options.mode.as_str(), modes)
            .description(mode_description(options))
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(MODEL, "Model", options.model.as_str(), models)
            .description("The model that answers".to_owned())
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::select(THINKING, "Thinking", options.thinking.as_str(), thinking)
            .description("How much the model thinks before it answers".to_owned())
            .category(SessionConfigOptionCategory::ThoughtLevel),
    ]
}

/// Encodes an update with all options.
pub(crate) fn encode_options_update(session: &Session) -> Vec<u8> {
    let update = ConfigOptionUpdate::new(encode_config_options(&session.options()));
    update_writer::update_line(
        session.id().as_str(),
        &SessionUpdate::ConfigOptionUpdate(update),
    )
}

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
