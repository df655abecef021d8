//! Reads and merges the settings of the user, the project, the environment and the command line.
//!
//! Later ones win: the user's `config.toml`, the project's `.turnery/config.toml`, environment
//! variables, flags. A project may only narrow what its user allows (see [`project`]).

pub(crate) mod default_model;
pub(crate) mod environment;
mod file;
mod file_watch;
pub(crate) mod hooks;
pub(crate) mod key_file;
pub(crate) mod live_providers;
pub(crate) mod mcp;
pub(crate) mod model_lists;
pub(crate) mod models;
pub(crate) mod paths;
mod problem;
pub(crate) mod project;
pub(crate) mod provider_entry;
pub(crate) mod providers;
mod reader;
pub(crate) mod rules;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod store_location;
pub(crate) mod suggestion;
mod toml_deserializer;
mod value_source;
pub(crate) mod values;

pub(crate) use hooks::{HookEntry, HookPoint};
pub(crate) use key_file::KeyFile;
pub(crate) use live_providers::LiveProviders;
pub(crate) use mcp::McpEntry;
pub(crate) use paths::Paths;
pub(crate) use problem::ConfigError;
pub(crate) use provider_entry::ProviderEntry;
pub(crate) use settings::{Config, LimitConfig};
pub(crate) use store_location::StoreLocation;
