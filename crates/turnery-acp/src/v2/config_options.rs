//! Encodes mode, model and thinking level of a session as v2 config options, and its commands. In v2 the mode
//! is only a config option.

use crate::{
    transport::update_writer,
    view::session_options::{MODE, MODEL, THINKING, THINKING_LEVELS, mode_description, mode_name},
};
use agent_client_protocol_schema::v2::{
    ConfigOptionUpdate, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionUpdate,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::Mode;

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
