//! Preflight: asks an agent what it has, before the cases.

use crate::{
    Agent, Case, CaseError, Facts, Options, case::Tool, play::play_and_keep, profile::Profile,
};
use serde_json::Value;

/// What is asked. A failure is no verdict: the cases will find it too.
const ASKED: &str = "\
# What the agent has.
start
initialize
session
exit any
";
const ASKED_V2: &str = "\
# Whether the agent speaks the second version.
start
version 2
initialize
exit any
";

/// Ask an agent.
///
/// # Errors
/// The agent cannot be started.
pub(crate) async fn preflight(agent: &Agent, options: &Options) -> Result<Facts, String> {
    let parse = |name: &str, text: &str| {
        Case::parse(name, text).map_err(|error: CaseError| error.to_string())
    };
    let nothing = Facts::default();
    let (outcome, vars) =
        play_and_keep(&parse("preflight", ASKED)?, agent, options, &nothing).await;
    if let Some(fault) = outcome.fault {
        return Err(without_line(&fault).to_owned());
    }
    let (_, second) = play_and_keep(&parse("preflight", ASKED_V2)?, agent, options, &nothing).await;
    let var = |name: &str| vars.get(name).cloned().unwrap_or_default();
    Ok(Facts {
        initialize: var("initialize"),
        session: var("session_result"),
        v2: second.get("initialize").is_some_and(speaks_second),
        profile: agent.profile.is_some(),
        model: with_model(agent).is_some(),
        keyless: agent
            .profile
            .as_ref()
            .is_some_and(|profile| profile.keyless.is_some()),
        tools: tools(agent),
    })
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
