//! Records violations and the rules that were observed.

use crate::requirements::Requirements;
use std::{collections::BTreeSet, sync::LazyLock};

/// Built-in table of rules.
static REQUIREMENTS: LazyLock<Requirements> =
    LazyLock::new(|| Requirements::built_in().expect("a valid table"));

/// Violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Id of the rule.
    pub rule: &'static str,
    /// Explanation of the violation.
    pub why: String,
}

/// Violations and observed rules of a connection.
#[derive(Debug, Default)]
pub(super) struct RuleRecorder {
    pub(super) violations: Vec<Violation>,
    /// Rules that the observed messages could have broken.
    pub(super) seen: BTreeSet<&'static str>,
    /// Negotiated protocol version.
    pub(super) version: u64,
}

impl RuleRecorder {
    /// Records that the observed messages could have broken this rule.
    pub(super) fn record_observed(&mut self, rule: &'static str) {
        debug_assert!(
            REQUIREMENTS.rule(rule).is_some_and(|rule| rule.watched),
            "{rule} is not said to be watched"
        );
        self.seen.insert(rule);
    }

    /// Records a violation.
    pub(super) fn record_violation(&mut self, rule: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.record_observed(rule);
        self.violations.push(Violation { rule, why });
    }

    /// Records the rule as observed, or as broken if `holds` is false.
    pub(super) fn record_check(
        &mut self,
        rule: &'static str,
        holds: bool,
        why: impl FnOnce() -> String,
    ) {
        if holds {
            self.record_observed(rule);
        } else {
            self.record_violation(rule, why());
        }
    }
}
