//! Configuration: what a person, a project, the environment and the command line ask for, and what comes of it.
//!
//! Later ones win: the user's `config.toml`, the project's `.turnery/config.toml`, environment
//! variables, flags. A project may only narrow what its user allows (see [`project`]).

pub(crate) mod choice;
pub(crate) mod environment;
pub(crate) mod file;
mod file_watch;
pub(crate) mod hooks;
pub(crate) mod keys;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod places;
pub(crate) mod project;
pub(crate) mod providers;
pub(crate) mod reach;
pub(crate) mod reader;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod served;

pub(crate) use choice::Choice;
pub(crate) use file::{ConfigFile, ProviderEntry};
pub(crate) use hooks::{HookEntry, HookPoint};
pub(crate) use keys::Keys;
pub(crate) use mcp::McpEntry;
pub(crate) use places::Places;
pub(crate) use reach::Reach;
pub(crate) use reader::ConfigError;
