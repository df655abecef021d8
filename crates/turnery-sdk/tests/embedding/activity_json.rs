//! Tests of the JSON form of activities and of their row identities.

use crate::toy::{model_error, usage_of};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_engine::{
    CallDetail, ChildUsage, Content, ContextSize, ContinuationKind, Disposition, Event, EventKind,
    LlmMessage, Message, MessageStop, ModelDelta, Outcome, PlanEntry, PlanPriority, PlanStatus,
    ToolCall, ToolEnvelope, ToolErrorKind, TurnFinish, TurnTrigger, Usage, Verdict,
};
use turnery_sdk::{ActivityEvent, Projection, PromptActivity};

fn event(seq: u64, kind: EventKind) -> Event {
    Event {
        session_id: "s".into(),
        loop_id: "s.m.1".into(),
        seq,
        turn_index: Some(0),
        at: "2026-11-21T08:00:00Z".parse().unwrap(),
        kind,
    }
}

/// Returns the activities of these events, numbered from 0.
pub(crate) fn activities(kinds: Vec<EventKind>) -> Vec<PromptActivity> {
    let mut projection = Projection::default();
    (0..)
        .zip(kinds)
        .filter_map(|(seq, kind)| projection.project(&event(seq, kind)))
        .collect()
}

/// Returns the only activity of one event, as JSON.
fn activity_json(kind: EventKind) -> Value {
    let activities = activities(vec![kind]);
    assert_eq!(activities.len(), 1);
    json!(activities[0])
}

fn text(message: &str, block: u32, text: &str) -> EventKind {
    EventKind::Delta {
        message_id: message.into(),
        delta: ModelDelta::Text {
            block,
            text: text.to_owned(),
        },
    }
}

fn reasoning_delta(message: &str, block: u32) -> EventKind {
    EventKind::Delta {
        message_id: message.into(),
        delta: ModelDelta::Thinking {
            block,
            text: "hm".to_owned(),
        },
    }
}

fn call_requested(call: &str) -> EventKind {
    EventKind::ToolCallRequested {
        call: ToolCall::new(call, "look", json!({"at": "x"})),
        detail: CallDetail::default(),
    }
}

fn call_started(call: &str) -> EventKind {
    EventKind::ToolExecutionStart {
        call_id: call.into(),
        tool_name: "look".to_owned(),
        runs: true,
    }
}

fn call_ended(call: &str, envelope: ToolEnvelope, disposition: Disposition) -> EventKind {
    EventKind::ToolExecutionEnd {
        call_id: call.into(),
        tool_name: "look".to_owned(),
        envelope,
        disposition,
        child_loop_id: None,
    }
}

// proves: LASH-44, LASH-45, LASH-50, LASH-56, LASH-57
#[test]
fn prose_and_reasoning_are_deltas() {
    assert_eq!(
        activity_json(text("m1", 0, "Hel")),
        json!({
            "id": "s.m.1#0",
            "correlation_id": "m1.0",
            "event": {"type": "assistant_prose_delta", "text": "Hel"},
        })
    );
    assert_eq!(
        activity_json(reasoning_delta("m1", 1)),
        json!({
            "id": "s.m.1#0",
            "correlation_id": "m1.1",
            "event": {"type": "reasoning_delta", "text": "hm"},
        })
    );
    let shown = activities(vec![
        text("m1", 0, "Hel"),
        text("m1", 0, "lo"),
        reasoning_delta("m1", 1),
        reasoning_delta("m1", 1),
    ]);
    let pieces: Vec<Value> = shown
        .iter()
        .map(|it| json!(it)["event"]["text"].take())
        .collect();
    assert_eq!(pieces, ["Hel", "lo", "hm", "hm"]);
}

// proves: LASH-44, LASH-46, LASH-58, LASH-59, LASH-73, LASH-74, LASH-76, TURN-40, UP-26
#[test]
fn call_has_one_row_and_omits_absent_fields() {
    let shown = activities(vec![
        call_requested("c1"),
        call_started("c1"),
        call_ended("c1", ToolEnvelope::text("found"), Disposition::Executed),
    ]);
    assert_eq!(
        json!(shown),
        json!([
            {
                "id": "s.m.1#1",
                "correlation_id": "c1",
                "event": {
                    "type": "tool_call_started",
                    "call_id": "c1",
                    "name": "look",
                    "args": {"at": "x"},
                },
            },
            {
                "id": "s.m.1#2",
                "correlation_id": "c1",
                "event": {
                    "type": "tool_call_completed",
                    "call_id": "c1",
                    "name": "look",
                    "output": {
                        "disposition": "executed",
                        "content": [{"type": "text", "text": "found"}],
                        "is_error": false,
                    },
                },
            },
        ])
    );
}

// proves: LASH-74, LASH-73
#[test]
fn optional_fields_are_serialised_when_present() {
    let event = ActivityEvent::ToolCallStarted {
        call_id: None,
        name: "look".into(),
        args: Arc::new(json!({})),
        graph_key: Some("block".into()),
        parent_call_id: Some("batch".into()),
    };
    assert_eq!(
        json!(event),
        json!({
            "type": "tool_call_started", "name": "look", "args": {},
            "graph_key": "block", "parent_call_id": "batch",
        })
    );
    let end = call_ended("c", ToolEnvelope::text("done"), Disposition::Executed);
    let mut ended = activities(vec![end]).remove(0).event;
    if let ActivityEvent::ToolCallCompleted { call_id, .. } = &mut ended {
        *call_id = None;
    }
    let ended = json!(ended);
    assert_eq!(ended["type"], "tool_call_completed");
    for field in ["call_id", "graph_key", "parent_call_id", "child_loop_id"] {
        assert_eq!(ended.get(field), None, "{field}");
    }
}

// proves: LASH-59, LASH-62
#[test]
fn call_end_contains_the_whole_row() {
    let mut envelope = ToolEnvelope::failed(ToolErrorKind::Timeout, "too slow");
    envelope.value = Some(json!({"after": 3}));
    let mut ended = call_ended("c1", envelope, Disposition::TimedOut);
    if let EventKind::ToolExecutionEnd { child_loop_id, .. } = &mut ended {
        *child_loop_id = Some("child.m.1".into());
    }
    assert_eq!(
        activity_json(ended)["event"],
        json!({
            "type": "tool_call_completed",
            "call_id": "c1",
            "name": "look",
            "output": {
                "disposition": "timed_out",
                "content": [{"type": "text", "text": "too slow"}],
                "is_error": true,
                "failure": "timeout",
                "value": {"after": 3},
            },
            "child_loop_id": "child.m.1",
        })
    );
}

// proves: LASH-47, LASH-63, LASH-64, R8
#[test]
fn final_values_are_shown() {
    let value = json!({"rating": "high"});
    assert_eq!(
        activity_json(EventKind::FinalValue {
            value: value.clone()
        }),
        json!({
            "id": "s.m.1#0",
            "correlation_id": "s.m.1#0",
            "event": {"type": "final_value", "value": {"rating": "high"}},
        })
    );
    let tool_name = "rate".to_owned();
    assert_eq!(
        activity_json(EventKind::ToolValue { tool_name, value })["event"],
        json!({"type": "tool_value", "tool_name": "rate", "value": {"rating": "high"}})
    );
}

fn usage_json([input, output, cache_read, cache_write, reasoning]: [u64; 5]) -> Value {
    json!({
        "input_tokens": input,
        "output_tokens": output,
        "cache_read_input_tokens": cache_read,
        "cache_write_input_tokens": cache_write,
        "reasoning_output_tokens": reasoning,
    })
}

// proves: LASH-65, LASH-73, LASH-106
#[test]
fn usage_has_five_buckets_or_is_omitted() {
    let cumulative = usage_of(2);
    let shown = activity_json(EventKind::UsageReported {
        usage: Some(usage_of(1)),
        cumulative,
    });
    assert_eq!(
        shown["event"],
        json!({
            "type": "usage",
            "usage": usage_json([1, 10, 100, 1000, 1]),
            "cumulative": usage_json([2, 20, 200, 2000, 2]),
        })
    );
    let unknown = activity_json(EventKind::UsageReported {
        usage: None,
        cumulative,
    });
    assert_eq!(unknown["event"].get("usage"), None);
}

// proves: LASH-66, LASH-101, LASH-73, LASH-106
#[test]
fn child_usage_names_session_and_source() {
    let shown = activity_json(EventKind::ChildUsageReported {
        call_id: "c1".into(),
        child: ChildUsage {
            session_id: "child".into(),
            source: "subagent".to_owned(),
            model: "toy/one".to_owned(),
            iteration: 4,
            usage: Some(usage_of(1)),
            cumulative: Usage {
                input: 7,
                ..Usage::default()
            },
        },
    });
    assert_eq!(
        shown,
        json!({
            "id": "s.m.1#0",
            "correlation_id": "c1",
            "event": {
                "type": "child_usage",
                "session_id": "child",
                "source": "subagent",
                "model": "toy/one",
                "iteration": 4,
                "usage": usage_json([1, 10, 100, 1000, 1]),
                "cumulative": usage_json([7, 0, 0, 0, 0]),
            },
        })
    );
}

// proves: LASH-84
#[test]
fn plan_retry_silence_and_errors_are_shown() {
    let entries = vec![PlanEntry {
        content: "look".to_owned(),
        priority: PlanPriority::High,
        status: PlanStatus::Pending,
    }];
    let shapes = [
        (
            EventKind::Issue {
                text: "odd".to_owned(),
            },
            json!({"type": "error", "text": "odd"}),
        ),
        (
            EventKind::InputRejected {
                reason: "no".to_owned(),
            },
            json!({"type": "error", "text": "no"}),
        ),
        (
            EventKind::ModelRetried {
                attempt: 2,
                error: model_error(),
                wait_ms: 1500,
            },
            json!({"type": "model_retried", "attempt": 2, "reason": "too much to do", "wait_ms": 1500}),
        ),
        (
            EventKind::ModelSilent {
                silent_ms: 30_000,
                is_connected: true,
            },
            json!({"type": "model_silent", "silent_ms": 30_000, "is_connected": true}),
        ),
        (
            EventKind::ToolExecutionOutput {
                call_id: "c".into(),
                text: "line".to_owned(),
            },
            json!({"type": "tool_call_output", "call_id": "c", "text": "line"}),
        ),
        (
            EventKind::ToolProgress {
                call_id: "c".into(),
                text: "half".to_owned(),
            },
            json!({"type": "tool_call_progress", "call_id": "c", "text": "half"}),
        ),
        (
            EventKind::PlanUpdated { entries },
            json!({
                "type": "plan_updated",
                "entries": [{"content": "look", "priority": "high", "status": "pending"}],
            }),
        ),
    ];
    for (kind, expected) in shapes {
        assert_eq!(activity_json(kind)["event"], expected);
    }
}

// proves: LASH-9, LASH-48, LASH-49, LASH-51, C-18, LASH-77
#[test]
fn engine_internal_events_are_not_shown() {
    let answer = Message::Assistant {
        content: vec![Content::text("Hello")],
        stop: MessageStop::Stop,
        model: "one".to_owned(),
        provider: "toy".to_owned(),
        usage: None,
        error: None,
        request: None,
    };
    let message = Arc::new(LlmMessage {
        message_id: "m1".into(),
        turn_id: None,
        message: answer,
    });
    let outcome = Outcome::Finished(
        TurnFinish::AssistantMessage {
            text: "Hello".into(),
        },
        None,
    );
    let args = ModelDelta::ToolCallArgs {
        block: 1,
        name: "look".to_owned(),
        fragment: "{".to_owned(),
    };
    let shown = activities(vec![
        EventKind::TurnStart {
            trigger: TurnTrigger::User,
        },
        EventKind::MessageStart {
            message_id: "m1".into(),
        },
        text("m1", 0, "Hello"),
        EventKind::MessageEnd { message },
        EventKind::TurnEnd {
            usage: None,
            tool_results: Vec::new(),
        },
        EventKind::LoopEnd {
            outcome,
            usage: Usage::default(),
            rejection: None,
        },
        EventKind::ParallelStart {
            agent_id: "a".to_owned(),
            loop_ids: Vec::new(),
        },
        EventKind::ParallelEnd {
            winner: "s.m.1".into(),
            evaluation_usage: Usage::default(),
            judge: None,
            command: None,
        },
        EventKind::LoopStart {
            agent_id: "a".to_owned(),
            prompt_id: "p".into(),
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            config: None,
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
        },
        EventKind::CompactionStarted {
            before: ContextSize::default(),
        },
        EventKind::CompactionEnded {
            block: None,
            after: ContextSize::default(),
            failure: None,
            usage: None,
        },
        call_requested("c"),
        EventKind::PermissionRequested {
            call_id: "c".into(),
            detail: CallDetail::default(),
        },
        EventKind::PermissionResolved {
            call_id: "c".into(),
            verdict: Verdict::Allow,
        },
        EventKind::ToolExecutionUpdate {
            call_id: "c".into(),
            detail: CallDetail::default(),
        },
        EventKind::Delta {
            message_id: "m1".into(),
            delta: args,
        },
    ]);
    let ids: Vec<String> = shown.iter().map(|it| it.id.to_string()).collect();
    assert_eq!(ids, ["s.m.1#2"]);
}

// proves: LASH-76, R8
#[test]
fn each_message_block_has_its_own_row() {
    let shown = activities(vec![
        reasoning_delta("m1", 0),
        text("m1", 1, "a"),
        text("m1", 1, "b"),
        text("m1", 2, "c"),
        text("m2", 1, "d"),
    ]);
    let rows: Vec<&str> = shown.iter().map(|it| &*it.correlation_id.0).collect();
    assert_eq!(rows, ["m1.0", "m1.1", "m1.1", "m1.2", "m2.1"]);
}

// proves: LASH-72, LASH-76
#[test]
fn parallel_calls_have_distinct_rows() {
    let done = |call| call_ended(call, ToolEnvelope::text(call), Disposition::Executed);
    let shown = activities(vec![
        call_requested("a"),
        call_requested("b"),
        call_started("a"),
        call_started("b"),
        done("b"),
        done("a"),
    ]);
    let rows: Vec<&str> = shown.iter().map(|it| &*it.correlation_id.0).collect();
    assert_eq!(rows, ["a", "b", "b", "a"]);
    let args = |n: usize| json!(shown[n])["event"]["args"].clone();
    assert_eq!([args(0), args(1)], [json!({"at": "x"}), json!({"at": "x"})]);
}

/// The set of activities may grow: if all of them could be named, the arm for the rest would be unreachable, and this
/// would not compile.
// proves: LASH-67
#[test]
fn activities_cannot_be_matched_without_a_rest() {
    use ActivityEvent as Activity;
    #[deny(unreachable_patterns)]
    fn place(activity: &Activity) -> &'static str {
        match activity {
            Activity::AssistantProseDelta { .. } | Activity::ReasoningDelta { .. } => "text",
            Activity::ToolCallStarted { .. } | Activity::ToolCallCompleted { .. } => "call",
            Activity::ToolCallOutput { .. } | Activity::ToolCallProgress { .. } => "output",
            Activity::CodeBlockStarted { .. } | Activity::CodeBlockCompleted { .. } => "code",
            Activity::FinalValue { .. } | Activity::ToolValue { .. } => "value",
            Activity::Usage { .. } | Activity::ChildUsage { .. } => "usage",
            Activity::PlanUpdated { .. } => "plan",
            Activity::Error { .. } => "error",
            Activity::ModelRetried { .. } | Activity::ModelSilent { .. } => "model",
            _ => "unknown",
        }
    }
    let entries = Arc::from([]);
    assert_eq!(place(&Activity::PlanUpdated { entries }), "plan");
}
