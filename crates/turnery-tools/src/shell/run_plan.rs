//! Decides where a command line runs, how it is confined, and what the model is told if that makes it fail.

use super::exit_status::CommandExit;
use crate::{
    CommandLineLimits, Confinement, ToolCx, Workspace,
    policy::{GitSettings, HiddenFiles, needs_hardened_git, only_reads},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::task::{JoinError, spawn_blocking};

/// Messages of programs when the system denies access, in lower case.
const REFUSAL_MESSAGES: &[&str] = &[
    "permission denied",
    "permissionerror",
    "permissiondenied",
    "operation not permitted",
    "eacces",
    "eperm",
    "read-only file system",
    "invalid cross-device link",
    "out of pty devices",
    "fatal: not a git repository: ",
    "could not resolve host",
    "could not resolve hostname",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "network is unreachable",
    "name or service not known",
    "getaddrinfo",
];
/// Number of bytes searched at the end of the output. Unit: bytes.
const SCANNED_BYTES: usize = 16 << 10;

/// Place and restrictions of a command line that runs.
pub(crate) struct RunPlan {
    /// Access granted to the line if it runs locally; `None` for unrestricted.
    pub(crate) confinement: Option<Confinement>,
    /// The line may run in a client terminal, where it is not confined.
    pub(crate) may_use_terminals: bool,
    /// The programs must not load code from folders of the project that the environment names.
    pub(crate) loads_no_project_code: bool,
    /// Settings of git.
    pub(crate) git: GitSettings,
}

/// Returns the plan for a line of a call, like [`plan`]. Plans on another thread, so that no session waits for the disk;
/// fails if the program is shutting down.
pub(crate) async fn plan_call(
    line: String,
    cwd: PathBuf,
    outside: Option<String>,
    cx: &ToolCx,
) -> Result<RunPlan, JoinError> {
    let (workspace, hidden) = (Arc::clone(&cx.workspace), cx.hidden.clone());
    let limits = cx.line_limits;
    let planning = move || plan(&line, &cwd, outside.as_deref(), limits, &hidden, &workspace);
    spawn_blocking(planning).await
}

/// Returns the plan for a line that may run. While the sandbox is active, a read-only line runs locally and
/// can do no more than read. `limits` are those of the policy decision that allowed the line; the line is
/// checked again, since the disk may have changed meanwhile, and this check can only add restrictions.
/// `hidden` may not be read. Blocks: parses the line and accesses the disk.
pub(crate) fn plan(
    line: &str,
    cwd: &Path,
    outside: Option<&str>,
    limits: CommandLineLimits,
    hidden: &HiddenFiles,
    workspace: &Workspace,
) -> RunPlan {
    let sandbox = workspace.sandbox();
    let git = match needs_hardened_git(line, cwd, workspace) {
        true => GitSettings::Hardened,
        false => limits.git,
    };
    if !sandbox.is_active() || reason_to_leave(outside, workspace).is_some() {
        return RunPlan {
            confinement: None,
            may_use_terminals: true,
            loads_no_project_code: limits.loads_no_project_code,
            git,
        };
    }
    let only_reads = limits.only_reads || only_reads(line, cwd, workspace);
    let roots = workspace.roots();
    let mut confinement = sandbox.confinement(roots, workspace.sandbox_baseline(), only_reads);
    if let Some(it) = &mut confinement {
        // In a folder that the command writes, only the policy can hide files.
        it.hide(match it.writes {
            true => hidden.named_paths(roots),
            false => hidden.find_paths(roots),
        });
    }
    RunPlan {
        confinement,
        may_use_terminals: !only_reads && !sandbox.replaces_terminals,
        loads_no_project_code: only_reads || limits.loads_no_project_code,
        git,
    }
}

/// Returns the model's reason for running outside the sandbox; `None` if there is no sandbox to leave.
pub(crate) fn reason_to_leave<'a>(
    outside: Option<&'a str>,
    workspace: &Workspace,
) -> Option<&'a str> {
    outside.filter(|_| workspace.sandbox().is_active())
}

impl RunPlan {
    /// Returns a hint for the model if the command failed and its output suggests that the sandbox is the
    /// cause. A guess, since the kernel does not report why a call was denied.
    pub(crate) fn hint(&self, ending: &CommandExit, text: &str) -> Option<String> {
        let confinement = self.confinement.as_ref()?;
        match ending {
            CommandExit::Exited(0) | CommandExit::TimedOut(_) | CommandExit::Cancelled => {
                return None;
            }
            CommandExit::Exited(_) | CommandExit::Killed(_) | CommandExit::Unknown => {}
        }
        let start = text.len().saturating_sub(SCANNED_BYTES);
        let end = text.get(text.ceil_char_boundary(start)..)?.to_lowercase();
        if !REFUSAL_MESSAGES.iter().any(|refusal| end.contains(refusal)) {
            return None;
        }
        let writes = match confinement.writes {
            true => {
                "it could write only to the session's folders, temporary folders and caches, and read no keys"
            }
            false => {
                "it could write nothing, and read only the session's folders, the system and toolchains"
            }
        };
        let hidden = match confinement.hidden.is_empty() {
            true => "",
            false => ", and no file that a rule hides",
        };
        let network = match confinement.network {
            true => "",
            false => ", and had no network",
        };
        Some(format!(
            "sandbox: this may have failed because the command was confined: {writes}{hidden}{network}. If it needs more, call again with outside_sandbox and the reason; the user is asked then"
        ))
    }
}
