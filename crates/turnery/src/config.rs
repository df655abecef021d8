//! Reads and merges the settings of the user, the project, the environment and the command line.
//!
//! Later ones win: the user's `config.toml`, the project's `.turnery/config.toml`, environment
//! variables, flags. A project may only narrow what its user allows (see [`project`]).

pub(crate) mod environment;
pub(crate) mod file;
mod file_watch;
pub(crate) mod hooks;
pub(crate) mod key_file;
pub(crate) mod layer;
pub(crate) mod live_providers;
pub(crate) mod local_servers;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod paths;
pub(crate) mod project;
pub(crate) mod providers;
pub(crate) mod reader;
pub(crate) mod rules;
pub(crate) mod schema;

pub(crate) use file::{ConfigFile, ProviderEntry};
pub(crate) use hooks::{HookEntry, HookPoint};
pub(crate) use key_file::Keys;
pub(crate) use layer::Choice;
pub(crate) use live_providers::Reach;
pub(crate) use mcp::McpEntry;
pub(crate) use paths::Places;
pub(crate) use reader::ConfigError;
