//! Report: what came of a run, for people and for programs.

mod deaths;
mod ending;
mod html;
mod junit;
mod letters;
mod markdown;
mod order;
mod pretty;

pub(crate) use ending::TOLD_SLOWDOWN;
pub use html::html;
pub use junit::junit;
pub use letters::{line, lines};
pub use markdown::markdown;
pub use pretty::{Colours, pretty};

use crate::{
    Outcome, Played,
    outcome::{Finding, Kind},
    replay::Flaky,
    requirements::Level,
    verdict::{Measure, Verdict, Verdicts},
};
use schemars::JsonSchema;
use serde::Serialize;

/// What came of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of this suite.
    pub suite: String,
    /// The set of rules.
    pub revision: String,
    /// The agent.
    pub agent: Tested,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How many times longer than written the bounds of the cases were, on average, because other programs kept the
    /// machine busy; 1 on a quiet machine.
    pub slowdown: f64,
    /// What is only a warning counts too.
    pub strict: bool,
    /// How many rules there are of each level and verdict.
    pub counts: Vec<Count>,
    /// The rules, in the order of the table.
    pub rules: Vec<JudgedRule>,
    /// The cases, in the order of their names.
    pub cases: Vec<PlayedCase>,
    /// What failed in one play of a case and not in the last.
    pub flaky: Vec<FlakyRule>,
    /// Rules that were expected to be broken and are not.
    pub unexpected_passes: Vec<String>,
    /// Rules that were expected to be broken and of which nothing was seen.
    pub unseen: Vec<String>,
}

/// A rule that failed in one play of a case and not in the last.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlakyRule {
    /// The rule.
    pub rule: String,
    /// The case.
    pub case: String,
    /// What was wrong, with the line of the case.
    pub why: String,
    /// It counts against the agent although it failed once only: what is dangerous does.
    pub is_counted: bool,
}

/// The agent that was tested.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tested {
    /// The name it gives itself, else its command.
    pub name: String,
    /// The version it gives itself.
    pub version: Option<String>,
    /// Its command line; of a profile if none was given.
    pub command: String,
    /// The profile, if there is one.
    pub profile: Option<String>,
}

/// Rules of one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// The level.
    pub level: Level,
    /// The verdict.
    pub verdict: Verdict,
    /// How many of them.
    pub rules: usize,
}

/// A rule with its verdict.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JudgedRule {
    /// Its id.
    pub id: String,
    /// How strongly it is asked for.
    pub level: Level,
    /// What it says.
    pub says: String,
    /// Where it comes from.
    pub source: String,
    /// The requirements of the official test kit that come down to it.
    pub kit: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The capability that is missing, or why nobody can see it.
    pub reason: Option<String>,
    /// It was expected to be broken.
    pub is_expected: bool,
    /// Its verdict counts against the agent: then the run fails.
    pub is_counted: bool,
    /// What was wrong; if it was not reached, the step before it that failed.
    pub findings: Vec<Found>,
}

/// What was wrong in one place.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The case.
    pub case: String,
    /// The line of the case, and as it stands.
    pub line: usize,
    /// The line as it stands.
    pub step: String,
    /// What was sent last.
    pub sent: Option<String>,
    /// What came.
    pub came: Option<String>,
    /// Why it is wrong.
    pub why: String,
    /// The entry of the transcript, counted from 0.
    pub entry: Option<usize>,
}

/// A case that was played.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlayedCase {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub purpose: String,
    /// All that it checks held.
    pub passed: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What is wrong with the case itself: then it says nothing about the agent.
    pub fault: Option<String>,
    /// The step without a rule that failed and ended it.
    pub broken: Option<Found>,
    /// How the agent's process ended, if it did so though nobody had told it to.
    pub died: Option<String>,
    /// All that was said, if it did not pass.
    pub transcript: Vec<Said>,
    /// The end of what the agent wrote to stderr, if it did not pass or the agent's process ended.
    pub stderr: String,
}

/// One thing that happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// Since the case began, in milliseconds.
    pub at_ms: u64,
    /// By whom.
    pub by: By,
    /// The line, or what happened.
    pub text: String,
    /// Something is wrong with it.
    pub marked: bool,
}

/// Whose doing an entry of a transcript is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The case sent it.
    Case,
    /// The client answered by itself.
    Client,
    /// The agent said it.
    Agent,
    /// It happened to the process.
    Process,
}

impl By {
    /// How a transcript marks it.
    const fn sign(self) -> &'static str {
        match self {
            Self::Case => Kind::Sent.sign(),
            Self::Client => Kind::Answered.sign(),
            Self::Agent => Kind::Came.sign(),
            Self::Process => Kind::Note.sign(),
        }
    }
}

impl FlakyRule {
    /// `None` for a rule that is left out of the run.
    fn new(flaky: &Flaky, measure: &Measure<'_>) -> Option<Self> {
        let rule = measure.requirements.rule(&flaky.rule)?;
        Some(Self {
            rule: flaky.rule.clone(),
            case: flaky.case.clone(),
            why: flaky.why.clone(),
            is_counted: rule.danger && !measure.expected.contains(&rule.id),
        })
    }
}

impl Tested {
    /// Its name and version.
    fn title(&self) -> String {
        let version = self.version.iter().map(|version| format!(" {version}"));
        self.name.clone() + &version.collect::<String>()
    }
}

/// So much of stderr is shown. Unit: characters.
const SHOWN_STDERR: usize = 4000;

impl Report {
    /// Put together what came of a run.
    #[must_use]
    pub fn new(
        agent: Tested,
        measure: &Measure<'_>,
        verdicts: &Verdicts<'_>,
        played: &Played,
        flaky: &[Flaky],
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
                is_counted: measure.counts(judged.rule, judged.verdict),
                findings: judged
                    .findings
                    .iter()
                    .map(|(case, finding)| Found::new(case, finding))
                    .collect(),
            })
            .collect();
        let mut cases: Vec<PlayedCase> = played.outcomes.iter().map(PlayedCase::new).collect();
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            suite: env!("CARGO_PKG_VERSION").to_owned(),
            revision: measure.requirements.revision.clone(),
            agent,
            took_ms: milliseconds(played.took),
            slowdown: played.slowdown,
            strict: measure.strict,
            counts: counts(&rules),
            flaky: flaky
                .iter()
                .filter_map(|flaky| FlakyRule::new(flaky, measure))
                .collect(),
            rules,
            cases,
            unexpected_passes: verdicts.unexpected_passes.clone(),
            unseen: verdicts.unseen.clone(),
        }
    }

    /// What is to be said of the rules that were expected to be broken and of which nothing was seen.
    fn unseen_remarks(&self) -> impl Iterator<Item = String> {
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

    /// How many rules of this level have this verdict.
    #[must_use]
    pub fn count(&self, level: Level, verdict: Verdict) -> usize {
        let its = |count: &&Count| count.level == level && count.verdict == verdict;
        self.counts.iter().find(its).map_or(0, |count| count.rules)
    }
}

fn counts(rules: &[JudgedRule]) -> Vec<Count> {
    let mut counts = Vec::new();
    for level in Level::ALL {
        for verdict in Verdict::ALL {
            let is_its = |rule: &&JudgedRule| rule.level == level && rule.verdict == verdict;
            let rules = rules.iter().filter(is_its).count();
            if rules > 0 {
                counts.push(Count {
                    level,
                    verdict,
                    rules,
                });
            }
        }
    }
    counts
}

impl Found {
    fn new(case: &str, finding: &Finding) -> Self {
        Self {
            case: case.to_owned(),
            line: finding.line,
            step: finding.step.clone(),
            sent: finding.sent.clone(),
            came: finding.came.clone(),
            why: finding.why.clone(),
            entry: finding.entry,
        }
    }
}

impl JudgedRule {
    /// What is said behind the verdict of a rule that was known to be broken.
    const fn as_expected(&self) -> &'static str {
        if self.is_expected {
            ", as expected"
        } else {
            ""
        }
    }
}

impl PlayedCase {
    fn new(outcome: &Outcome) -> Self {
        let passed = outcome.is_passed();
        let marked: Vec<usize> = outcome
            .findings()
            .map(|(_, finding)| finding)
            .chain(&outcome.broken)
            .filter_map(|finding| finding.entry)
            .collect();
        let entries = outcome.transcript.iter().enumerate();
        let said = entries.map(|(index, entry)| Said {
            at_ms: milliseconds(entry.at),
            by: match entry.kind {
                Kind::Sent => By::Case,
                Kind::Answered => By::Client,
                Kind::Came => By::Agent,
                Kind::Note => By::Process,
            },
            text: entry.text.clone(),
            marked: marked.contains(&index),
        });
        let stderr = outcome.stderr.trim_end();
        let skip = stderr.chars().count().saturating_sub(SHOWN_STDERR);
        Self {
            name: outcome.case.clone(),
            purpose: outcome.purpose.clone(),
            passed,
            took_ms: milliseconds(outcome.took),
            fault: outcome.fault.clone(),
            died: outcome.died.clone(),
            broken: outcome
                .broken
                .as_ref()
                .map(|finding| Found::new(&outcome.case, finding)),
            transcript: if passed { Vec::new() } else { said.collect() },
            stderr: if passed && outcome.died.is_none() {
                String::new()
            } else {
                stderr.chars().skip(skip).collect()
            },
        }
    }
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// As JSON; the schema is `schemas/conformance-report.json`.
#[must_use]
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
