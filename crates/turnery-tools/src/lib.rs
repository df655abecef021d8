//! Tools of the agent (one file each), the workspace they work in, and the policy that decides on their
//! calls.

mod arguments;
mod change_preview;
mod edit_file;
pub mod execute;
mod find_files;
pub mod grace;
mod invisible_chars;
mod line_endings;
mod list_dir;
pub mod mcp;
mod normalise_args;
pub mod policy;
pub mod processes;
mod read_file;
pub mod sandbox;
mod search;
pub mod shell;
mod suggestions;
pub mod telemetry;
mod text;
pub mod tool;
pub mod toolbox;
mod trace_context;
mod update_plan;
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
pub use invisible_chars::{visible, visible_line};
pub use list_dir::ListDir;
pub use mcp::{McpServer, Servers};
pub use policy::{
    GitSettings, GuardedPaths, Hidden, Ignored, Judgement, LineLimits, Mode, Narrowing, Policy,
    Rule, RuleError,
};
pub use read_file::ReadFile;
pub use sandbox::{Confinement, SandboxMode, SandboxSettings, SandboxSupport, Surroundings};
pub use search::Search;
pub use shell::{Shell, leave_out_written};
pub use similar::ChangeTag;
pub use telemetry::Observe;
pub use text::{Hunk, NO_NEWLINE, unified_diff};
pub use tool::{Access, PreparedCall, Progress, Tool, ToolCx};
pub use toolbox::Toolbox;
pub use trace_context::TraceContext;
pub use update_plan::UpdatePlan;
pub use workspace::{
    FileError, Files, LocalFiles, PathRefused, TerminalFault, TerminalRun, Terminals, Workspace,
};
pub use write_file::WriteFile;
