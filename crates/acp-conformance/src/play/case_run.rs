//! State of a running case: its folders, its agent and all messages.

use super::{
    AgentFacts, AgentSpec, PlayOptions, StepError,
    model_steps::contains_text,
    transcript::{TranscriptLog, escape_text},
};
use crate::{
    case::Case,
    deep_json,
    model::{FakeModel, ScriptTool},
    oracle::{Oracle, OutputEnding, Violation},
    outcome::{Finding, TranscriptSource},
    pattern::{Captures, fill_text},
    peer::{
        client::Client,
        process::{
            AgentProcess, MAX_LINE_BYTES, StderrLog, kill_all, lock_spawning, marked_processes,
        },
        queue::OutputLine,
        terminals::ProcessContext,
    },
    scratch::ScratchFolder,
    suite_clock::SuiteClock,
};
use rustix::process::Pid;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Time for an agent to exit after its output ended, so that its exit status is known.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// State of a running case.
pub(super) struct CaseRun<'a> {
    /// Name of the case.
    case: &'a str,
    /// Fake model, if the agent has a profile.
    pub(super) fake_model: Option<FakeModel>,
    /// Number of model requests before the agent was started.
    pub(super) model_requests_before: usize,
    /// Tools that the agent turned out to lack.
    pub(super) missing_tools: BTreeSet<ScriptTool>,
    /// True if the login that the profile asks for was sent.
    pub(super) is_logged_in: bool,
    pub(super) agent: &'a AgentSpec,
    pub(super) options: &'a PlayOptions,
    pub(super) started_at: Instant,
    /// Removed together with this value.
    _top: TempDir,
    _scratch: Arc<ScratchFolder>,
    /// Value of the environment variable `ACP_CONFORMANCE_CASE` in all processes of the case, by which
    /// leftover processes are found.
    pub(super) process_mark: String,
    pub(super) captures: Captures,
    /// Files that the `file` step created.
    pub(super) made_files: BTreeMap<PathBuf, String>,
    pub(super) process: Option<AgentProcess>,
    /// Agents that have ended; children left in their process groups are killed on drop.
    pub(super) ended_processes: Vec<AgentProcess>,
    /// Processes that earlier agents had left behind when the current agent was started.
    pub(super) known_orphans: Vec<Pid>,
    pub(super) reads_stderr: bool,
    pub(super) stderr_log: StderrLog,
    pub(super) client: Client,
    pub(super) transcript: TranscriptLog,
    /// Lines received from the agent.
    pub(super) received: Vec<ReceivedLine>,
    /// Number of these lines that have been read.
    pub(super) read_count: usize,
    /// Index of the first line that checks search.
    pub(super) mark_index: usize,
    /// Requests of the case, by name.
    pub(super) requests: BTreeMap<String, SentRequest>,
    pub(super) next_id: u64,
    /// Bytes to send with the next write.
    pub(super) pending_bytes: Vec<u8>,
    pub(super) write_chunk_size: Option<usize>,
    pub(super) version: u16,
    pub(super) capabilities: Value,
    /// Time limit of the step.
    pub(super) patience: Duration,
    /// Deadline of the step, on the clock of `clock()`. Output from the agent does not extend it.
    pub(super) deadline: Duration,
    pub(super) retries_checks: bool,
    /// True if a step has failed.
    pub(super) has_failed_step: bool,
    /// Line of the case that is being played.
    pub(super) line_number: usize,
    pub(super) oracle: Oracle,
    /// Violations of rules that are checked throughout the case, at most one for each rule.
    pub(super) violations: Vec<(&'static str, Finding)>,
    /// Rules that the messages of the case could have broken; they pass unless a violation is recorded.
    pub(super) exercised_rules: BTreeSet<&'static str>,
    /// Sent part of a line whose line end is still missing.
    pub(super) partial_sent_line: Vec<u8>,
    /// True if the runner signalled or killed the agent, or closed the reading end of its stdout, so that its
    /// end is not judged.
    pub(super) is_forced: bool,
    /// True if the agent's output has ended.
    pub(super) is_output_closed: bool,
    /// Description of an unexpected end of the agent.
    pub(super) unexpected_end: Option<String>,
    /// Exit status of the first agent in this case that ended unexpectedly.
    pub(super) unexpected_exit: Option<String>,
}

/// Line received from the agent.
pub(super) struct ReceivedLine {
    /// Parsed message; `null` if the line is not JSON.
    pub(super) value: Value,
    /// Received text for reports: shortened if very long, with control characters escaped.
    pub(super) text: String,
    /// Index in the transcript.
    pub(super) entry: usize,
    /// True if the message is malformed, which is reported under some rule.
    pub(super) is_malformed: bool,
}

/// Request sent by the case.
pub(super) struct SentRequest {
    pub(super) id: Value,
    pub(super) method: String,
    /// Number of lines received before the request.
    pub(super) received_before: usize,
}

/// Reason why no line was received.
pub(super) enum ReceiveError {
    /// Nothing was received in time.
    Timeout,
    /// The agent closed its stdout.
    Closed,
    /// No agent has been started.
    NotStarted,
}

impl<'a> CaseRun<'a> {
    pub(super) async fn new(
        case: &'a Case,
        agent: &'a AgentSpec,
        options: &'a PlayOptions,
        facts: &AgentFacts,
    ) -> Result<Self, String> {
        let no_folder = |error: std::io::Error| format!("no folder for a case: {error}");
        let scratch = ScratchFolder::current().map_err(no_folder)?;
        let top = scratch.create_case_folder().map_err(no_folder)?;
        let path = top.path().canonicalize().map_err(no_folder)?;
        for folder in ["home", "project", "tmp"] {
            std::fs::create_dir(path.join(folder)).map_err(no_folder)?;
        }
        let runner = std::env::current_exe().unwrap_or_default();
        let vars = [
            ("TOP", path.clone()),
            ("HOME", path.join("home")),
            ("CWD", path.join("project")),
            ("RUNNER", runner),
        ];
        let vars = vars.map(|(name, path)| (name.to_owned(), path.display().to_string().into()));
        let mut vars: Captures = vars.into_iter().collect();
        let fake = match &agent.profile {
            None => None,
            Some(profile) => {
                let mut config = profile.fake_model_config();
                config.requests.offers_tools &= !facts.offers_no_tools;
                let fake = FakeModel::start(config).await;
                Some(fake.map_err(|error| format!("no fake model: {error}"))?)
            }
        };
        if let Some(fake) = &fake {
            vars.insert("MODEL".to_owned(), fake.base_url().into());
        }
        if let Some(profile) = &agent.profile {
            let keyless = profile.keyless.as_ref();
            let named = [
                ("LOGIN", profile.authenticate.as_ref()),
                ("INSTRUCTIONS", profile.instructions.as_ref()),
                ("PAGE", keyless.and_then(|keyless| keyless.page.as_ref())),
            ];
            for (name, value) in named {
                let value = value.map(|value| (name.to_owned(), value.as_str().into()));
                vars.extend(value);
            }
        }
        let mut client = Client::default();
        client.terminals.context = ProcessContext {
            home: path.join("home"),
            cwd: path.join("project"),
            mark: path.display().to_string(),
        };
        Ok(Self {
            case: &case.name,
            fake_model: fake,
            model_requests_before: 0,
            missing_tools: BTreeSet::new(),
            is_logged_in: false,
            agent,
            options,
            started_at: Instant::now(),
            process_mark: path.display().to_string(),
            _top: top,
            _scratch: scratch,
            captures: vars,
            made_files: BTreeMap::new(),
            process: None,
            ended_processes: Vec::new(),
            known_orphans: Vec::new(),
            reads_stderr: true,
            stderr_log: StderrLog::default(),
            client,
            transcript: TranscriptLog::default(),
            received: Vec::new(),
            read_count: 0,
            mark_index: 0,
            requests: BTreeMap::new(),
            next_id: 100,
            pending_bytes: Vec::new(),
            write_chunk_size: None,
            version: 1,
            capabilities: Value::Object(serde_json::Map::default()),
            patience: options.patience,
            deadline: options.clock().now(),
            retries_checks: false,
            has_failed_step: false,
            line_number: 0,
            oracle: Oracle::default(),
            violations: Vec::new(),
            exercised_rules: BTreeSet::new(),
            partial_sent_line: Vec::new(),
            is_forced: false,
            is_output_closed: false,
            unexpected_end: None,
            unexpected_exit: None,
        })
    }

    /// Returns the clock for all time limits.
    pub(super) fn clock(&self) -> SuiteClock {
        self.options.clock()
    }

    pub(super) fn set_variable(&mut self, name: &str, value: Value) {
        self.captures.insert(name.to_owned(), value);
    }

    /// Resolves a path of the case, relative to the session folder.
    pub(super) fn resolve_path(&self, name: &str) -> PathBuf {
        let name = fill_text(name, &self.captures);
        self.folder_variable("CWD").join(name)
    }

    pub(super) fn folder_variable(&self, name: &str) -> &Path {
        Path::new(
            self.captures
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or(""),
        )
    }

    pub(super) fn is_prompt(&self, name: &str) -> bool {
        let request = self.requests.get(name);
        request.is_some_and(|request| request.method == "session/prompt")
    }

    pub(super) fn stderr_text(&self) -> String {
        let logs = self
            .stderr_log
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&logs).into_owned()
    }

    /// Waits for the next unread line and returns its index.
    pub(super) async fn next_unread(&mut self) -> Result<usize, ReceiveError> {
        while self.read_count == self.received.len() {
            self.receive(self.deadline).await?;
        }
        self.read_count += 1;
        Ok(self.read_count - 1)
    }

    /// Receives one more line, or sends a delayed response.
    pub(super) async fn receive(&mut self, deadline: Duration) -> Result<(), ReceiveError> {
        let pace = self.clock();
        let process = self.process.as_mut().ok_or(ReceiveError::NotStarted)?;
        let spoken = tokio::select! {
            biased;
            spoken = process.next_line() => match spoken {
                Some(spoken) => spoken,
                None => {
                    self.is_output_closed = true;
                    self.note_unexpected_end().await;
                    return Err(ReceiveError::Closed);
                }
            },
            reply = self.client.next_delayed_response() => {
                self.send_reply(&reply).await;
                return Ok(());
            }
            () = pace.sleep_until(deadline) => return Err(ReceiveError::Timeout),
        };
        match spoken {
            OutputLine::Line(line) => self.accept_line(&line).await,
            OutputLine::TooLong(beginning) => self.accept_overlong_line(&beginning),
        }
        Ok(())
    }

    /// Records how the agent ended, if it ended unexpectedly.
    pub(super) async fn note_unexpected_end(&mut self) {
        let pace = self.clock();
        let is_asked = self.is_forced || self.unexpected_end.is_some();
        let Some(process) = self
            .process
            .as_mut()
            .filter(|process| process.is_stdin_open() && !is_asked)
        else {
            return;
        };
        let ending = match pace.timeout(EXIT_GRACE, process.wait()).await {
            Some(Ok(status)) => self.record_exit(status, true),
            Some(Err(_)) | None => "the agent closed its output".to_owned(),
        };
        self.transcript.push_note(&ending);
        self.unexpected_end = Some(ending);
    }

    /// Records the first unexpected exit status, and returns the description of the exit.
    pub(super) fn record_exit(&mut self, status: ExitStatus, is_unexpected: bool) -> String {
        if is_unexpected && self.unexpected_exit.is_none() {
            self.unexpected_exit = Some(status.to_string());
        }
        format!("the agent ended: {status}")
    }

    async fn accept_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
        let value = deep_json::parse_json(line).unwrap_or_default();
        let entry = self.transcript.push(TranscriptSource::Agent, &text);
        let violations = self.oracle.on_received_line(line);
        self.record_violations(violations, Some((&text, entry)));
        if value.get("method").is_none() {
            self.transcript.mark_answered(&value["id"]);
        }
        let replies = self.client.handle_message(&value);
        let is_bent = self.oracle.is_last_line_malformed();
        self.received.push(ReceivedLine {
            value,
            text: escape_text(&text),
            entry,
            is_malformed: is_bent,
        });
        for reply in replies {
            self.send_reply(&reply).await;
        }
    }

    /// Records a line that is too long to parse and that no client would read.
    fn accept_overlong_line(&mut self, beginning: &[u8]) {
        let text = format!("{}…", String::from_utf8_lossy(beginning));
        let entry = self.transcript.push(TranscriptSource::Agent, &text);
        let why = format!("a line of more than {} MiB", MAX_LINE_BYTES >> 20);
        let violation = Violation { rule: "TR-9", why };
        self.record_violations(vec![violation], Some((&text, entry)));
        self.received.push(ReceivedLine {
            value: Value::Null,
            text,
            entry,
            is_malformed: true,
        });
    }

    /// Records rule violations, with the received line that caused them, if any.
    pub(super) fn record_violations(
        &mut self,
        violations: Vec<Violation>,
        came: Option<(&str, usize)>,
    ) {
        for violation in violations {
            let is_known = self
                .violations
                .iter()
                .any(|(rule, _)| *rule == violation.rule);
            // Report each rule once: consequences would hide the rest.
            if is_known {
                continue;
            }
            let finding = Finding {
                case: self.case.to_owned(),
                line: self.line_number,
                step: "(always watched)".to_owned(),
                sent: self.relevant_sent_line(),
                received: came.map(|(text, _)| escape_text(text)),
                why: violation.why,
                entry: came.map(|(_, entry)| entry),
            };
            self.violations.push((violation.rule, finding));
        }
    }

    /// Records the violations at the end of the output, and starts a new oracle.
    pub(super) fn judge_output_end(&mut self, ending: OutputEnding) {
        let violations = self.oracle.on_output_end(ending);
        self.record_violations(violations, None);
        self.collect_exercised_rules();
        self.oracle = Oracle::default();
        self.partial_sent_line.clear();
    }

    fn collect_exercised_rules(&mut self) {
        self.exercised_rules.extend(self.oracle.exercised_rules());
    }

    /// Splits sent bytes into lines for the observers of the connection.
    pub(super) fn observe_sent_bytes(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(line) => {
                    self.partial_sent_line.extend_from_slice(line);
                    self.observe_sent_line();
                }
                None => self.partial_sent_line.extend_from_slice(piece),
            }
        }
    }

    /// Observes a complete sent line.
    pub(super) fn observe_sent_line(&mut self) {
        let line = std::mem::take(&mut self.partial_sent_line);
        self.observe_sent_message(&serde_json::from_slice(&line).unwrap_or_default());
    }

    /// Passes a sent message to the oracle, the fake model and the client; `null` if the line is not JSON.
    pub(super) fn observe_sent_message(&mut self, message: &Value) {
        self.oracle.on_sent(message);
        if let Some(fake) = &self.fake_model
            && message["method"] == "session/prompt"
        {
            fake.restart_scripts(|text| contains_text(&message["params"]["prompt"], text));
        }
        self.client.observe_sent(message);
    }

    /// Sends a response of the client.
    pub(super) async fn send_reply(&mut self, reply: &Value) {
        let text = reply.to_string();
        self.transcript.push(TranscriptSource::Client, &text);
        self.oracle.on_sent_line(&text);
        // An agent that no longer reads is detected by its missing responses.
        let _ = self.write_bytes(format!("{text}\n").into_bytes()).await;
    }

    /// Returns the latest sent line; after an unexpected end, the latest unanswered line.
    pub(super) fn relevant_sent_line(&self) -> Option<String> {
        match self.unexpected_end {
            None => self.transcript.last_sent(),
            Some(_) => self.transcript.last_unanswered(),
        }
    }

    /// Returns the error of a step that received no line.
    pub(super) fn error(&self, silence: &ReceiveError) -> StepError {
        StepError::NoLine(match silence {
            ReceiveError::Timeout => {
                format!("nothing fitting came in {} ms", self.patience.as_millis())
            }
            ReceiveError::Closed => {
                let ending = self.unexpected_end.as_deref();
                ending.unwrap_or("the agent ended its output").to_owned()
            }
            ReceiveError::NotStarted => return StepError::not_started(),
        })
    }

    /// Repeats a check until its time limit, if the step sets one.
    pub(super) async fn retry_check(
        &mut self,
        check: impl Fn(&Self) -> Result<(), StepError>,
    ) -> Result<(), StepError> {
        const SHORTEST: Duration = Duration::from_millis(5);
        const LONGEST: Duration = Duration::from_millis(40);
        let deadline = self.clock().now() + self.patience;
        let mut pause = SHORTEST;
        loop {
            let result = check(self);
            if result.is_ok() || !self.retries_checks || self.clock().now() >= deadline {
                return result;
            }
            // Receive lines meanwhile, but do not read them.
            let look = (self.clock().now() + pause).min(deadline);
            pause = (pause * 2).min(LONGEST);
            if self.receive(look).await.is_err() {
                self.clock().sleep_until(look).await;
            }
        }
    }

    /// Ends everything that is left of the case.
    pub(super) async fn end_case(&mut self) {
        self.client.stop_all();
        if let Some(mut process) = self.process.take() {
            if self.is_output_closed && process.is_stdin_open() && !self.is_forced {
                self.judge_output_end(OutputEnding::Unexpected);
            }
            // A child left behind may hold stdout open.
            if self.unexpected_end.is_none()
                && process.has_ended()
                && let Ok(status) = process.wait().await
            {
                let is_unexpected = process.is_stdin_open() && !self.is_forced;
                let ending = self.record_exit(status, is_unexpected);
                self.transcript.push_note(ending);
            }
            process.kill();
            // Reap the process, so that no zombie remains.
            let _ = process.wait().await;
            self.ended_processes.push(process);
        }
        let loggers: Vec<_> = self
            .ended_processes
            .iter_mut()
            .filter_map(AgentProcess::take_stderr_reader)
            .collect();
        self.ended_processes.clear();
        self.collect_exercised_rules();
        kill_all(&marked_processes(&self.process_mark));
        for logger in loggers {
            // A process that cannot be killed may hold stderr open.
            let _ = self.clock().timeout(EXIT_GRACE, logger).await;
        }
        // Blocks after a signal: an interrupted case has no outcome.
        drop(lock_spawning());
    }
}
