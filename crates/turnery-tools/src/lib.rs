//! Tools of the agent (one file each), the workspace they work in, and the policy that decides on their
//! calls.

mod access;
mod arguments;
mod call_errors;
mod candidate_folders;
mod change_preview;
pub mod execute;
mod folder_changes;
mod glob_matcher;
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
mod tool_caller;
pub mod toolbox;
mod tools;
mod trace_context;
mod typed_tool;
mod walk;
pub mod workspace;

pub use access::Access;
pub use arguments::{parse_args, spec_for};
pub use candidate_folders::{
    CandidateFolders, CandidateFoldersError, MAX_COPIED_BYTES, MAX_COPIED_FILES,
};
pub use execute::{
    EffectKind, EffectMode, EffectPolicies, EffectPolicy, EmitLimits, ExecuteOptions, ExecuteScope,
    FunctionTool, execute, execute_tool, run_tools,
};
pub use folder_changes::{FolderChanges, FolderChangesError, MAX_CHANGED_BYTES, MAX_CHANGED_FILES};
pub use invisible_chars::{escape_invisible, escape_invisible_line};
pub use mcp::{McpServer, McpServers};
pub use origin::Origin;
pub use policy::{
    CommandLineLimits, GitSettings, GuardedPaths, HiddenFiles, IgnoredProjectSetting, Judgement,
    Mode, Policy, ProjectPolicySettings, Rule, RuleError,
};
pub use sandbox::{Confinement, SandboxBaseline, SandboxMode, SandboxSettings, SandboxSupport};
pub use shell::{UserCommandOutput, run_user_command, strip_writable_paths};
pub use similar::ChangeTag;
pub use telemetry::ToolTelemetry;
pub use text::{DiffHunk, NO_NEWLINE_MARKER, unified_diff};
pub use tool::{PreparedCall, Progress, Tool, ToolCx};
pub use tool_caller::{NestedCalls, ToolCaller};
pub use toolbox::Toolbox;
pub use tools::{ApplyChanges, PendingChanges, Shell, TOOL_NAMES, is_shown};
pub use trace_context::TraceContext;
pub use typed_tool::TypedTool;
pub use workspace::{
    FileError, Files, LocalFiles, PathError, TerminalCommandOutput, TerminalError, Terminals,
    Workspace,
};
