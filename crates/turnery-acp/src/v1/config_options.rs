//! Encodes mode, model and thinking level of a session as `modes` and `configOptions`, always in step
//! (MODE-4).

use crate::{server::rpc_error::RpcError, v1::notices};
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, Meta, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, SessionUpdate,
};
use serde_json::json;
use turnery_agent::{Session, SessionOptions};
use turnery_models::Thinking;
use turnery_tools::Mode;

/// Id of the mode option.
pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const THINKING: &str = "thinking";

pub(crate) const THINKING_LEVELS: [(Thinking, &str); 5] = [
    (Thinking::Default, "Default"),
    (Thinking::Off, "Off"),
    (Thinking::Low, "Low"),
    (Thinking::Medium, "Medium"),
    (Thinking::High, "High"),
];

pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "Ask",
        Mode::Edit => "Edit",
        Mode::Plan => "Plan",
        Mode::Auto => "Auto",
    }
}

/// Returns the description of the mode option, including the sandbox that confines commands.
pub(crate) fn mode_description(options: &SessionOptions) -> String {
    format!("How freely the agent acts. {}", options.sandbox)
}

/// Returns the `_meta` of a session: the sandbox that confines commands. Not sent as an update, since clients
/// show updates in the conversation.
pub(crate) fn session_meta(options: &SessionOptions) -> Meta {
    notices::turnery_meta(json!({ "sandbox": &*options.sandbox }))
}

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

/// Parses a mode id (MODE-1).
pub(crate) fn parse_mode(id: &str) -> Result<Mode, RpcError> {
    Mode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == id)
        .ok_or_else(|| unknown_value_error(MODE, id, &Mode::ALL.map(Mode::as_str)))
}

/// Parses a thinking level id.
pub(crate) fn parse_thinking(id: &str) -> Result<Thinking, RpcError> {
    THINKING_LEVELS
        .into_iter()
        .map(|(level, _)| level)
        .find(|level| level.as_str() == id)
        .ok_or_else(|| {
            unknown_value_error(
                THINKING,
                id,
                &THINKING_LEVELS.map(|(level, _)| level.as_str()),
            )
        })
}

fn unknown_value_error(option: &str, value: &str, known: &[&str]) -> RpcError {
    RpcError::invalid_params(format!(
        "{value:?} is not a value of {option}: choose one of {}.",
        known.join(", ")
    ))
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
