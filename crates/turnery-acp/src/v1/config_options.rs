//! Encodes mode, model and thinking level of a session as `modes` and `configOptions`, always in step
//! (MODE-4).

use crate::view::session_options::{
    MODE, MODEL, THINKING, THINKING_LEVELS, mode_description, mode_name,
};
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, SessionUpdate,
};
use turnery_agent::{Session, SessionOptions};
use turnery_tools::Mode;

/// Encodes the session's `modes`.
pub(crate) fn encode_modes(options: &SessionOptions) -> SessionModeState {
    let all = Mode::ALL
        .into_iter()
        .map(|mode| {
            SessionMode::new(mode.as_str(), mode_name(mode))
                .description(mode.description().to_owned())
        })
        .collect();
    SessionModeState::new(options.mode.as_str(), all)
}

/// Encodes all `configOptions` of the session, most important first (CFG-2, CFG-5). No option is boolean
/// (CFG-3).
pub(crate) fn encode_config_options(options: &SessionOptions) -> Vec<SessionConfigOption> {
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
        SessionConfigOption::select(MODEL, "Model", options.model.clone(), models)
            .description("The model that answers".to_owned())
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::select(THINKING, "Thinking", options.thinking.as_str(), thinking)
            .description("How much the model thinks before it answers".to_owned())
            .category(SessionConfigOptionCategory::ThoughtLevel),
    ]
}

/// Encodes the current mode as a `current_mode_update`.
pub(crate) fn encode_mode_update(session: &Session) -> SessionUpdate {
    SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(session.options().mode.as_str()))
}

/// Encodes all options as a `config_option_update`.
pub(crate) fn encode_config_update(session: &Session) -> SessionUpdate {
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(encode_config_options(
        &session.options(),
    )))
}
