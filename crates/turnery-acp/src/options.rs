//! Options: mode, model and thinking of a session, as `modes` and as `configOptions`, always in step (MODE-4).

use crate::{fault::Fault, news};
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, Meta, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, SessionUpdate,
};
use serde_json::json;
use turnery_agent::{Session, SessionOptions};
use turnery_models::Thinking;
use turnery_tools::Mode;

/// Ids of the options.
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

/// What the option is for, and what confines commands in this session.
pub(crate) fn mode_description(options: &SessionOptions) -> String {
    format!("How freely the agent acts. {}", options.sandbox)
}

/// What else a client may show of a session, in `_meta`: how commands are confined. No update says it, since clients
/// show those as part of the conversation.
pub(crate) fn meta(options: &SessionOptions) -> Meta {
    news::meta(json!({ "sandbox": &*options.sandbox }))
}

/// The session's `modes`.
pub(crate) fn modes(options: &SessionOptions) -> SessionModeState {
    let all = Mode::ALL
        .into_iter()
        .map(|mode| {
            SessionMode::new(mode.as_str(), mode_name(mode))
                .description(mode.description().to_owned())
        })
        .collect();
    SessionModeState::new(options.mode.as_str(), all)
}

/// The session's `configOptions`, all of them, the most important first (CFG-2, CFG-5). None is a
/// boolean (CFG-3).
pub(crate) fn config(options: &SessionOptions) -> Vec<SessionConfigOption> {
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

/// The mode of that id (MODE-1).
pub(crate) fn mode(id: &str) -> Result<Mode, Fault> {
    Mode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == id)
        .ok_or_else(|| no_value(MODE, id, &Mode::ALL.map(Mode::as_str)))
}

/// The thinking level of that id.
pub(crate) fn thinking(id: &str) -> Result<Thinking, Fault> {
    THINKING_LEVELS
        .into_iter()
        .map(|(level, _)| level)
        .find(|level| level.as_str() == id)
        .ok_or_else(|| {
            no_value(
                THINKING,
                id,
                &THINKING_LEVELS.map(|(level, _)| level.as_str()),
            )
        })
}

fn no_value(option: &str, value: &str, known: &[&str]) -> Fault {
    Fault::params(format!(
        "{value:?} is no value of {option}: choose one of {}.",
        known.join(", ")
    ))
}

/// Says the mode again in the form of `modes`.
pub(crate) fn mode_update(session: &Session) -> SessionUpdate {
    SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(session.options().mode.as_str()))
}

/// Says all options again in the form of `configOptions`.
pub(crate) fn config_update(session: &Session) -> SessionUpdate {
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(config(&session.options())))
}
