//! Serves the Agent Client Protocol (ACP): JSON-RPC over stdio, translated to and from the agent.
//!
//! Incoming lines are split by [`reader`], classified by [`envelope`] and routed by [`dispatch`] through the
//! method table in [`methods`]. [`serve()`] polls each handler once before it reads the next line. Everything
//! outgoing (responses, updates and requests to the client) goes through the single queue of [`writer`].

mod acp_version;
mod commands;
mod config_options;
mod connection;
mod dispatch;
mod editor_files;
mod elicitation;
mod encoder;
mod envelope;
mod key_page;
mod limits;
mod login;
mod mcp_servers;
mod methods;
mod notices;
mod outbox;
mod output_preview;
mod peer;
mod permission;
mod prompt_barrier;
mod prompt_content;
mod prompt_usage;
mod quirks;
mod reader;
mod response_usage;
mod rpc_error;
mod serve;
mod session_cost;
mod stall_timer;
pub mod stdio;
mod stop_reason;
mod terminals;
mod tool_call_view;
mod tool_calls;
mod update_writer;
mod v2;
#[cfg(feature = "witness")]
pub mod witness;
mod writer;

pub use key_page::{KeyPage, KeyPageOpener};
pub use limits::LINE_LIMIT;
pub use login::Login;
pub use serve::{ExitReason, ServeOptions, serve};
pub use stdio::{Input, Output, Stdio};
pub use stop_reason::stop_reason_name;

#[cfg(test)]
mod tests;
