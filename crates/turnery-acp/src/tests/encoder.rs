//! Tests the encoding of events as v1 updates, live and replayed.

use super::{
    events::{loop_end, loop_start, message_end, text_delta},
    support::{encode_live, encode_replayed, event},
};
use serde_json::{Value, json};
use turnery_engine::{
    ConfigSnapshot, Content, DocumentData, EventKind, ImageData, Message, MessageId, MessageStop,
    ModelDelta, Outcome, PlanEntry, PlanPriority, PlanStatus, TurnFinish, Usage,
};

fn thinking_delta(text: &str) -> EventKind {
    let text = text.to_owned();
    EventKind::Delta {
        message_id: MessageId::from("m1"),
        delta: ModelDelta::Thinking { block: 0, text },
    }
}

pub(crate) fn assistant(content: Vec<Content>) -> Message {
    Message::Assistant {
        content,
        stop: MessageStop::Stop,
        model: "m".to_owned(),
        provider: "p".to_owned(),
        usage: None,
        error: None,
        request: None,
    }
}

fn conversation_content() -> Vec<Content> {
    vec![
        Content::Thinking {
            text: "hm".to_owned(),
            signature: Some("x".to_owned()),
        },
        Content::text("Hello"),
    ]
}

fn chunk_update(kind: &str, id: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": id})
}

pub(crate) fn config(window: Option<u32>) -> ConfigSnapshot {
    ConfigSnapshot {
        model: "m".to_owned(),
        provider: "p".to_owned(),
        context_window: window,
        ..ConfigSnapshot::default()
    }
}

fn start(window: Option<u32>) -> EventKind {
    loop_start(Some(config(window)))
}

fn usage_reported(input: u64) -> EventKind {
    EventKind::UsageReported {
        usage: Some(Usage {
            input,
            output: 5,
            ..Usage::default()
        }),
        cumulative: Usage::default(),
    }
}

// proves: ACP-20, ACP-21, C-18, MSG-1, MSG-2
#[test]
fn streamed_text_is_not_repeated_at_message_end() {
    let text = "quote \" slash \\ line\n tab\t nul\u{0} é ☃ 𝄞 \u{2028}";
    let updates = encode_live(&[
        event(0, thinking_delta("hm")),
        event(1, text_delta("m1", text)),
        event(2, message_end("m1", assistant(conversation_content()))),
    ]);
    assert_eq!(
        updates,
        [
            chunk_update("agent_thought_chunk", "m1", "hm"),
            chunk_update("agent_message_chunk", "m1", text)
        ]
    );
}

#[test]
fn unstreamed_answer_is_shown_at_message_end() {
    let updates = encode_live(&[event(
        0,
        message_end("m1", assistant(conversation_content())),
    )]);
    assert_eq!(
        updates,
        [
            chunk_update("agent_thought_chunk", "m1", "hm"),
            chunk_update("agent_message_chunk", "m1", "Hello")
        ]
    );
}

/// MSG-3, and content for the model only.
// proves: MSG-3, G-15
#[test]
fn live_prompt_is_not_echoed() {
    let user = Message::user("hi");
    let system = Message::System {
        text: "limit".to_owned(),
    };
    assert_eq!(
        encode_live(&[
            event(0, message_end("u", user)),
            event(0, message_end("s", system))
        ]),
        [] as [Value; 0]
    );
}

/// LOAD-1: all messages; LOAD-5: with the same ids.
// proves: MSG-3, LOAD-5
#[test]
fn replay_shows_whole_messages() {
    let image = ImageData {
        mime_type: "image/png".to_owned(),
        base64: "AAAA".into(),
    };
    let document = DocumentData {
        name: "/w/my report.pdf".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "JVBERi0=".into(),
    };
    let user = Message::User {
        content: vec![
            Content::text("hi"),
            Content::Image(image),
            Content::Document(document),
        ],
    };
    let system = Message::System {
        text: "limit".to_owned(),
    };
    let updates = encode_replayed(&[
        event(0, message_end("u1", user)),
        event(1, message_end("m1", assistant(conversation_content()))),
        event(2, message_end("s1", system)),
    ]);
    let picture = json!({
        "sessionUpdate": "user_message_chunk",
        "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        "messageId": "u1",
    });
    let document = json!({
        "sessionUpdate": "user_message_chunk",
        "content": {"type": "resource", "resource": {
            "uri": "file:///w/my%20report.pdf", "blob": "JVBERi0=", "mimeType": "application/pdf"}},
        "messageId": "u1",
    });
    let expected = [
        chunk_update("user_message_chunk", "u1", "hi"),
        picture,
        document,
        chunk_update("agent_thought_chunk", "m1", "hm"),
        chunk_update("agent_message_chunk", "m1", "Hello"),
    ];
    assert_eq!(updates, expected);
}

/// PLAN-2.
// proves: ACP-14, ACP-15, ACP-16, ACP-17, ACP-18, ACP-19, UP-40, PLAN-2
#[test]
fn plan_update_holds_all_entries() {
    let entry = |content: &str, priority, status| PlanEntry {
        content: content.to_owned(),
        priority,
        status,
    };
    let plan = event(
        0,
        EventKind::PlanUpdated {
            entries: vec![
                entry("a", PlanPriority::High, PlanStatus::Completed),
                entry("b", PlanPriority::Medium, PlanStatus::InProgress),
                entry("c", PlanPriority::Low, PlanStatus::Pending),
            ],
        },
    );
    let expected = [json!({"sessionUpdate": "plan", "entries": [
        {"content": "a", "priority": "high", "status": "completed"},
        {"content": "b", "priority": "medium", "status": "in_progress"},
        {"content": "c", "priority": "low", "status": "pending"},
    ]})];
    assert_eq!(encode_live(std::slice::from_ref(&plan)), expected);
    assert_eq!(encode_replayed(&[plan]), expected);
}

/// USAGE-1: unknown numbers are not reported, and `used` never exceeds `size`.
// proves: USAGE-1, THEME-12
#[test]
fn usage_needs_window_and_tokens() {
    let used =
        |used: u64, size: u64| json!({"sessionUpdate": "usage_update", "used": used, "size": size});
    assert_eq!(
        encode_live(&[event(0, start(Some(1000))), event(1, usage_reported(95))]),
        [used(100, 1000)]
    );
    assert_eq!(
        encode_live(&[event(0, start(Some(50))), event(1, usage_reported(95))]),
        [used(100, 100)]
    );
    assert_eq!(
        encode_live(&[event(0, start(None)), event(1, usage_reported(95))]),
        [] as [Value; 0]
    );
    let unknown = EventKind::UsageReported {
        usage: None,
        cumulative: Usage::default(),
    };
    assert_eq!(
        encode_live(&[event(0, start(Some(1000))), event(1, unknown)]),
        [] as [Value; 0]
    );
    // A replay reports usage once, at its end.
    let finished = Outcome::Finished(TurnFinish::AssistantMessage { text: "x".into() }, None);
    let events = [
        start(Some(1000)),
        usage_reported(1),
        usage_reported(95),
        loop_end(finished),
    ];
    let events: Vec<_> = events.into_iter().map(|kind| event(0, kind)).collect();
    assert_eq!(encode_replayed(&events), [used(100, 1000)]);
}
