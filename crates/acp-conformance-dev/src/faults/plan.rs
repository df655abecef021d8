//! Faults of plans.

use super::{fault::Fault, intercepted_line::InterceptedLine};

pub(super) const FAULTS: &[Fault] = &[
    Fault::lines("plan_not_reported", plan_not_reported),
    Fault::lines("plan_progress_not_reported", plan_progress_not_reported),
    Fault::lines("plan_loses_entries", plan_loses_entries),
    Fault::lines("plan_entry_without_status", plan_entry_without_status),
];

fn plan_not_reported(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "plan" {
        m.swallow();
    }
}

fn plan_progress_not_reported(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "plan" && m.increment("plans") > 1 {
        m.swallow();
    }
}

/// Truncates each plan after the first to one entry.
fn plan_loses_entries(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "plan" && m.increment("plans") > 1 {
        let entries = m.get("/params/update/entries").as_array().cloned();
        let first: Vec<_> = entries.unwrap_or_default().into_iter().take(1).collect();
        m.set("/params/update/entries", first);
    }
}

fn plan_entry_without_status(m: &mut InterceptedLine<'_>) {
    if m.update_kind() == "plan" {
        m.remove("/params/update/entries/0/status");
    }
}
