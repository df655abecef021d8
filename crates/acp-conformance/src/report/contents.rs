//! Defines the contents of the report of a run.

use crate::{
    outcome::{CaseOutcome, Finding, TranscriptSource},
    replay::FlakyFailure,
    requirements::Level,
    suite::SuiteResult,
    verdict::{FailurePolicy, Verdict, Verdicts},
};
use serde::Serialize;

/// Report of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Version of the suite.
    pub suite: String,
    /// Revision of the rules.
    pub revision: String,
    /// Tested agent.
    pub agent: TestedAgent,
    /// Duration of the run, in milliseconds.
    pub took_ms: u64,
    /// Average factor by which time limits were extended because the machine was busy; 1 on a quiet machine.
    pub slowdown: f64,
    /// True if warnings count, too.
    pub strict: bool,
    /// Number of rules, by level and verdict.
    pub counts: Vec<RuleCount>,
    /// Rules, in the order of the table.
    pub rules: Vec<JudgedRule>,
    /// Cases, in the order of their names.
    pub cases: Vec<PlayedCase>,
    /// Failures that did not recur in the last play of their case.
    pub flaky: Vec<FlakyRule>,
    /// Rules that were expected to be broken and passed.
    pub unexpected_passes: Vec<String>,
    /// Rules that were expected to be broken and were not observed.
    pub unseen: Vec<String>,
}

/// Failure of a rule that did not recur in the last play of the case.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FlakyRule {
    /// Id of the rule.
    pub rule: String,
    /// Name of the case.
    pub case: String,
    /// Explanation of the failure, with the line of the case.
    pub why: String,
    /// True if the failure counts although it did not recur, because the rule is dangerous.
    pub is_counted: bool,
}

/// Tested agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestedAgent {
    /// Name that the agent reports, or else its command.
    pub name: String,
    /// Version that the agent reports.
    pub version: Option<String>,
    /// Command line; the profile's, if no other was given.
    pub command: String,
    /// Name of the profile, if any.
    pub profile: Option<String>,
}

/// Number of rules with one level and verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RuleCount {
    /// Level of the rules.
    pub level: Level,
    /// Verdict on the rules.
    pub verdict: Verdict,
    /// Number of rules.
    pub rules: usize,
}

/// Rule with its verdict.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct JudgedRule {
    /// Id of the rule.
    pub id: String,
    /// Requirement level.
    pub level: Level,
    /// Text of the rule.
    pub says: String,
    /// Source of the rule.
    pub source: String,
    /// Requirements of the official test kit that correspond to the rule.
    pub kit: Vec<String>,
    /// Verdict on the rule.
    pub verdict: Verdict,
    /// Missing capability, or the reason why the rule cannot be observed.
    pub reason: Option<String>,
    /// True if the rule was expected to be broken.
    pub is_expected: bool,
    /// True if the verdict counts against the agent and fails the run.
    pub is_counted: bool,
    /// Failures; for a rule that was not reached, the failed earlier step.
    pub findings: Vec<Finding>,
}

/// Played case.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlayedCase {
    /// Name of the case.
    pub name: String,
    /// Purpose of the case, in a sentence.
    pub purpose: String,
    /// True if all checks passed.
    pub passed: bool,
    /// Duration of the case, in milliseconds.
    pub took_ms: u64,
    /// Error in the case itself; the case then says nothing about the agent.
    #[serde(rename = "fault")]
    pub case_error: Option<String>,
    /// Failed step that cites no rule and ended the case.
    #[serde(rename = "broken")]
    pub failed_step: Option<Finding>,
    /// Exit status of the agent's process, if the process ended unexpectedly.
    #[serde(rename = "died")]
    pub unexpected_exit: Option<String>,
    /// Transcript, if the case did not pass.
    pub transcript: Vec<TranscriptLine>,
    /// End of the recorded part of the agent's stderr, if the case did not pass or the agent ended
    /// unexpectedly.
    pub stderr: String,
}

/// Message or event in a transcript.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TranscriptLine {
    /// Time since the case began, in milliseconds.
    pub at_ms: u64,
    /// Source of the entry.
    pub by: TranscriptSource,
    /// Line, or description of an event.
    pub text: String,
    /// True if a failure concerns this entry.
    pub marked: bool,
}

impl FlakyRule {
    /// Returns `None` for a rule that is not part of the run.
    fn new(flaky: &FlakyFailure, policy: &FailurePolicy<'_>) -> Option<Self> {
        let rule = policy.requirements.rule(&flaky.rule)?;
        Some(Self {
            rule: flaky.rule.clone(),
            case: flaky.case.clone(),
            why: flaky.why.clone(),
            is_counted: rule.danger && !policy.expected.contains(&rule.id),
        })
    }
}

impl TestedAgent {
    /// Returns the name and version.
    pub(super) fn title(&self) -> String {
        let version = self.version.iter().map(|version| format!(" {version}"));
        self.name.clone() + &version.collect::<String>()
    }
}

/// Length of the stderr excerpt. Unit: characters.
const MAX_STDERR_CHARS: usize = 4000;

impl Report {
    /// Builds the report of a run.
    #[must_use]
    pub fn new(
        agent: TestedAgent,
        policy: &FailurePolicy<'_>,
        verdicts: &Verdicts<'_>,
        played: &SuiteResult,
        flaky: &[FlakyFailure],
    ) -> Self {
        let rules: Vec<JudgedRule> = verdicts
            .rules
            .iter()
            .map(|judged| JudgedRule {
                id: judged.rule.id.clone(),
                level: judged.rule.level,
                says: judged.rule.says.clone(),
                source: judged.rule.source.clone(),
                kit: judged.rule.kit.clone(),
                verdict: judged.verdict,
                reason: judged.reason.clone(),
                is_expected: judged.is_expected,
                is_counted: policy.counts(judged.rule, judged.verdict),
                findings: judged.findings.iter().copied().cloned().collect(),
            })
            .collect();
        let mut cases: Vec<PlayedCase> = played.outcomes.iter().map(PlayedCase::new).collect();
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            revision: policy.requirements.revision.clone(),
            agent,
            took_ms: duration_ms(played.elapsed),
            slowdown: played.slowdown,
            strict: policy.strict,
            counts: count_rules(&rules),
            flaky: flaky
                .iter()
                .filter_map(|flaky| FlakyRule::new(flaky, policy))
                .collect(),
            rules,
            cases,
            unexpected_passes: verdicts.unexpected_passes.clone(),
            unseen: verdicts.unseen.clone(),
        }
    }

    /// Returns warnings about rules that were expected to be broken and were not observed.
    pub(super) fn unseen_warnings(&self) -> impl Iterator<Item = String> {
        let rules = self
            .rules
            .iter()
            .filter(|rule| self.unseen.contains(&rule.id));
        rules.map(|rule| {
            let reason = rule.reason.iter().map(|reason| format!(": {reason}"));
            format!(
                "warning: {} was expected to be broken, but is {}{}",
                rule.id,
                rule.verdict.name(),
                reason.collect::<String>()
            )
        })
    }

    /// Returns the number of rules with this level and verdict.
    #[must_use]
    pub fn rule_count(&self, level: Level, verdict: Verdict) -> usize {
        let its = |count: &&RuleCount| count.level == level && count.verdict == verdict;
        self.counts.iter().find(its).map_or(0, |count| count.rules)
    }
}

fn count_rules(rules: &[JudgedRule]) -> Vec<RuleCount> {
    let mut counts = Vec::new();
    for level in Level::ALL {
        for verdict in Verdict::ALL {
            let is_its = |rule: &&JudgedRule| rule.level == level && rule.verdict == verdict;
            let rules = rules.iter().filter(is_its).count();
            if rules > 0 {
                counts.push(RuleCount {
                    level,
                    verdict,
                    rules,
                });
            }
        }
    }
    counts
}

impl JudgedRule {
    /// Returns the suffix to show after the verdict on a rule that was expected to be broken.
    pub(super) const fn expected_suffix(&self) -> &'static str {
        if self.is_expected {
            ", as expected"
        } else {
            ""
        }
    }
}

impl PlayedCase {
    pub(super) fn new(outcome: &CaseOutcome) -> Self {
        let passed = outcome.is_passed();
        let marked: Vec<usize> = outcome
            .findings()
            .map(|(_, finding)| finding)
            .chain(&outcome.failed_step)
            .filter_map(|finding| finding.entry)
            .collect();
        let entries = outcome.transcript.iter().enumerate();
        let transcript = entries.map(|(index, entry)| TranscriptLine {
            at_ms: duration_ms(entry.at),
            by: entry.by,
            text: entry.text.clone(),
            marked: marked.contains(&index),
        });
        let stderr = outcome.stderr.trim_end();
        let skip = stderr.chars().count().saturating_sub(MAX_STDERR_CHARS);
        Self {
            name: outcome.case.clone(),
            purpose: outcome.purpose.clone(),
            passed,
            took_ms: duration_ms(outcome.elapsed),
            case_error: outcome.error.clone(),
            unexpected_exit: outcome.unexpected_exit.clone(),
            failed_step: outcome.failed_step.clone(),
            transcript: if passed {
                Vec::new()
            } else {
                transcript.collect()
            },
            stderr: if passed && outcome.unexpected_exit.is_none() {
                String::new()
            } else {
                stderr.chars().skip(skip).collect()
            },
        }
    }
}

fn duration_ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
