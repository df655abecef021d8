//! Replays failed cases, alone and with more patience, to tell flaky failures from real ones.

use crate::{
    case::Case,
    outcome::{CaseOutcome, CheckResult},
    play::{AgentSpec, PlayOptions},
    suite::{SuiteResult, play_one},
};
use std::time::Instant;

/// Failure of a rule that did not recur in the last play of the case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {case}, {why}")]
pub struct FlakyFailure {
    /// Id of the rule.
    pub rule: String,
    /// Name of the case.
    pub case: String,
    /// Explanation of the failure, with the line of the case.
    pub why: String,
}

/// Replays failed cases, because a busy machine is not the agent's fault; a third play follows if a rule fails
/// that held at first. The last play counts. Returns the failures that did not recur. A run that stopped early
/// is left unchanged.
///
/// # Errors
/// If the agent can no longer be started, or the runtime cannot be created.
pub fn replay_failures(
    played: &mut SuiteResult,
    cases: &[Case],
    agent: &AgentSpec,
    options: &PlayOptions,
    on_outcome: &(dyn Fn(&CaseOutcome) + Sync),
) -> Result<Vec<FlakyFailure>, String> {
    let mut flaky = Vec::new();
    if played.unplayed_reason.is_some() {
        return Ok(flaky);
    }
    let options = PlayOptions {
        patience: played.patience * 2,
        ..options.clone()
    };
    for (case, outcome) in cases.iter().zip(&mut played.outcomes) {
        for _ in 0..2 {
            // An error in the case itself would recur.
            if outcome.is_passed() || outcome.error.is_some() {
                break;
            }
            let started_at = Instant::now();
            let next = play_one(case, agent, &options, &played.facts, on_outcome)?;
            played.elapsed += started_at.elapsed();
            let before = std::mem::replace(outcome, next);
            let lost = before
                .findings()
                .filter(|(rule, _)| !has_failed(outcome, rule));
            flaky.extend(lost.map(|(rule, finding)| FlakyFailure {
                rule: rule.to_owned(),
                case: before.case.clone(),
                why: finding.to_string(),
            }));
            if !outcome
                .findings()
                .any(|(rule, _)| has_passed(&before, rule))
            {
                break;
            }
        }
        flaky.retain(|one| one.case != outcome.case || !has_failed(outcome, &one.rule));
    }
    Ok(flaky)
}

fn has_failed(outcome: &CaseOutcome, rule: &str) -> bool {
    outcome.findings().any(|(failed, _)| failed == rule)
}

fn has_passed(outcome: &CaseOutcome, rule: &str) -> bool {
    let mut checks = outcome.checks.iter().filter(|check| check.rule == rule);
    !has_failed(outcome, rule) && checks.any(|check| check.result == CheckResult::Passed)
}

#[cfg(test)]
mod tests;
