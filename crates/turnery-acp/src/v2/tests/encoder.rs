//! Tests the encoding of events as v2 updates, live and replayed.

use super::{encode_live, encode_replayed};
use crate::tests::{
    encoder::{assistant, config},
    events::{loop_end, loop_start, message_end, text_delta},
};
use serde_json::{Value, json};
use turnery_engine::{
    Content, ContextSize, EventKind, ImageData, LimitKind, Message, ModelError, ModelErrorKind,
    Outcome, PlanEntry, PlanPriority, PlanStatus, ReachedLimit, TurnFinish, TurnStop, Usage,
};

fn conversation() -> Vec<EventKind> {
    let image = Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "AAAA".into(),
    });
    let thought = Content::Thinking {
        text: "hm".to_owned(),
        signature: None,
    };
    let content = vec![Content::text("hi"), image];
    vec![
        message_end("m1", Message::User { content }),
        message_end("m2", assistant(vec![thought, Content::text("hello")])),
    ]
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

// proves: V2-6, V2-11
/// A message that was not streamed is sent whole with its id, live and replayed alike; thoughts are separate
/// messages.
#[test]
fn messages_are_sent_whole_with_ids() {
    let whole = [
        json!({"sessionUpdate": "user_message", "messageId": "m1", "content": [
            text_block("hi"), {"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
        json!({"sessionUpdate": "agent_thought", "messageId": "m2", "content": [text_block("hm")]}),
        json!({"sessionUpdate": "agent_message", "messageId": "m2", "content": [text_block("hello")]}),
    ];
    assert_eq!(encode_live(conversation()), whole);
    assert_eq!(encode_replayed(conversation()), whole);
}

// proves: V2-11
/// Streamed text is not repeated.
#[test]
fn streamed_text_is_not_repeated() {
    let mut kinds = vec![text_delta("m2", "hel"), text_delta("m2", "lo")];
    kinds.extend(conversation().pop());
    let chunk = |text| json!({"sessionUpdate": "agent_message_chunk", "messageId": "m2", "content": text_block(text)});
    assert_eq!(encode_live(kinds), [chunk("hel"), chunk("lo")]);
}

/// A plan is sent whole, always with the same id.
#[test]
fn plan_has_stable_id() {
    let kinds = || {
        vec![EventKind::PlanUpdated {
            entries: vec![PlanEntry {
                content: "do\u{202e} it".to_owned(),
                priority: PlanPriority::High,
                status: PlanStatus::InProgress,
            }],
        }]
    };
    let plan = json!({"sessionUpdate": "plan_update", "plan": {
        "type": "items",
        "planId": "s1.plan",
        "entries": [{"content": "do⟨U+202E⟩ it", "priority": "high", "status": "in_progress"}],
    }});
    let plan = [plan];
    assert_eq!(encode_live(kinds()), plan);
    assert_eq!(encode_replayed(kinds()), plan);
}

/// Notices and compactions need no capability in v2; a replay omits notices and failed compactions.
#[test]
fn notices_are_separate_updates() {
    let size = ContextSize::default();
    let kinds = || {
        vec![
            EventKind::Issue {
                text: "a hook failed".to_owned(),
            },
            EventKind::ModelRetried {
                attempt: 1,
                error: ModelError {
                    status: Some(529),
                    ..ModelError::new(ModelErrorKind::Overloaded, "too\u{1b} busy")
                },
                wait_ms: 1500,
            },
            EventKind::ModelSilent {
                silent_ms: 30_000,
                is_connected: false,
            },
            EventKind::CompactionStarted { before: size },
            EventKind::CompactionEnded {
                block: None,
                after: size,
                failure: Some("no\u{202e} model".to_owned()),
                usage: None,
            },
            loop_end(Outcome::Stopped(TurnStop::MaxTurns(ReachedLimit {
                kind: LimitKind::Turns,
                text: "Max turns reached (1/1)".to_owned(),
            }))),
        ]
    };
    let notice = |severity: &str, title: &str, text: &str| {
        json!({"sessionUpdate": "notice", "severity": severity, "title": title,
            "description": text})
    };
    assert_eq!(
        encode_live(kinds()),
        [
            notice("warning", "Something went wrong", "a hook failed"),
            notice(
                "info",
                "Retrying the model call",
                "Attempt 1: too⟨U+001B⟩ busy. The next one is in 1.5 s."
            ),
            notice(
                "info",
                "The model is silent",
                "The model has sent nothing for 30 s. Cancel the prompt if you do not want to wait."
            ),
            json!({"sessionUpdate": "compaction_update", "compactionId": "s1.offline.0.0",
                "status": "in_progress"}),
            json!({"sessionUpdate": "compaction_update", "compactionId": "s1.offline.0.0",
                "status": "failed", "error": "no⟨U+202E⟩ model"}),
            notice(
                "warning",
                "The prompt reached a limit",
                "Max turns reached (1/1)"
            ),
        ]
    );
    assert_eq!(encode_replayed(kinds()), [] as [Value; 0]);
}

/// Context usage is sent only if the size of the context window is known; a value that ends a loop is shown
/// once.
#[test]
fn usage_and_final_values_are_sent() {
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    let reported = || EventKind::UsageReported {
        usage: Some(usage),
        cumulative: usage,
    };
    let value = json!("42");
    let finish = TurnFinish::FinalValue {
        value: value.clone(),
    };
    let kinds = vec![
        loop_start(Some(config(Some(100)))),
        reported(),
        EventKind::FinalValue { value },
        loop_end(Outcome::Finished(finish, None)),
    ];
    assert_eq!(
        encode_live(kinds),
        [
            json!({"sessionUpdate": "state_update", "state": "running"}),
            json!({"sessionUpdate": "usage_update", "used": 15, "size": 100}),
            json!({"sessionUpdate": "agent_message", "messageId": "s1.offline.0.value",
                "content": [text_block("42")]}),
        ]
    );
    let unknown = encode_live(vec![loop_start(Some(config(None))), reported()]);
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}
