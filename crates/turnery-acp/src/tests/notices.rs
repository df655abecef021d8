//! Tests updates other than messages: notices, compactions, final values, usage of child sessions, loop
//! lineage and tool progress.

use super::{
    events,
    support::{
        ALL_UPDATES, NO_OPTIONAL_UPDATES, encode, encode_live, encode_replayed, event, live,
    },
};
use crate::client::features::OptionalUpdates;
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{
    CallDetail, ChildUsage, CompactionBlock, ContextSize, ContinuationKind, Disposition, Event,
    EventKind, Frame, LimitKind, LlmMessage, LoopId, Message, ModelError, ModelErrorKind, Outcome,
    ReachedLimit, SessionId, Timestamp, ToolEnvelope, TurnFinish, TurnStop, Usage,
};

const NO_UPDATES: [Value; 0] = [];

fn loop_end_event(outcome: Outcome) -> Event {
    event(9, events::loop_end(outcome))
}

/// Returns the start of a loop that continues another one.
fn loop_start_event(kind: ContinuationKind, opened_frame: Option<Frame>) -> Event {
    let mut start = events::loop_start(None);
    if let EventKind::LoopStart {
        parent_loop_id,
        continuation_kind,
        tag,
        frame_id,
        frame,
        ..
    } = &mut start
    {
        *parent_loop_id = Some(LoopId::from("s1.offline.9"));
        *continuation_kind = kind;
        *tag = Some("2026-11-21T09:00:00Z".to_owned());
        *frame_id = opened_frame.as_ref().map(|frame| frame.frame_id.clone());
        *frame = opened_frame.map(Box::new);
    }
    event(0, start)
}

fn value_chunk(text: &str) -> Value {
    json!({
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": text},
        "messageId": "s1.offline.0.value",
    })
}

fn meta_only(members: Value) -> Value {
    json!({"sessionUpdate": "session_info_update", "_meta": {"turnery": members}})
}

/// A value that ends a loop is shown as text once, whether a separate event or only the end of the loop holds
/// it.
// proves: LASH-68
#[test]
fn final_value_is_shown_once_as_text() {
    let rows = [
        (json!("plain"), "plain"),
        (json!({"n": [1]}), "{\n  \"n\": [\n    1\n  ]\n}"),
        (json!(true), "true"),
        (json!(-1.5), "-1.5"),
        (json!(""), ""),
        (Value::Null, ""),
    ];
    for (value, text) in rows {
        let expected: Vec<Value> = if text.is_empty() {
            vec![]
        } else {
            vec![value_chunk(text)]
        };
        let tool_name = || "t".to_owned();
        let v = || value.clone();
        let told = [
            (
                Some(EventKind::FinalValue { value: v() }),
                Outcome::Finished(TurnFinish::FinalValue { value: v() }, None),
            ),
            (
                Some(EventKind::ToolValue {
                    tool_name: tool_name(),
                    value: v(),
                }),
                Outcome::Finished(
                    TurnFinish::ToolValue {
                        tool_name: tool_name(),
                        value: v(),
                    },
                    None,
                ),
            ),
            (
                None,
                Outcome::Stopped(TurnStop::SubmittedError { value: v() }),
            ),
            (
                None,
                Outcome::Stopped(TurnStop::ToolError {
                    tool_name: tool_name(),
                    value: v(),
                }),
            ),
        ];
        for (shown, outcome) in told {
            let mut events = Vec::from_iter(shown.map(|kind| event(1, kind)));
            events.push(loop_end_event(outcome));
            assert_eq!(encode_live(&events), expected, "{events:?}");
            assert_eq!(encode_replayed(&events), expected, "{events:?}");
        }
    }
}

/// NOTE-1, LOAD-6: notices for clients that support them, `_meta` for others; nothing in a replay.
// proves: NOTE-1, LOAD-6
#[test]
fn notices_fall_back_to_meta() {
    let fault = ModelError {
        status: Some(529),
        ..ModelError::new(
            ModelErrorKind::Overloaded,
            "529 from\u{1b}[2J the\u{202e} provider.",
        )
    };
    let rows = [
        (
            EventKind::ModelRetried {
                attempt: 2,
                error: fault,
                wait_ms: 1_570,
            },
            "info",
            "Retrying the model call",
            "Attempt 2: 529 from⟨U+001B⟩[2J the⟨U+202E⟩ provider. The next one is in 1.5 s.",
        ),
        (
            EventKind::ModelSilent {
                silent_ms: 30_400,
                is_connected: true,
            },
            "info",
            "The model is silent",
            "The model has sent nothing for 30 s, but its connection is alive. Cancel the prompt if you do not want to wait.",
        ),
        (
            EventKind::ModelSilent {
                silent_ms: 60_000,
                is_connected: false,
            },
            "info",
            "The model is silent",
            "The model has sent nothing for 60 s. Cancel the prompt if you do not want to wait.",
        ),
        (
            EventKind::Issue {
                text: "A hook failed.".to_owned(),
            },
            "warning",
            "Something went wrong",
            "A hook failed.",
        ),
        (
            EventKind::InputRejected {
                reason: "No secrets, please.".to_owned(),
            },
            "warning",
            "The input was refused",
            "No secrets, please.",
        ),
        (
            events::loop_end(Outcome::Stopped(TurnStop::MaxTurns(ReachedLimit {
                kind: LimitKind::Turns,
                text: "Max turns reached (5/5)".to_owned(),
            }))),
            "warning",
            "The prompt reached a limit",
            "Max turns reached (5/5)",
        ),
    ];
    for (kind, severity, title, description) in rows {
        let event = &[event(1, kind)];
        let told = json!({"severity": severity, "title": title, "description": description});
        let mut notice = told.clone();
        notice["sessionUpdate"] = json!("notice");
        assert_eq!(encode_live(event), [notice]);
        assert_eq!(
            encode(event, NO_OPTIONAL_UPDATES, live),
            [meta_only(json!({ "notice": told }))]
        );
        assert_eq!(encode_replayed(event), NO_UPDATES);
    }
}

fn compaction(block: Option<CompactionBlock>, failure: Option<&str>) -> [Event; 3] {
    let size = |tokens, messages| ContextSize { tokens, messages };
    let mut begin = loop_start_event(ContinuationKind::Initial, None);
    if let EventKind::LoopStart { config, .. } = &mut begin.kind {
        *config = Some(Box::new(super::encoder::config(Some(1000))));
    }
    let started = EventKind::CompactionStarted {
        before: size(950, 40),
    };
    let ended = EventKind::CompactionEnded {
        block,
        after: size(100, 12),
        failure: failure.map(str::to_owned),
        usage: None,
    };
    let mut events = [begin, event(1, started), event(2, ended)];
    for (seq, event) in (6..).zip(&mut events) {
        event.seq = seq;
    }
    events
}

fn compaction_block() -> CompactionBlock {
    CompactionBlock {
        keep_first: Vec::new(),
        keep_compacted: vec![Arc::new(LlmMessage {
            message_id: "k1".into(),
            turn_id: None,
            message: Message::user("What was done"),
        })],
        keep_recent: Vec::new(),
        through: "m1".into(),
        created_at: Timestamp::default(),
    }
}

/// COMP-1, COMP-2: one start, one end, and updated context usage.
// proves: COMP-1, COMP-2
#[test]
fn compaction_starts_and_ends_once() {
    let usage = json!({"sessionUpdate": "usage_update", "used": 100, "size": 1000});
    let id = "s1.offline.0.7";
    let summary = json!([{"type": "text", "text": "What was done"}]);
    let ends = [
        (
            compaction(Some(compaction_block()), None),
            json!({"compactionId": id, "status": "completed", "summary": summary}),
        ),
        (
            compaction(None, Some("no model")),
            json!({"compactionId": id, "status": "failed", "error": "no model"}),
        ),
        (
            compaction(None, None),
            json!({"compactionId": id, "status": "cancelled"}),
        ),
    ];
    for (events, ended) in ends {
        let begun = json!({"compactionId": id, "status": "in_progress"});
        let named = |update: &Value| {
            let mut update = update.clone();
            update["sessionUpdate"] = json!("compaction_update");
            update
        };
        assert_eq!(
            encode_live(&events),
            [named(&begun), named(&ended), usage.clone()]
        );
        let notices_only = OptionalUpdates {
            compaction: false,
            ..ALL_UPDATES
        };
        assert_eq!(
            encode(&events, notices_only, live),
            [
                meta_only(json!({ "compaction": begun })),
                meta_only(json!({ "compaction": ended })),
                usage.clone()
            ]
        );
        // A replay has one update for a completed compaction, none for a failed one.
        let again: Vec<Value> = match ended["status"] == "completed" {
            true => vec![named(&ended)],
            false => vec![],
        };
        assert_eq!(encode_replayed(&events), again);
    }
}

fn input_usage(input: u64) -> Usage {
    Usage {
        input,
        ..Usage::default()
    }
}

fn usage_json(input: u64) -> Value {
    json!({"input": input, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0,
        "total_tokens": input})
}

fn child_usage(session: &str, model: &str, cumulative: u64) -> Event {
    event(
        3,
        EventKind::ChildUsageReported {
            call_id: "c1".into(),
            child: ChildUsage {
                session_id: SessionId::from(session),
                source: "subagent".to_owned(),
                model: model.to_owned(),
                iteration: 0,
                usage: None,
                cumulative: input_usage(cumulative),
            },
        },
    )
}

/// A call names its child session; the usage of child sessions is in `_meta` of the context usage, which does
/// not count it.
// proves: I6, I7, C-17, THEME-14
#[test]
fn child_usage_is_separate_from_context_usage() {
    let [mut begin, ..] = compaction(None, None);
    if let EventKind::LoopStart { tag, .. } = &mut begin.kind {
        *tag = None;
    }
    let call = events::call_requested("delegate", json!({}), CallDetail::default());
    let used = EventKind::UsageReported {
        usage: Some(input_usage(40)),
        cumulative: input_usage(40),
    };
    let ended = EventKind::ToolExecutionEnd {
        call_id: "c1".into(),
        tool_name: "delegate".to_owned(),
        envelope: ToolEnvelope::text("done"),
        disposition: Disposition::Executed,
        child_loop_id: Some(LoopId::from("s2.offline.1")),
    };
    let updates = encode_live(&[
        begin,
        event(1, used),
        event(2, call),
        child_usage("s2", "a/b", 5),
        child_usage("s2", "a/b", 9),
        child_usage("s3", "a/b", 1),
        event(4, ended),
    ]);
    assert_eq!(updates.len(), 8, "{updates:#?}");
    assert_eq!(
        updates[0],
        json!({"sessionUpdate": "usage_update", "used": 40, "size": 1000})
    );
    assert_eq!(updates[1]["sessionUpdate"], "tool_call");
    let of_child = |session: &str| {
        json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "_meta": {"turnery": {"childSessionId": session}},
        })
    };
    assert_eq!(updates[2], of_child("s2"));
    let usage = |children: u64| {
        let row = json!({"source": "subagent", "model": "a/b", "usage": usage_json(children)});
        json!({
            "sessionUpdate": "usage_update", "used": 40, "size": 1000,
            "_meta": {"turnery": {
                "usage": usage_json(40),
                "childrenUsage": [row],
                "totalUsage": usage_json(40 + children),
            }},
        })
    };
    assert_eq!(updates[3], usage(5));
    assert_eq!(updates[4], usage(9));
    assert_eq!(updates[5], of_child("s3"));
    assert_eq!(updates[6], usage(10));
    assert_eq!(
        updates[7]["_meta"],
        json!({"turnery": {"childLoopId": "s2.offline.1", "childSessionId": "s2"}})
    );
}

/// ACP has no loops: their lineage is in `_meta`.
#[test]
fn loop_lineage_is_in_meta() {
    assert_eq!(
        encode_live(&[loop_start_event(ContinuationKind::Initial, None)]),
        NO_UPDATES
    );
    for (kind, word) in [
        (ContinuationKind::Default, "default"),
        (ContinuationKind::Rerun, "rerun"),
        (ContinuationKind::Branch, "branch"),
        (ContinuationKind::Compaction, "compaction"),
    ] {
        let told = json!({
            "loopId": "s1.offline.0",
            "continuationKind": word,
            "parentLoopId": "s1.offline.9",
            "tag": "2026-11-21T09:00:00Z",
        });
        let events = [loop_start_event(kind, None)];
        assert_eq!(encode_live(&events), [meta_only(json!({"loop": told}))]);
        assert_eq!(encode_replayed(&events), [meta_only(json!({"loop": told}))]);
    }
    let frame = Frame {
        frame_id: "f1".into(),
        parent_frame_id: None,
        opened_by: LoopId::from("s1.offline.9"),
        task: "the rest".to_owned(),
    };
    let updates = encode_live(&[loop_start_event(ContinuationKind::Initial, Some(frame))]);
    let told = &updates[0]["_meta"]["turnery"]["loop"];
    assert_eq!(told["frameId"], "f1");
    assert_eq!(told["task"], "the rest");
}

/// Progress text precedes the output and replaces earlier progress.
// proves: TURN-46
#[test]
fn progress_is_shown_before_output() {
    let call = events::call_requested("build", json!({}), CallDetail::default());
    let text = |text: &str| json!({"type": "content", "content": {"type": "text", "text": text}});
    let progress = |sentence: &str| {
        event(
            3,
            EventKind::ToolProgress {
                call_id: "c1".into(),
                text: sentence.to_owned(),
            },
        )
    };
    let events = [
        event(1, call),
        progress("1 of 2"),
        event(4, events::call_printed("one\n")),
        progress("2 of 2"),
    ];
    let contents: Vec<Value> = encode_live(&events)
        .into_iter()
        .filter(|update| update["sessionUpdate"] == "tool_call_update")
        .map(|update| update["content"].clone())
        .collect();
    let fence = "```console\none\n```";
    assert_eq!(
        contents,
        [
            json!([text("1 of 2")]),
            json!([text("1 of 2"), text(fence)]),
            json!([text("2 of 2"), text(fence)]),
        ]
    );
}
