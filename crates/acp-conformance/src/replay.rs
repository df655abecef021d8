//! Plays failed cases once more, alone and with more patience, to tell what is flaky from what fails.

use crate::{Agent, Case, Options, Outcome, Played, Ruling, play_all};

/// A rule that failed in one play of a case and not in the last.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {case}, {why}")]
pub struct Flaky {
    /// The rule.
    pub rule: String,
    /// The case.
    pub case: String,
    /// What was wrong, with the line of the case.
    pub why: String,
}

/// Plays what failed once more: a busy machine is not the agent's fault; and a third time if a rule fails then that held
/// at first. The last play counts. Returns what failed in another play only. A run that stopped is left as it is.
///
/// # Errors
/// The agent cannot be started any more, or no runtime can be made.
pub fn replay(
    played: &mut Played,
    cases: &[Case],
    agent: &Agent,
    options: &Options,
    over: &(dyn Fn(&Outcome) + Sync),
) -> Result<Vec<Flaky>, String> {
    let mut flaky = Vec::new();
    if played.stopped.is_some() {
        return Ok(flaky);
    }
    let options = Options {
        patience: played.patience * 2,
        jobs: 1,
        ..options.clone()
    };
    for (case, outcome) in cases.iter().zip(&mut played.outcomes) {
        for _ in 0..2 {
            // A fault of the case itself is the same each time.
            if outcome.is_passed() || outcome.fault.is_some() {
                break;
            }
            let facts = Some(played.facts.clone());
            let again = play_all(std::slice::from_ref(case), agent, &options, facts, over)?;
            played.took += again.took;
            let Some(next) = again.outcomes.into_iter().next() else {
                break;
            };
            let before = std::mem::replace(outcome, next);
            let lost = before.findings().filter(|(rule, _)| !fails(outcome, rule));
            flaky.extend(lost.map(|(rule, finding)| Flaky {
                rule: rule.to_owned(),
                case: before.case.clone(),
                why: finding.to_string(),
            }));
            if !outcome.findings().any(|(rule, _)| held(&before, rule)) {
                break;
            }
        }
    }
    Ok(flaky)
}

fn fails(outcome: &Outcome, rule: &str) -> bool {
    outcome.findings().any(|(failed, _)| failed == rule)
}

fn held(outcome: &Outcome, rule: &str) -> bool {
    let mut checks = outcome.checks.iter().filter(|check| check.rule == rule);
    !fails(outcome, rule) && checks.any(|check| check.result == Ruling::Passed)
}

#[cfg(test)]
mod tests;
