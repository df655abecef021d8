//! Plays protocol cases, written as text files, against any ACP agent command.
//!
//! A case lists the client's input and the expected output. The crate depends on no agent's code and on no
//! other crate of the workspace.
//!
#![doc = include_str!("../README.md")]

pub mod broken_agent;
pub mod case;
pub mod case_folder;
mod deep_json;
pub mod embedded;
pub mod facts;
pub mod faults;
pub mod mcp_server;
pub mod model;
pub mod mutations;
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
pub mod scoreboard;
pub mod scratch;
pub mod suggestions;
pub mod suite;
mod suite_clock;
pub mod verdict;

pub use case::{Case, CaseError, CaseLine, CaseStep, Need};
pub use facts::AgentFacts;
pub use outcome::{CaseOutcome, CheckResult, Finding, RuleCheck};
pub use play::{AgentSpec, PlayOptions, play_case};
pub use requirements::Requirements;
pub use suite::{SuiteResult, play_suite};
