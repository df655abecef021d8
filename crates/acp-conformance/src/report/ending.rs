//! Ending: what made the exit code what it is, and what was left out of the run.

use super::{Found, JudgedRule, Report};
use crate::verdict::Verdict;
use std::collections::BTreeMap;

impl Report {
    /// Whether the agent keeps the rules: no rule counts against it, no case ended early without a rule to blame, and
    /// nothing passes that was expected not to.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.unexpected_passes.is_empty()
            && !self.rules.iter().any(|rule| rule.is_counted)
            && self.ended_early().next().is_none()
    }

    /// The cases that are at fault themselves, with what is wrong with them: then the run itself failed.
    pub fn faults(&self) -> impl Iterator<Item = (&str, &str)> {
        let cases = self.cases.iter();
        cases.filter_map(|case| Some((case.name.as_str(), case.fault.as_deref()?)))
    }

    /// The steps without a rule that ended their case.
    pub(super) fn ended_early(&self) -> impl Iterator<Item = &Found> {
        self.cases.iter().filter_map(|case| case.broken.as_ref())
    }

    /// The exit code, and what made it so.
    pub(super) fn ending(&self) -> String {
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
            (self.faults().count(), faulty),
            (broken, ["rule broken", "rules broken"]),
            (unreached, if broken > 0 { short } else { whole }),
            (
                self.ended_early().count(),
                ["case ended early", "cases ended early"],
            ),
            (self.unexpected_passes.len(), stale),
        ];
        let parts = parts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts
            .map(|(number, words)| counted(number, words))
            .collect();
        let code = match (self.faults().count(), self.is_kept()) {
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
        let lenient = rules(&|rule| self.would_count(rule));
        let more = if code == 0 { "" } else { "more " };
        let beside = [
            (
                lenient,
                format!("; {lenient} {more}would count with --strict"),
            ),
            (expected, format!("; {expected} known to be broken")),
        ];
        let beside = beside.into_iter().filter(|(number, _)| *number > 0);
        let beside: String = beside.map(|(_, text)| text).collect();
        format!("exit {code}: {why}{beside}")
    }

    fn would_count(&self, rule: &JudgedRule) -> bool {
        let weight = Verdict::of_broken(rule.level);
        let is_lenient = !self.strict && weight == Verdict::Warn;
        is_lenient && rule.verdict.is_bad() && !rule.is_expected
    }

    /// What could be done to have more rules checked.
    pub(super) fn hint(&self) -> Option<String> {
        if self.agent.profile.is_some() {
            return None;
        }
        let is_meant = |reason: &str| {
            matches!(reason, "profile" | "model" | "keyless") || reason.starts_with("tool ")
        };
        let reasons = self.left_out();
        let reasons = reasons.iter().filter(|(_, reason)| is_meant(reason));
        let number: usize = reasons.map(|(number, _)| number).sum();
        let rules = counted(number, ["rule was", "rules were"]);
        (number > 0).then(|| {
            format!("{rules} left out because no profile was given: one says how the agent is pointed at a model that is played (--profile NAME or FILE)")
        })
    }

    /// Why rules are not applicable, in a line.
    pub(super) fn not_applicable(&self) -> Option<String> {
        let profile = if self.agent.profile.is_some() {
            ""
        } else {
            " (--profile)"
        };
        let reasons = self.left_out().into_iter().map(|(number, reason)| {
            let what = match reason {
                "model" => format!("a model{profile}"),
                "profile" => format!("a profile{profile}"),
                "keyless" => "a start without a key".to_owned(),
                "v2" => "version 2".to_owned(),
                tool if tool.starts_with("tool ") => format!("a {tool}"),
                sentence if sentence.starts_with("the agent ") => {
                    return format!("{number} as {sentence}");
                }
                other => other.to_owned(),
            };
            format!("{} {what}", counted(number, ["needs", "need"]))
        });
        let reasons: Vec<String> = reasons.collect();
        (!reasons.is_empty()).then(|| format!("not applicable: {}", reasons.join(", ")))
    }

    /// What the agent does not have, with the number of rules that need it, the most first.
    fn left_out(&self) -> Vec<(usize, &str)> {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for rule in &self.rules {
            if let (Verdict::NotApplicable, Some(reason)) = (rule.verdict, &rule.reason) {
                *numbers.entry(reason).or_default() += 1;
            }
        }
        let mut reasons: Vec<_> = numbers
            .into_iter()
            .map(|(reason, number)| (number, reason))
            .collect();
        reasons.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        reasons
    }
}

/// A number with the word for one, or for several.
pub(super) fn counted(number: usize, [one, several]: [&str; 2]) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
