//! Judges each rule by the outcomes of all cases.

use crate::{
    case::Case,
    outcome::{CaseOutcome, CheckResult, Finding},
    requirements::{Level, Requirements, Rule},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Verdict on a rule; the level of the rule decides how bad a violation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Broken MUST, MUST NOT, fact or dangerous rule.
    Fail,
    /// Broken SHOULD, SHOULD NOT or interop rule.
    Warn,
    /// Not checked, because an earlier step failed.
    NotReached,
    /// Kept.
    Pass,
    /// MAY that is not kept.
    Noted,
    /// Not applicable, because the agent lacks a prerequisite.
    NotApplicable,
    /// Not checked by any played case.
    Unchecked,
    /// Not observable from outside.
    Untestable,
}

impl Verdict {
    /// All verdicts, in the order in which reports list them.
    pub const ALL: [Self; 8] = [
        Self::Fail,
        Self::Warn,
        Self::NotReached,
        Self::Pass,
        Self::Noted,
        Self::NotApplicable,
        Self::Unchecked,
        Self::Untestable,
    ];

    /// Returns the name to show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::NotReached => "not reached",
            Self::Pass => "pass",
            Self::Noted => "noted",
            Self::NotApplicable => "not applicable",
            Self::Unchecked => "unchecked",
            Self::Untestable => "untestable",
        }
    }

    /// Returns true if the rule is broken, or the agent's behaviour prevented its check.
    #[must_use]
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Fail | Self::Warn | Self::NotReached)
    }

    /// Returns the verdict on this rule when broken; a dangerous rule fails at any level.
    #[must_use]
    pub const fn for_broken(rule: &Rule) -> Self {
        if rule.danger {
            Self::Fail
        } else {
            Self::for_level(rule.level)
        }
    }

    /// Returns the verdict on a broken rule of this level.
    #[must_use]
    pub const fn for_level(level: Level) -> Self {
        match level {
            Level::Must | Level::MustNot | Level::Fact => Self::Fail,
            Level::Should | Level::ShouldNot | Level::Interop => Self::Warn,
            Level::May => Self::Noted,
        }
    }

    /// Returns the verdict that decides whether the rule counts: `NotReached` becomes the verdict on a broken
    /// rule of this level, regardless of danger; other verdicts stay.
    const fn severity(self, level: Level) -> Self {
        match self {
            Self::NotReached => Self::for_level(level),
            weight => weight,
        }
    }
}

/// Policy that decides which verdicts count against an agent.
#[derive(Clone, Copy, Debug)]
pub struct FailurePolicy<'a> {
    /// All rules.
    pub requirements: &'a Requirements,
    /// Rules that are expected to be broken and never count.
    pub expected: &'a BTreeSet<String>,
    /// True if warnings count, too.
    pub strict: bool,
}

impl FailurePolicy<'_> {
    /// Returns true if this verdict on a rule counts.
    #[must_use]
    pub fn counts(&self, rule: &Rule, verdict: Verdict) -> bool {
        let counts = match verdict.severity(rule.level) {
            Verdict::Fail => true,
            Verdict::Warn => self.strict,
            Verdict::NotReached
            | Verdict::Pass
            | Verdict::Noted
            | Verdict::NotApplicable
            | Verdict::Unchecked
            | Verdict::Untestable => false,
        };
        counts && !self.expected.contains(&rule.id)
    }

    /// Returns the verdict on a case: a failure if a check counts or the case ended early, a warning if another
    /// check is bad.
    #[must_use]
    pub fn case_verdict(&self, outcome: &CaseOutcome) -> Verdict {
        let mut worst = Verdict::Pass;
        for check in &outcome.checks {
            let Some(rule) = self.requirements.rule(&check.rule) else {
                continue;
            };
            let verdict = match check.result {
                CheckResult::Failed(_) => Verdict::for_broken(rule),
                CheckResult::NotReached(_) => Verdict::NotReached,
                CheckResult::Passed | CheckResult::NotApplicable(_) => continue,
            };
            if self.counts(rule, verdict) {
                return Verdict::Fail;
            }
            if verdict.severity(rule.level).is_bad() {
                worst = Verdict::Warn;
            }
        }
        if outcome.failed_step.is_some() {
            Verdict::Fail
        } else {
            worst
        }
    }
}

/// Rule with its verdict.
#[derive(Clone, Debug)]
pub struct RuleVerdict<'a> {
    /// Judged rule.
    pub rule: &'a Rule,
    /// Verdict on the rule.
    pub verdict: Verdict,
    /// Reason why the rule is not applicable or not observable.
    pub reason: Option<String>,
    /// Failures; for a rule that was not reached, the failed earlier step.
    pub findings: Vec<&'a Finding>,
    /// True if the rule was expected to be broken.
    pub is_expected: bool,
}

/// Verdicts on all rules.
#[derive(Clone, Debug)]
pub struct Verdicts<'a> {
    /// Rules with verdicts, in the order of the table.
    pub rules: Vec<RuleVerdict<'a>>,
    /// Rules that were expected to be broken and passed.
    pub unexpected_passes: Vec<String>,
    /// Rules that were expected to be broken and were not observed.
    pub unseen: Vec<String>,
}

/// Judges all rules by the outcomes of the cases.
#[must_use]
pub fn judge_rules<'a>(
    requirements: &'a Requirements,
    outcomes: &'a [CaseOutcome],
    expected: &BTreeSet<String>,
) -> Verdicts<'a> {
    let rules = requirements.rules.iter();
    let rules: Vec<RuleVerdict<'a>> = rules
        .map(|rule| judge_rule(rule, outcomes, expected))
        .collect();
    let expected_but = |verdicts: &[Verdict]| {
        let stale = rules
            .iter()
            .filter(|judged| judged.is_expected && verdicts.contains(&judged.verdict));
        stale.map(|judged| judged.rule.id.clone()).collect()
    };
    Verdicts {
        unexpected_passes: expected_but(&[Verdict::Pass]),
        unseen: expected_but(&[
            Verdict::NotApplicable,
            Verdict::Unchecked,
            Verdict::Untestable,
        ]),
        rules,
    }
}

fn judge_rule<'a>(
    rule: &'a Rule,
    outcomes: &'a [CaseOutcome],
    expected: &BTreeSet<String>,
) -> RuleVerdict<'a> {
    let mut findings = Vec::new();
    let mut has_passed = false;
    let mut unreached = None;
    let mut reason = None;
    for outcome in outcomes {
        for check in outcome.checks.iter().filter(|check| check.rule == rule.id) {
            match &check.result {
                CheckResult::Passed => has_passed = true,
                CheckResult::Failed(finding) => findings.push(finding),
                CheckResult::NotReached(before) => {
                    unreached.get_or_insert(before);
                }
                CheckResult::NotApplicable(missing) => {
                    reason.get_or_insert_with(|| missing.clone());
                }
            }
        }
    }
    let (verdict, reason) = if !findings.is_empty() {
        (Verdict::for_broken(rule), None)
    } else if let Some(before) = unreached {
        // The first place is enough.
        findings.push(before);
        (Verdict::NotReached, None)
    } else if has_passed {
        (Verdict::Pass, None)
    } else if reason.is_some() {
        (Verdict::NotApplicable, reason)
    } else if rule.untestable.is_some() {
        (Verdict::Untestable, rule.untestable.clone())
    } else {
        (Verdict::Unchecked, None)
    };
    RuleVerdict {
        rule,
        verdict,
        reason,
        findings,
        is_expected: expected.contains(&rule.id),
    }
}

/// Parses an expected-failures file: one rule id a line, followed by an optional comment.
///
/// # Errors
/// If an entry is no rule of the table; the error names the entry.
pub fn parse_expected_failures(
    text: &str,
    requirements: &Requirements,
) -> Result<BTreeSet<String>, String> {
    let mut expected = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let id = line.split('#').next().unwrap_or_default().trim();
        if id.is_empty() {
            continue;
        }
        let Some(rule) = requirements.find_rule(id) else {
            return Err(format!("line {}: {id:?} is no rule", index + 1));
        };
        expected.insert(rule.id.clone());
    }
    Ok(expected)
}

/// Iterates over the names of the cases that check a rule.
pub fn cases_citing<'a>(rule: &'a str, cases: &'a [Case]) -> impl Iterator<Item = &'a str> {
    let cases = cases
        .iter()
        .filter(move |case| case.cited_rules().contains(&rule));
    cases.map(|case| case.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RuleCheck;

    fn requirements() -> Requirements {
        let rule = |id: &str, level: &str, more: &str| {
            format!("[rules.{id}]\nlevel = \"{level}\"\nsays = \"s\"\nsource = \"o\"\n{more}\n")
        };
        let rules = [
            rule("A-1", "MUST", ""),
            rule("A-2", "interop", ""),
            rule("A-3", "MAY", ""),
            rule("A-4", "fact", "untestable = \"inside\""),
            rule("A-5", "MAY", "danger = true"),
            rule("A-6", "interop", "danger = true"),
        ];
        Requirements::parse(&format!("revision = \"r\"\n{}", rules.concat())).unwrap()
    }

    fn finding() -> Finding {
        Finding {
            case: "c".to_owned(),
            line: 3,
            step: "< {}".to_owned(),
            sent: None,
            received: None,
            why: "wrong".to_owned(),
            entry: None,
        }
    }

    fn outcome(checks: Vec<(&str, CheckResult)>) -> CaseOutcome {
        let checks = checks.into_iter().map(|(rule, result)| RuleCheck {
            rule: rule.to_owned(),
            line: 1,
            result,
        });
        CaseOutcome {
            case: "c".to_owned(),
            checks: checks.collect(),
            ..CaseOutcome::default()
        }
    }

    fn unreached() -> CheckResult {
        CheckResult::NotReached(finding())
    }

    fn verdict(rule: &str, rulings: Vec<CheckResult>) -> Verdict {
        let requirements = requirements();
        let outcomes: Vec<CaseOutcome> = rulings
            .into_iter()
            .map(|ruling| outcome(vec![(rule, ruling)]))
            .collect();
        let verdicts = judge_rules(&requirements, &outcomes, &BTreeSet::new());
        let mut rules = verdicts.rules.iter();
        rules.find(|judged| judged.rule.id == rule).unwrap().verdict
    }

    #[test]
    fn rule_level_decides_the_verdict() {
        let failed = || vec![CheckResult::Passed, CheckResult::Failed(finding())];
        assert_eq!(verdict("A-1", failed()), Verdict::Fail);
        assert_eq!(verdict("A-2", failed()), Verdict::Warn);
        assert_eq!(verdict("A-3", failed()), Verdict::Noted);
        assert_eq!(verdict("A-4", failed()), Verdict::Fail);
        // Dangerous rules fail at any level.
        assert_eq!(verdict("A-5", failed()), Verdict::Fail);
        assert_eq!(verdict("A-6", failed()), Verdict::Fail);
    }

    #[test]
    fn unseen_rule_is_not_passed() {
        let not_applicable = || CheckResult::NotApplicable("loadSession".to_owned());
        assert_eq!(verdict("A-1", vec![]), Verdict::Unchecked);
        assert_eq!(verdict("A-4", vec![]), Verdict::Untestable);
        assert_eq!(
            verdict("A-1", vec![not_applicable()]),
            Verdict::NotApplicable
        );
        assert_eq!(
            verdict("A-1", vec![not_applicable(), CheckResult::Passed]),
            Verdict::Pass
        );
        assert_eq!(
            verdict("A-1", vec![CheckResult::Passed, unreached()]),
            Verdict::NotReached
        );
    }

    #[test]
    fn unreached_rule_has_the_failed_step() {
        let requirements = requirements();
        let outcomes = [
            outcome(vec![("A-1", unreached()), ("A-2", unreached())]),
            outcome(vec![
                ("A-1", unreached()),
                ("A-2", CheckResult::Failed(finding())),
            ]),
        ];
        let rules = judge_rules(&requirements, &outcomes, &BTreeSet::new()).rules;
        let before = rules[0].findings[0];
        assert_eq!((before.line, before.why.as_str()), (3, "wrong"));
        // One unreached check is enough, and a real failure says more.
        assert_eq!((rules[0].findings.len(), rules[1].findings.len()), (1, 1));
        assert_eq!(rules[1].verdict, Verdict::Warn);
    }

    /// Returns the verdict on a case with these results.
    fn case_verdict_of(checks: Vec<(&str, CheckResult)>, broken: bool, strict: bool) -> Verdict {
        let (requirements, expected) = (requirements(), BTreeSet::from(["A-4".to_owned()]));
        let policy = FailurePolicy {
            requirements: &requirements,
            expected: &expected,
            strict,
        };
        let outcome = outcome(checks);
        policy.case_verdict(&CaseOutcome {
            failed_step: broken.then(finding),
            ..outcome
        })
    }

    #[test]
    fn case_fails_only_on_counted_failures() {
        let failed = |rule| vec![(rule, CheckResult::Failed(finding()))];
        let of = |rule| {
            (
                case_verdict_of(failed(rule), false, false),
                case_verdict_of(failed(rule), false, true),
            )
        };
        assert_eq!(of("A-1"), (Verdict::Fail, Verdict::Fail));
        assert_eq!(of("A-2"), (Verdict::Warn, Verdict::Fail));
        assert_eq!(of("A-3"), (Verdict::Pass, Verdict::Pass));
        assert_eq!(of("A-5"), (Verdict::Fail, Verdict::Fail));
        assert_eq!(of("A-6"), (Verdict::Fail, Verdict::Fail));
        // A check that was not reached has not shown anything dangerous.
        assert_eq!(
            case_verdict_of(vec![("A-6", unreached())], false, false),
            Verdict::Warn
        );
        // The rule is expected to be broken.
        assert_eq!(of("A-4"), (Verdict::Warn, Verdict::Warn));
        // The rule is not part of the run.
        assert_eq!(of("A-9"), (Verdict::Pass, Verdict::Pass));
        assert_eq!(
            case_verdict_of(vec![("A-1", unreached())], false, false),
            Verdict::Fail
        );
        assert_eq!(
            case_verdict_of(vec![("A-2", unreached())], false, false),
            Verdict::Warn
        );
        let warned_first = [failed("A-2"), failed("A-1")].concat();
        assert_eq!(case_verdict_of(warned_first, false, false), Verdict::Fail);
        assert_eq!(case_verdict_of(failed("A-2"), true, false), Verdict::Fail);
        assert_eq!(
            case_verdict_of(vec![("A-1", CheckResult::Passed)], false, false),
            Verdict::Pass
        );
    }

    #[test]
    fn unseen_expected_failures_are_listed() {
        let requirements = requirements();
        let expected = parse_expected_failures("A-1\na-2\nA-3\nA-4", &requirements).unwrap();
        let missing = CheckResult::NotApplicable("fork".to_owned());
        let outcomes = [outcome(vec![
            ("A-1", CheckResult::Failed(finding())),
            ("A-2", missing),
        ])];
        let verdicts = judge_rules(&requirements, &outcomes, &expected);
        assert_eq!(verdicts.unseen, ["A-2", "A-3", "A-4"]);
        assert_eq!(verdicts.unexpected_passes, [""; 0]);
    }

    #[test]
    fn unexpected_passes_are_listed() {
        let requirements = requirements();
        let text = "# known\nA-1 # a bug of theirs\n\nA-2\n";
        let expected = parse_expected_failures(text, &requirements).unwrap();
        let outcomes = [outcome(vec![
            ("A-1", CheckResult::Failed(finding())),
            ("A-2", CheckResult::Passed),
        ])];
        let verdicts = judge_rules(&requirements, &outcomes, &expected);
        assert!(verdicts.rules[0].is_expected);
        assert_eq!(verdicts.unexpected_passes, ["A-2"]);
        let wrong = parse_expected_failures("A-1\nA-9", &requirements);
        assert_eq!(wrong, Err("line 2: \"A-9\" is no rule".to_owned()));
    }
}
