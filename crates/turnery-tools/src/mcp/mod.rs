//! MCP: the tools, resources and prompts of servers that the client or the user names.
//!
//! [`Servers`] holds those of one session. Each has a task of its own ([`link`]), which starts it in the
//! background, lists what it offers, follows changes, and starts it again when it is used after it has
//! died. A prompt or a call that uses a server waits for it, for a bounded time; all others wait for it only
//! in the first two seconds after the session was opened.
//!
//! What must hold: arguments, environment and headers reach the server as they were given (MCP-5) and
//! nobody else; a process ends with its session, and all that it started with it; whatever a server
//! says of its tools, none of them runs unless the policy allows it.

mod call;
mod child;
mod fault;
mod http;
mod line_limit;
mod link;
mod list_resources;
mod names;
mod offer;
mod prompts;
mod reach;
mod read_resource;
mod result;
mod secrets;
mod server;
mod servers;
mod told;
mod tool;
mod wait_for_server;

#[cfg(test)]
mod tests;

pub use prompts::McpPrompt;
pub use server::{McpServer, Way};
pub use servers::{Launch, ServerStatus, Servers};
