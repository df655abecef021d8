//! acp-conformance: plays protocol cases, written as text files, against any agent command.
//!
//! A case is what a person would type and what should come back. It knows nothing of any agent's
//! code: this crate imports none of the others.

pub mod case;
pub mod model;
pub mod pattern;
pub mod play;
pub mod profile;

pub use case::{Case, CaseError, Step};
pub use play::{Agent, Failure, play};
