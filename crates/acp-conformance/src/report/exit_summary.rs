//! Explains the exit code and what the run left out.

use super::contents::{JudgedRule, Report};
use crate::{outcome::Finding, verdict::Verdict};
use std::collections::BTreeMap;

/// Minimum slowdown that the report mentions.
pub const REPORTED_SLOWDOWN: f64 = 1.5;

impl Report {
    /// Returns true if the agent conforms: no rule counts against it, no case ended early without a rule, and
    /// no rule passed that was expected to be broken.
    #[must_use]
    pub fn is_conformant(&self) -> bool {
        self.unexpected_passes.is_empty()
            && !self.rules.iter().any(|rule| rule.is_counted)
            && !self.flaky.iter().any(|flaky| flaky.is_counted)
            && self.early_end_findings().next().is_none()
    }

    /// Iterates over the cases with errors in themselves, which make the run itself fail: name and error.
    pub fn faulty_cases(&self) -> impl Iterator<Item = (&str, &str)> {
        let cases = self.cases.iter();
        cases.filter_map(|case| Some((case.name.as_str(), case.case_error.as_deref()?)))
    }

    /// Iterates over the failed steps that cite no rule and ended their case.
    pub(super) fn early_end_findings(&self) -> impl Iterator<Item = &Finding> {
        self.cases
            .iter()
            .filter_map(|case| case.failed_step.as_ref())
    }

    /// Returns the exit code and its reasons.
    pub(super) fn exit_summary(&self) -> String {
        let rules =
            |is_meant: &dyn Fn(&&JudgedRule) -> bool| self.rules.iter().filter(is_meant).count();
        let is_unreached = |rule: &&JudgedRule| rule.verdict == Verdict::NotReached;
        let broken = rules(&|rule| rule.is_counted && !is_unreached(rule));
        let unreached = rules(&|rule| rule.is_counted && is_unreached(rule));
        let short = ["not reached", "not reached"];
        let whole = ["rule not reached", "rules not reached"];
        let stale = [
            "rule expected to be broken is not",
            "rules expected to be broken are not",
        ];
        let faulty = ["case at fault itself", "cases at fault themselves"];
        let parts = [
            (self.faulty_cases().count(), faulty),
            (broken, ["rule broken", "rules broken"]),
            (unreached, if broken > 0 { short } else { whole }),
            (
                self.flaky.iter().filter(|flaky| flaky.is_counted).count(),
                [
                    "dangerous failure that is flaky",
                    "dangerous failures that are flaky",
                ],
            ),
            (
                self.early_end_findings().count(),
                ["case ended early", "cases ended early"],
            ),
            (self.unexpected_passes.len(), stale),
        ];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts
            .map(|(number, words)| format_count(number, words))
            .collect();
        let code = match (self.faulty_cases().count(), self.is_conformant()) {
            (0, true) => 0,
            (0, false) => 1,
            (1.., _) => 2,
        };
        let why = if parts.is_empty() {
            "no rule that counts is broken".to_owned()
        } else {
            parts.join(", ")
        };
        let expected = rules(&|rule| rule.verdict.is_bad() && rule.is_expected);
        let lenient = rules(&|rule| self.would_count_if_strict(rule));
        let flaky = self.flaky.iter().filter(|flaky| !flaky.is_counted).count();
        let more = if code == 0 { "" } else { "more " };
        let beside = [
            (
                lenient,
                format!("; {lenient} {more}would count with --strict"),
            ),
            (expected, format!("; {expected} known to be broken")),
            (flaky, format!("; {flaky} flaky")),
        ];
        let beside = beside.into_iter().filter(|(number, _)| *number > 0);
        let beside: String = beside.map(|(_, text)| text).collect();
        format!("exit {code}: {why}{beside}")
    }

    /// Iterates over remarks on failures that did not recur.
    pub(super) fn flaky_remarks(&self) -> impl Iterator<Item = String> {
        let flaky = self.flaky.iter();
        flaky.map(|one| format!("flaky  {} in {}, {}", one.rule, one.case, one.why))
    }

    /// Returns a note about extended time limits, if the slowdown is large enough.
    pub(super) fn slowdown_note(&self) -> Option<String> {
        let note = |slowdown: f64| {
            format!(
                "the machine was busy, so bounds were {slowdown:.1} times longer than written \
                 (--real-time keeps them as written)"
            )
        };
        (self.slowdown >= REPORTED_SLOWDOWN).then(|| note(self.slowdown))
    }

    fn would_count_if_strict(&self, rule: &JudgedRule) -> bool {
        let weight = Verdict::for_level(rule.level);
        let is_lenient = !self.strict && !rule.is_counted && weight == Verdict::Warn;
        is_lenient && rule.verdict.is_bad() && !rule.is_expected
    }

    /// Returns a hint on how to have more rules checked.
    pub(super) fn profile_hint(&self) -> Option<String> {
        if self.agent.profile.is_some() {
            return None;
        }
        let is_meant = |reason: &str| {
            matches!(reason, "profile" | "model" | "keyless") || reason.starts_with("tool ")
        };
        let number = self
            .not_applicable_reasons()
            .filter(|reason| is_meant(reason))
            .count();
        let rules = format_count(number, ["rule was", "rules were"]);
        (number > 0).then(|| {
            format!("{rules} left out because no profile was given: a profile connects the agent to the fake model (--profile NAME or FILE)")
        })
    }

    /// Summarizes why rules are not applicable, the most frequent reason first.
    pub(super) fn not_applicable_summary(&self) -> Option<String> {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for reason in self.not_applicable_reasons() {
            *numbers.entry(self.describe_missing(reason)).or_default() += 1;
        }
        let mut numbers: Vec<_> = numbers.into_iter().collect();
        numbers.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        let reasons = numbers.into_iter().map(|(what, number)| {
            let verb = if number == 1 { "needs" } else { "need" };
            format!("{number} {}", what.replacen("need", verb, 1))
        });
        let reasons: Vec<String> = reasons.collect();
        (!reasons.is_empty()).then(|| format!("not applicable: {}", reasons.join(", ")))
    }

    /// Describes why rules are not applicable, in the plural.
    fn describe_missing(&self, reason: &str) -> String {
        let profile = match self.agent.profile {
            Some(_) => "",
            None => " (--profile)",
        };
        match reason {
            "model" => format!("need a model{profile}"),
            "profile" => format!("need a profile{profile}"),
            "keyless" => format!("need a start without a key{profile}"),
            "v2" => "need version 2".to_owned(),
            tool if tool.starts_with("tool ") => format!("need a {tool}"),
            offer if offer.starts_with("the agent ") => format!("since {offer}"),
            // Variable that a step would have captured.
            moment if moment.contains('$') => "need a value that was not captured".to_owned(),
            capability => format!("need {capability}"),
        }
    }

    /// Iterates over the reasons of all rules that are not applicable.
    fn not_applicable_reasons(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter();
        let rules = rules.filter(|rule| rule.verdict == Verdict::NotApplicable);
        rules.filter_map(|rule| rule.reason.as_deref())
    }
}

/// Formats a number with its noun, in the singular or plural.
pub(super) fn format_count(number: usize, [one, several]: [&str; 2]) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
