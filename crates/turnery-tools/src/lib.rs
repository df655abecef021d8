//! Tools: one file per tool, the workspace that they may touch, and the policy that judges their calls.

mod arguments;
mod change;
mod edit_file;
pub mod execute;
mod find_files;
pub mod grace;
mod line_ends;
mod list_dir;
pub mod mcp;
mod near;
mod normalise;
pub mod observe;
pub mod policy;
pub mod processes;
mod read_file;
pub mod sandbox;
mod search;
pub mod shell;
mod text;
pub mod tool;
pub mod toolbox;
mod trace_context;
mod update_plan;
mod visible;
mod walk;
pub mod workspace;
mod write_file;

pub use arguments::{parse_args, spec_for};
pub use edit_file::EditFile;
pub use execute::{
    Action, EffectKind, EffectMode, EffectPolicies, EffectPolicy, EmitLimits, Options, Origin,
    Scope, execute, execute_tool, run_tools,
};
pub use find_files::FindFiles;
pub use list_dir::ListDir;
pub use mcp::{McpServer, Servers};
pub use observe::Observe;
pub use policy::{
    GitSettings, GuardedPaths, Hidden, Ignored, Judgement, LineLimits, Mode, Narrowing, Policy,
    Rule, RuleError,
};
pub use read_file::ReadFile;
pub use sandbox::{Confinement, SandboxMode, SandboxSettings, SandboxSupport, Surroundings};
pub use search::Search;
pub use shell::{Shell, leave_out_written};
pub use similar::ChangeTag;
pub use text::{Hunk, NO_NEWLINE, unified_diff};
pub use tool::{Access, Prepared, Progress, Tool, ToolCx};
pub use toolbox::Toolbox;
pub use trace_context::TraceContext;
pub use update_plan::UpdatePlan;
pub use visible::{visible, visible_line};
pub use workspace::{
    FileError, Files, LocalFiles, PathRefused, TerminalFault, TerminalRun, Terminals, Workspace,
};
pub use write_file::WriteFile;
