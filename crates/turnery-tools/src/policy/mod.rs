//! Policy: whether a call may run, must be asked about, or may not. Unknown means ask.
//!
//! Pure but for what [`Workspace::resolve`](crate::Workspace::resolve) and the checks of `harmless`
//! look up on the disk. A deny rule wins over everything. What a shell command line does is found by
//! parsing it; a line that is not understood is never allowed by a rule for single commands.

mod carriers;
mod conditions;
mod expand;
mod file_rules;
pub(crate) mod git;
mod glob;
mod guarded;
mod harmless;
mod hidden;
mod ignore_files;
mod judge;
mod line;
mod line_access;
mod line_limits;
mod locale;
mod mode;
mod narrow;
mod offered;
mod programs;
mod proposal;
mod rule;
mod scripts;
mod server;
mod versions;
mod walk;
mod word;
mod xargs;

pub(crate) use judge::is_hardened;
pub(crate) use line::is_hidden;

#[cfg(test)]
mod arguments_oracle_tests;
#[cfg(test)]
mod confined_oracle_tests;
#[cfg(test)]
mod danger_tests;
#[cfg(test)]
mod disguise_tests;
#[cfg(test)]
mod everyday_tests;
#[cfg(test)]
mod guarded_tests;
#[cfg(test)]
mod judge_tests;
#[cfg(test)]
mod lines_tests;
#[cfg(test)]
mod offered_tests;
#[cfg(test)]
mod oracle_tests;

pub use git::GitSettings;
pub use guarded::GuardedPaths;
pub use hidden::Hidden;
pub use judge::{Judgement, Policy, only_reads};
pub use line_limits::LineLimits;
pub use mode::Mode;
pub use narrow::{Ignored, Narrowing};
pub use rule::{Rule, RuleError};
