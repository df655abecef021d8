//! acp-conformance: plays protocol cases, written as text files, against any agent command.
//!
//! A case is what a person would type and what should come back. It knows nothing of any agent's
//! code: this crate imports none of the others.
//!
#![doc = include_str!("../README.md")]

pub mod broken;
pub mod case;
mod deep;
pub mod embedded;
pub mod facts;
pub mod faults;
pub mod folder;
pub mod mcp_server;
pub mod model;
pub mod mutations;
pub mod near;
mod official;
pub mod oracle;
pub mod outcome;
mod pace;
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
pub mod suite;
pub mod verdict;

pub use case::{Case, CaseError, Line, Need, Step};
pub use facts::Facts;
pub use outcome::{Check, Finding, Outcome, Ruling};
pub use play::{Agent, Options, play};
pub use requirements::Requirements;
pub use suite::{Played, play_all};
