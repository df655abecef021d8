//! Options of a session: mode, model, thinking level and protocol.

use crate::{server::rpc_error::RpcError, view::meta::turnery_meta};
use agent_client_protocol_schema::v1::Meta;
use serde_json::json;
use turnery_agent::{Protocol, Session, SessionOptions};
use turnery_models::Thinking;
use turnery_tools::Mode;

/// Id of the mode option.
pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const THINKING: &str = "thinking";
pub(crate) const PROTOCOL: &str = "protocol";

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
    turnery_meta(json!({ "sandbox": &*options.sandbox }))
}

/// Parses a mode id (MODE-1).
pub(crate) fn parse_mode(id: &str) -> Result<Mode, RpcError> {
    Mode::parse(id).ok_or_else(|| unknown_value_error(MODE, id, &Mode::ALL.map(Mode::as_str)))
}

/// Parses a thinking level id.
fn parse_thinking(id: &str) -> Result<Thinking, RpcError> {
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

pub(crate) fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tools => "Tool calls",
        Protocol::Code => "Code",
    }
}

/// Parses a protocol id.
fn parse_protocol(id: &str) -> Result<Protocol, RpcError> {
    Protocol::parse(id)
        .ok_or_else(|| unknown_value_error(PROTOCOL, id, &Protocol::ALL.map(Protocol::as_str)))
}

fn unknown_value_error(option: &str, value: &str, known: &[&str]) -> RpcError {
    RpcError::invalid_params(format!(
        "{value:?} is not a value of {option}: choose one of {}.",
        known.join(", ")
    ))
}

/// Sets an option. An unknown option or value changes nothing.
pub(crate) async fn set_option(session: &Session, id: &str, value: &str) -> Result<(), RpcError> {
    match id {
        MODE => session.set_mode(parse_mode(value)?).await?,
        MODEL => session.set_model(value).await?,
        THINKING => session.set_thinking(parse_thinking(value)?).await?,
        PROTOCOL => session.set_protocol(parse_protocol(value)?).await?,
        unknown => {
            return Err(RpcError::invalid_params(format!(
                "{unknown:?} is not an option of this session: choose {MODE}, {MODEL}, {THINKING} or \
                 {PROTOCOL}."
            )));
        }
    }
    Ok(())
}
