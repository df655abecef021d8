//! Defines notes on failures that were checked by hand.

use super::agent_results::AgentResults;
use acp_conformance::requirements::Rule;
use serde::Deserialize;

/// Failures that were checked by hand.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManualChecks {
    #[serde(default)]
    pub(super) checked: Vec<ManualCheck>,
}

/// Failures of an agent that were checked by hand: they are the agent's fault and not the suite's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ManualCheck {
    pub(super) agent: String,
    pub(super) rules: Vec<String>,
    pub(super) how: String,
}

impl ManualCheck {
    pub(super) fn is_about(&self, results: &AgentResults, rule: &Rule) -> bool {
        self.agent == results.name && self.rules.contains(&rule.id)
    }
}
