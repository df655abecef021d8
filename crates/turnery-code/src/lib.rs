//! Runs Python code of a model in a sandboxed interpreter, in a worker process with limits.
//!
//! A [`CodeSession`] is the interpreter of one conversation: variables live from block to block. The code has
//! no access to files, network, environment or clock; it can only call functions of a [`CodeHost`].
//!
//! The interpreter runs in a *worker*: the running executable, started again by [`init`] in a mode in which it
//! does nothing else. Code that loops forever, needs too much memory or crashes the interpreter costs only the
//! worker, which the host kills; the next block runs in a new worker with the variables of the last snapshot.
//! The worker has no environment and its own process group, and ends when the host does.
//!
//! Host and worker exchange length-prefixed frames over the worker's standard input and output. What the
//! worker sends is foreign input: bounded in size, and never trusted to be valid.

mod host;
mod limits;
mod output;
mod protocol;
mod session;
mod snapshot;
mod worker;
mod worker_process;

pub use host::{CallReply, CodeCall, CodeHost};
pub use limits::{CodeLimitExceeded, CodeLimits};
pub use output::{CodeEnd, CodeOutput};
pub use session::CodeSession;

use std::path::PathBuf;
use worker_process::{WORKER_ARGUMENT, WORKER_EXECUTABLE};

/// Makes the running executable the worker of all sessions. Must be called at the beginning of `main`: in a
/// process that was started as a worker, this function does not return.
///
/// Costs one look at the arguments; no process is started before the first block runs.
pub fn init() {
    let first = std::env::args_os().nth(1);
    if first.is_some_and(|first| first == WORKER_ARGUMENT) {
        std::process::exit(worker::run());
    }
    // This link leads to the running executable even after an upgrade has replaced the file.
    #[cfg(target_os = "linux")]
    use_worker("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    if let Ok(executable) = std::env::current_exe() {
        use_worker(executable);
    }
}

/// Returns true if there is a worker, so that sessions can run code.
#[must_use]
pub fn is_available() -> bool {
    WORKER_EXECUTABLE.get().is_some()
}

/// Makes `program` the worker of all sessions. It must be an executable whose `main` begins with [`init`],
/// such as `turnery-code-worker` of this crate. For programs whose own executable cannot call `init`. Only the
/// first call of `init` or `use_worker` has an effect.
pub fn use_worker(program: impl Into<PathBuf>) {
    // Already set: only the first call has an effect.
    let _ = WORKER_EXECUTABLE.set(program.into());
}
