//! play: one case against one agent, in a folder and a home of its own.

use crate::{
    Case, Step,
    pattern::{Captures, fill, fits},
};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    time::{Duration, Instant},
};

/// How an agent is started.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Program and arguments.
    pub command: Vec<String>,
    /// How long it may take for a line, or to end.
    pub patience: Duration,
}

/// Where a case went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}\n{transcript}")]
pub struct Failure {
    /// The line of the case.
    pub line: usize,
    /// What was wrong.
    pub reason: String,
    /// What was said, both ways.
    pub transcript: String,
}

/// Play a case.
///
/// # Errors
/// The step that failed, and all that was said until then.
pub fn play(case: &Case, agent: &Agent) -> Result<(), Failure> {
    let mut stage = Stage::new(agent).map_err(|reason| Failure {
        line: 0,
        reason,
        transcript: String::new(),
    })?;
    for (line, step) in &case.steps {
        stage.step(step).map_err(|reason| Failure {
            line: *line,
            reason,
            transcript: std::mem::take(&mut stage.transcript),
        })?;
    }
    Ok(())
}

struct Stage<'a> {
    agent: &'a Agent,
    home: tempfile::TempDir,
    running: Option<Running>,
    captures: Captures,
    skipped: Vec<Value>,
    held: String,
    transcript: String,
}

struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only still there when the case failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Stage<'a> {
    fn new(agent: &'a Agent) -> Result<Self, String> {
        let home = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
        let cwd = home.path().join("project");
        fs::create_dir(&cwd).map_err(|error| format!("no folder: {error}"))?;
        let cwd = cwd
            .canonicalize()
            .map_err(|error| format!("no folder: {error}"))?;
        let captures = [("$CWD".to_owned(), Value::from(cwd.display().to_string()))];
        Ok(Self {
            agent,
            home,
            running: None,
            captures: captures.into_iter().collect(),
            skipped: Vec::new(),
            held: String::new(),
            transcript: String::new(),
        })
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::File(name, text) => {
                fs::write(self.project().join(name), text).map_err(|e| format!("{name}: {e}"))
            }
            Step::Read(name, wanted) => {
                let text = fs::read_to_string(self.project().join(name));
                let text = text.map_err(|error| format!("{name}: {error}"))?;
                if text == *wanted {
                    Ok(())
                } else {
                    Err(format!("{name} holds {text:?}"))
                }
            }
            Step::Start => self.start(),
            Step::Send(line, more) => self.send(line, *more),
            Step::Next(pattern) => {
                let found = self.line()?;
                fits(pattern, &found, &mut self.captures)
            }
            Step::Until(pattern) => self.until(pattern),
            Step::None(pattern) => {
                let fitting = self.skipped.iter().find(|line| {
                    let mut captures = self.captures.clone();
                    fits(pattern, line, &mut captures).is_ok()
                });
                fitting.map_or(Ok(()), |line| Err(format!("there is one: {line}")))
            }
            Step::Eof => {
                self.running()?.stdin = None;
                Ok(())
            }
            Step::Exit(code) => self.exit(*code),
        }
    }

    fn project(&self) -> std::path::PathBuf {
        self.home.path().join("project")
    }

    fn running(&mut self) -> Result<&mut Running, String> {
        self.running
            .as_mut()
            .ok_or_else(|| "no agent has been started".to_owned())
    }

    fn start(&mut self) -> Result<(), String> {
        self.running = None;
        let (program, arguments) = self.agent.command.split_first().ok_or("no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .env("HOME", self.home.path())
            .env("XDG_DATA_HOME", self.home.path().join("data"))
            .env("XDG_CONFIG_HOME", self.home.path().join("config"))
            .env_remove("TURNERY_HOME")
            .current_dir(Path::new("/"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program} does not start: {error}"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let (sender, lines) = sync_channel(1024);
        // Ends with the agent's stdout, or when nobody listens any more.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        self.running = Some(Running {
            child,
            stdin,
            lines,
        });
        Ok(())
    }

    fn send(&mut self, line: &str, more: bool) -> Result<(), String> {
        let line = fill(line, &self.captures);
        self.transcript.push_str(&format!("> {line}\n"));
        self.held.push_str(&line);
        self.held.push('\n');
        if more {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        let stdin = self.running()?.stdin.as_mut().ok_or("stdin is closed")?;
        let written = stdin
            .write_all(held.as_bytes())
            .and_then(|()| stdin.flush());
        written.map_err(|error| format!("the agent does not read: {error}"))
    }

    fn line(&mut self) -> Result<Value, String> {
        let patience = self.agent.patience;
        let line = match self.running()?.lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("nothing came in {} s", patience.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err("the agent ended".to_owned()),
        };
        self.transcript.push_str(&format!("< {line}\n"));
        serde_json::from_str(&line).map_err(|error| format!("not JSON ({error}): {line}"))
    }

    fn until(&mut self, pattern: &Value) -> Result<(), String> {
        self.skipped.clear();
        let mut nearest = String::new();
        loop {
            let found = match self.line() {
                Ok(found) => found,
                Err(reason) => return Err(format!("{reason}; the last line: {nearest}")),
            };
            match fits(pattern, &found, &mut self.captures) {
                Ok(()) => return Ok(()),
                Err(reason) => nearest = reason,
            }
            self.skipped.push(found);
        }
    }

    fn exit(&mut self, wanted: i32) -> Result<(), String> {
        let patience = self.agent.patience;
        let running = self.running()?;
        running.stdin = None;
        match running.lines.recv_timeout(patience) {
            Ok(line) => return Err(format!("one more line: {line}")),
            Err(RecvTimeoutError::Timeout) => return Err("it does not end".to_owned()),
            Err(RecvTimeoutError::Disconnected) => {}
        }
        // Its stdout is closed; what is left is the end of the process itself.
        let begun = Instant::now();
        loop {
            match running
                .child
                .try_wait()
                .map_err(|error| error.to_string())?
            {
                Some(status) if status.code() == Some(wanted) => break,
                Some(status) => return Err(format!("it ended with {status}")),
                None if begun.elapsed() > patience => return Err("it does not end".to_owned()),
                None => std::thread::yield_now(),
            }
        }
        self.running = None;
        Ok(())
    }
}
