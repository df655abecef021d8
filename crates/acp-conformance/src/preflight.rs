//! Preflight: asks an agent what it has, before the cases.

use crate::{
    Agent, Case, CaseError, Facts, Options, Outcome, Ruling,
    case::Tool,
    model::Exchange,
    outcome::{Check, Kind},
    play::{Kept, play_and_keep},
    profile::Profile,
};
use serde_json::Value;
use std::{fmt::Write, path::Path, time::Duration};

/// What is asked. A failure is no verdict, the cases will find it too; unless there is no answer at all.
const ASKED: &str = "\
# The agent answers `initialize`.
start
initialize
session
";
/// And what an agent that has a model is asked: then it asks the model.
const PROMPTED: &str = "\
model
  text \"Hello.\"
end
prompt \"Say hello to the preflight\"
answered {\"stopReason\": \"$stopped\"}
";
/// So much of a line is said again, and so many lines of stderr.
const WIDTH: usize = 300;
const LAST: usize = 10;
/// Stands in the prompt.
const MARKER: &str = "hello to the preflight";
const END: &str = "exit any\n";
const ASKED_V2: &str = "\
# Whether the agent speaks the second version.
start
version 2
initialize
exit any
";

/// So long an agent is waited for that has said nothing already. Who answers only the second version is not slow.
const SECOND: Duration = Duration::from_secs(5);

/// The first start of an agent is given so many times the patience: it may have to unpack or compile itself.
const FIRST: u32 = 2;

/// What an agent says before the cases.
pub(crate) struct Preflight {
    pub(crate) facts: Facts,
    /// How long the agent took from a start to its first line.
    pub(crate) start: Duration,
    /// It answers in no version: then nothing can be asked of it.
    pub(crate) mute: Option<Mute>,
}

/// An agent that does not answer `initialize`.
pub(crate) struct Mute {
    /// What came instead.
    outcome: Outcome,
    /// In words, over several lines.
    pub(crate) why: String,
}

/// Ask an agent.
///
/// # Errors
/// The agent cannot be started.
pub(crate) async fn preflight(agent: &Agent, options: &Options) -> Result<Preflight, String> {
    let parse =
        |text: &str| Case::parse("preflight", text).map_err(|error: CaseError| error.to_string());
    let nothing = Facts::default();
    // How slow its start is is not known yet.
    let options = &Options {
        patience: options.patience * FIRST,
        ..options.clone()
    };
    let prompted = with_model(agent).map_or("", |_| PROMPTED);
    let asked = parse(&[ASKED, prompted, END].concat())?;
    let (outcome, first) = play_and_keep(&asked, agent, options, &nothing).await;
    if let Some(fault) = outcome.fault {
        return Err(without_line(&fault).to_owned());
    }
    let mut hurried = options.clone();
    if !first.is_answered {
        hurried.patience = hurried.patience.min(SECOND);
    }
    let (again, second) = play_and_keep(&parse(ASKED_V2)?, agent, &hurried, &nothing).await;
    let var = |name: &str| first.vars.get(name).cloned().unwrap_or_default();
    let facts = Facts {
        initialize: var("initialize"),
        session: var("session_result"),
        v2: second.vars.get("initialize").is_some_and(speaks_second),
        profile: agent.profile.is_some(),
        model: with_model(agent).is_some(),
        keyless: agent
            .profile
            .as_ref()
            .is_some_and(|profile| profile.keyless.is_some()),
        tools: tools(agent),
        offers_no_tools: offers_no_tools(&first),
    };
    let start = first_line(&outcome).max(first_line(&again));
    let is_mute = !first.is_answered && !second.is_answered;
    let why = is_mute.then(|| why(agent, &outcome));
    Ok(Preflight {
        facts,
        start,
        mute: why.map(|why| Mute { outcome, why }),
    })
}

/// When the first line came, counted from the start; zero if none did.
fn first_line(outcome: &Outcome) -> Duration {
    let mut entries = outcome.transcript.iter();
    let first = entries.find(|entry| entry.kind == Kind::Came);
    first.map_or(Duration::ZERO, |entry| entry.at)
}

/// The prompt was answered, and the model was asked for it, but never with tools.
fn offers_no_tools(kept: &Kept) -> bool {
    let asked = || {
        kept.exchanges
            .iter()
            .filter_map(|one: &Exchange| one.asked.as_ref())
    };
    let of_prompt = |text: &str| text.contains(MARKER);
    kept.vars.contains_key("stopped")
        && asked().any(|asked| asked.user_texts().any(of_prompt))
        && asked().all(|asked| asked.offered.is_empty())
}

impl Mute {
    /// What is known of the rules that these cases would have checked: what came instead of an answer breaks some,
    /// and the others are out of reach.
    pub(crate) fn outcome(self, cases: &[&Case]) -> Outcome {
        let mut outcome = self.outcome;
        let Some(failed) = outcome
            .findings()
            .map(|(_, finding)| finding.clone())
            .next()
        else {
            return outcome;
        };
        for rule in cases.iter().flat_map(|case| case.rules()) {
            if outcome.checks.iter().all(|check| check.rule != rule) {
                outcome.checks.push(Check {
                    rule: rule.to_owned(),
                    line: failed.line,
                    result: Ruling::not_reached(&failed),
                });
            }
        }
        outcome
    }
}

/// What is to be said of an agent that does not answer: what happened, how it was started, what it said.
fn why(agent: &Agent, outcome: &Outcome) -> String {
    let failed = outcome.findings().next();
    let failed = failed.map_or("", |(_, finding)| finding.why.as_str());
    let mut text = format!("the agent does not answer `initialize`: {failed}");
    // Writing to a string does not fail.
    let command = match &agent.profile {
        Some(profile) if agent.command.is_empty() => &profile.command,
        Some(_) | None => &agent.command,
    };
    let _ = write!(text, "\n  its command: {}", command.join(" "));
    let is_here = |word: &&String| !word.starts_with(['/', '-']) && Path::new(word).exists();
    for word in command.iter().skip(1).filter(is_here) {
        let path = std::path::absolute(word).unwrap_or_default();
        let _ = write!(
            text,
            "\n  it was started in a folder of its own: if {word} is a path, say {}",
            path.display()
        );
    }
    let came = outcome.transcript.iter().rev();
    let came = came.filter(|entry| entry.kind == Kind::Came);
    if let Some(last) = came.map(|entry| first_of(&entry.text)).next() {
        let _ = write!(text, "\n  the last that it said: {last}");
    }
    let lines: Vec<&str> = outcome.stderr.trim_end().lines().collect();
    for (index, line) in lines[lines.len().saturating_sub(LAST)..].iter().enumerate() {
        let head = if index == 0 {
            "its last words on stderr:\n    "
        } else {
            "  "
        };
        let _ = write!(text, "\n  {head}{}", first_of(line));
    }
    text
}

fn first_of(line: &str) -> String {
    line.chars().take(WIDTH).collect()
}

/// Whoever only repeats the number that it was sent does not speak that version. What else is wrong with it the cases
/// will find.
fn speaks_second(initialize: &Value) -> bool {
    initialize["protocolVersion"] == 2 && initialize.get("info").is_some()
}

/// The profile, if it is one of an agent that has a model.
fn with_model(agent: &Agent) -> Option<&Profile> {
    let profile = agent.profile.as_ref();
    profile.filter(|profile| profile.api.is_some())
}

/// A fault, without its line in a case that nobody can see.
fn without_line(fault: &str) -> &str {
    let behind = fault.strip_prefix("line ");
    let behind = behind.and_then(|line| line.split_once(": "));
    behind.map_or(fault, |(_, why)| why)
}

fn tools(agent: &Agent) -> Vec<Tool> {
    let Some(profile) = with_model(agent) else {
        return Vec::new();
    };
    let can = |tool: &Tool| profile.can(tool.name());
    Tool::ALL.into_iter().filter(can).collect()
}
