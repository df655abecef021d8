//! Processes: how a case starts the agent, ends it, and hears how it ends.

use super::{
    Agent, Miss,
    stage::{Silence, Stage},
};
use crate::{
    case::{Pipe, Start},
    model::FakeModel,
    oracle::{Ending, Violation},
    pattern::fill_text,
    peer::process::{MARK, Process, marked},
    profile::Places,
};
use rustix::process::Pid;
use std::time::Duration;
use tokio::process::Command;

/// Variables of the runner's own environment that every agent gets.
const PASSED: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT"];
/// How often a silent agent is looked at, whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long an agent may take to end before it is killed, when a case starts it again.
const RESTART: Duration = Duration::from_secs(5);

impl Stage<'_> {
    pub(super) async fn start(&mut self, start: &Start) -> Result<(), Miss> {
        if self.process.is_some() {
            let fault = "an agent runs already: say `exit`, `kill` or `restart`";
            return Err(Miss::Fault(fault.to_owned()));
        }
        let home = self.folder_of("HOME");
        let places = Places {
            base: self.fake.as_ref().map_or("", FakeModel::base),
            home,
            cwd: self.folder_of("CWD"),
            install: self.agent.install.as_deref(),
        };
        let profile = self.agent.profile.as_ref();
        let mut words = self.agent.command.clone();
        let mut environment = Vec::new();
        if let Some(profile) = profile {
            if words.is_empty() {
                words = profile.command(&places);
            }
            environment = profile.environment(&places);
            if start.is_keyless {
                let without = profile.keyless.as_ref().map(|keyless| &keyless.without);
                let fault = || Miss::Fault("say `needs keyless`".to_owned());
                let without = without.ok_or_else(fault)?;
                environment.retain(|(name, _)| !without.contains(name));
            }
            let written = profile.write_files(&places);
            written.map_err(|error| Miss::Fault(format!("files of the profile: {error}")))?;
        }
        let words = Agent::from_here(words);
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| Miss::Fault("no agent command".to_owned()))?;
        let folder = start.folder.as_ref().map(|folder| self.path(folder));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .current_dir(folder.as_deref().unwrap_or(home))
            .env("HOME", home)
            .env("TMPDIR", self.folder_of("TOP").join("tmp"))
            .env("TERM", "dumb")
            .env(MARK, &self.mark_of_processes);
        let passed = PASSED.iter().copied();
        for name in passed.chain(self.agent.pass.iter().map(String::as_str)) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(environment);
        for (name, value) in &start.variables {
            command.env(name, fill_text(value, &self.vars));
        }
        // What an agent that was killed left behind is not this one's fault.
        let is_first = self.ended.is_empty();
        let left = if is_first {
            Vec::new()
        } else {
            marked(&self.mark_of_processes)
        };
        let logs = self.reads_stderr.then(|| self.logs.clone());
        let process = Process::start(command, logs);
        let process =
            process.map_err(|error| Miss::Fault(format!("{program} does not start: {error}")))?;
        self.log.note(format!("started {program}"));
        self.process = Some(process);
        self.read = self.heard.len();
        self.mark = self.read;
        self.left = left;
        self.is_logged_in = false;
        self.is_forced = false;
        self.is_silent = false;
        self.ending = None;
        self.asked_before = self.fake.as_ref().map_or(0, FakeModel::count_conversation);
        Ok(())
    }

    pub(super) async fn restart(&mut self, start: &Start) -> Result<(), Miss> {
        if let Some(process) = &mut self.process {
            process.close_stdin();
            self.patience = self.patience.min(RESTART);
            self.hear_out().await?;
            self.end().await?;
        }
        self.start(start).await
    }

    /// Wait for it, kill it if it does not end by itself. Says how it ended.
    async fn end(&mut self) -> Result<Option<std::process::ExitStatus>, Miss> {
        let Some(mut process) = self.process.take() else {
            return Err(Miss::Fault("no agent has been started".to_owned()));
        };
        let status = match self.pace().timeout(self.patience, process.ended()).await {
            Some(Ok(status)) => Some(status),
            Some(Err(error)) => return Err(Miss::Fault(error.to_string())),
            None => {
                self.is_forced = true;
                process.kill();
                let _ = process.ended().await;
                None
            }
        };
        let ending = match (self.is_forced, process.is_open()) {
            (true, _) => Ending::Forced,
            (false, true) => Ending::Unasked,
            (false, false) => Ending::Eof,
        };
        self.judge_end(ending);
        if let (Ending::Unasked, Some(status)) = (ending, status) {
            self.died.get_or_insert_with(|| status.to_string());
        }
        let ending = match status {
            Some(status) => format!("the agent ended: {status}"),
            None => "the agent did not end and was killed".to_owned(),
        };
        if self.ending.take().as_ref() != Some(&ending) {
            self.log.note(ending);
        }
        // What it left behind in its group lives on: `orphans none` looks, and the end of the case clears up.
        self.ended.push(process);
        Ok(status)
    }

    pub(super) fn eof(&mut self) -> Result<(), Miss> {
        self.running()?.close_stdin();
        self.told_line();
        self.log.note("stdin is closed");
        Ok(())
    }

    pub(super) async fn exit(&mut self, wanted: Option<i32>) -> Result<(), Miss> {
        if self.running()?.is_open() {
            self.eof()?;
        }
        self.gone(wanted).await
    }

    pub(super) async fn gone(&mut self, wanted: Option<i32>) -> Result<(), Miss> {
        self.hear_out().await?;
        let is_forced = self.is_forced;
        let status = self.end().await?;
        if !is_forced && status.is_some() {
            self.judge_orphans().await;
        }
        match (status, wanted) {
            (None, _) => Err(Miss::wrong("the agent does not end")),
            (Some(_), None) => Ok(()),
            (Some(status), Some(wanted)) if status.code() == Some(wanted) => Ok(()),
            (Some(status), Some(_)) => Err(Miss::wrong(format!("the agent ended with {status}"))),
        }
    }

    /// Hear all that it still says, up to its end.
    async fn hear_out(&mut self) -> Result<(), Miss> {
        let deadline = self.pace().now() + self.patience;
        loop {
            // A child that it left behind may hold its stdout open: then its own end counts.
            let look = self.pace().now() + LOOK;
            match self.hear(look.min(deadline)).await {
                Ok(()) => {}
                Err(Silence::Ended | Silence::NotStarted) => break,
                Err(Silence::Patience) if self.running()?.has_ended() => break,
                Err(Silence::Patience) if self.pace().now() < deadline => {}
                Err(Silence::Patience) => {
                    self.patience = Duration::ZERO;
                    break;
                }
            }
        }
        self.read = self.heard.len();
        Ok(())
    }

    pub(super) fn term(&mut self) -> Result<(), Miss> {
        self.running()?.terminate();
        self.is_forced = true;
        self.log.note("SIGTERM");
        Ok(())
    }

    pub(super) async fn kill(&mut self) -> Result<(), Miss> {
        self.running()?.kill();
        self.is_forced = true;
        self.log.note("SIGKILL");
        self.hear_out().await?;
        self.end().await.map(drop)
    }

    pub(super) fn stop_reading(&mut self, pipe: Pipe) -> Result<(), Miss> {
        match pipe {
            Pipe::Stdout => self.running()?.read(false),
            Pipe::Stderr => self.reads_stderr = false,
        }
        Ok(())
    }

    pub(super) fn go_on_reading(&mut self) -> Result<(), Miss> {
        self.running()?.read(true);
        Ok(())
    }

    pub(super) async fn hang_up(&mut self) -> Result<(), Miss> {
        self.running()?.hang_up().await;
        self.is_forced = true;
        self.log.note("our end of its stdout is closed");
        Ok(())
    }

    /// An agent that ended by itself leaves nothing behind (TR-6).
    async fn judge_orphans(&mut self) {
        const REAP: Duration = Duration::from_secs(2);
        let patience = std::mem::replace(&mut self.patience, REAP);
        let looks_again = std::mem::replace(&mut self.looks_again, true);
        if let Err(Miss::Wrong { why, .. }) = self.orphans_but(self.left.clone()).await {
            self.violated(vec![Violation { rule: "TR-6", why }], None);
        } else {
            self.seen.insert("TR-6");
        }
        self.patience = patience;
        self.looks_again = looks_again;
    }

    pub(super) async fn orphans(&mut self) -> Result<(), Miss> {
        self.orphans_but(Vec::new()).await
    }

    async fn orphans_but(&mut self, known: Vec<Pid>) -> Result<(), Miss> {
        self.client.clear();
        self.again(|stage| {
            let mut left = marked(&stage.mark_of_processes);
            left.retain(|pid| !known.contains(pid));
            left.retain(|pid| Some(*pid) != stage.process.as_ref().and_then(Process::id));
            if left.is_empty() {
                return Ok(());
            }
            let names: Vec<String> = left.iter().map(|pid| name_of(*pid)).collect();
            Err(Miss::wrong(format!("still alive: {}", names.join(", "))))
        })
        .await
    }

    pub(super) fn check_stderr(&mut self, has: bool, text: &str) -> Result<(), Miss> {
        let text = fill_text(text, &self.vars);
        match (self.stderr().contains(&text), has) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(Miss::wrong(format!("stderr has {text:?}"))),
            (false, true) => Err(Miss::wrong(format!("stderr lacks {text:?}"))),
        }
    }

    pub(super) fn running(&mut self) -> Result<&mut Process, Miss> {
        let fault = || Miss::Fault("no agent has been started".to_owned());
        self.process.as_mut().ok_or_else(fault)
    }
}

/// A process in words.
fn name_of(pid: Pid) -> String {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let line = std::fs::read(path).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    format!("{} ({})", pid.as_raw_nonzero(), line.trim())
}
