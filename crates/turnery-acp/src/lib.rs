//! Serves the Agent Client Protocol (ACP): JSON-RPC over stdio, translated to and from the agent.
//!
//! | module | what it does |
//! |---|---|
//! | `transport` | reads and writes lines on stdin and stdout |
//! | `server` | serves a connection: classifies lines, routes requests, sends responses and updates in order |
//! | `methods` | one handler per method of the protocol |
//! | `commands` | one slash command per file |
//! | `client` | requests to the client: questions, files, terminals |
//! | `view` | what the client is shown, independent of the protocol version |
//! | `v1`, `v2` | encode the view for the negotiated version |
//!
//! [`serve()`] polls each handler once before it reads the next line. Everything outgoing (responses, updates and
//! requests to the client) goes through the single queue of `transport::writer`.

mod client;
mod commands;
mod limits;
mod methods;
mod server;
mod transport;
mod v1;
mod v2;
mod view;

pub use client::key_page::{KeyPage, KeyPageOpener};
pub use limits::LINE_LIMIT;
pub use server::login::Login;
pub use server::serve::{ExitReason, ServeOptions, serve};
pub use transport::stdio::{Input, Output, Stdio};
pub use view::stop_reason::stop_reason_name;

#[cfg(test)]
mod tests;
