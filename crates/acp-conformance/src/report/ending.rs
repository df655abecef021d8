//! Ending: what made the exit code what it is, and what was left out of the run.

use super::{Found, JudgedRule, Report};
use crate::verdict::Verdict;
use std::collections::BTreeMap;

/// Bounds that are longer than written by less than this are not worth a word.
pub(crate) const TOLD_SLOWDOWN: f64 = 1.5;

impl Report {
    /// Whether the agent keeps the rules: no rule counts against it, no case ended early without a rule to blame, and
    /// nothing passes that was expected not to.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.unexpected_passes.is_empty()
            && !self.rules.iter().any(|rule| rule.is_counted)
            && !self.flaky.iter().any(|flaky| flaky.is_counted)
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
                self.flaky.iter().filter(|flaky| flaky.is_counted).count(),
                [
                    "dangerous failure that is flaky",
                    "dangerous failures that are flaky",
                ],
            ),
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

    /// What is to be said of each failure that did not come again.
    pub(super) fn flaky_remarks(&self) -> impl Iterator<Item = String> {
        let flaky = self.flaky.iter();
        flaky.map(|one| format!("flaky  {} in {}, {}", one.rule, one.case, one.why))
    }

    /// How much longer the bounds were than they are written, if that matters.
    pub(super) fn told_slowdown(&self) -> Option<String> {
        let told = |slowdown: f64| {
            format!(
                "the machine was busy, so bounds were {slowdown:.1} times longer than written \
                 (--real-time keeps to it)"
            )
        };
        (self.slowdown >= TOLD_SLOWDOWN).then(|| told(self.slowdown))
    }

    fn would_count(&self, rule: &JudgedRule) -> bool {
        let weight = Verdict::of_level(rule.level);
        let is_lenient = !self.strict && !rule.is_counted && weight == Verdict::Warn;
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
        let number = self.left_out().filter(|reason| is_meant(reason)).count();
        let rules = counted(number, ["rule was", "rules were"]);
        (number > 0).then(|| {
            format!("{rules} left out because no profile was given: one says how the agent is pointed at a model that is played (--profile NAME or FILE)")
        })
    }

    /// Why rules are not applicable, in a line: the most first.
    pub(super) fn not_applicable(&self) -> Option<String> {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for reason in self.left_out() {
            *numbers.entry(self.lacks(reason)).or_default() += 1;
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

    /// Why a rule is not applicable, as one says it of several.
    fn lacks(&self, reason: &str) -> String {
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
            // What a step would have captured.
            moment if moment.contains('$') => "need what did not come up".to_owned(),
            capability => format!("need {capability}"),
        }
    }

    /// Why each rule is not applicable that is not.
    fn left_out(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter();
        let rules = rules.filter(|rule| rule.verdict == Verdict::NotApplicable);
        rules.filter_map(|rule| rule.reason.as_deref())
    }
}

/// A number with the word for one, or for several.
pub(super) fn counted(number: usize, [one, several]: [&str; 2]) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}
