//! Calls as upserts, where a connection would be too slow to show each case.

use super::{live, replayed};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};
use turnery_engine::{
    CallDetail, CallId, CallKind, Content, Disposition, EventKind, FailureKind, Location, Outcome,
    ToolCall, ToolEnvelope, TurnStop, Usage,
};

fn id() -> CallId {
    CallId::from("c1")
}

fn requested() -> EventKind {
    EventKind::ToolCallRequested {
        call: ToolCall {
            call_id: id(),
            name: "shell".to_owned(),
            args: Arc::new(json!({"command": "make"})),
        },
        detail: CallDetail {
            title: "make".to_owned(),
            kind: CallKind::Execute,
            locations: vec![Location {
                path: PathBuf::from("/w/a"),
                line: Some(3),
            }],
            ..CallDetail::default()
        },
    }
}

fn printed(text: &str) -> EventKind {
    EventKind::ToolExecutionOutput {
        call_id: id(),
        text: text.to_owned(),
    }
}

fn ended(envelope: ToolEnvelope, disposition: Disposition) -> EventKind {
    EventKind::ToolExecutionEnd {
        call_id: id(),
        tool_name: "shell".to_owned(),
        envelope,
        disposition,
        child_loop_id: None,
    }
}

#[test]
fn titles_hide_nothing() {
    let mut asked = requested();
    if let EventKind::ToolCallRequested { detail, .. } = &mut asked {
        detail.title = "rm\u{200b} a\u{202e}\nb".to_owned();
    }
    let told = live(vec![asked]);
    assert_eq!(told[0]["title"], "rm⟨U+200B⟩ a⟨U+202E⟩ \u{23ce} b");
}

#[test]
fn a_plan_is_no_tool_call() {
    for told in [
        live(crate::tests::plan::planning()),
        replayed(crate::tests::plan::planning()),
    ] {
        let sorts: Vec<&Value> = told.iter().map(|update| &update["sessionUpdate"]).collect();
        assert_eq!(sorts, ["plan_update"], "{told:?}");
    }
}

fn last(kinds: Vec<EventKind>) -> Value {
    live(kinds).pop().unwrap()
}

// proves: V2-12
/// Fields that are not said stay, and a list that is empty now is cleared.
#[test]
fn a_patch_says_what_has_changed() {
    let changed = EventKind::ToolExecutionUpdate {
        call_id: id(),
        detail: CallDetail {
            title: "make all".to_owned(),
            kind: CallKind::Execute,
            ..CallDetail::default()
        },
    };
    let told = live(vec![requested(), changed.clone(), changed]);
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
/// Each way to end has its status.
#[test]
fn each_end_has_its_status() {
    let failed = |kind| ToolEnvelope::failed(kind, "no");
    for (envelope, disposition, status) in [
        (ToolEnvelope::text("ok"), Disposition::Executed, "completed"),
        (
            failed(FailureKind::ExecutionError),
            Disposition::Executed,
            "failed",
        ),
        (failed(FailureKind::Denied), Disposition::Denied, "failed"),
        (
            failed(FailureKind::Timeout),
            Disposition::TimedOut,
            "failed",
        ),
        (failed(FailureKind::Skipped), Disposition::Skipped, "failed"),
        (
            failed(FailureKind::Cancelled),
            Disposition::Cancelled,
            "cancelled",
        ),
    ] {
        let end = last(vec![requested(), ended(envelope, disposition)]);
        assert_eq!(end["status"], status, "{disposition:?}");
    }
}

// proves: V2-13
/// An exited terminal says how; what it printed is not said again, but how it ended is.
#[test]
fn a_terminal_says_how_it_exited() {
    let exit = |value: Value| {
        let mut envelope = ToolEnvelope::failed(FailureKind::ExecutionError, "out\nit broke");
        envelope.value = Some(value);
        let end = ended(envelope, Disposition::Executed);
        let told = live(vec![requested(), printed("out\n"), end]);
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
/// Of an earlier time only the end is said; what never ended looks ended.
#[test]
fn a_replayed_call_is_said_once_in_its_end() {
    let done = ended(ToolEnvelope::text("out"), Disposition::Executed);
    let told = replayed(vec![requested(), printed("out"), done]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["status"], "completed");
    assert_eq!(
        told[0]["content"][0]["content"]["text"],
        "```console\nout\n```"
    );
    let stopped = EventKind::LoopEnd {
        outcome: Outcome::Stopped(TurnStop::RuntimeError),
        detail: None,
        usage: Usage::default(),
        rejection: None,
    };
    let told = replayed(vec![requested(), stopped]);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["status"], "failed");
}

/// How far a call is stands beside what it shows.
#[test]
fn progress_is_shown() {
    let says = EventKind::ToolProgress {
        call_id: id(),
        text: "half".to_owned(),
    };
    let shown = last(vec![requested(), says]);
    let half = Content::text("half");
    assert_eq!(
        shown["content"],
        json!([{"type": "content", "content": half}])
    );
}
