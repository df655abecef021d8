//! broken: an agent that is wrong in one named way: a right one behind a proxy.
//!
//! The proxy starts the right agent and passes both streams on, to the byte; a fault sits between.
//! Its own end is the agent's end: the same status, SIGTERM handed on, nothing left behind. What is
//! on its way when the agent ends still arrives.

mod pump;
mod record;

use crate::faults::{Fault, Habit};
use pump::{Ends, Pump};
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

pub use record::{Recording, recordings};

/// What is to be run.
#[derive(Debug)]
pub struct Broken {
    /// What is wrong with it.
    pub fault: Option<&'static Fault>,
    /// A folder to write down all lines in.
    pub record: Option<PathBuf>,
    /// The right agent.
    pub command: Vec<String>,
}

/// Who stays does not stay for ever: nobody may be left to end it.
const STAYS: Duration = Duration::from_secs(600);

/// Be the right agent, but for the fault.
///
/// # Errors
/// The right agent could not be started, or the system is out of pipes.
pub fn run(broken: &Broken) -> io::Result<ExitCode> {
    let habit = broken.fault.and_then(Fault::habit);
    at_start(habit)?;
    let mut child = bound(&broken.command)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no pipes to the agent"));
    };
    let pid = Pid::from_child(&child);
    let ends = Ends { stdin, stdout, pid };
    let pump = Arc::new(Pump::new(broken, habit, ends)?);
    let flow = pump.start()?;
    let (ended, mut end) = oneshot::channel();
    thread::spawn(move || ended.send(child.wait()));
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        loop {
            tokio::select! {
                status = &mut end => return status.map_err(io::Error::other)?,
                _ = term.recv() => hand_on(pid, Signal::TERM, habit),
                _ = interrupt.recv() => hand_on(pid, Signal::INT, habit),
            }
        }
    })?;
    flow.finish();
    Ok(at_end(habit, status, pump.ended_by_client()))
}

/// An agent that ends when this process does, however that ends.
fn bound(command: &[String]) -> io::Result<Command> {
    let mut bound = Command::new(std::env::current_exe()?);
    bound.arg("--bound").arg("--").args(command);
    Ok(bound)
}

/// Become the right agent, and end with the process that asked for it.
///
/// # Errors
/// Always: on success there is nobody to return to.
pub fn become_bound(command: &[String]) -> io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return io::Error::other("there is no command");
    };
    match rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error.into(),
    }
}

fn hand_on(agent: Pid, signal: Signal, habit: Option<Habit>) {
    if habit != Some(Habit::DeafToTerm) {
        // It may have ended just now.
        let _ = kill_process(agent, signal);
    }
}

fn at_start(habit: Option<Habit>) -> io::Result<()> {
    match habit {
        Some(Habit::Banner) => say(b"Welcome to the broken agent!\n"),
        Some(
            Habit::Farewell
            | Habit::StaysAfterEof
            | Habit::DiesAtEof
            | Habit::ExitsWithOne
            | Habit::DeafToTerm
            | Habit::LeavesChild
            | Habit::OutlivesStdout,
        )
        | None => Ok(()),
    }
}

fn say(line: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(line)?;
    stdout.flush()
}

fn at_end(habit: Option<Habit>, status: ExitStatus, by_client: bool) -> ExitCode {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, signal) => signal
            .and_then(|signal| u8::try_from(128 + signal).ok())
            .unwrap_or(1),
    };
    match habit {
        Some(Habit::Farewell) => {
            // Nobody may be there to hear it.
            let _ = say(b"Goodbye!\n");
        }
        Some(Habit::StaysAfterEof | Habit::DeafToTerm) if by_client => thread::sleep(STAYS),
        Some(Habit::ExitsWithOne) => return ExitCode::FAILURE,
        Some(Habit::DiesAtEof) => return ExitCode::SUCCESS,
        Some(Habit::LeavesChild) => {
            let mut child = Command::new("sleep");
            child.arg("600").stdin(Stdio::null()).stdout(Stdio::null());
            // Without `sleep` there is nothing to leave behind, and the table will say so.
            let _ = child.stderr(Stdio::null()).spawn();
        }
        Some(Habit::Banner | Habit::StaysAfterEof | Habit::DeafToTerm | Habit::OutlivesStdout)
        | None => {}
    }
    ExitCode::from(code)
}
