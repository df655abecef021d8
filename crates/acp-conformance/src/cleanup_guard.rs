//! Cleans up agents and case folders however the runner ends.
//!
//! On a signal, the runner ends its agents, removes its folder, and exits with the code that shells use for
//! this signal. If the runner is killed, its child process `guard` sees stdin close and cleans up instead.

use crate::scratch::{self, ScratchFolder};
use std::{
    io::{self, IsTerminal, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio, exit},
    sync::Arc,
    thread,
};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

/// Guard process that cleans up after the runner; dropping it waits for the cleanup.
#[derive(Debug)]
pub struct CleanupGuard {
    process: Child,
    _scratch: Arc<ScratchFolder>,
}

impl CleanupGuard {
    /// Starts the guard process: this program with the subcommand `guard` and the folder of the cases. `program` is
    /// the name for messages.
    ///
    /// # Errors
    /// If the folder cannot be created, signals cannot be handled, or the guard process cannot be started.
    pub fn start(program: &'static str) -> Result<Self, String> {
        let because = |what: &str, error: io::Error| format!("cannot {what}: {error}");
        let scratch = ScratchFolder::current()
            .map_err(|error| because("create the folder for the cases", error))?;
        exit_on_signals(program).map_err(|error| because("handle signals", error))?;
        let process = std::env::current_exe().and_then(|this| {
            Command::new(this)
                .arg("guard")
                .arg(scratch.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                // Terminal signals to the runner's process group must not reach the guard.
                .process_group(0)
                .spawn()
        });
        let process = process.map_err(|error| because("start the cleanup process", error))?;
        Ok(Self {
            process,
            _scratch: scratch,
        })
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        // `wait` closes the guard's stdin first.
        let _ = self.process.wait();
    }
}

/// Runs the guard process: waits for the runner to end, and cleans up.
///
/// # Errors
/// If stdin cannot be read.
pub fn wait_and_clean_up(folder: &Path) -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    scratch::clean_up(folder);
    Ok(())
}

fn exit_on_signals(program: &'static str) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let within = runtime.enter();
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(within);
    thread::spawn(move || {
        let (kind, name) = runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => (SignalKind::hangup(), "SIGHUP"),
                _ = interrupt.recv() => (SignalKind::interrupt(), "SIGINT"),
                _ = terminate.recv() => (SignalKind::terminate(), "SIGTERM"),
            }
        });
        scratch::close_current();
        // stderr may be closed.
        let mut stderr = io::stderr();
        let end = if stderr.is_terminal() { "\n" } else { "" };
        let _ = writeln!(
            stderr,
            "{end}{program}: ended by {name}; no report was written"
        );
        exit(128 + kind.as_raw_value());
    });
    Ok(())
}
