//! Checks what an agent supports, before the cases run.

use crate::{
    case::{Case, CaseError, ToolKind},
    facts::AgentFacts,
    model::Exchange,
    outcome::{CaseOutcome, CheckResult, TranscriptSource},
    play::{AgentSpec, CaseArtifacts, PlayOptions, play_case},
    profile::Profile,
};
use serde_json::Value;
use std::{fmt::Write, path::Path, time::Duration};

/// First steps of the preflight case. Failures are not reported, because the cases find them too, unless the
/// agent does not respond at all.
const PROBE_CASE: &str = "\
# The agent answers `initialize`.
start
initialize
session
";
/// Further steps for an agent with a model: the prompt makes the agent ask the model.
const PROMPT_STEPS: &str = "\
model
  text \"Hello.\"
end
prompt \"Say hello to the preflight\"
answered {\"stopReason\": \"$stopped\"}
";
/// Limits on quoted output: characters of a line, and lines of stderr.
const MAX_LINE_CHARS: usize = 300;
const MAX_STDERR_LINES: usize = 10;
/// Text that identifies the prompt in model requests.
const PROMPT_MARKER: &str = "hello to the preflight";
const EXIT_STEP: &str = "exit any\n";
const V2_PROBE_CASE: &str = "\
# Whether the agent speaks the second version.
start
version 2
initialize
exit any
";

/// Patience with version 2 after no response in version 1: agents that support only version 2 respond quickly.
const V2_PATIENCE: Duration = Duration::from_secs(5);

/// Factor on the patience for the first start of an agent, which may have to unpack or compile itself.
const FIRST_START_FACTOR: u32 = 2;

/// Result of the preflight.
pub(crate) struct PreflightResult {
    pub(crate) facts: AgentFacts,
    /// Time from a start of the agent to its first line.
    pub(crate) startup_time: Duration,
    /// Agent that responds in neither version, so that no case that needs a response can be played.
    pub(crate) unresponsive: Option<UnresponsiveAgent>,
}

/// Agent that does not answer `initialize`.
pub(crate) struct UnresponsiveAgent {
    /// Outcome of the preflight case.
    outcome: CaseOutcome,
    /// Description of the failure, in several lines.
    pub(crate) description: String,
}

/// Runs the preflight.
///
/// # Errors
/// If the agent cannot be started, or the preflight case itself is faulty.
pub(crate) async fn run_preflight(
    agent: &AgentSpec,
    options: &PlayOptions,
) -> Result<PreflightResult, String> {
    let parse =
        |text: &str| Case::parse("preflight", text).map_err(|error: CaseError| error.to_string());
    let nothing = AgentFacts::default();
    // The agent's startup time is not known yet.
    let options = &PlayOptions {
        patience: options.patience * FIRST_START_FACTOR,
        ..options.clone()
    };
    let prompted = model_profile(agent).map_or("", |_| PROMPT_STEPS);
    let probe = parse(&[PROBE_CASE, prompted, EXIT_STEP].concat())?;
    let (outcome, first) = play_case(&probe, agent, options, &nothing).await;
    if let Some(fault) = outcome.error {
        return Err(strip_line_number(&fault).to_owned());
    }
    let mut hurried = options.clone();
    if !first.has_initialize_response {
        hurried.patience = hurried.patience.min(V2_PATIENCE);
    }
    let (again, second) = play_case(&parse(V2_PROBE_CASE)?, agent, &hurried, &nothing).await;
    let var = |name: &str| first.captures.get(name).cloned().unwrap_or_default();
    let facts = AgentFacts {
        initialize: var("initialize"),
        session: var("session_result"),
        supports_v2: second.captures.get("initialize").is_some_and(supports_v2),
        has_profile: agent.profile.is_some(),
        has_model: model_profile(agent).is_some(),
        can_start_keyless: agent
            .profile
            .as_ref()
            .is_some_and(|profile| profile.keyless.is_some()),
        tools: available_tools(agent),
        offers_no_tools: offers_no_tools(&first),
    };
    let start = time_to_first_line(&outcome).max(time_to_first_line(&again));
    let is_mute = !first.has_initialize_response && !second.has_initialize_response;
    let why = is_mute.then(|| describe_unresponsive(agent, &outcome));
    Ok(PreflightResult {
        facts,
        startup_time: start,
        unresponsive: why.map(|why| UnresponsiveAgent {
            outcome,
            description: why,
        }),
    })
}

/// Returns the time from the start to the first line; zero if no line was received.
fn time_to_first_line(outcome: &CaseOutcome) -> Duration {
    let mut entries = outcome.transcript.iter();
    let first = entries.find(|entry| entry.by == TranscriptSource::Agent);
    first.map_or(Duration::ZERO, |entry| entry.at)
}

/// Returns true if the prompt was answered and the model was asked for it, but never with tools.
fn offers_no_tools(artifacts: &CaseArtifacts) -> bool {
    let requests = || {
        artifacts
            .exchanges
            .iter()
            .filter_map(|one: &Exchange| one.request.as_ref())
    };
    let of_prompt = |text: &str| text.contains(PROMPT_MARKER);
    artifacts.captures.contains_key("stopped")
        && requests().any(|request| request.user_texts().any(of_prompt))
        && requests().all(|request| request.tools.is_empty())
}

impl UnresponsiveAgent {
    /// Returns an outcome for all rules of these cases: the failed `initialize` breaks some rules, and the
    /// others are not reached.
    pub(crate) fn into_outcome(self, cases: &[&Case]) -> CaseOutcome {
        let mut outcome = self.outcome;
        let Some(failed) = outcome
            .findings()
            .map(|(_, finding)| finding.clone())
            .next()
        else {
            return outcome;
        };
        for rule in cases.iter().flat_map(|case| case.cited_rules()) {
            if outcome.checks.iter().all(|check| check.rule != rule) {
                outcome.add_check(rule, failed.line, CheckResult::not_reached(&failed));
            }
        }
        outcome
    }
}

/// Describes an agent that does not respond: the failure, the command and the output.
fn describe_unresponsive(agent: &AgentSpec, outcome: &CaseOutcome) -> String {
    let failed = outcome.findings().next();
    let failed = failed.map_or("", |(_, finding)| finding.why.as_str());
    let mut text = format!("the agent does not answer `initialize`: {failed}");
    // Writing to a string cannot fail.
    let command = match &agent.profile {
        Some(profile) if agent.command.is_empty() => &profile.command,
        Some(_) | None => &agent.command,
    };
    let _ = write!(text, "\n  command: {}", command.join(" "));
    let is_here = |word: &&String| !word.starts_with(['/', '-']) && Path::new(word).exists();
    for word in command.iter().skip(1).filter(is_here) {
        let path = std::path::absolute(word).unwrap_or_default();
        let _ = write!(
            text,
            "\n  the agent starts in a temporary folder: if {word} is a path, use {}",
            path.display()
        );
    }
    let came = outcome.transcript.iter().rev();
    let came = came.filter(|entry| entry.by == TranscriptSource::Agent);
    if let Some(last) = came.map(|entry| truncate_line(&entry.text)).next() {
        let _ = write!(text, "\n  last output line: {last}");
    }
    let lines: Vec<&str> = outcome.stderr.trim_end().lines().collect();
    for (index, line) in lines[lines.len().saturating_sub(MAX_STDERR_LINES)..]
        .iter()
        .enumerate()
    {
        let head = if index == 0 {
            "last lines of stderr:\n    "
        } else {
            "  "
        };
        let _ = write!(text, "\n  {head}{}", truncate_line(line));
    }
    text
}

fn truncate_line(line: &str) -> String {
    line.chars().take(MAX_LINE_CHARS).collect()
}

/// Returns true if the agent speaks version 2 and does not just repeat the requested number. The cases find
/// other errors.
fn supports_v2(initialize: &Value) -> bool {
    initialize["protocolVersion"] == 2 && initialize.get("info").is_some()
}

/// Returns the profile, if its agent has a model.
fn model_profile(agent: &AgentSpec) -> Option<&Profile> {
    let profile = agent.profile.as_ref();
    profile.filter(|profile| profile.api.is_some())
}

/// Removes the line number, which refers to a case that users cannot see.
fn strip_line_number(fault: &str) -> &str {
    let behind = fault.strip_prefix("line ");
    let behind = behind.and_then(|line| line.split_once(": "));
    behind.map_or(fault, |(_, why)| why)
}

fn available_tools(agent: &AgentSpec) -> Vec<ToolKind> {
    let Some(profile) = model_profile(agent) else {
        return Vec::new();
    };
    let can = |tool: &ToolKind| profile.has_tool(tool.name());
    ToolKind::ALL.into_iter().filter(can).collect()
}
