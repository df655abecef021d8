//! Starts programs so that none of their descendants outlives the call, the session or turnery itself.
//!
//! A program runs below a *supervisor*: the running executable, started again by [`init`] in a mode in which
//! it does nothing else. The supervisor is a child subreaper, so every descendant of the program stays its
//! descendant regardless of sessions, process groups, double forks or empty environments. It holds one end of
//! a socket whose other end only this process has. When the program exits, when this process requests it, or
//! when the socket closes because this process is gone (`kill -9` included), the supervisor kills its
//! children until the kernel reports that none is left.
//!
//! The supervisor of a confined program leads a session: a process that joins a process group of turnery's
//! session could make the kernel signal that group by orphaning it. Other programs stay in turnery's session,
//! whose terminal they may use.
//!
//! The supervisor runs in `/` and without variables: it receives the program's environment through the
//! socket. If it was stopped (SIGSTOP), it is woken with each order, when everything is ended, and by the kernel when
//! this process exits. If it was killed, this process kills everything that has inherited the program's tag,
//! an environment variable.
//!
//! Each program has its own supervisor rather than a shared one: only an ancestor can attribute a daemonized
//! process that has left its group and cleared its environment, and only a parent can signal a process id
//! without ever hitting a reused one. Control groups could do the same, but need privileges that an editor's
//! child does not have.
//!
//! Without a supervisor (an embedding program that calls neither [`init`] nor [`supervise_with`], or a system
//! other than Linux) a program runs in a process group, which is killed as a whole; on Linux, processes that
//! left the group are found by their tag. Then a program that leaves its group *and* clears its environment
//! escapes, `kill -9` of this process leaves everything running, and a confined program stays in turnery's
//! session. [`StopReport`] distinguishes these cases.

#[cfg(target_os = "linux")]
mod kill_thread;
mod piped_run;
mod process_group;
mod process_tree;
mod program;
mod registry;
mod stop_report;
mod supervised_tree;
mod supervision;
#[cfg(target_os = "linux")]
mod supervisor;
mod tagged_processes;

pub use piped_run::{PipedOutput, run_piped};
pub use process_tree::ProcessTree;
pub use program::{ChildPipes, ChildStdio, ProgramSpec};
pub use registry::kill_all;
pub use stop_report::{FinishedTree, RunningProcess, StopReport};

use std::path::PathBuf;
use supervision::SUPERVISOR_EXECUTABLE;

/// First descriptor after standard input, output and error.
const FIRST_EXTRA_DESCRIPTOR: i32 = 3;

/// Makes the running executable the supervisor of all programs started afterwards. Must be the first call of
/// `main`: in a process that was started as a supervisor, this function does not return.
///
/// Descriptors that this process has inherited, except the standard streams, are closed in all programs it
/// starts, because a confinement does not cover open descriptors.
///
/// Costs one look at the arguments and a system call; no process is started before the first program is.
pub fn init() {
    close_fds::set_fds_cloexec(FIRST_EXTRA_DESCRIPTOR, &[]);
    #[cfg(target_os = "linux")]
    {
        use supervision::SUPERVISOR_ARGUMENT;
        let mut args = std::env::args_os().skip(1);
        if args
            .next()
            .is_some_and(|first| first == SUPERVISOR_ARGUMENT)
        {
            let command: Vec<std::ffi::OsString> = args.collect();
            std::process::exit(supervisor::run(&command));
        }
        // This link leads to the running executable even after an upgrade has replaced the file.
        supervise_with("/proc/self/exe");
    }
}

/// Protects this process from other processes of the same user: they can read neither its environment in
/// `/proc` nor its memory, and it leaves no core dump. Processes of root still can, unless they are confined.
/// Linux only.
pub fn forbid_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Cannot fail with this argument.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Makes `program` the supervisor of all programs started afterwards. It must be an executable whose `main`
/// begins with [`init`], such as `turnery`. For programs that embed this crate and whose own executable
/// cannot call `init`. Only the first call has an effect, and only on Linux.
pub fn supervise_with(program: impl Into<PathBuf>) {
    let program = program.into();
    if cfg!(target_os = "linux") && program.exists() {
        // Already set: only the first call has an effect.
        let _ = SUPERVISOR_EXECUTABLE.set(program);
    }
}
