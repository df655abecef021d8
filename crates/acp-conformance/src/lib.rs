//! Plays protocol cases, written as text files, against any ACP agent command.
//!
//! A case lists the client's input and the expected output. The crate depends on no agent's code and on no
//! other crate of the workspace.
//!
#![doc = include_str!("../README.md")]

pub mod case;
pub mod case_folder;
pub mod cleanup_guard;
mod deep_json;
pub mod embedded;
pub mod facts;
#[cfg(feature = "cli")]
pub mod helper_command;
pub mod mcp_server;
pub mod model;
mod official_schema;
pub mod oracle;
pub mod outcome;
pub mod pattern;
mod peer;
pub mod play;
mod preflight;
pub mod profile;
pub mod replay;
pub mod report;
pub mod requirements;
pub mod scratch;
pub mod suggestions;
pub mod suite;
pub mod suite_clock;
pub mod verdict;

pub use case::{Case, CaseError, CaseLine, CaseStep, Need};
pub use facts::AgentFacts;
pub use outcome::{CaseOutcome, CheckResult, Finding, RuleCheck};
pub use play::{AgentSpec, PlayOptions};
pub use requirements::Requirements;
pub use suite::{SuiteResult, play_suite};
