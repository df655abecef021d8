//! Decides where a command line runs, what confines it there, and what is said if it fails because of that.

use super::ending::Ending;
use crate::{
    Confinement, LineLimits, Workspace,
    policy::{GitSettings, is_hardened, only_reads},
};
use std::path::Path;

/// What programs print when the system refuses something. In lower case.
const REFUSALS: &[&str] = &[
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
/// Looked at from the end of the output. Unit: bytes.
const LOOKED_AT: usize = 16 << 10;

/// Where a line runs, and how.
pub(super) struct RunPlan {
    /// What the line may touch if it runs here; `None` for everything.
    pub(super) confinement: Option<Confinement>,
    /// Whether it goes to a terminal of the client's, where nothing confines it, if there is one.
    pub(super) may_use_terminals: bool,
    /// Whether its programs load no code out of folders that the environment names in the session's folders.
    pub(super) runs_readers: bool,
    /// Settings of git.
    pub(super) git: GitSettings,
}

/// The plan for a line that is allowed to run. One that only reads runs here and gets no more than that. `limits` are
/// those of the judgement that allowed the line: looking again can only add to them, since the disk may have changed
/// meanwhile. Blocks: it parses the line and looks at the disk.
pub(super) fn plan(
    line: &str,
    cwd: &Path,
    outside: Option<&str>,
    limits: LineLimits,
    workspace: &Workspace,
) -> RunPlan {
    let sandbox = workspace.sandbox();
    let git = match is_hardened(line, cwd, workspace) {
        true => GitSettings::Hardened,
        false => limits.git,
    };
    if !sandbox.is_active() || reason_to_leave(outside, workspace).is_some() {
        return RunPlan {
            confinement: None,
            may_use_terminals: true,
            runs_readers: limits.runs_readers,
            git,
        };
    }
    let only_reads = limits.only_reads || only_reads(line, cwd, workspace);
    RunPlan {
        confinement: sandbox.confinement(workspace.roots(), workspace.surroundings(), only_reads),
        may_use_terminals: !only_reads && !sandbox.replaces_terminals,
        runs_readers: only_reads || limits.runs_readers,
        git,
    }
}

/// The model's reason for running outside the sandbox; `None` if there is no sandbox to leave.
pub(super) fn reason_to_leave<'a>(
    outside: Option<&'a str>,
    workspace: &Workspace,
) -> Option<&'a str> {
    outside.filter(|_| workspace.sandbox().is_active())
}

impl RunPlan {
    /// A line for the model if the command failed and said something that the sandbox may be the cause of.
    /// A guess: the kernel does not tell why a call was refused.
    pub(super) fn hint(&self, ending: &Ending, text: &str) -> Option<String> {
        let confinement = self.confinement.as_ref()?;
        match ending {
            Ending::Exited(0) | Ending::TimedOut(_) | Ending::Cancelled => return None,
            Ending::Exited(_) | Ending::Killed(_) | Ending::Unknown => {}
        }
        let start = text.len().saturating_sub(LOOKED_AT);
        let end = text.get(text.ceil_char_boundary(start)..)?.to_lowercase();
        if !REFUSALS.iter().any(|refusal| end.contains(refusal)) {
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
        let network = match confinement.network {
            true => "",
            false => ", and had no network",
        };
        Some(format!(
            "sandbox: this may have failed because the command was confined: {writes}{network}. If it needs more, call again with outside_sandbox and the reason; the user is asked then"
        ))
    }
}
