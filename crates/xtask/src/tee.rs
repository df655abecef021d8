//! Runs a command, and both prints and captures its output.

use anyhow::{Context, Result};
use std::{
    env,
    fs::File,
    io::{self, BufRead as _, BufReader, IsTerminal as _},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Output and exit status of a command.
pub(crate) struct TeeOutput {
    pub(crate) status: ExitStatus,
    /// Lines of stdout and stderr, in the order of printing.
    pub(crate) lines: Vec<String>,
}

/// Capacity of the queue of printed lines.
const QUEUED_LINES: usize = 1024;
/// Time to read on after the exit: a process that the command left behind may hold the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a command to its end and prints its lines as they come.
///
/// # Errors
/// Fails if the command cannot be started.
pub(crate) fn tee(command: Command) -> Result<TeeOutput> {
    tee_stderr(command, None)
}

/// Like [`tee`], but redirects stdout to `file`, if given.
///
/// # Errors
/// Fails if the command cannot be started.
pub(crate) fn tee_stderr(mut command: Command, file: Option<File>) -> Result<TeeOutput> {
    let program = command.get_program().to_owned();
    let (reader, writer) = io::pipe().context("a pipe")?;
    if io::stdout().is_terminal() && env::var_os("CARGO_TERM_COLOR").is_none() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let child = command
        .stdin(Stdio::null())
        .stdout(match file {
            Some(file) => Stdio::from(file),
            None => writer.try_clone().context("a pipe")?.into(),
        })
        .stderr(writer)
        .spawn();
    // The command holds the pipe open, too.
    drop(command);
    let mut child = child.with_context(|| format!("could not start {program:?}"))?;
    let (sender, received) = mpsc::sync_channel(QUEUED_LINES);
    let reading = thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while let Ok(1..) = reader.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            println!("{text}");
            line.clear();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
    let mut lines = Vec::new();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        match received.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => lines.push(line),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break child.wait()?,
        }
    };
    while let Ok(line) = received.recv_timeout(DRAIN_TIMEOUT) {
        lines.push(line);
    }
    if reading.is_finished() {
        // The reading thread cannot panic.
        let _ = reading.join();
    }
    Ok(TeeOutput { status, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_kept_in_order() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; printf three; exit 3"]);
        let printed = tee(command).unwrap();
        assert_eq!(printed.status.code(), Some(3));
        assert_eq!(printed.lines, ["one", "two", "three"]);
    }

    #[test]
    fn a_process_left_behind_is_not_waited_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!"]);
        let printed = tee(command).unwrap();
        assert!(printed.status.success());
        let [pid] = &printed.lines[..] else {
            panic!("{:?}", printed.lines);
        };
        let killed = Command::new("kill").arg(pid).status().unwrap();
        assert!(killed.success(), "it was alive");
    }
}
