//! Unit tests, against hand-written expectations.

mod client_ports;
mod commands;
pub(crate) mod encoder;
mod envelope;
pub(crate) mod events;
mod method_table;
mod notices;
mod outbox;
mod peer;
mod permission;
pub(crate) mod plan;
mod prompt_content;
mod reader;
mod stop_reason;
pub(crate) mod support;
mod tool_calls;
mod writer;
