//! Records violations and the rules that were observed.

use std::collections::BTreeSet;

/// Rules checked in every case.
pub const RULES: &[&str] = &[
    "AUTH-1",
    "AUTH-10",
    "AUTH-2",
    "AUTH-4",
    "AUTH-7",
    "CANCEL-10",
    "CANCEL-5",
    "CFG-1",
    "CFG-2",
    "CFG-3",
    "CLOSE-1",
    "CLOSE-3",
    "CMD-3",
    "COMP-1",
    "COMP-2",
    "DEL-1",
    "ELIC-1",
    "ELIC-2",
    "ELIC-6",
    "EXT-1",
    "EXT-3",
    "EXT-7",
    "FS-1",
    "FS-2",
    "INFO-1",
    "INIT-1",
    "INIT-11",
    "INIT-15",
    "INIT-6",
    "LIST-1",
    "LIST-6",
    "LOAD-2",
    "LOAD-4",
    "LOAD-7",
    "MODE-1",
    "MODE-2",
    "MODE-3",
    "MSG-1",
    "MSG-3",
    "MSG-4",
    "NOTE-1",
    "PERM-2",
    "PLAN-2",
    "PROMPT-4",
    "PROMPT-5",
    "PROMPT-7",
    "RES-1",
    "RES-2",
    "RPC-1",
    "RPC-12",
    "RPC-13",
    "RPC-14",
    "RPC-16",
    "RPC-2",
    "RPC-21",
    "RPC-23",
    "RPC-4",
    "RPC-5",
    "SESS-1",
    "SESS-7",
    "TERM-1",
    "TERM-2",
    "TERM-3",
    "TOOL-10",
    "TOOL-11",
    "TOOL-2",
    "TOOL-4",
    "TOOL-6",
    "TOOL-7",
    "TOOL-8",
    "TOOL-9",
    "TR-1",
    "TR-2",
    "TR-3",
    "TR-7",
    "TR-9",
    "UPD-1",
    "V2-1",
    "V2-10",
    "V2-11",
    "V2-12",
    "V2-13",
    "V2-14",
    "V2-16",
    "V2-19",
    "V2-20",
    "V2-21",
    "V2-22",
    "V2-3",
    "V2-4",
    "V2-6",
    "V2-8",
    "V2-9",
];

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
    pub(super) fn seen(&mut self, rule: &'static str) {
        debug_assert!(RULES.contains(&rule), "{rule} is not said to be watched");
        self.seen.insert(rule);
    }

    /// Records a violation.
    pub(super) fn broken(&mut self, rule: &'static str, why: impl Into<String>) {
        let why = why.into();
        self.seen(rule);
        self.violations.push(Violation { rule, why });
    }

    /// Records the rule as observed, or as broken if `holds` is false.
    pub(super) fn holds(&mut self, rule: &'static str, holds: bool, why: impl FnOnce() -> String) {
        if holds {
            self.seen(rule);
        } else {
            self.broken(rule, why());
        }
    }
}
