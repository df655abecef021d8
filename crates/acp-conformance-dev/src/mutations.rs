//! Tests the suite itself: each fault must break exactly the rules that `faults.toml` lists for it.
//!
//! The suite first plays the conforming agent through a proxy that injects nothing and records all lines. The
//! recordings are then replayed against each fault: cases in which the fault would change nothing are
//! skipped. The others are played with the fault, and the rules that fail are compared with `faults.toml`.

pub mod command;
mod expected;
mod render;
mod runner;

pub use expected::{AgentMistake, FaultExpectation, FaultExpectations};
pub use runner::{MutationPlan, run_mutations};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Result of all faults.
#[derive(Debug)]
pub struct MutationTable {
    /// Cases that fail without any fault, each with its broken rules or other problems.
    pub baseline_failures: Vec<String>,
    /// Rows, one per fault.
    pub rows: Vec<MutationRow>,
    /// Rules that no fault breaks and that `faults.toml` gives no reason for.
    pub uncovered_rules: Vec<String>,
    /// Duration of the whole run.
    pub took: Duration,
}

/// Result of one fault.
#[derive(Debug)]
pub struct MutationRow {
    /// Name of the fault.
    pub fault: String,
    /// Effect of the fault, in a sentence.
    pub description: String,
    /// Rules that must fail.
    pub breaks: BTreeSet<String>,
    /// Rules that may fail along with them.
    pub may_fail: BTreeSet<String>,
    /// Rules that failed and other problems, each with the first case and the reason.
    pub failed: BTreeMap<String, String>,
    /// Number of cases played with the fault.
    pub case_count: usize,
    /// Complaint of the first try of a row that was played twice; `None` if the first try was right.
    pub first_complaint: Option<String>,
}

impl MutationRow {
    fn allows_failure(&self, rule: &str) -> bool {
        self.breaks.contains(rule) || self.may_fail.contains(rule)
    }

    /// Returns the rules that should have failed but did not.
    pub fn missed_rules(&self) -> impl Iterator<Item = &String> {
        let failed = |rule: &&String| self.failed.contains_key(*rule);
        self.breaks.iter().filter(move |rule| !failed(rule))
    }

    /// Returns the rules that should not have failed, each with the case and the reason.
    pub fn false_alarms(&self) -> impl Iterator<Item = (&String, &String)> {
        let failed = self.failed.iter();
        failed.filter(|(rule, _)| !self.allows_failure(rule))
    }

    /// Returns true if exactly the expected rules failed, and at least one was expected.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let right = self.missed_rules().next().is_none() && self.false_alarms().next().is_none();
        right && !self.breaks.is_empty()
    }
}

impl MutationTable {
    /// Returns true if the table has neither a gap nor a false alarm.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.baseline_failures.is_empty()
            && self.uncovered_rules.is_empty()
            && self.rows.iter().all(MutationRow::is_right)
    }
}
