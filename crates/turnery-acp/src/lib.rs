//! ACP: JSON-RPC over stdio, and the translation between the wire and the agent. The only crate that knows both.
//!
//! A line comes in: [`reader`] cuts it, [`envelope`] classifies it, [`dispatch`] finds its method in
//! the table of [`methods`], and [`serve()`] polls the handler once before it looks at the next line.
//! What goes out, answers, updates and questions alike, goes through the one queue of [`writer`].

mod barrier;
mod bounds;
mod calls;
mod commands;
mod connection;
mod content;
mod dialect;
mod dispatch;
mod elicitation;
mod envelope;
mod fault;
mod files;
mod key_page;
mod login;
mod methods;
mod news;
mod options;
mod outbox;
mod peer;
mod permission;
mod preview;
mod prompt_usage;
mod quiet_time;
mod quirks;
mod reader;
mod serve;
mod servers;
mod shown;
mod spent;
pub mod stdio;
mod stop;
mod terminals;
mod till;
mod translate;
mod update;
mod v2;
#[cfg(feature = "witness")]
pub mod witness;
mod writer;

pub use agent_client_protocol_schema::v1::StopReason;
pub use bounds::LINE_LIMIT;
pub use key_page::{KeyPage, KeyPages};
pub use login::Login;
pub use serve::{ExitReason, ServeOptions, serve};
pub use stdio::{Input, Output, Stdio};
pub use stop::stop_reason;

#[cfg(test)]
mod tests;
