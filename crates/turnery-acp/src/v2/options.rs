//! Options: mode, model and thinking of a session as v2 config options, and its commands. Modes are
//! nothing of their own in v2.

use crate::{
    commands,
    options::{MODE, MODEL, THINKING, THINKING_LEVELS, mode_description, mode_name},
    update,
};
use agent_client_protocol_schema::v2::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, Command, ConfigOptionUpdate,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionUpdate,
    TextCommandInput,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::{Mode, mcp::McpPrompt};

/// All options, the most important first: each has values, and its current one is among them (V2-21).
pub(super) fn config(options: &SessionOptions) -> Vec<SessionConfigOption> {
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

/// Says all options again.
pub(crate) fn changed(session: &Session) -> Vec<u8> {
    let update = ConfigOptionUpdate::new(config(&session.options()));
    update::line(
        session.id().as_str(),
        &SessionUpdate::ConfigOptionUpdate(update),
    )
}

/// All commands, for the client to offer, the prompts of MCP servers among them.
pub(super) fn commands(options: &SessionOptions, prompts: &[McpPrompt]) -> Vec<AvailableCommand> {
    let all = commands::all(options, prompts).into_iter();
    let all = all.map(|it| {
        let input = it
            .hint
            .map(|hint| AvailableCommandInput::Text(TextCommandInput::new(hint)));
        AvailableCommand::Command(Command::new(it.name, it.about).input(input))
    });
    all.collect()
}

/// The same in an update, when they have changed.
pub(crate) fn offer(session: &Session, prompts: &[McpPrompt]) -> Vec<u8> {
    let update = AvailableCommandsUpdate::new(commands(&session.options(), prompts));
    let id = session.id().as_str();
    update::line(id, &SessionUpdate::AvailableCommandsUpdate(update))
}
