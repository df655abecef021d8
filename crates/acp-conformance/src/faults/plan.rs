//! Faults of plans.

use super::{Fault, passing::Passing};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("plan_not_reported", plan_not_reported),
    Fault::lines("plan_progress_not_reported", plan_progress_not_reported),
    Fault::lines("plan_loses_entries", plan_loses_entries),
    Fault::lines("plan_entry_without_status", plan_entry_without_status),
];

fn plan_not_reported(m: &mut Passing<'_>) {
    if m.update() == "plan" {
        m.swallow();
    }
}

fn plan_progress_not_reported(m: &mut Passing<'_>) {
    if m.update() == "plan" && m.count("plans") > 1 {
        m.swallow();
    }
}

/// Each plan after the first holds only what changed.
fn plan_loses_entries(m: &mut Passing<'_>) {
    if m.update() == "plan" && m.count("plans") > 1 {
        let entries = m.get("/params/update/entries").as_array().cloned();
        let first: Vec<_> = entries.unwrap_or_default().into_iter().take(1).collect();
        m.set("/params/update/entries", first);
    }
}

fn plan_entry_without_status(m: &mut Passing<'_>) {
    if m.update() == "plan" {
        m.unset("/params/update/entries/0/status");
    }
}
