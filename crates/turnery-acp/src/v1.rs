//! The stable protocol version.

mod artifacts;
pub(crate) mod available_commands;
pub(crate) mod commands;
pub(crate) mod config_options;
pub(crate) mod encoder;
pub(crate) mod mcp_servers;
pub(crate) mod notices;
pub(crate) mod output_preview;
pub(crate) mod permission;
pub(crate) mod prompt_content;
pub(crate) mod prompt_response;
pub(crate) mod shared;
pub(crate) mod tool_calls;
