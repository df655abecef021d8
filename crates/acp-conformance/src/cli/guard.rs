//! Guard: however the runner ends, nothing of it stays behind.
//!
//! On a signal it ends its agents, removes its folder, and ends with the code that shells give for this signal. When it
//! is killed it can do nothing: a second process, whose stdin closes then, does it instead.

use acp_conformance::scratch::{self, Scratch};
use anyhow::{Context, Result};
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

/// As long as this is there, somebody looks after what the runner starts.
pub(crate) struct Guard {
    process: Child,
    _scratch: Arc<Scratch>,
}

impl Guard {
    pub(crate) fn set_up() -> Result<Self> {
        let scratch = Scratch::present().context("no folder for the cases")?;
        end_on_signals().context("signals")?;
        let process = Command::new(std::env::current_exe()?)
            .arg("guard")
            .arg(scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // What the terminal sends to all of the runner's group is not for it.
            .process_group(0)
            .spawn()
            .context("no process that looks after the runner")?;
        Ok(Self {
            process,
            _scratch: scratch,
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Closes its stdin first. It clears up, and that was all.
        let _ = self.process.wait();
    }
}

/// Be the second process: wait for the end of the first, and clear up.
pub(crate) fn wait(folder: &Path) -> Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    scratch::clear(folder);
    Ok(())
}

fn end_on_signals() -> io::Result<()> {
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
        scratch::close();
        // Who has closed stderr does not want to know.
        let mut stderr = io::stderr();
        let end = if stderr.is_terminal() { "\n" } else { "" };
        let _ = writeln!(
            stderr,
            "{end}acp-conformance: ended by {name}; no report was written"
        );
        exit(128 + kind.as_raw_value());
    });
    Ok(())
}
