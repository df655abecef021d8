//! mutations: is the suite itself right? Each fault must break the rules that it is said to break, and no other.
//!
//! The right agent is played first, through a proxy that breaks nothing and writes down what passes.
//! What was written down is then shown to each fault: cases in which it would change nothing need not
//! be played again. The others are, and the rules that fail are held against `faults.toml`.

pub mod command;
mod expected;
mod play;
mod show;

pub use expected::{Expected, ExpectedFault, Trap};
pub use play::{Plan, mutations};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What came of all faults.
#[derive(Debug)]
pub struct Table {
    /// Cases that fail without any fault, each with the rules, or what else was wrong.
    pub wrong_without_fault: Vec<String>,
    /// One row a fault.
    pub rows: Vec<Row>,
    /// Rules that no fault breaks, and that nobody gave a reason for.
    pub unbroken: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// What came of one fault.
#[derive(Debug)]
pub struct Row {
    /// Its name.
    pub fault: String,
    /// What it does.
    pub does: String,
    /// The rules that must fail.
    pub breaks: BTreeSet<String>,
    /// Those that may fail along with them.
    pub may: BTreeSet<String>,
    /// The rules that failed, or what else was wrong, each with the case it was first seen in, and why.
    pub failed: BTreeMap<String, String>,
    /// How many cases it could change.
    pub cases: usize,
    /// Complaint of the first try of a row that was played twice; `None` if the first try was right.
    pub first_complaint: Option<String>,
}

impl Row {
    fn allows(&self, rule: &str) -> bool {
        self.breaks.contains(rule) || self.may.contains(rule)
    }

    /// Rules that should have failed.
    pub fn missed(&self) -> impl Iterator<Item = &String> {
        let failed = |rule: &&String| self.failed.contains_key(*rule);
        self.breaks.iter().filter(move |rule| !failed(rule))
    }

    /// Rules that should not have failed, each with the case, and why.
    pub fn false_alarms(&self) -> impl Iterator<Item = (&String, &String)> {
        let failed = self.failed.iter();
        failed.filter(|(rule, _)| !self.allows(rule))
    }

    /// Did just those rules fail, and at least one?
    #[must_use]
    pub fn is_right(&self) -> bool {
        let right = self.missed().next().is_none() && self.false_alarms().next().is_none();
        right && !self.breaks.is_empty()
    }
}

impl Table {
    /// No hole and no false alarm.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.wrong_without_fault.is_empty()
            && self.unbroken.is_empty()
            && self.rows.iter().all(Row::is_right)
    }
}
