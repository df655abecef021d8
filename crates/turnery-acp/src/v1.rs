//! The stable protocol version.

pub(crate) mod config_options;
pub(crate) mod encoder;
pub(crate) mod notices;
pub(crate) mod output_preview;
pub(crate) mod permission;
pub(crate) mod prompt_content;
pub(crate) mod response_usage;
pub(crate) mod tool_call_view;
pub(crate) mod tool_calls;
