//! Tests of activities of blocks of code and of nested calls.

use crate::activity_json::activities;
use serde_json::{Value, json};
use turnery_engine::{CallDetail, Disposition, EventKind, ToolCall, ToolEnvelope, ToolErrorKind};

fn code_call(call: &str, name: &str, args: Value, parent: Option<&str>) -> EventKind {
    EventKind::ToolCallRequested {
        call: ToolCall {
            parent_call_id: parent.map(Into::into),
            ..ToolCall::new(call, name, args)
        },
        detail: CallDetail::default(),
    }
}

fn started(call: &str, name: &str) -> EventKind {
    EventKind::ToolExecutionStart {
        call_id: call.into(),
        tool_name: name.to_owned(),
        runs: true,
    }
}

fn ended(call: &str, name: &str, envelope: ToolEnvelope) -> EventKind {
    EventKind::ToolExecutionEnd {
        call_id: call.into(),
        tool_name: name.to_owned(),
        envelope,
        disposition: Disposition::Executed,
        child_loop_id: None,
    }
}

/// A block of code is one row; rows of its calls name it.
// proves: LASH-60, LASH-61, LASH-69, LASH-70, LASH-72, LASH-74, LASH-46, LASH-62, LASH-71, LASH-73, UP-26
#[test]
fn code_block_has_one_row_and_its_calls_name_it() {
    let failed = ToolEnvelope::failed(ToolErrorKind::ExecutionError, "NameError: name 'x'");
    let shown = activities(vec![
        code_call("b", "run_code", json!({"code": "look()"}), None),
        started("b", "run_code"),
        code_call("b.0", "look", json!({}), Some("b")),
        started("b.0", "look"),
        ended("b.0", "look", ToolEnvelope::text("found")),
        ended("b", "run_code", ToolEnvelope::text("found it")),
        code_call("c", "run_code", json!({"code": "x"}), None),
        started("c", "run_code"),
        ended("c", "run_code", failed),
    ]);
    let events: Vec<Value> = shown.iter().map(|activity| json!(activity.event)).collect();
    assert_eq!(
        events,
        [
            json!({"type": "code_block_started", "language": "python", "code": "look()", "graph_key": "b"}),
            json!({
                "type": "tool_call_started", "call_id": "b.0", "name": "look", "args": {},
                "graph_key": "b", "parent_call_id": "b",
            }),
            json!({
                "type": "tool_call_completed", "call_id": "b.0", "name": "look",
                "output": {
                    "disposition": "executed",
                    "content": [{"type": "text", "text": "found"}],
                    "is_error": false,
                },
                "graph_key": "b", "parent_call_id": "b",
            }),
            json!({
                "type": "code_block_completed", "language": "python", "output": "found it",
                "success": true, "graph_key": "b",
            }),
            json!({"type": "code_block_started", "language": "python", "code": "x", "graph_key": "c"}),
            json!({
                "type": "code_block_completed", "language": "python", "output": "",
                "error": "NameError: name 'x'", "success": false, "graph_key": "c",
            }),
        ]
    );
    let rows: Vec<&str> = shown
        .iter()
        .map(|activity| &*activity.correlation_id.0)
        .collect();
    assert_eq!(rows, ["b", "b.0", "b.0", "b", "c", "c"]);
}

/// A call names the block of code around it at any depth, and only that.
// proves: LASH-69, LASH-70, LASH-71
#[test]
fn nested_call_names_the_block_around_it() {
    let calls = [
        ("b", "run_code", None),
        ("b.0", "look", Some("b")),
        ("c", "run_code", None),
        ("c.0", "group", Some("c")),
        ("c.0.0", "look", Some("c.0")),
        ("g", "group", None),
        ("g.0", "look", Some("g")),
    ];
    let mut events = Vec::new();
    for (call, name, parent) in calls {
        events.push(code_call(call, name, json!({}), parent));
        events.push(started(call, name));
    }
    let done = || ToolEnvelope::text("done");
    let ends = calls.iter().rev();
    events.extend(ends.map(|(call, name, _)| ended(call, name, done())));
    let mut places: Vec<Value> = activities(events)
        .iter()
        .map(|activity| json!(activity.event))
        .filter(|event| event.get("call_id").is_some())
        .map(|event| {
            json!([
                event["call_id"],
                event["graph_key"],
                event["parent_call_id"]
            ])
        })
        .collect();
    let expected = json!([
        ["b.0", "b", "b"],
        ["c.0", "c", "c"],
        ["c.0.0", "c", "c.0"],
        ["g", null, null],
        ["g.0", null, "g"],
    ]);
    let ends = places.split_off(5);
    assert_eq!(json!(places), expected);
    assert_eq!(json!(ends.into_iter().rev().collect::<Vec<_>>()), expected);
}
