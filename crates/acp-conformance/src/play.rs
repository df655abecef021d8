//! Play: one case against one agent, in folders of its own.

mod checks;
mod fixtures;
mod log;
mod models;
mod processes;
mod requests;
mod sending;
mod stage;

use crate::{
    Case, Line, Need, Step,
    case::Guard,
    facts::Facts,
    model::{Exchange, FakeModel},
    outcome::{Check, Finding, Outcome, Ruling},
    pace::Pace,
    pattern::{self, Captures},
    profile::Profile,
};
use serde_json::Value;
use stage::Stage;
use std::{path::PathBuf, time::Duration};

/// How long an agent may take to leave, unless a case says otherwise.
const LEAVING: Duration = Duration::from_secs(5);

/// How an agent is started.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// Program and arguments; empty: those of the profile.
    pub command: Vec<String>,
    /// How it is pointed at the fake model.
    pub profile: Option<Profile>,
    /// Where it was installed, if its profile says how.
    pub install: Option<PathBuf>,
    /// Variables of the runner's environment that it is given too, by name.
    pub pass: Vec<String>,
}

impl Agent {
    /// The command with its program where the runner finds it: an agent is started in a folder of its own, where
    /// `target/debug/agent` is not.
    pub(crate) fn from_here(mut command: Vec<String>) -> Vec<String> {
        if let Some(program) = command.first_mut()
            && program.contains('/')
            && let Ok(path) = std::path::absolute(&*program)
        {
            *program = path.display().to_string();
        }
        command
    }
}

/// How cases are played.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a step waits for a line, or for the agent's end.
    pub patience: Duration,
    /// The pause in `quiet`.
    pub grace: Duration,
    /// How many cases are played at once.
    pub jobs: usize,
    /// Measure all bounds in real time, even on a busy machine: what is too late then should be tried again without.
    pub real_time: bool,
}

impl Options {
    /// The clock of all bounds.
    pub(crate) fn pace(&self) -> Pace {
        if self.real_time {
            Pace::Real
        } else {
            Pace::Fair
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(20),
            grace: Duration::from_millis(150),
            // Cases wait more than they work.
            jobs: 2 * std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
            real_time: false,
        }
    }
}

/// Why a step came to nothing.
#[derive(Debug)]
pub(crate) enum Miss {
    /// Something came, and was wrong: the case goes on.
    Wrong {
        /// What is wrong.
        why: String,
        /// What came.
        came: Option<String>,
        /// Where it is in the transcript.
        entry: Option<usize>,
    },
    /// What came has not even the shape that it must have. The rule that says so is blamed, by what is always
    /// watched, and no other: the case goes on.
    Bent,
    /// Nothing came, so the case ends.
    Nothing(String),
    /// This variable was never captured.
    Unset(String),
    /// The case, or the runner, is at fault.
    Fault(String),
}

impl Miss {
    pub(crate) fn wrong(why: impl Into<String>) -> Self {
        Self::Wrong {
            why: why.into(),
            came: None,
            entry: None,
        }
    }
}

/// Play a case.
pub async fn play(case: &Case, agent: &Agent, options: &Options, facts: &Facts) -> Outcome {
    play_and_keep(case, agent, options, facts).await.0
}

/// What is left of a case besides its outcome.
#[derive(Default)]
pub(crate) struct Kept {
    /// What was captured.
    pub(crate) vars: Captures,
    /// `initialize` got an answer, right or wrong.
    pub(crate) is_answered: bool,
    /// What it asked the model.
    pub(crate) exchanges: Vec<Exchange>,
}

/// Play a case, and keep what was captured.
pub(crate) async fn play_and_keep(
    case: &Case,
    agent: &Agent,
    options: &Options,
    facts: &Facts,
) -> (Outcome, Kept) {
    let mut outcome = Outcome {
        case: case.name.clone(),
        purpose: case.purpose.clone(),
        ..Outcome::default()
    };
    if let Some(missing) = facts.missing(case) {
        for rule in case.rules() {
            outcome.checks.push(Check {
                rule: rule.to_owned(),
                line: 0,
                result: Ruling::NotApplicable(missing.clone()),
            });
        }
        return (outcome, Kept::default());
    }
    let mut stage = match Stage::new(agent, options, facts).await {
        Ok(stage) => stage,
        Err(error) => {
            outcome.fault = Some(error);
            return (outcome, Kept::default());
        }
    };
    steps(case, facts, &mut stage, &mut outcome).await;
    stage.clear().await;
    for (rule, finding) in std::mem::take(&mut stage.violations) {
        stage.seen.remove(rule);
        outcome.checks.push(Check {
            rule: rule.to_owned(),
            line: 0,
            result: Ruling::Failed(finding),
        });
    }
    for rule in &stage.seen {
        outcome.checks.push(Check {
            rule: (*rule).to_owned(),
            line: 0,
            result: Ruling::Passed,
        });
    }
    if outcome.fault.is_some() {
        // Who knows what else it did to the agent.
        outcome.checks.clear();
    }
    outcome.took = stage.begun.elapsed();
    outcome.transcript = std::mem::take(&mut stage.log.entries);
    outcome.stderr = stage.stderr();
    outcome.died = stage.died.take();
    let initialize = stage.asked.get("initialize");
    let is_answer = |value: &Value| {
        let is_its = initialize.is_some_and(|asked| asked.id == value["id"]);
        is_its && value.get("method").is_none()
    };
    let kept = Kept {
        is_answered: stage.heard.iter().any(|heard| is_answer(&heard.value)),
        vars: std::mem::take(&mut stage.vars),
        exchanges: stage
            .fake
            .as_ref()
            .map_or_else(Vec::new, FakeModel::exchanges),
    };
    (outcome, kept)
}

async fn steps(case: &Case, facts: &Facts, stage: &mut Stage<'_>, outcome: &mut Outcome) {
    // The last step that failed, and the one that ended the case.
    let mut failed: Option<Finding> = None;
    let mut ended: Option<Finding> = None;
    // What the case is about, once the agent turns out to have no tool for it.
    let mut without: Option<String> = None;
    for line in &case.lines {
        let mut rule = |result: &Ruling| {
            for rule in &line.rules {
                outcome.checks.push(Check {
                    rule: rule.clone(),
                    line: line.number,
                    result: result.clone(),
                });
            }
        };
        if let Some(missing) = without.clone().or_else(|| stage.held_back(line, facts)) {
            rule(&Ruling::NotApplicable(missing));
            continue;
        }
        if let Some(before) = &ended {
            rule(&Ruling::not_reached(before));
            continue;
        }
        stage.at = line.number;
        let done = stage.step(line).await;
        if stage.misses_more() {
            stage.is_hurt = true;
            without = case.needs.iter().find_map(|need| stage.unoffered(need));
            if let Some(missing) = without.clone().or_else(|| stage.unoffered_for(line)) {
                stage.log.note(&missing);
                rule(&Ruling::NotApplicable(missing));
                continue;
            }
        }
        let sent = stage.sent();
        let found = |why: &str| Finding {
            line: line.number,
            step: line.text.clone(),
            sent: sent.clone(),
            came: None,
            why: why.to_owned(),
            entry: None,
        };
        let (why, came, entry, goes_on) = match done {
            Ok(()) => {
                rule(&Ruling::Passed);
                continue;
            }
            Err(Miss::Bent) => {
                stage.is_hurt = true;
                let note = format!("line {}: the answer has the wrong shape", line.number);
                stage.log.note(note);
                let bent = found("the answer has the wrong shape: another rule is blamed for that");
                rule(&Ruling::NotReached(bent.clone()));
                failed = Some(bent);
                continue;
            }
            Err(Miss::Unset(name)) if !line.rules.is_empty() || stage.is_hurt => {
                stage
                    .log
                    .note(format!("line {}: ${name} is not there", line.number));
                let since = failed.as_ref().map_or_else(String::new, |before| {
                    format!(", since line {} failed: {}", before.line, before.why)
                });
                let unset = found(&format!("${name} is not there{since}"));
                rule(&Ruling::NotReached(unset));
                continue;
            }
            Err(Miss::Unset(name)) => {
                outcome.fault = Some(format!("line {}: ${name} is not there", line.number));
                ended = Some(found(&format!("${name} is not there")));
                continue;
            }
            Err(Miss::Fault(fault)) => {
                outcome.fault = Some(format!("line {}: {fault}", line.number));
                ended = Some(found(&fault));
                continue;
            }
            Err(Miss::Wrong { why, came, entry }) => (why, came, entry, true),
            Err(Miss::Nothing(why)) => (why, None, None, false),
        };
        stage.is_hurt = true;
        let finding = Finding {
            came,
            entry: entry.or_else(|| stage.log.entries.len().checked_sub(1)),
            ..found(&why)
        };
        failed = Some(finding.clone());
        let usual = usual_rule(line, stage);
        if line.rules.is_empty() {
            match usual {
                Some(usual) => outcome.checks.push(Check {
                    rule: usual.to_owned(),
                    line: line.number,
                    result: Ruling::Failed(finding),
                }),
                None => outcome.broken = Some(finding),
            }
            // An agent that does not end, or ends wrongly, is out of the way all the same.
            if !(goes_on && matches!(line.step, Step::Exit(_))) {
                ended.clone_from(&failed);
            }
        } else {
            rule(&Ruling::Failed(finding));
            if !goes_on {
                ended.clone_from(&failed);
            }
        }
    }
}

/// The rule that a step breaks which names none.
fn usual_rule(line: &Line, stage: &Stage<'_>) -> Option<&'static str> {
    match &line.step {
        Step::Initialize(_) => Some("INIT-1"),
        Step::Session(..) => Some("SESS-1"),
        Step::Load(..) => Some("LOAD-1"),
        Step::Resume(..) => Some("RES-2"),
        Step::Exit(_) => Some("TR-6"),
        Step::Answered(name, _) if stage.is_prompt(name) => Some("PROMPT-4"),
        Step::Answered(..) | Step::Call { .. } | Step::Probe | Step::Quiet => Some("RPC-12"),
        _ => None,
    }
}

impl Stage<'_> {
    /// Do one step.
    async fn step(&mut self, line: &Line) -> Result<(), Miss> {
        for name in pattern::names(&line.text) {
            if line.uses(name) && !self.vars.contains_key(name) {
                return Err(Miss::Unset(name.to_owned()));
            }
        }
        self.patience = line.within.unwrap_or(self.options.patience);
        if matches!(line.step, Step::Exit(_)) && line.within.is_none() {
            self.patience = self.patience.min(LEAVING);
        }
        self.deadline = self.pace().now() + self.patience;
        self.looks_again = line.within.is_some();
        match &line.step {
            Step::Version(version) => self.version = *version,
            Step::Client(capabilities) => self.capabilities = capabilities.clone(),
            Step::File(name, text) => self.file(name, text)?,
            Step::Folder(name) => self.folder(name)?,
            Step::Link(name, target) => self.link(name, target)?,
            Step::Buffer(name, text) => self.buffer(name, text),
            Step::Let(name, value) => self.set(name, pattern::fill_value(value, &self.vars)),
            Step::Repeat(name, times, text) => self.set(name, text.repeat(*times).into()),
            Step::Model { prompt, answers } => self.model(prompt.as_deref(), answers)?,
            Step::GoOnTalking => self.fake()?.release(),
            Step::Start(start) => self.start(start).await?,
            Step::Restart(start) => self.restart(start).await?,
            Step::Eof => self.eof()?,
            Step::Exit(code) => self.exit(*code).await?,
            Step::Gone(code) => self.gone(*code).await?,
            Step::Term => self.term()?,
            Step::Kill => self.kill().await?,
            Step::StopReading(pipe) => self.stop_reading(*pipe)?,
            Step::GoOnReading => self.go_on_reading()?,
            Step::HangUp => self.hang_up().await?,
            Step::OrphansNone => self.orphans().await?,
            Step::Stderr(has, text) => self.check_stderr(*has, text)?,
            Step::Send { text, broken, more } => self.send_line(text, *broken, *more).await?,
            Step::Raw { bytes, more } => self.send_raw(bytes, *more).await?,
            Step::Split(size) => self.split = Some(*size),
            Step::Initialize(extra) => self.initialize(extra.as_ref()).await?,
            Step::Login => self.log_in().await?,
            Step::Session(name, extra) => self.session(name, extra.as_ref()).await?,
            Step::Load(name, extra) => self.open("load", name, extra.as_ref()).await?,
            Step::Resume(name, extra) => self.open("resume", name, extra.as_ref()).await?,
            Step::Prompt {
                content,
                session,
                name,
                broken,
                more,
            } => self.prompt(content, session, name, *broken, *more).await?,
            Step::Cancel(session) => self.cancel(session).await?,
            Step::Call {
                method,
                params,
                name,
                broken,
                then,
            } => {
                let params = pattern::fill_value(params, &self.vars);
                self.call(method, params, name, *broken, false).await?;
                if let Some(expect) = then {
                    self.answered(name, expect).await?;
                }
            }
            Step::Tell {
                method,
                params,
                broken,
            } => self.tell(method, params, *broken).await?,
            Step::Probe => self.probe().await?,
            Step::Quiet => self.quiet().await?,
            Step::Answered(name, expect) => self.answered(name, expect).await?,
            Step::Next(pattern) => self.next_line(pattern).await?,
            Step::Until(pattern) => self.until(pattern).await?,
            Step::Mark => self.mark = self.read,
            Step::No(pattern) => self.no(pattern)?,
            Step::Some(pattern) => self.some(pattern)?,
            Step::Maybe(pattern) => self.maybe(pattern),
            Step::Count(range, pattern) => self.count(*range, pattern)?,
            Step::Order(patterns) => self.order(patterns)?,
            Step::Said {
                voice,
                text,
                session,
                not,
            } => self.said(*voice, text, session, *not)?,
            Step::Value(value, pattern) => self.value(value, pattern)?,
            Step::Read(name, text) => self.again(|stage| stage.reads(name, text)).await?,
            Step::Holds(name, text) => self.again(|stage| stage.holds(name, text)).await?,
            Step::Same(name) => self.same(name)?,
            Step::Absent(name) => self.again(|stage| stage.absent(name)).await?,
            Step::Permission(permission) => self.permission(*permission).await?,
            Step::Elicitation(way) => self.client.elicitation = way.clone(),
            Step::Answer(method, how) => self.client.answer_so(method, how.clone()),
            Step::Saw(has, text) => self.saw(*has, text)?,
            Step::Asked(range) => self.again(|stage| stage.asked(*range)).await?,
            Step::Dropped => self.again(Stage::dropped).await?,
        }
        Ok(())
    }
}

impl Line {
    /// Whether this variable must be there for the step. In patterns and texts it may be captured, or be no variable.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let in_json = |value: &Value| {
            let text = value.to_string();
            pattern::names(&text).any(|found| found == name)
        };
        match &self.step {
            Step::Send { text, broken, .. } => {
                !broken && pattern::names(text).any(|found| found == name)
            }
            Step::Value(value, _) => in_json(value),
            Step::Call { params, broken, .. } | Step::Tell { params, broken, .. } => {
                !broken && in_json(params)
            }
            Step::Session(_, extra)
            | Step::Load(_, extra)
            | Step::Resume(_, extra)
            | Step::Initialize(extra) => extra.as_ref().is_some_and(in_json),
            _ => false,
        }
    }
}

impl Stage<'_> {
    /// What is missing, or too much, for a line.
    fn held_back(&self, line: &Line, facts: &Facts) -> Option<String> {
        let has = |need: &Need| match need {
            Need::Captured(name) => self.vars.contains_key(name),
            Need::Path(_)
            | Need::V2
            | Need::Profile
            | Need::Model
            | Need::Keyless
            | Need::Tool(_) => facts.has(need),
        };
        line.guards.iter().find_map(|guard| match guard {
            Guard::If(need) if !has(need) => Some(need.to_string()),
            Guard::If(need) => self.unoffered(need),
            Guard::Unless(need) => {
                (has(need) && self.unoffered(need).is_none()).then(|| format!("no {need}"))
            }
        })
    }

    /// What the agent turned out not to offer of what a line is for.
    fn unoffered_for(&self, line: &Line) -> Option<String> {
        line.guards.iter().find_map(|guard| match guard {
            Guard::If(need) => self.unoffered(need),
            Guard::Unless(_) => None,
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
            Self::Tool(tool) => write!(f, "tool that {}", tool.does()),
            Self::Captured(name) => write!(f, "${name}"),
        }
    }
}
