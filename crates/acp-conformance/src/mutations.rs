//! mutations: is the suite itself right? Each fault must break the rules that it is said to break, and no other.
//!
//! The right agent is played first, through a proxy that breaks nothing and writes down what passes.
//! What was written down is then shown to each fault: cases in which it would change nothing need not
//! be played again. The others are, and the rules that fail are held against `faults.toml`.

pub mod command;
mod expected;
mod play;
mod show;

pub use expected::{Expected, ExpectedFault};
pub use play::{Plan, mutations};

use std::{collections::BTreeSet, time::Duration};

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
    /// The rules that it is said to break.
    pub breaks: BTreeSet<String>,
    /// The rules that failed, or what else was wrong.
    pub failed: BTreeSet<String>,
    /// How many cases it could change.
    pub cases: usize,
}

impl Row {
    /// Rules that should have failed.
    pub fn missed(&self) -> impl Iterator<Item = &String> {
        self.breaks.difference(&self.failed)
    }

    /// Rules that should not have failed.
    pub fn false_alarms(&self) -> impl Iterator<Item = &String> {
        self.failed.difference(&self.breaks)
    }

    /// Did just those rules fail, and at least one?
    #[must_use]
    pub fn is_right(&self) -> bool {
        !self.breaks.is_empty() && self.breaks == self.failed
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
