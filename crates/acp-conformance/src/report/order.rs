//! Order: what is wrong by its weight, and each finding once.

use super::{Found, JudgedRule, Report};
use crate::{outcome::BEFORE, verdict::Verdict};

/// Rules of one verdict that the same findings speak of.
pub(super) struct Group<'a> {
    pub(super) rules: Vec<&'a JudgedRule>,
    pub(super) findings: Vec<Shown<'a>>,
}

/// A finding where it is shown, or where it has been shown before.
pub(super) enum Shown<'a> {
    /// Here, with the other rules that it breaks.
    Here(&'a Found, Vec<&'a str>),
    /// Under this rule.
    Before(&'a Found, &'a str),
}

impl Report {
    /// The rules that are not kept, the weightiest first; those that were expected to be broken last.
    pub(super) fn bad(&self) -> Vec<&JudgedRule> {
        let bad = self.rules.iter().filter(|rule| rule.verdict.is_bad());
        let mut bad: Vec<&JudgedRule> = bad.collect();
        let rank = |verdict| match verdict {
            Verdict::Fail => 0,
            Verdict::NotReached => 1,
            Verdict::Warn
            | Verdict::Pass
            | Verdict::Noted
            | Verdict::NotApplicable
            | Verdict::Unchecked
            | Verdict::Untestable => 2,
        };
        bad.sort_by_key(|rule| (rule.is_expected, rank(rule.verdict), rule.level));
        bad
    }

    /// The same, with what was wrong; each finding is told once.
    pub(super) fn groups(&self) -> Vec<Group<'_>> {
        let bad = self.bad();
        let mut groups: Vec<Group<'_>> = Vec::new();
        for rule in &bad {
            match groups.iter_mut().find(|group| group.takes(rule)) {
                Some(group) => group.rules.push(rule),
                None => groups.push(Group {
                    rules: vec![rule],
                    findings: Vec::new(),
                }),
            }
        }
        let mut told: Vec<(&Found, &str)> = Vec::new();
        for group in &mut groups {
            let first = group.rules[0];
            for found in &first.findings {
                let before = told.iter().find(|(other, _)| other.is_same(found));
                group.findings.push(match before {
                    Some((_, rule)) => Shown::Before(found, rule),
                    None => Shown::Here(found, found.breaks_too(&bad, &group.rules)),
                });
                told.push((found, &first.id));
            }
        }
        groups
    }
}

impl Group<'_> {
    /// Whether nothing else is to be said of this rule than of those that are in it.
    fn takes(&self, rule: &JudgedRule) -> bool {
        let first = self.rules[0];
        let findings = first.findings.iter().zip(&rule.findings);
        (first.verdict, first.is_expected) == (rule.verdict, rule.is_expected)
            && first.findings.len() == rule.findings.len()
            && findings.into_iter().all(|(one, other)| one.is_same(other))
    }
}

impl Found {
    fn is_same(&self, other: &Self) -> bool {
        self.case == other.case
            && self.line == other.line
            && self.step == other.step
            && self.came == other.came
            && self.cause() == other.cause()
    }

    /// What was wrong, whether it is told of the check itself or of one that it kept from being reached.
    fn cause(&self) -> &str {
        self.why.strip_prefix(BEFORE).unwrap_or(&self.why)
    }

    /// The rules beside these that it breaks.
    fn breaks_too<'a>(&self, bad: &[&'a JudgedRule], these: &[&JudgedRule]) -> Vec<&'a str> {
        let others = bad.iter().filter(|rule| {
            let is_other = these.iter().all(|it| it.id != rule.id);
            let is_broken = rule.verdict != Verdict::NotReached;
            is_other && is_broken && rule.findings.iter().any(|found| self.is_same(found))
        });
        others.map(|rule| rule.id.as_str()).collect()
    }
}
