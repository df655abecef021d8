//! Steps that start and end the agent, and check how it ends.

use super::{
    AgentSpec, StepError,
    case_run::{CaseRun, ReceiveError},
};
use crate::{
    case::{OutputPipe, StartOptions},
    model::FakeModel,
    oracle::{OutputEnding, Violation},
    pattern::fill_text,
    peer::process::{AgentProcess, MARK_VARIABLE, marked_processes},
    profile::ProfilePaths,
};
use rustix::process::Pid;
use std::time::Duration;
use tokio::process::Command;

/// Variables of the runner's environment that every agent gets.
const PASSED_VARIABLES: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT"];
/// Interval of checks for the exit of a silent agent.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit for an agent to exit before it is killed, when a case restarts it.
const RESTART_PATIENCE: Duration = Duration::from_secs(5);

impl CaseRun<'_> {
    pub(super) async fn start_agent(&mut self, start: &StartOptions) -> Result<(), StepError> {
        if self.process.is_some() {
            let fault = "an agent is already running: say `exit`, `kill` or `restart`";
            return Err(StepError::SuiteError(fault.to_owned()));
        }
        let home = self.folder_variable("HOME");
        let places = ProfilePaths {
            model_url: self.fake_model.as_ref().map_or("", FakeModel::base_url),
            home,
            cwd: self.folder_variable("CWD"),
            install: self.agent.install_folder.as_deref(),
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
                let fault = || StepError::SuiteError("say `needs keyless`".to_owned());
                let without = without.ok_or_else(fault)?;
                environment.retain(|(name, _)| !without.contains(name));
            }
            let written = profile.write_files(&places);
            written
                .map_err(|error| StepError::SuiteError(format!("files of the profile: {error}")))?;
        }
        let words = AgentSpec::make_program_absolute(words);
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| StepError::SuiteError("no agent command".to_owned()))?;
        let folder = start
            .folder
            .as_ref()
            .map(|folder| self.resolve_path(folder));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .current_dir(folder.as_deref().unwrap_or(home))
            .env("HOME", home)
            .env("TMPDIR", self.folder_variable("TOP").join("tmp"))
            .env("TERM", "dumb")
            .env(MARK_VARIABLE, &self.process_mark);
        let passed = PASSED_VARIABLES.iter().copied();
        for name in passed.chain(self.agent.passed_variables.iter().map(String::as_str)) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(environment);
        for (name, value) in &start.variables {
            command.env(name, fill_text(value, &self.captures));
        }
        // Children of an earlier agent that was killed are not this agent's fault.
        let is_first = self.ended_processes.is_empty();
        let left = if is_first {
            Vec::new()
        } else {
            marked_processes(&self.process_mark)
        };
        let logs = self.reads_stderr.then(|| self.stderr_log.clone());
        let process = AgentProcess::start(command, logs);
        let process = process
            .map_err(|error| StepError::SuiteError(format!("{program} does not start: {error}")))?;
        self.transcript.push_note(format!("started {program}"));
        self.process = Some(process);
        self.read_count = self.received.len();
        self.mark_index = self.read_count;
        self.known_orphans = left;
        self.is_logged_in = false;
        self.is_forced = false;
        self.is_output_closed = false;
        self.unexpected_end = None;
        self.model_requests_before = self
            .fake_model
            .as_ref()
            .map_or(0, FakeModel::count_conversation_exchanges);
        Ok(())
    }

    pub(super) async fn restart_agent(&mut self, options: &StartOptions) -> Result<(), StepError> {
        if let Some(process) = &mut self.process {
            process.close_stdin();
            self.patience = self.patience.min(RESTART_PATIENCE);
            self.receive_to_end().await?;
            self.wait_or_kill().await?;
        }
        self.start_agent(options).await
    }

    /// Waits for the exit and returns its status, or kills the agent after the time limit and returns `None`.
    async fn wait_or_kill(&mut self) -> Result<Option<std::process::ExitStatus>, StepError> {
        let mut process = self.process.take().ok_or_else(StepError::not_started)?;
        let status = match self.clock().timeout(self.patience, process.wait()).await {
            Some(Ok(status)) => Some(status),
            Some(Err(error)) => return Err(StepError::SuiteError(error.to_string())),
            None => {
                self.is_forced = true;
                process.kill();
                let _ = process.wait().await;
                None
            }
        };
        let ending = match (self.is_forced, process.is_stdin_open()) {
            (true, _) => OutputEnding::Forced,
            (false, true) => OutputEnding::Unexpected,
            (false, false) => OutputEnding::Eof,
        };
        self.judge_output_end(ending);
        let ending = match status {
            Some(status) => self.record_exit(status, ending == OutputEnding::Unexpected),
            None => "the agent did not end and was killed".to_owned(),
        };
        if self.unexpected_end.take().as_ref() != Some(&ending) {
            self.transcript.push_note(ending);
        }
        // Children in its process group live on for `orphans none` and are killed at the end of the case.
        self.ended_processes.push(process);
        Ok(status)
    }

    pub(super) fn close_stdin(&mut self) -> Result<(), StepError> {
        self.running_process()?.close_stdin();
        self.observe_sent_line();
        self.transcript.push_note("stdin is closed");
        Ok(())
    }

    /// Closes stdin, if it is open, and checks the exit.
    pub(super) async fn check_exit(&mut self, wanted: Option<i32>) -> Result<(), StepError> {
        if self.running_process()?.is_stdin_open() {
            self.close_stdin()?;
        }
        self.wait_and_check_exit(wanted).await
    }

    /// Waits for the agent to exit, kills it after the time limit, and checks its exit code and that it leaves no
    /// process behind.
    pub(super) async fn wait_and_check_exit(
        &mut self,
        wanted: Option<i32>,
    ) -> Result<(), StepError> {
        self.receive_to_end().await?;
        let is_forced = self.is_forced;
        let status = self.wait_or_kill().await?;
        if !is_forced && status.is_some() {
            self.judge_orphans().await;
        }
        match (status, wanted) {
            (None, _) => Err(StepError::mismatch("the agent does not end")),
            (Some(_), None) => Ok(()),
            (Some(status), Some(wanted)) if status.code() == Some(wanted) => Ok(()),
            (Some(status), Some(_)) => Err(StepError::mismatch(format!(
                "the agent ended with {status}"
            ))),
        }
    }

    /// Receives all remaining output.
    async fn receive_to_end(&mut self) -> Result<(), StepError> {
        let deadline = self.clock().now() + self.patience;
        loop {
            // A child left behind may hold stdout open: then the exit of the agent itself counts.
            let look = self.clock().now() + EXIT_POLL_INTERVAL;
            match self.receive(look.min(deadline)).await {
                Ok(()) => {}
                Err(ReceiveError::Closed | ReceiveError::NotStarted) => break,
                Err(ReceiveError::Timeout) if self.running_process()?.has_ended() => break,
                Err(ReceiveError::Timeout) if self.clock().now() < deadline => {}
                Err(ReceiveError::Timeout) => {
                    self.patience = Duration::ZERO;
                    break;
                }
            }
        }
        self.read_count = self.received.len();
        Ok(())
    }

    pub(super) fn send_sigterm(&mut self) -> Result<(), StepError> {
        self.running_process()?.terminate();
        self.is_forced = true;
        self.transcript.push_note("SIGTERM");
        Ok(())
    }

    pub(super) async fn kill_agent(&mut self) -> Result<(), StepError> {
        self.running_process()?.kill();
        self.is_forced = true;
        self.transcript.push_note("SIGKILL");
        self.receive_to_end().await?;
        self.wait_or_kill().await.map(drop)
    }

    /// Stops reading stdout at once, or stderr of agents that are started later.
    pub(super) fn stop_reading(&mut self, pipe: OutputPipe) -> Result<(), StepError> {
        match pipe {
            OutputPipe::Stdout => self.running_process()?.set_reading(false),
            OutputPipe::Stderr => self.reads_stderr = false,
        }
        Ok(())
    }

    pub(super) fn resume_reading(&mut self) -> Result<(), StepError> {
        self.running_process()?.set_reading(true);
        Ok(())
    }

    pub(super) async fn close_stdout(&mut self) -> Result<(), StepError> {
        self.running_process()?.close_stdout().await;
        self.is_forced = true;
        self.transcript
            .push_note("the runner closed the reading end of stdout");
        Ok(())
    }

    /// Checks that an agent that exited by itself left no processes behind (TR-6).
    async fn judge_orphans(&mut self) {
        const REAP: Duration = Duration::from_secs(2);
        let patience = std::mem::replace(&mut self.patience, REAP);
        let looks_again = std::mem::replace(&mut self.retries_checks, true);
        if let Err(StepError::Mismatch { why, .. }) = self
            .check_no_orphans_except(self.known_orphans.clone())
            .await
        {
            self.record_violations(vec![Violation { rule: "TR-6", why }], None);
        } else {
            self.exercised_rules.insert("TR-6");
        }
        self.patience = patience;
        self.retries_checks = looks_again;
    }

    pub(super) async fn check_no_orphans(&mut self) -> Result<(), StepError> {
        self.check_no_orphans_except(Vec::new()).await
    }

    async fn check_no_orphans_except(&mut self, known: Vec<Pid>) -> Result<(), StepError> {
        self.client.stop_all();
        self.retry_check(|run| {
            let mut left = marked_processes(&run.process_mark);
            left.retain(|pid| !known.contains(pid));
            left.retain(|pid| {
                Some(*pid) != run.process.as_ref().and_then(AgentProcess::running_pid)
            });
            if left.is_empty() {
                return Ok(());
            }
            let names: Vec<String> = left.iter().map(|pid| describe_process(*pid)).collect();
            Err(StepError::mismatch(format!(
                "still alive: {}",
                names.join(", ")
            )))
        })
        .await
    }

    pub(super) fn check_stderr(&mut self, has: bool, text: &str) -> Result<(), StepError> {
        let text = fill_text(text, &self.captures);
        match (self.stderr_text().contains(&text), has) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => Err(StepError::mismatch(format!("stderr has {text:?}"))),
            (false, true) => Err(StepError::mismatch(format!("stderr lacks {text:?}"))),
        }
    }

    pub(super) fn running_process(&mut self) -> Result<&mut AgentProcess, StepError> {
        self.process.as_mut().ok_or_else(StepError::not_started)
    }
}

/// Describes a process by its id and command line.
fn describe_process(pid: Pid) -> String {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    let line = std::fs::read(path).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    format!("{} ({})", pid.as_raw_nonzero(), line.trim())
}
