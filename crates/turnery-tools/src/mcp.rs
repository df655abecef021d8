//! Tools, resources and prompts of the MCP servers that the client or the user configures.
//!
//! Each server of a session has its own task (module `connection`), which starts the server in the
//! background, lists its capabilities, follows changes, and restarts the server when it is used after it
//! died. A prompt or a call that uses a server waits for it for a bounded time; other prompts do not wait, and
//! the model gets a tool that waits for a server which is still starting.
//!
//! Invariants: arguments, environment and headers reach the server as given (MCP-5) and nobody else; a server
//! process and all its descendants end with the session; whatever a server declares about its tools, none of
//! them runs unless the policy allows it.

mod capabilities;
mod client_handler;
mod connection;
mod content;
mod errors;
mod http;
mod line_limit;
mod list_resources;
mod prompts;
mod read_resource;
mod request;
mod secrets;
mod server;
mod servers;
mod stdio;
mod tool;
mod tool_names;
mod transport;
mod wait_for_server;

#[cfg(test)]
mod tests;

use crate::typed_tool::TypedTool as _;

pub use prompts::McpPrompt;
pub use server::{McpServer, McpTransport};
pub use servers::{McpLaunchOptions, McpServerStatus, McpServers};

/// Names of the tools for resources.
pub const RESOURCE_TOOL_NAMES: &[&str] = &[
    list_resources::ListResourcesTool::NAME,
    read_resource::ReadResourceTool::NAME,
];
