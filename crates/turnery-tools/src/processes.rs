//! Starts programs so that nothing they start outlives the call, the session or turnery itself.
//!
//! A program runs below a *supervisor*: the running executable once more, started by [`init`] in a mode
//! in which it does nothing else. The supervisor is a child subreaper, so every descendant of the program
//! stays its descendant, whatever sessions, process groups, double forks or empty environments come
//! between. It holds one end of a socket whose other end only this process has. When the program ends,
//! when this process says so, or when the socket closes because this process is gone (`kill -9`
//! included), the supervisor kills its children until the kernel says that none is left.
//!
//! The supervisor of a confined program leads a session: whatever joins a process group of turnery's session can have the
//! kernel signal that group, by orphaning it. Other programs stay in turnery's session, whose terminal they may ask.
//!
//! The supervisor runs in `/` and without variables: the program's environment is given to it through the socket. One
//! that was stopped (SIGSTOP) is woken with each order, by [`end_all`], and by the kernel when this process
//! ends. If it was killed, this process kills everything that has inherited the program's tag, an
//! environment variable.
//!
//! Why a supervisor for each program, and no single guard for all of them: only an ancestor can tell
//! whose a daemonized process is once it has left its group and cleared its environment, and only a
//! parent can signal a process id without ever meeting a reused one. Control groups would do the same,
//! but need rights that an editor's child does not have.
//!
//! Without a supervisor (an embedding program that calls neither [`init`] nor [`supervise_with`], or a
//! system other than Linux) a program runs in a process group, which is killed as a whole; on Linux,
//! processes that left the group are found by their tag. Then a program that leaves its group *and* clears
//! its environment escapes, `kill -9` of this process leaves everything running, and a confined program stays in
//! turnery's session. [`StopReport`] tells the difference.

#[cfg(target_os = "linux")]
mod confined_start;
mod direct;
mod leftovers;
mod process_tree;
mod program;
mod registry;
mod supervised;
#[cfg(target_os = "linux")]
mod supervisor;

pub use process_tree::{FinishedTree, ProcessTree, RunningProcess, StopReport};
pub use program::{ChildPipes, ChildStdio, ProgramSpec};
pub use registry::end_all;

use std::{ffi::OsString, path::PathBuf, sync::OnceLock};

/// First argument of a process that is started as a supervisor.
const SUPERVISOR_ARGUMENT: &str = "--turnery-supervisor";

/// First descriptor after standard input, output and error.
const FIRST_BESIDE_STREAMS: i32 = 3;

/// Executable that can be started as a supervisor.
static SUPERVISOR: OnceLock<PathBuf> = OnceLock::new();

/// Makes the running executable the supervisor of everything that is started from here on. Must be the
/// first call of `main`: a process that was started as a supervisor does its work in here, and ends.
///
/// Descriptors that this process has inherited, besides the standard streams, are closed in everything that it
/// starts: a confinement does not look at what is open already.
///
/// Costs a look at the arguments and a system call; no process is started before the first program is.
pub fn init() {
    close_fds::set_fds_cloexec(FIRST_BESIDE_STREAMS, &[]);
    #[cfg(target_os = "linux")]
    {
        let mut args = std::env::args_os().skip(1);
        if args
            .next()
            .is_some_and(|first| first == SUPERVISOR_ARGUMENT)
        {
            let command: Vec<OsString> = args.collect();
            std::process::exit(supervisor::run(&command));
        }
        // A link that leads to this executable even after an upgrade has replaced the file.
        supervise_with("/proc/self/exe");
    }
}

/// Closes this process to other processes of the same user: they can read neither its environment in
/// `/proc` nor its memory, and it leaves no core dump. What root starts can, unless it is confined. Linux only.
pub fn forbid_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail with this argument.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Makes `program` the supervisor of everything that is started from here on. It must be an executable
/// whose `main` begins with [`init`], such as `turnery`. For programs that embed this crate and whose
/// own executable cannot call `init`. The first call counts; on systems other than Linux none does.
pub fn supervise_with(program: impl Into<PathBuf>) {
    let program = program.into();
    if cfg!(target_os = "linux") && program.exists() {
        // Already set: the first call counts.
        let _ = SUPERVISOR.set(program);
    }
}

/// Environment variable by which descendants are found that no supervisor watches over.
const TAG_VARIABLE: &str = "TURNERY_PROCESS_TAG";

/// Value of [`TAG_VARIABLE`], unique to one started program.
fn new_tag() -> String {
    use std::{
        hash::{BuildHasher as _, RandomState},
        sync::atomic::{AtomicU64, Ordering},
    };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // The hasher's keys are random, so another process with this id has other tags.
    let random = RandomState::new().hash_one(count);
    format!("{}-{count}-{random:016x}", std::process::id())
}
