//! Tests the updates of tool calls (TOOL-1 to TOOL-11, LOAD-7).

use super::{
    events,
    support::{encode_live, encode_replayed, event},
};
use agent_client_protocol_schema::v1::{ToolCall, ToolCallStatus, ToolKind};
use serde_json::{Value, json};
use turnery_engine::{
    Artifact, CallDetail, CallKind, Content, Disposition, Event, EventKind, Location, ToolEnvelope,
    ToolErrorKind,
};

fn call_requested(kind: CallKind) -> Event {
    event(
        0,
        events::call_requested("tool", json!({"x": 1}), detail(kind)),
    )
}

fn call_started(runs: bool) -> Event {
    event(1, events::call_started("tool", runs))
}

fn call_printed(at: i64, text: &str) -> Event {
    event(at, events::call_printed(text))
}

fn call_ended(envelope: ToolEnvelope, disposition: Disposition) -> Event {
    event(9, events::call_ended("tool", envelope, disposition))
}

fn detail(kind: CallKind) -> CallDetail {
    CallDetail {
        title: "Do it".to_owned(),
        kind,
        locations: vec![Location {
            path: "/w/a".into(),
            line: None,
        }],
        artifacts: Vec::new(),
    }
}

/// Hidden characters in a title are made visible.
#[test]
fn hidden_characters_in_titles_are_visible() {
    let hidden = CallDetail {
        title: "rm\u{200b} a\u{202e}\nb".to_owned(),
        ..detail(CallKind::Other)
    };
    let mut asked = call_requested(CallKind::Other);
    if let EventKind::ToolCallRequested { detail, .. } = &mut asked.kind {
        *detail = hidden.clone();
    }
    let changed = events::call_updated(hidden);
    let told = "rm⟨U+200B⟩ a⟨U+202E⟩ \u{23ce} b";
    assert_eq!(encode_live(&[asked])[0]["title"], told);
    let updates = encode_live(&[call_requested(CallKind::Other), event(1, changed)]);
    assert_eq!(updates[1]["title"], told);
}

fn announced_call() -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": "c1",
        "title": "Do it",
        "name": "tool",
        "kind": "read",
        "locations": [{"path": "/w/a"}],
        "rawInput": {"x": 1},
    })
}

fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

// proves: ACP-23, ACP-25, ACP-26, ACP-34, ACP-37, ACP-38, TOOL-1, TOOL-3, TOOL-4, TOOL-6, TOOL-10, RPC-21
#[test]
fn call_goes_from_pending_to_completed() {
    let updates = encode_live(&[
        call_requested(CallKind::Read),
        call_started(true),
        call_ended(ToolEnvelope::text("found"), Disposition::Executed),
    ]);
    let expected = [
        announced_call(),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress"}),
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "status": "completed",
            "content": [text_content("found")],
        }),
    ];
    assert_eq!(updates, expected);
}

/// Clients take an absent status as pending, and an absent kind as `other`.
// proves: ACP-26, ACP-27, TOOL-1, ACP-34
#[test]
fn default_kind_and_status_are_left_out() {
    let updates = encode_live(&[call_requested(CallKind::Other), call_started(true)]);
    let mut expected = announced_call();
    expected.as_object_mut().unwrap().remove("kind");
    assert_eq!(updates[0], expected);
    assert_eq!(updates[1]["status"], "in_progress");
    let call: ToolCall = serde_json::from_value(updates[0].clone()).unwrap();
    let read = (call.kind, call.status);
    assert_eq!(read, (ToolKind::Other, ToolCallStatus::Pending));
}

/// A call that is denied, skipped or cancelled before it runs goes from `pending` straight to `failed`
/// (TOOL-3, TOOL-11, CANCEL-10).
// proves: R2, C-24, UP-36, TOOL-3, TOOL-4, TOOL-11, CANCEL-10
#[test]
fn call_that_did_not_run_fails_from_pending() {
    let no = || vec![text_content("no")];
    for (kind, disposition, word, content) in [
        (ToolErrorKind::Denied, Disposition::Denied, "denied", no()),
        (
            ToolErrorKind::Skipped,
            Disposition::Skipped,
            "skipped",
            no(),
        ),
        (
            ToolErrorKind::Cancelled,
            Disposition::Cancelled,
            "cancelled",
            vec![text_content("no"), text_content("cancelled")],
        ),
    ] {
        let events = [
            call_requested(CallKind::Read),
            call_started(false),
            call_ended(ToolEnvelope::failed(kind, "no"), disposition),
        ];
        let updates = encode_live(&events);
        assert_eq!(updates.len(), 2);
        assert_eq!(updates[0], announced_call());
        let again = encode_replayed(&events);
        assert_eq!(again.len(), 1);
        for update in [&updates[1], &again[0]] {
            assert_eq!(update["status"], "failed");
            assert_eq!(update["content"], json!(content));
            assert_eq!(update["rawOutput"]["error"]["message"], "no");
            assert_eq!(update["_meta"], json!({"turnery": {"disposition": word}}));
        }
    }
}

/// An update of a call holds only changed fields, each list as a whole, and the diff before other content
/// (TOOL-5, TOOL-8).
// proves: ACP-35, TOOL-5, TOOL-8, G-22
#[test]
fn call_update_holds_only_changed_fields() {
    let mut with_diff = detail(CallKind::Edit);
    with_diff.artifacts = vec![
        Artifact::Content(Content::text("note")),
        Artifact::Diff {
            path: "/w/a".into(),
            old: None,
            new: "x".to_owned(),
            from_line: None,
        },
    ];
    let shows = |detail: &CallDetail| event(2, events::call_updated(detail.clone()));
    let updates = encode_live(&[
        call_requested(CallKind::Edit),
        call_started(true),
        shows(&detail(CallKind::Edit)),
        shows(&with_diff),
        shows(&with_diff),
    ]);
    assert_eq!(updates.len(), 3, "{updates:?}");
    assert_eq!(updates[1]["status"], "in_progress");
    let expected = json!({
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "content": [{"type": "diff", "path": "/w/a", "newText": "x"}, text_content("note")],
    });
    assert_eq!(updates[2], expected);
}

// proves: G-22
#[test]
fn output_is_fenced_and_terminal_is_kept() {
    let updates = encode_live(&[
        call_requested(CallKind::Execute),
        call_printed(2, "one\n"),
        call_ended(ToolEnvelope::text("one\ntwo"), Disposition::Executed),
    ]);
    assert_eq!(
        updates[1]["content"],
        json!([text_content("```console\none\n```")])
    );
    assert_eq!(
        updates[2]["content"],
        json!([text_content("```console\none\ntwo\n```")])
    );

    let mut in_terminal = detail(CallKind::Execute);
    in_terminal.artifacts = vec![Artifact::Terminal {
        terminal_id: "t1".to_owned(),
    }];
    let updates = encode_live(&[
        call_requested(CallKind::Execute),
        event(2, events::call_updated(in_terminal)),
        call_printed(3, "one\n"),
        call_ended(ToolEnvelope::text("one"), Disposition::Executed),
    ]);
    let terminal = json!([{"type": "terminal", "terminalId": "t1"}]);
    assert_eq!(updates.len(), 3, "{updates:?}");
    assert_eq!(updates[1]["content"], terminal);
    assert_eq!(updates[2]["content"], terminal);
}

/// The updates stay proportional to the output, and each one is bounded (THEME-8).
// proves: THEME-8, G-14, ACP-35
#[test]
fn output_is_not_resent_whole() {
    let mut events = vec![call_requested(CallKind::Execute), call_started(true)];
    let line = format!("{}\n", "x".repeat(99));
    events.extend((0..10_000).map(|_| call_printed(2, &line)));
    let updates = encode_live(&events);
    let sent: usize = updates.iter().map(|update| update.to_string().len()).sum();
    let longest = updates.iter().map(|update| update.to_string().len()).max();
    assert!(updates.len() > 100, "{}", updates.len());
    assert!(sent < 6_000_000, "{sent} bytes for 1,000,000 printed");
    assert!(longest < Some(10_000), "{longest:?}");
}

/// Output of a slow command is shown as it arrives, not only when there is much of it.
// proves: THEME-8
#[test]
fn pause_flushes_small_output() {
    let big = "x".repeat(8000);
    let updates = encode_live(&[
        call_requested(CallKind::Execute),
        call_printed(2, &big),
        call_printed(100, "a"),
        call_printed(252, "b"),
    ]);
    assert_eq!(updates.len(), 3, "{}", updates.len());
    let shown = updates[2]["content"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(
        shown.ends_with("xab\n```"),
        "{}",
        &shown[shown.len() - 20..]
    );
}

/// Arguments that would make a huge line are left out (TR-9).
// proves: TR-9, G-14
#[test]
fn huge_arguments_are_omitted() {
    let args = json!({"text": "x".repeat(100_000)});
    let call = events::call_requested("tool", args, detail(CallKind::Other));
    let updates = encode_live(&[event(0, call)]);
    assert_eq!(updates[0].get("rawInput"), None);
    assert_eq!(updates[0]["toolCallId"], "c1");
}

/// A replay sends each call once, in its final state; a call that never ended has failed (LOAD-7).
// proves: LOAD-7
#[test]
fn replayed_call_is_sent_once_in_final_state() {
    let updates = encode_replayed(&[
        call_requested(CallKind::Read),
        call_started(true),
        call_ended(ToolEnvelope::text("found"), Disposition::Executed),
    ]);
    let mut expected = announced_call();
    expected["status"] = json!("completed");
    expected["content"] = json!([text_content("found")]);
    assert_eq!(updates, [expected]);

    let updates = encode_replayed(&[
        call_requested(CallKind::Read),
        call_started(true),
        event(9, events::loop_cancelled()),
    ]);
    let mut expected = announced_call();
    expected["status"] = json!("failed");
    assert_eq!(updates, [expected]);
}

/// TOOL-9: a stored terminal does not exist at this client, so its output is shown.
// proves: TOOL-9
#[test]
fn replayed_call_shows_output_instead_of_terminal() {
    let terminal = Artifact::Terminal {
        terminal_id: "t1".to_owned(),
    };
    let mut in_terminal = detail(CallKind::Execute);
    in_terminal.artifacts = vec![terminal.clone()];
    let mut envelope = ToolEnvelope::text("one");
    envelope.artifacts = vec![terminal];
    let shows = events::call_updated(in_terminal);
    let updates = encode_replayed(&[
        call_requested(CallKind::Execute),
        event(2, shows.clone()),
        call_ended(envelope, Disposition::Executed),
    ]);
    assert_eq!(
        updates[0]["content"],
        json!([text_content("```console\none\n```")])
    );
    let updates = encode_replayed(&[
        call_requested(CallKind::Execute),
        event(2, shows),
        event(3, events::loop_cancelled()),
    ]);
    assert_eq!(updates[0].get("content"), None);
}
