//! Tools: one file per tool, the workspace that they may touch, and the policy that judges their calls.

pub mod policy;
pub mod shell;
pub mod tool;
pub mod toolbox;
pub mod workspace;

pub use policy::{Ignored, Judgement, Mode, Narrowing, Policy, Rule, RuleError};
pub use shell::Shell;
pub use tool::{Access, Prepared, Progress, Tool, ToolCx};
pub use toolbox::Toolbox;
pub use workspace::{FileError, Files, LocalFiles, PathRefused, TerminalRun, Terminals, Workspace};
