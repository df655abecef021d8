//! Defines the outcome of one case: the result of each check, and the transcript.

use serde::Serialize;
use std::time::Duration;

/// Outcome of a case.
#[derive(Clone, Debug, Default)]
pub struct CaseOutcome {
    /// Name of the case.
    pub case: String,
    /// Purpose of the case, in a sentence.
    pub purpose: String,
    /// Result of each cited or watched rule, in the order of the steps.
    pub checks: Vec<RuleCheck>,
    /// Failed step that cites no rule and ended the case.
    pub failed_step: Option<Finding>,
    /// Error in the case or the runner; the outcome then says nothing about the agent.
    pub error: Option<String>,
    /// Exit status of the agent's process, if the process ended unexpectedly.
    pub unexpected_exit: Option<String>,
    /// Messages and events, in order.
    pub transcript: Vec<TranscriptEntry>,
    /// Beginning of the agent's stderr.
    pub stderr: String,
    /// Duration of the case.
    pub elapsed: Duration,
}

/// Result of one check of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCheck {
    /// Id of the rule.
    pub rule: String,
    /// Line in the case; 0 for rules that are always watched.
    pub line: usize,
    /// Result of the check.
    pub result: CheckResult,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckResult {
    /// The rule held.
    Passed,
    /// The rule was broken.
    Failed(Finding),
    /// This earlier step failed, so the check was not reached.
    NotReached(Finding),
    /// The agent lacks this prerequisite of the rule.
    NotApplicable(String),
}

/// Prefix of the reason why a check was not reached; the failure of the earlier step follows.
pub const NOT_REACHED_PREFIX: &str = "a step before its check failed: ";

impl CheckResult {
    /// Returns the result of a check that was not reached because of an earlier failure.
    #[must_use]
    pub fn not_reached(before: &Finding) -> Self {
        Self::NotReached(Finding {
            why: format!("{NOT_REACHED_PREFIX}{}", before.why),
            ..before.clone()
        })
    }
}

/// Failure at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[error("line {line}: {why}")]
pub struct Finding {
    /// Name of the case.
    pub case: String,
    /// Line in the case.
    pub line: usize,
    /// Text of the line.
    pub step: String,
    /// Latest message sent.
    pub sent: Option<String>,
    /// Received line.
    #[serde(rename = "came")]
    pub received: Option<String>,
    /// Explanation of the failure.
    pub why: String,
    /// Index of the transcript entry, starting at 0.
    pub entry: Option<usize>,
}

/// Message or event in a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptEntry {
    /// Time since the case began.
    pub at: Duration,
    /// Source of the entry.
    pub by: TranscriptSource,
    /// Line, or description of an event; cut if very long.
    pub text: String,
}

/// Source of a transcript entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TranscriptSource {
    /// Message sent by the case.
    Case,
    /// Automatic response of the client.
    Client,
    /// Message received from the agent.
    Agent,
    /// Event of the agent's process.
    Process,
}

impl TranscriptSource {
    /// Returns the marker of this source in a transcript.
    #[must_use]
    pub const fn marker(self) -> &'static str {
        match self {
            Self::Case => ">",
            Self::Client => "»",
            Self::Agent => "<",
            Self::Process => "·",
        }
    }
}

impl CaseOutcome {
    /// Adds the result of a check.
    pub(crate) fn add_check(&mut self, rule: &str, line: usize, result: CheckResult) {
        let rule = rule.to_owned();
        self.checks.push(RuleCheck { rule, line, result });
    }

    /// Returns true if no check or step failed and the case itself has no error.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        let mut failed = self.findings();
        self.error.is_none() && self.failed_step.is_none() && failed.next().is_none()
    }

    /// Iterates over the failed checks: rule id and finding.
    pub fn findings(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.checks.iter().filter_map(|check| match &check.result {
            CheckResult::Failed(finding) => Some((check.rule.as_str(), finding)),
            CheckResult::Passed | CheckResult::NotReached(_) | CheckResult::NotApplicable(_) => {
                None
            }
        })
    }
}
