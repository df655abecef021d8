//! Agent: drives a loop with a model, tools, a store and a client. The embedding API.
//!
//! One task owns each open session: its history, its loop, its lane and its queue of prompts.
//! Everything else talks to it through a bounded mailbox.

#[macro_use]
pub mod faults;

pub mod agent;
pub mod client;
pub mod session;
pub mod settings;

pub use agent::{Agent, OpenError, OpenRequest};
pub use client::{Answer, Ask, AskOption, Client, Item, OptionKind, Outbox, Ports, Silent};
pub use session::{
    PROMPTS_WAITING, PromptError, PromptResult, Session, SessionOptions, SetError, StartError,
    Ticket,
};
pub use settings::{Projects, Settings, SettingsError};
pub use tokio_util::sync::CancellationToken;
