//! Plays one case against one agent, in temporary folders.

mod case_run;
mod checks;
mod fixtures;
mod model_steps;
mod processes;
mod requests;
mod send;
mod transcript;

use crate::{
    case::{Case, CaseLine, CaseStep, LineCondition, Need},
    facts::AgentFacts,
    model::{Exchange, FakeModel},
    outcome::{CaseOutcome, CheckResult, Finding},
    pattern::{self, Captures},
    profile::Profile,
    suite_clock::SuiteClock,
};
use case_run::CaseRun;
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// Default time limit for the agent to exit.
const EXIT_PATIENCE: Duration = Duration::from_secs(5);

/// Agent under test and how it is started.
#[derive(Clone, Debug, Default)]
pub struct AgentSpec {
    /// Program and arguments; if empty, the command of the profile.
    pub command: Vec<String>,
    /// Profile that connects the agent to the fake model.
    pub profile: Option<Profile>,
    /// Folder of the installed agent, if its profile describes an installation.
    pub install_folder: Option<PathBuf>,
    /// Names of additional variables to pass from the runner's environment.
    pub passed_variables: Vec<String>,
}

impl AgentSpec {
    /// Makes the path of the program absolute if it is relative, because agents start in another folder.
    /// Program names without a slash are unchanged.
    #[must_use]
    pub fn make_program_absolute(mut command: Vec<String>) -> Vec<String> {
        if let Some(program) = command.first_mut()
            && program.contains('/')
            && let Ok(path) = std::path::absolute(&*program)
        {
            *program = path.display().to_string();
        }
        command
    }
}

/// Options for playing cases.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// Time that a step waits for a line or for the agent's exit.
    pub patience: Duration,
    /// Pause of the `quiet` step.
    pub quiet_pause: Duration,
    /// Number of cases played at once.
    pub jobs: usize,
    /// Measures all time limits in real time, even on a busy machine; failures should then be retried without
    /// this option.
    pub real_time: bool,
}

impl PlayOptions {
    /// Returns the clock for all time limits.
    pub(crate) fn clock(&self) -> SuiteClock {
        if self.real_time {
            SuiteClock::Real
        } else {
            SuiteClock::Fair
        }
    }
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(20),
            quiet_pause: Duration::from_millis(150),
            // Cases mostly wait.
            jobs: 2 * std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
            real_time: false,
        }
    }
}

/// Failure of a step.
#[derive(Debug)]
pub(crate) enum StepError {
    /// A check failed. The case continues if the step cites a rule or is `exit`, and ends otherwise.
    Mismatch {
        /// Explanation of the mismatch.
        why: String,
        /// Received text.
        received: Option<String>,
        /// Index in the transcript.
        entry: Option<usize>,
    },
    /// The received message is malformed. Only the watched rule about its shape is reported; the case
    /// continues.
    Malformed,
    /// Nothing was received, so the case ends.
    NoLine(String),
    /// This variable was never captured.
    UnsetVariable(String),
    /// Error in the case or the runner.
    SuiteError(String),
}

impl StepError {
    pub(crate) fn not_started() -> Self {
        Self::SuiteError("no agent has been started".to_owned())
    }

    pub(crate) fn mismatch(why: impl Into<String>) -> Self {
        Self::Mismatch {
            why: why.into(),
            received: None,
            entry: None,
        }
    }
}

/// Data collected from a case, in addition to its outcome.
#[derive(Default)]
pub(crate) struct CaseArtifacts {
    /// Captured variables.
    pub(crate) captures: Captures,
    /// True if `initialize` was answered, rightly or wrongly.
    pub(crate) has_initialize_response: bool,
    /// Requests to the fake model.
    pub(crate) exchanges: Vec<Exchange>,
}

/// Plays a case and returns the collected data, too.
pub(crate) async fn play_case(
    case: &Case,
    agent: &AgentSpec,
    options: &PlayOptions,
    facts: &AgentFacts,
) -> (CaseOutcome, CaseArtifacts) {
    let mut outcome = CaseOutcome {
        case: case.name.clone(),
        purpose: case.purpose.clone(),
        ..CaseOutcome::default()
    };
    if let Some(missing) = facts.missing_need(case) {
        for rule in case.cited_rules() {
            outcome.add_check(rule, 0, CheckResult::NotApplicable(missing.clone()));
        }
        return (outcome, CaseArtifacts::default());
    }
    let mut run = match CaseRun::new(case, agent, options, facts).await {
        Ok(run) => run,
        Err(error) => {
            outcome.error = Some(error);
            return (outcome, CaseArtifacts::default());
        }
    };
    play_steps(case, facts, &mut run, &mut outcome).await;
    run.end_case().await;
    for (rule, finding) in std::mem::take(&mut run.violations) {
        run.exercised_rules.remove(rule);
        outcome.add_check(rule, 0, CheckResult::Failed(finding));
    }
    for rule in &run.exercised_rules {
        outcome.add_check(rule, 0, CheckResult::Passed);
    }
    if outcome.error.is_some() {
        // A faulty case may have affected the agent in any way.
        outcome.checks.clear();
    }
    outcome.elapsed = run.started_at.elapsed();
    outcome.transcript = std::mem::take(&mut run.transcript.entries);
    outcome.stderr = run.stderr_text();
    outcome.unexpected_exit = run.unexpected_exit.take();
    let initialize = run.requests.get("initialize");
    let is_answer = |value: &Value| {
        let is_its = initialize.is_some_and(|request| request.id == value["id"]);
        is_its && value.get("method").is_none()
    };
    let artifacts = CaseArtifacts {
        has_initialize_response: run.received.iter().any(|line| is_answer(&line.value)),
        captures: std::mem::take(&mut run.captures),
        exchanges: run
            .fake_model
            .as_ref()
            .map_or_else(Vec::new, FakeModel::exchanges),
    };
    (outcome, artifacts)
}

async fn play_steps(
    case: &Case,
    facts: &AgentFacts,
    run: &mut CaseRun<'_>,
    outcome: &mut CaseOutcome,
) {
    // The latest failed step, and the failed step that ended the case.
    let mut failed: Option<Finding> = None;
    let mut ended: Option<Finding> = None;
    // Message about a tool that the case needs and the agent turned out to lack.
    let mut without: Option<String> = None;
    for line in &case.lines {
        let mut rule = |result: &CheckResult| {
            for rule in &line.rules {
                outcome.add_check(rule, line.number, result.clone());
            }
        };
        if let Some(missing) = without.clone().or_else(|| run.skip_reason(line, facts)) {
            rule(&CheckResult::NotApplicable(missing));
            continue;
        }
        if let Some(before) = &ended {
            rule(&CheckResult::not_reached(before));
            continue;
        }
        run.line_number = line.number;
        let done = run.play_step(line).await;
        if run.update_missing_tools() {
            run.has_failed_step = true;
            without = case.needs.iter().find_map(|need| run.missing_tool(need));
            if let Some(missing) = without.clone().or_else(|| run.missing_tool_for_line(line)) {
                run.transcript.push_note(&missing);
                rule(&CheckResult::NotApplicable(missing));
                continue;
            }
        }
        let sent = run.relevant_sent_line();
        let found = |why: &str| Finding {
            case: case.name.clone(),
            line: line.number,
            step: line.text.clone(),
            sent: sent.clone(),
            received: None,
            why: why.to_owned(),
            entry: None,
        };
        let (why, came, entry, goes_on) = match done {
            Ok(()) => {
                rule(&CheckResult::Passed);
                continue;
            }
            Err(StepError::Malformed) => {
                run.has_failed_step = true;
                let note = format!("line {}: the response is malformed", line.number);
                run.transcript.push_note(note);
                let bent = found("the response is malformed: another rule reports that");
                rule(&CheckResult::NotReached(bent.clone()));
                failed = Some(bent);
                continue;
            }
            Err(StepError::UnsetVariable(name))
                if !line.rules.is_empty() || run.has_failed_step =>
            {
                run.transcript
                    .push_note(format!("line {}: ${name} is not set", line.number));
                let since = failed.as_ref().map_or_else(String::new, |before| {
                    format!(", since line {} failed: {}", before.line, before.why)
                });
                let unset = found(&format!("${name} is not set{since}"));
                rule(&CheckResult::NotReached(unset));
                continue;
            }
            Err(StepError::UnsetVariable(name)) => {
                outcome.error = Some(format!("line {}: ${name} is not set", line.number));
                ended = Some(found(&format!("${name} is not set")));
                continue;
            }
            Err(StepError::SuiteError(fault)) => {
                outcome.error = Some(format!("line {}: {fault}", line.number));
                ended = Some(found(&fault));
                continue;
            }
            Err(StepError::Mismatch {
                why,
                received: came,
                entry,
            }) => (why, came, entry, true),
            Err(StepError::NoLine(why)) => (why, None, None, false),
        };
        run.has_failed_step = true;
        let finding = Finding {
            received: came,
            entry: entry.or_else(|| run.transcript.entries.len().checked_sub(1)),
            ..found(&why)
        };
        failed = Some(finding.clone());
        let usual = default_rule(line, run);
        if line.rules.is_empty() {
            match usual {
                Some(usual) => {
                    outcome.add_check(usual, line.number, CheckResult::Failed(finding));
                }
                None => outcome.failed_step = Some(finding),
            }
            // An agent that fails to exit, or exits wrongly, does not affect later steps.
            if !(goes_on && matches!(line.step, CaseStep::Exit(_))) {
                ended.clone_from(&failed);
            }
        } else {
            rule(&CheckResult::Failed(finding));
            if !goes_on {
                ended.clone_from(&failed);
            }
        }
    }
}

/// Returns the rule broken by a failed step that cites no rule.
fn default_rule(line: &CaseLine, run: &CaseRun<'_>) -> Option<&'static str> {
    match &line.step {
        CaseStep::Initialize(_) => Some("INIT-1"),
        CaseStep::Session(..) => Some("SESS-1"),
        CaseStep::Load(..) => Some("LOAD-1"),
        CaseStep::Resume(..) => Some("RES-2"),
        CaseStep::Exit(_) => Some("TR-6"),
        CaseStep::ExpectResponse(name, _) if run.is_prompt(name) => Some("PROMPT-4"),
        CaseStep::ExpectResponse(..)
        | CaseStep::Call { .. }
        | CaseStep::Probe
        | CaseStep::Quiet => Some("RPC-12"),
        _ => None,
    }
}

impl CaseRun<'_> {
    /// Executes one step.
    async fn play_step(&mut self, line: &CaseLine) -> Result<(), StepError> {
        for name in pattern::variable_names(&line.text) {
            if line.requires_variable(name) && !self.captures.contains_key(name) {
                return Err(StepError::UnsetVariable(name.to_owned()));
            }
        }
        self.patience = line.patience.unwrap_or(self.options.patience);
        if matches!(line.step, CaseStep::Exit(_)) && line.patience.is_none() {
            self.patience = self.patience.min(EXIT_PATIENCE);
        }
        self.deadline = self.clock().now() + self.patience;
        self.retries_checks = line.patience.is_some();
        match &line.step {
            CaseStep::Version(version) => self.version = *version,
            CaseStep::Client(capabilities) => self.capabilities = capabilities.clone(),
            CaseStep::File(name, text) => self.write_file(name, text)?,
            CaseStep::Folder(name) => self.create_folder(name)?,
            CaseStep::Link(name, target) => self.create_link(name, target)?,
            CaseStep::Buffer(name, text) => self.set_editor_text(name, text),
            CaseStep::Let(name, value) => {
                self.set_variable(name, pattern::fill_value(value, &self.captures))
            }
            CaseStep::Repeat(name, times, text) => {
                self.set_variable(name, text.repeat(*times).into())
            }
            CaseStep::Model { prompt, answers } => self.set_script(prompt.as_deref(), answers)?,
            CaseStep::ReleaseModel => self.require_fake_model()?.release_hanging(),
            CaseStep::Start(start) => self.start_agent(start).await?,
            CaseStep::Restart(start) => self.restart_agent(start).await?,
            CaseStep::Eof => self.close_stdin()?,
            CaseStep::Exit(code) => self.check_exit(*code).await?,
            CaseStep::ExitUnprompted(code) => self.wait_and_check_exit(*code).await?,
            CaseStep::Term => self.send_sigterm()?,
            CaseStep::Kill => self.kill_agent().await?,
            CaseStep::StopReading(pipe) => self.stop_reading(*pipe)?,
            CaseStep::ResumeReading => self.resume_reading()?,
            CaseStep::HangUp => self.close_stdout().await?,
            CaseStep::NoOrphans => self.check_no_orphans().await?,
            CaseStep::Stderr(has, text) => self.check_stderr(*has, text)?,
            CaseStep::Send {
                text,
                may_be_invalid,
                joins_next_write,
            } => {
                self.send_line(text, *may_be_invalid, *joins_next_write)
                    .await?
            }
            CaseStep::Raw {
                bytes,
                joins_next_write,
            } => self.send_raw(bytes, *joins_next_write).await?,
            CaseStep::Split(size) => self.write_chunk_size = Some(*size),
            CaseStep::Initialize(extra) => self.initialize(extra.as_ref()).await?,
            CaseStep::Login => self.log_in().await?,
            CaseStep::Session(name, extra) => self.create_session(name, extra.as_ref()).await?,
            CaseStep::Load(name, extra) => self.open_session("load", name, extra.as_ref()).await?,
            CaseStep::Resume(name, extra) => {
                self.open_session("resume", name, extra.as_ref()).await?
            }
            CaseStep::Prompt {
                content,
                session,
                name,
                may_be_invalid,
                joins_next_write,
            } => {
                self.send_prompt(content, session, name, *may_be_invalid, *joins_next_write)
                    .await?
            }
            CaseStep::Cancel(session) => self.send_cancel(session).await?,
            CaseStep::Call {
                method,
                params,
                name,
                may_be_invalid,
                expected: then,
            } => {
                let params = pattern::fill_value(params, &self.captures);
                self.send_request(method, params, name, *may_be_invalid, false)
                    .await?;
                if let Some(expect) = then {
                    self.check_response(name, expect).await?;
                }
            }
            CaseStep::Notify {
                method,
                params,
                may_be_invalid,
            } => {
                self.send_notification(method, params, *may_be_invalid)
                    .await?
            }
            CaseStep::Probe => self.send_probe().await?,
            CaseStep::Quiet => self.probe_twice().await?,
            CaseStep::ExpectResponse(name, expect) => self.check_response(name, expect).await?,
            CaseStep::Next(pattern) => self.check_next_line(pattern).await?,
            CaseStep::Until(pattern) => self.read_until(pattern).await?,
            CaseStep::Mark => self.mark_index = self.read_count,
            CaseStep::No(pattern) => self.check_none(pattern)?,
            CaseStep::Some(pattern) => self.check_some(pattern)?,
            CaseStep::CaptureIfAny(pattern) => self.capture_if_present(pattern),
            CaseStep::Count(range, pattern) => self.check_count(*range, pattern)?,
            CaseStep::Order(patterns) => self.check_order(patterns)?,
            CaseStep::MessageText {
                author: voice,
                text,
                session,
                is_negated: not,
            } => self.check_message_text(*voice, text, session, *not)?,
            CaseStep::Value(value, pattern) => self.check_value(value, pattern)?,
            CaseStep::FileEquals(name, text) => {
                self.retry_check(|run| run.check_file_equals(name, text))
                    .await?
            }
            CaseStep::FileContains(name, text) => {
                self.retry_check(|run| run.check_file_contains(name, text))
                    .await?
            }
            CaseStep::FileUnchanged(name) => self.check_file_unchanged(name)?,
            CaseStep::FileAbsent(name) => {
                self.retry_check(|run| run.check_file_absent(name)).await?
            }
            CaseStep::Permission(permission) => self.set_permission(*permission).await?,
            CaseStep::Elicitation(way) => self.client.elicitation = way.clone(),
            CaseStep::Answer(method, how) => self.client.set_response_mode(method, how.clone()),
            CaseStep::ModelRequestText(has, text) => self.check_model_request(*has, text)?,
            CaseStep::ModelRequestCount(range) => {
                self.retry_check(|run| run.check_request_count(*range))
                    .await?
            }
            CaseStep::ModelStreamClosed => {
                self.retry_check(CaseRun::check_model_stream_dropped)
                    .await?
            }
        }
        Ok(())
    }
}

impl CaseLine {
    /// Returns true if the step needs this variable. In patterns and texts the name may be captured or be no
    /// variable.
    pub(crate) fn requires_variable(&self, name: &str) -> bool {
        let in_json = |value: &Value| {
            let text = value.to_string();
            pattern::variable_names(&text).any(|found| found == name)
        };
        match &self.step {
            CaseStep::Send {
                text,
                may_be_invalid,
                ..
            } => !may_be_invalid && pattern::variable_names(text).any(|found| found == name),
            CaseStep::Value(value, _) => in_json(value),
            CaseStep::Call {
                params,
                may_be_invalid,
                ..
            }
            | CaseStep::Notify {
                params,
                may_be_invalid,
                ..
            } => !may_be_invalid && in_json(params),
            CaseStep::Session(_, extra)
            | CaseStep::Load(_, extra)
            | CaseStep::Resume(_, extra)
            | CaseStep::Initialize(extra) => extra.as_ref().is_some_and(in_json),
            _ => false,
        }
    }
}

impl CaseRun<'_> {
    /// Returns the reason to skip a line: a need that is missing, or one that must be absent.
    fn skip_reason(&self, line: &CaseLine, facts: &AgentFacts) -> Option<String> {
        let has = |need: &Need| match need {
            Need::Captured(name) => self.captures.contains_key(name),
            Need::Path(_)
            | Need::V2
            | Need::Profile
            | Need::Model
            | Need::Keyless
            | Need::Tool(_) => facts.has(need),
        };
        line.conditions.iter().find_map(|guard| match guard {
            LineCondition::If(need) if !has(need) => Some(need.to_string()),
            LineCondition::If(need) => self.missing_tool(need),
            LineCondition::Unless(need) => {
                (has(need) && self.missing_tool(need).is_none()).then(|| format!("no {need}"))
            }
        })
    }

    /// Returns a message if the agent turned out to lack a tool that the line needs.
    fn missing_tool_for_line(&self, line: &CaseLine) -> Option<String> {
        line.conditions.iter().find_map(|guard| match guard {
            LineCondition::If(need) => self.missing_tool(need),
            LineCondition::Unless(_) => None,
        })
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::V2 => f.write_str("v2"),
            Self::Profile => f.write_str("profile"),
            Self::Model => f.write_str("model"),
            Self::Keyless => f.write_str("keyless"),
            Self::Tool(tool) => write!(f, "tool that {}", tool.description()),
            Self::Captured(name) => write!(f, "${name}"),
        }
    }
}
