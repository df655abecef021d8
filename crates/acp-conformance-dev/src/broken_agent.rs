//! Runs a conforming agent behind a proxy that injects one named fault.
//!
//! The proxy starts the agent and forwards both streams byte for byte, with the fault in between. It forwards
//! SIGTERM and SIGINT, exits with the agent's status and leaves no process behind. Output that is in transit
//! when the agent exits still arrives.

mod pump;
mod recording;

use crate::faults::{Fault, ProcessFault};
use pump::Pump;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{self, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Command, ExitCode, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

pub use recording::{Recording, read_recordings};

/// Agent and fault to run.
#[derive(Debug)]
pub struct BrokenAgent {
    /// Fault to inject; `None` forwards every line unchanged.
    pub fault: Option<&'static Fault>,
    /// Folder in which all lines are recorded.
    pub recording_dir: Option<PathBuf>,
    /// Command line of the conforming agent.
    pub command: Vec<String>,
}

/// Time that a fault keeps the process alive; bounded, since no client may be left to kill it.
const STAY_DURATION: Duration = Duration::from_secs(600);

/// Runs the agent with the fault injected and returns its exit code.
///
/// # Errors
/// If the agent cannot be started, or the system is out of pipes.
pub fn run_broken_agent(broken: &BrokenAgent) -> io::Result<ExitCode> {
    let process_fault = broken.fault.and_then(Fault::process_fault);
    if process_fault == Some(ProcessFault::Banner) {
        write_stdout(b"Welcome to the broken agent!\n")?;
    }
    let mut child = bound_command(&broken.command)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no pipes to the agent"));
    };
    let pid = Pid::from_child(&child);
    let pump = Arc::new(Pump::new(broken, process_fault, stdin, pid)?);
    let pump_thread = pump.start(stdout)?;
    let (ended, mut end) = oneshot::channel();
    thread::spawn(move || ended.send(child.wait()));
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        loop {
            tokio::select! {
                status = &mut end => return status.map_err(io::Error::other)?,
                _ = term.recv() => forward_signal(pid, Signal::TERM, process_fault),
                _ = interrupt.recv() => forward_signal(pid, Signal::INT, process_fault),
            }
        }
    })?;
    pump_thread.finish();
    Ok(apply_exit_fault(
        process_fault,
        status,
        pump.is_closed_by_client(),
    ))
}

/// Returns the command that starts the agent so that it is killed when this process ends.
fn bound_command(command: &[String]) -> io::Result<Command> {
    let mut bound = Command::new(std::env::current_exe()?);
    bound.arg("--bound").arg("--").args(command);
    Ok(bound)
}

/// Replaces this process with the agent, which is killed when the parent process ends.
///
/// # Errors
/// Always, as success replaces the process.
pub fn exec_bound_agent(command: &[String]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return io::Error::other("there is no command");
    };
    match rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error.into(),
    }
}

fn forward_signal(agent: Pid, signal: Signal, process_fault: Option<ProcessFault>) {
    if process_fault != Some(ProcessFault::IgnoresSigterm) {
        // The agent may have exited already.
        let _ = kill_process(agent, signal);
    }
}

fn write_stdout(line: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(line)?;
    stdout.flush()
}

fn apply_exit_fault(
    process_fault: Option<ProcessFault>,
    status: ExitStatus,
    is_closed_by_client: bool,
) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, signal) => signal
            .and_then(|signal| u8::try_from(128 + signal).ok())
            .unwrap_or(1),
    };
    match process_fault {
        Some(ProcessFault::Farewell) => {
            // The client may be gone.
            let _ = write_stdout(b"Goodbye!\n");
        }
        Some(ProcessFault::StaysAfterEof | ProcessFault::IgnoresSigterm) if is_closed_by_client => {
            thread::sleep(STAY_DURATION)
        }
        Some(ProcessFault::ExitsWithOne) => return ExitCode::FAILURE,
        Some(ProcessFault::DiesAtEof) => return ExitCode::SUCCESS,
        Some(ProcessFault::LeavesChild) => {
            let mut child = Command::new("sleep");
            child.arg("600").stdin(Stdio::null()).stdout(Stdio::null());
            // If `sleep` cannot be started, the mutation table reports the fault as not caught.
            let _ = child.stderr(Stdio::null()).spawn();
        }
        _ => {}
    }
    ExitCode::from(code)
}
