//! Tools of the agent (one file each), the workspace they work in, and the policy that decides on their
//! calls.

mod access;
mod arguments;
mod call_errors;
mod change_preview;
pub mod execute;
pub mod grace;
mod invisible_chars;
mod line_endings;
pub mod mcp;
mod normalise_args;
mod origin;
pub mod policy;
pub mod processes;
pub mod sandbox;
pub mod shell;
mod suggestions;
pub mod telemetry;
mod text;
pub mod tool;
pub mod toolbox;
mod tools;
mod trace_context;
mod typed_tool;
mod walk;
pub mod workspace;

pub use access::Access;
pub use arguments::{parse_args, spec_for};
pub use execute::{
    Action, EffectKind, EffectMode, EffectPolicies, EffectPolicy, EmitLimits, Options, Scope,
    execute, execute_tool, run_tools,
};
pub use invisible_chars::{visible, visible_line};
pub use mcp::{McpServer, Servers};
pub use origin::Origin;
pub use policy::{
    GitSettings, GuardedPaths, Hidden, IgnoredProjectSetting, Judgement, LineLimits, Mode,
    Narrowing, Policy, Rule, RuleError,
};
pub use sandbox::{Confinement, SandboxBaseline, SandboxMode, SandboxSettings, SandboxSupport};
pub use shell::leave_out_written;
pub use similar::ChangeTag;
pub use telemetry::ToolTelemetry;
pub use text::{DiffHunk, NO_NEWLINE, unified_diff};
pub use tool::{PreparedCall, Progress, Tool, ToolCx};
pub use toolbox::Toolbox;
pub use tools::{Shell, TOOL_NAMES, is_shown};
pub use trace_context::TraceContext;
pub use typed_tool::TypedTool;
pub use workspace::{
    FileError, Files, LocalFiles, PathRefused, TerminalFault, TerminalRun, Terminals, Workspace,
};
