//! The plan on the wire: what the model leaves out is filled in (ACP-14 to ACP-19).

use super::parts::{event, live};
use serde_json::json;
use turnery_engine::{EventKind, PlanEntry};

// proves: ACP-15, ACP-16, ACP-17, ACP-18, ACP-19
#[test]
fn an_entry_is_pending_and_of_medium_priority_at_first() {
    let entries: Vec<PlanEntry> = serde_json::from_value(
        json!([{"content": "read"}, {"content": "write", "status": "in_progress"}]),
    )
    .unwrap();
    let updates = live(&[event(0, EventKind::PlanUpdated { entries })]);
    let expected = json!({"sessionUpdate": "plan", "entries": [
        {"content": "read", "priority": "medium", "status": "pending"},
        {"content": "write", "priority": "medium", "status": "in_progress"},
    ]});
    assert_eq!(updates, [expected]);
}
