//! Tests upserts of tool calls without a connection, which would be too slow for every case.

use super::{encode_live, encode_replayed};
use crate::tests::events;
use serde_json::{Value, json};
use std::path::PathBuf;
use turnery_engine::{
    CallDetail, CallKind, Content, Disposition, EventKind, Location, ToolEnvelope, ToolErrorKind,
};

fn call_requested() -> EventKind {
    let detail = CallDetail {
        title: "make".to_owned(),
        kind: CallKind::Execute,
        locations: vec![Location {
            path: PathBuf::from("/w/a"),
            line: Some(3),
        }],
        ..CallDetail::default()
    };
    events::call_requested("shell", json!({"command": "make"}), detail)
}

fn call_ended(envelope: ToolEnvelope, disposition: Disposition) -> EventKind {
    events::call_ended("shell", envelope, disposition)
}

#[test]
fn hidden_characters_in_titles_are_visible() {
    let mut asked = call_requested();
    if let EventKind::ToolCallRequested { detail, .. } = &mut asked {
        detail.title = "rm\u{200b} a\u{202e}\nb".to_owned();
    }
    let told = encode_live(vec![asked]);
    assert_eq!(told[0]["title"], "rm⟨U+200B⟩ a⟨U+202E⟩ \u{23ce} b");
}

#[test]
fn plan_is_not_sent_as_tool_call() {
    for told in [
        encode_live(crate::tests::plan::plan_call_events()),
        encode_replayed(crate::tests::plan::plan_call_events()),
    ] {
        let sorts: Vec<&Value> = told.iter().map(|update| &update["sessionUpdate"]).collect();
        assert_eq!(sorts, ["plan_update"], "{told:?}");
    }
}

fn last_update(kinds: Vec<EventKind>) -> Value {
    encode_live(kinds).pop().unwrap()
}

// proves: V2-12
/// Omitted fields keep their values; a list that became empty is cleared.
#[test]
fn update_holds_only_changed_fields() {
    let changed = events::call_updated(CallDetail {
        title: "make all".to_owned(),
        kind: CallKind::Execute,
        ..CallDetail::default()
    });
    let told = encode_live(vec![call_requested(), changed.clone(), changed]);
    assert_eq!(
        told,
        [
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "name": "shell",
                "title": "make", "kind": "execute", "status": "pending",
                "locations": [{"path": "/w/a", "line": 3}], "rawInput": {"command": "make"}}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1",
                "title": "make all", "locations": []}),
        ]
    );
}

// proves: V2-12
/// Each disposition has its status.
#[test]
fn each_disposition_has_its_status() {
    let failed = |kind| ToolEnvelope::failed(kind, "no");
    for (envelope, disposition, status) in [
        (ToolEnvelope::text("ok"), Disposition::Executed, "completed"),
        (
            failed(ToolErrorKind::ExecutionError),
            Disposition::Executed,
            "failed",
        ),
        (failed(ToolErrorKind::Denied), Disposition::Denied, "failed"),
        (
            failed(ToolErrorKind::Timeout),
            Disposition::TimedOut,
            "failed",
        ),
        (
            failed(ToolErrorKind::Skipped),
            Disposition::Skipped,
            "failed",
        ),
        (
            failed(ToolErrorKind::Cancelled),
            Disposition::Cancelled,
            "cancelled",
        ),
    ] {
        let end = last_update(vec![call_requested(), call_ended(envelope, disposition)]);
        assert_eq!(end["status"], status, "{disposition:?}");
    }
}

// proves: V2-13
/// An exited terminal has an exit status; its output is not repeated, but the failure text is.
#[test]
fn terminal_reports_exit_status() {
    let exit = |value: Value| {
        let mut envelope = ToolEnvelope::failed(ToolErrorKind::ExecutionError, "out\nit broke");
        envelope.value = Some(value);
        let end = call_ended(envelope, Disposition::Executed);
        let told = encode_live(vec![call_requested(), events::call_printed("out\n"), end]);
        let content = &told.last().unwrap()["content"];
        assert_eq!(
            content,
            &json!([{"type": "terminal", "terminalId": "c1.terminal"},
                {"type": "content", "content": {"type": "text", "text": "it broke"}}])
        );
        told[told.len() - 2]["exitStatus"].clone()
    };
    assert_eq!(exit(json!({"exit_code": 2})), json!({"exitCode": 2}));
    assert_eq!(exit(json!({"signal": "9"})), json!({"signal": "SIGKILL"}));
    assert_eq!(
        exit(json!({"signal": "SIGTERM"})),
        json!({"signal": "SIGTERM"})
    );
    assert_eq!(exit(json!({"signal": "99"})), json!({}));
    assert_eq!(exit(json!({})), json!({}));
}

// proves: V2-12
/// A replay shows only the end; calls that never ended appear ended.
#[test]
fn replayed_call_is_sent_once_in_final_state() {
    let done = call_ended(ToolEnvelope::text("out"), Disposition::Executed);
    let told = encode_replayed(vec![call_requested(), events::call_printed("out"), done]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["status"], "completed");
    assert_eq!(
        told[0]["content"][0]["content"]["text"],
        "```console\nout\n```"
    );
    let told = encode_replayed(vec![call_requested(), events::loop_cancelled()]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["status"], "failed");
}

/// Progress is shown as content of the call.
#[test]
fn progress_is_shown() {
    let says = EventKind::ToolProgress {
        call_id: events::call_id(),
        text: "half".to_owned(),
    };
    let shown = last_update(vec![call_requested(), says]);
    let half = Content::text("half");
    assert_eq!(
        shown["content"],
        json!([{"type": "content", "content": half}])
    );
}
