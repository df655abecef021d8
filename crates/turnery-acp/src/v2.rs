//! The draft of the second protocol version, enabled with `turnery acp --acp-v2` for clients that request it.
//!
//! A prompt is answered as soon as its message is part of the conversation; updates report its result, and
//! `state_update` its end. Rules `V2-n` are listed in `conformance/requirements.toml`.

mod artifacts;
pub(crate) mod available_commands;
mod call_terminal;
mod commands;
mod diff;
pub(crate) mod encoder;
mod mcp_servers;
pub(crate) mod methods;
pub(crate) mod permission;
mod prompt_content;
mod session_state;
pub(crate) mod shared;
mod stop_reason;
mod tool_calls;

#[cfg(test)]
mod tests;
