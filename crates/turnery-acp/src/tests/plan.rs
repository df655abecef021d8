//! Tests plan updates: defaults replace what the model omits (ACP-14 to ACP-19).

use super::{
    events,
    support::{encode_live, encode_replayed, event},
};
use serde_json::json;
use turnery_engine::{CallDetail, Disposition, EventKind, PlanEntry, ToolEnvelope};

/// Returns the events of a call that sets a plan.
pub(crate) fn plan_call_events() -> Vec<EventKind> {
    let name = "update_plan";
    let args = json!({"entries": [{"content": "read"}]});
    let envelope = ToolEnvelope::text("Plan updated");
    vec![
        events::call_requested(name, args, CallDetail::default()),
        events::call_started(name, true),
        EventKind::PlanUpdated {
            entries: serde_json::from_value(json!([{"content": "read"}])).unwrap(),
        },
        events::call_ended(name, envelope, Disposition::Executed),
    ]
}

// proves: PLAN-1
#[test]
fn plan_is_not_sent_as_tool_call() {
    let events: Vec<_> = plan_call_events()
        .into_iter()
        .map(|kind| event(0, kind))
        .collect();
    let entry = json!({"content": "read", "priority": "medium", "status": "pending"});
    let plan = json!({"sessionUpdate": "plan", "entries": [entry]});
    for told in [encode_live(&events), encode_replayed(&events)] {
        assert_eq!(json!(told), json!([plan]));
    }
}

#[test]
fn hidden_characters_in_plan_are_visible() {
    let entries = json!([{"content": "read\u{1b}[2J\u{202e} a\rb"}]);
    let entries = serde_json::from_value(entries).unwrap();
    let expected = "read⟨U+001B⟩[2J⟨U+202E⟩ a⟨U+000D⟩b";
    let told = json!(encode_live(&[event(0, EventKind::PlanUpdated { entries })]));
    assert_eq!(told[0]["entries"][0]["content"], expected);
}

// proves: ACP-15, ACP-16, ACP-17, ACP-18, ACP-19
#[test]
fn plan_entry_defaults_to_pending_and_medium() {
    let entries: Vec<PlanEntry> = serde_json::from_value(
        json!([{"content": "read"}, {"content": "write", "status": "in_progress"}]),
    )
    .unwrap();
    let updates = encode_live(&[event(0, EventKind::PlanUpdated { entries })]);
    let expected = json!({"sessionUpdate": "plan", "entries": [
        {"content": "read", "priority": "medium", "status": "pending"},
        {"content": "write", "priority": "medium", "status": "in_progress"},
    ]});
    assert_eq!(updates, [expected]);
}
