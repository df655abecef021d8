//! Orders broken rules by weight and groups them by finding.

use super::contents::{JudgedRule, Report};
use crate::{
    outcome::{Finding, NOT_REACHED_PREFIX},
    verdict::Verdict,
};

/// Rules of one verdict with the same findings.
pub(super) struct RuleGroup<'a> {
    pub(super) rules: Vec<&'a JudgedRule>,
    pub(super) findings: Vec<GroupFinding<'a>>,
}

/// Finding, or a reference to its earlier occurrence.
pub(super) enum GroupFinding<'a> {
    /// First occurrence, with the other rules that the finding breaks.
    First(&'a Finding, Vec<&'a str>),
    /// Later occurrence, with the rule under which the finding was shown.
    Repeated(&'a Finding, &'a str),
}

impl Report {
    /// Returns the rules with a bad verdict, the worst first; rules that were expected to be broken come last.
    pub(super) fn bad_rules(&self) -> Vec<&JudgedRule> {
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

    /// Groups the rules of [`Self::bad_rules`] by finding; each finding is shown once.
    pub(super) fn rule_groups(&self) -> Vec<RuleGroup<'_>> {
        let bad = self.bad_rules();
        let mut groups: Vec<RuleGroup<'_>> = Vec::new();
        for rule in &bad {
            match groups
                .iter_mut()
                .find(|group| group.has_same_findings(rule))
            {
                Some(group) => group.rules.push(rule),
                None => groups.push(RuleGroup {
                    rules: vec![rule],
                    findings: Vec::new(),
                }),
            }
        }
        let mut shown: Vec<(&Finding, &str)> = Vec::new();
        for group in &mut groups {
            let first = group.rules[0];
            for found in &first.findings {
                let before = shown.iter().find(|(other, _)| other.is_same_as(found));
                group.findings.push(match before {
                    Some((_, rule)) => GroupFinding::Repeated(found, rule),
                    None => {
                        GroupFinding::First(found, found.other_broken_rules(&bad, &group.rules))
                    }
                });
                shown.push((found, &first.id));
            }
        }
        groups
    }
}

impl RuleGroup<'_> {
    /// Returns true if a rule has the same verdict and findings as the group.
    fn has_same_findings(&self, rule: &JudgedRule) -> bool {
        let first = self.rules[0];
        let findings = first.findings.iter().zip(&rule.findings);
        (first.verdict, first.is_expected) == (rule.verdict, rule.is_expected)
            && first.findings.len() == rule.findings.len()
            && findings
                .into_iter()
                .all(|(one, other)| one.is_same_as(other))
    }
}

impl Finding {
    fn is_same_as(&self, other: &Self) -> bool {
        self.case == other.case
            && self.line == other.line
            && self.step == other.step
            && self.received == other.received
            && self.cause() == other.cause()
    }

    /// Returns the underlying failure, without the prefix of checks that were not reached.
    fn cause(&self) -> &str {
        self.why
            .strip_prefix(NOT_REACHED_PREFIX)
            .unwrap_or(&self.why)
    }

    /// Returns the rules outside the group that this finding breaks.
    fn other_broken_rules<'a>(
        &self,
        bad: &[&'a JudgedRule],
        group_rules: &[&JudgedRule],
    ) -> Vec<&'a str> {
        let others = bad.iter().filter(|rule| {
            let is_other = group_rules.iter().all(|it| it.id != rule.id);
            let is_broken = rule.verdict != Verdict::NotReached;
            is_other && is_broken && rule.findings.iter().any(|found| self.is_same_as(found))
        });
        others.map(|rule| rule.id.as_str()).collect()
    }
}
