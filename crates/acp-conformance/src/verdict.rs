//! Verdict: what the outcomes of all cases say about each rule.

use crate::{
    Case, Outcome, Ruling,
    outcome::Finding,
    requirements::{Level, Requirements, Rule},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What is known of a rule. Its own word decides how bad it is when it is broken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is broken, and is a MUST, a MUST NOT, a fact, or dangerous.
    Fail,
    /// It is broken, and is a SHOULD, a SHOULD NOT, or what clients insist on.
    Warn,
    /// A step before its check failed.
    NotReached,
    /// It holds.
    Pass,
    /// It is not kept, and need not be.
    Noted,
    /// The agent does not have what it is about.
    NotApplicable,
    /// No case that was played says anything about it.
    Unchecked,
    /// Nobody can see it from outside.
    Untestable,
}

impl Verdict {
    /// All of them, the worst first.
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

    /// In words.
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

    /// The agent does not do what the rule asks for, or it could not be seen because of what it does.
    #[must_use]
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Fail | Self::Warn | Self::NotReached)
    }

    /// What comes of this rule when it is broken: what is dangerous fails at any level.
    #[must_use]
    pub const fn of_broken(rule: &Rule) -> Self {
        if rule.danger {
            Self::Fail
        } else {
            Self::of_level(rule.level)
        }
    }

    /// What comes of a rule of this level when it is broken.
    #[must_use]
    pub const fn of_level(level: Level) -> Self {
        match level {
            Level::Must | Level::MustNot | Level::Fact => Self::Fail,
            Level::Should | Level::ShouldNot | Level::Interop => Self::Warn,
            Level::May => Self::Noted,
        }
    }

    /// How much it weighs: what is not reached weighs as much as if it were broken.
    const fn weight(self, level: Level) -> Self {
        match self {
            Self::NotReached => Self::of_level(level),
            weight => weight,
        }
    }
}

/// What counts against an agent in a run.
#[derive(Clone, Copy, Debug)]
pub struct Measure<'a> {
    /// The rules.
    pub requirements: &'a Requirements,
    /// Rules that are known to be broken: they never count.
    pub expected: &'a BTreeSet<String>,
    /// What is only a warning counts too.
    pub strict: bool,
}

impl Measure<'_> {
    /// Whether this verdict on a rule counts.
    #[must_use]
    pub fn counts(&self, rule: &Rule, verdict: Verdict) -> bool {
        let counts = match verdict.weight(rule.level) {
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

    /// What came of a case: a failure if something in it counts, a warning if something is wrong that does not.
    #[must_use]
    pub fn of_case(&self, outcome: &Outcome) -> Verdict {
        let mut worst = Verdict::Pass;
        for check in &outcome.checks {
            let Some(rule) = self.requirements.rule(&check.rule) else {
                continue;
            };
            let verdict = match check.result {
                Ruling::Failed(_) => Verdict::of_broken(rule),
                Ruling::NotReached(_) => Verdict::NotReached,
                Ruling::Passed | Ruling::NotApplicable(_) => continue,
            };
            if self.counts(rule, verdict) {
                return Verdict::Fail;
            }
            if verdict.weight(rule.level).is_bad() {
                worst = Verdict::Warn;
            }
        }
        if outcome.broken.is_some() {
            Verdict::Fail
        } else {
            worst
        }
    }
}

/// A rule with its verdict.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is not applicable or untestable.
    pub reason: Option<String>,
    /// What was wrong, each with the case it was seen in; if it was not reached, the step before it that failed.
    pub findings: Vec<(&'a str, &'a Finding)>,
    /// It was expected to be broken.
    pub is_expected: bool,
}

/// The verdicts of all rules.
#[derive(Clone, Debug)]
pub struct Verdicts<'a> {
    /// In the order of the table.
    pub rules: Vec<Judged<'a>>,
    /// Rules that were expected to be broken and are not.
    pub unexpected_passes: Vec<String>,
    /// Rules that were expected to be broken and of which nothing was seen.
    pub unseen: Vec<String>,
}

/// Judge all rules by what came of the cases.
#[must_use]
pub fn judge<'a>(
    requirements: &'a Requirements,
    outcomes: &'a [Outcome],
    expected: &BTreeSet<String>,
) -> Verdicts<'a> {
    let rules = requirements.rules.iter();
    let rules: Vec<Judged<'a>> = rules.map(|rule| one(rule, outcomes, expected)).collect();
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

fn one<'a>(rule: &'a Rule, outcomes: &'a [Outcome], expected: &BTreeSet<String>) -> Judged<'a> {
    let mut findings = Vec::new();
    let mut has_passed = false;
    let mut unreached = None;
    let mut reason = None;
    for outcome in outcomes {
        for check in outcome.checks.iter().filter(|check| check.rule == rule.id) {
            match &check.result {
                Ruling::Passed => has_passed = true,
                Ruling::Failed(finding) => findings.push((outcome.case.as_str(), finding)),
                Ruling::NotReached(before) => {
                    unreached.get_or_insert((outcome.case.as_str(), before));
                }
                Ruling::NotApplicable(missing) => {
                    reason.get_or_insert_with(|| missing.clone());
                }
            }
        }
    }
    let (verdict, reason) = if !findings.is_empty() {
        (Verdict::of_broken(rule), None)
    } else if let Some(before) = unreached {
        // Where it was first seen says enough.
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
    Judged {
        rule,
        verdict,
        reason,
        findings,
        is_expected: expected.contains(&rule.id),
    }
}

/// The rules of an expected-failures file: one a line, with a comment behind it.
///
/// # Errors
/// Names what is no rule of the table.
pub fn expected_failures(
    text: &str,
    requirements: &Requirements,
) -> Result<BTreeSet<String>, String> {
    let mut expected = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let id = line.split('#').next().unwrap_or_default().trim();
        if id.is_empty() {
            continue;
        }
        let Some(rule) = requirements.named(id) else {
            return Err(format!("line {}: {id:?} is no rule", index + 1));
        };
        expected.insert(rule.id.clone());
    }
    Ok(expected)
}

/// The cases that check a rule.
pub fn cases_of<'a>(rule: &'a str, cases: &'a [Case]) -> impl Iterator<Item = &'a str> {
    let cases = cases
        .iter()
        .filter(move |case| case.rules().contains(&rule));
    cases.map(|case| case.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Check;

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
            line: 3,
            step: "< {}".to_owned(),
            sent: None,
            came: None,
            why: "wrong".to_owned(),
            entry: None,
        }
    }

    fn outcome(checks: Vec<(&str, Ruling)>) -> Outcome {
        let checks = checks.into_iter().map(|(rule, result)| Check {
            rule: rule.to_owned(),
            line: 1,
            result,
        });
        Outcome {
            case: "c".to_owned(),
            checks: checks.collect(),
            ..Outcome::default()
        }
    }

    fn unreached() -> Ruling {
        Ruling::NotReached(finding())
    }

    fn verdict(rule: &str, rulings: Vec<Ruling>) -> Verdict {
        let requirements = requirements();
        let outcomes: Vec<Outcome> = rulings
            .into_iter()
            .map(|ruling| outcome(vec![(rule, ruling)]))
            .collect();
        let verdicts = judge(&requirements, &outcomes, &BTreeSet::new());
        let mut rules = verdicts.rules.iter();
        rules.find(|judged| judged.rule.id == rule).unwrap().verdict
    }

    #[test]
    fn the_rules_word_decides_what_a_failure_is() {
        let failed = || vec![Ruling::Passed, Ruling::Failed(finding())];
        assert_eq!(verdict("A-1", failed()), Verdict::Fail);
        assert_eq!(verdict("A-2", failed()), Verdict::Warn);
        assert_eq!(verdict("A-3", failed()), Verdict::Noted);
        assert_eq!(verdict("A-4", failed()), Verdict::Fail);
        // What is dangerous fails at any level.
        assert_eq!(verdict("A-5", failed()), Verdict::Fail);
        assert_eq!(verdict("A-6", failed()), Verdict::Fail);
    }

    #[test]
    fn what_is_not_seen_is_not_passed() {
        let not_applicable = || Ruling::NotApplicable("loadSession".to_owned());
        assert_eq!(verdict("A-1", vec![]), Verdict::Unchecked);
        assert_eq!(verdict("A-4", vec![]), Verdict::Untestable);
        assert_eq!(
            verdict("A-1", vec![not_applicable()]),
            Verdict::NotApplicable
        );
        assert_eq!(
            verdict("A-1", vec![not_applicable(), Ruling::Passed]),
            Verdict::Pass
        );
        assert_eq!(
            verdict("A-1", vec![Ruling::Passed, unreached()]),
            Verdict::NotReached
        );
    }

    #[test]
    fn what_is_not_reached_has_the_step_that_failed_before() {
        let requirements = requirements();
        let outcomes = [
            outcome(vec![("A-1", unreached()), ("A-2", unreached())]),
            outcome(vec![
                ("A-1", unreached()),
                ("A-2", Ruling::Failed(finding())),
            ]),
        ];
        let rules = judge(&requirements, &outcomes, &BTreeSet::new()).rules;
        let (case, before) = rules[0].findings[0];
        assert_eq!((case, before.line, before.why.as_str()), ("c", 3, "wrong"));
        // Once is enough, and what failed itself says more.
        assert_eq!((rules[0].findings.len(), rules[1].findings.len()), (1, 1));
        assert_eq!(rules[1].verdict, Verdict::Warn);
    }

    /// What a case comes to in which this was wrong.
    fn case(checks: Vec<(&str, Ruling)>, broken: bool, strict: bool) -> Verdict {
        let (requirements, expected) = (requirements(), BTreeSet::from(["A-4".to_owned()]));
        let measure = Measure {
            requirements: &requirements,
            expected: &expected,
            strict,
        };
        let outcome = outcome(checks);
        measure.of_case(&Outcome {
            broken: broken.then(finding),
            ..outcome
        })
    }

    #[test]
    fn a_case_fails_only_if_something_in_it_counts() {
        let failed = |rule| vec![(rule, Ruling::Failed(finding()))];
        let of = |rule| {
            (
                case(failed(rule), false, false),
                case(failed(rule), false, true),
            )
        };
        assert_eq!(of("A-1"), (Verdict::Fail, Verdict::Fail));
        assert_eq!(of("A-2"), (Verdict::Warn, Verdict::Fail));
        assert_eq!(of("A-3"), (Verdict::Pass, Verdict::Pass));
        assert_eq!(of("A-5"), (Verdict::Fail, Verdict::Fail));
        assert_eq!(of("A-6"), (Verdict::Fail, Verdict::Fail));
        // What was not reached was not seen to be dangerous.
        assert_eq!(
            case(vec![("A-6", unreached())], false, false),
            Verdict::Warn
        );
        // It is known to be broken.
        assert_eq!(of("A-4"), (Verdict::Warn, Verdict::Warn));
        // It is left out of the run.
        assert_eq!(of("A-9"), (Verdict::Pass, Verdict::Pass));
        assert_eq!(
            case(vec![("A-1", unreached())], false, false),
            Verdict::Fail
        );
        assert_eq!(
            case(vec![("A-2", unreached())], false, false),
            Verdict::Warn
        );
        let warned_first = [failed("A-2"), failed("A-1")].concat();
        assert_eq!(case(warned_first, false, false), Verdict::Fail);
        assert_eq!(case(failed("A-2"), true, false), Verdict::Fail);
        assert_eq!(
            case(vec![("A-1", Ruling::Passed)], false, false),
            Verdict::Pass
        );
    }

    #[test]
    fn expected_failures_of_which_nothing_was_seen_are_told() {
        let requirements = requirements();
        let expected = expected_failures("A-1\na-2\nA-3\nA-4", &requirements).unwrap();
        let missing = Ruling::NotApplicable("fork".to_owned());
        let outcomes = [outcome(vec![
            ("A-1", Ruling::Failed(finding())),
            ("A-2", missing),
        ])];
        let verdicts = judge(&requirements, &outcomes, &expected);
        assert_eq!(verdicts.unseen, ["A-2", "A-3", "A-4"]);
        assert_eq!(verdicts.unexpected_passes, [""; 0]);
    }

    #[test]
    fn expected_failures_that_pass_are_told() {
        let requirements = requirements();
        let text = "# known\nA-1 # a bug of theirs\n\nA-2\n";
        let expected = expected_failures(text, &requirements).unwrap();
        let outcomes = [outcome(vec![
            ("A-1", Ruling::Failed(finding())),
            ("A-2", Ruling::Passed),
        ])];
        let verdicts = judge(&requirements, &outcomes, &expected);
        assert!(verdicts.rules[0].is_expected);
        assert_eq!(verdicts.unexpected_passes, ["A-2"]);
        let wrong = expected_failures("A-1\nA-9", &requirements);
        assert_eq!(wrong, Err("line 2: \"A-9\" is no rule".to_owned()));
    }
}
