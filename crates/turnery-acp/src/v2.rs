//! The draft of the second protocol version, enabled with `turnery acp --acp-v2` for clients that request it.
//!
//! A prompt is answered as soon as its message is part of the conversation; updates report its result, and
//! `state_update` its end. Rules `V2-n` are listed in `conformance/requirements.toml`.

mod call_terminal;
mod commands;
mod config_options;
mod diff;
mod encoder;
mod mcp_servers;
pub(crate) mod methods;
mod notices;
mod permission;
mod prompt_content;
mod session_state;
mod stop_reason;
mod tool_call_view;
mod tool_calls;

pub(crate) use config_options::{
    encode_available_commands, encode_options_update as options_changed,
};
pub(crate) use encoder::EncoderV2;
pub(crate) use notices::{encode_session_info, encode_warning_line};
pub(crate) use permission::PermissionClientV2;

#[cfg(test)]
mod tests;
