//! Tests of the contents of events, and of what the record keeps of them.

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, calls_answer, fold_events, model_answered, permission_requested, steer,
    text_answer, text_delta, tool_ended,
};
use crate::{
    CallDetail, Content, Event, EventKind, Input, LoopStatus, Message, MessageStop, ModelDelta,
    ModelStop, ToolCall, ToolEnvelope, ToolErrorKind, TurnId, TurnTrigger, Usage,
};
use serde_json::json;

/// Runs two turns; in the first, the call `a` sends these reports.
fn two_turns(reports: Vec<Input>, envelope: ToolEnvelope) -> LoopHarness {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([text_delta(0, "x"), calls_answer(&["a"]), allow("a")]);
    script.feed_all(reports);
    script.feed_all([
        tool_ended("a", envelope),
        text_answer("done"),
        Input::Committed,
    ]);
    script
}

fn reports() -> Vec<Input> {
    let detail = |title: &str| CallDetail {
        title: title.to_owned(),
        ..CallDetail::default()
    };
    vec![
        Input::ToolUpdate {
            call_id: "a".into(),
            detail: detail("half"),
        },
        Input::ToolOutput {
            call_id: "a".into(),
            text: "out".to_owned(),
        },
        Input::ToolUpdate {
            call_id: "a".into(),
            detail: detail("whole"),
        },
    ]
}

fn updates(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionUpdate { detail, .. } => Some(&*detail.title),
            _ => None,
        })
        .collect()
}

// proves: TURN-41, TURN-42, D-8
#[test]
fn tool_updates_are_emitted_and_recorded_once() {
    let loud = two_turns(reports(), ToolEnvelope::text("r"));
    assert_eq!(updates(&loud.published_events), ["half", "whole"]);
    let record = loud.recorder.record().unwrap();
    assert_eq!(updates(&record.events), ["half", "whole"]);
    let quiet = two_turns(Vec::new(), ToolEnvelope::text("r"));
    assert_eq!(updates(&quiet.published_events), [""; 0]);
    // Everything else is equal: messages, usage, ends.
    let other = quiet.recorder.record().unwrap();
    assert_eq!(other.messages, record.messages);
    assert_eq!(
        (other.usage, &other.outcome),
        (record.usage, &record.outcome)
    );
}

// proves: TURN-43, TURN-44
#[test]
fn tool_end_has_result_and_error_flag() {
    let failed = ToolEnvelope::failed(ToolErrorKind::ExecutionError, "exit code 1");
    for (envelope, is_error) in [(ToolEnvelope::text("42"), false), (failed, true)] {
        let script = two_turns(Vec::new(), envelope.clone());
        let ends: Vec<&ToolEnvelope> = script
            .published_events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolExecutionEnd { envelope, .. } => Some(envelope),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [&envelope]);
        assert_eq!(ends[0].result.is_err(), is_error);
    }
}

// proves: TURN-9, TURN-11, D-3, I4
#[test]
fn turn_end_has_index_and_own_usage() {
    let script = two_turns(Vec::new(), ToolEnvelope::text("r"));
    let tokens = |usage: Option<Usage>| usage.map(|usage| (usage.input, usage.output));
    let mut ends = Vec::new();
    let mut spent = Vec::new();
    for event in &script.published_events {
        match &event.kind {
            EventKind::TurnEnd { usage, .. } => ends.push((event.turn_index, tokens(*usage))),
            EventKind::UsageReported { usage, cumulative } => {
                spent.push((tokens(*usage), tokens(Some(*cumulative))));
            }
            _ => {}
        }
    }
    let (first, second) = (Some((10, 3)), Some((5, 2)));
    assert_eq!(ends, [(Some(0), first), (Some(1), second)]);
    assert_eq!(spent, [(first, first), (second, Some((15, 5)))]);
}

// proves: TURN-6, TURN-7, TURN-8
#[test]
fn turn_records_are_numbered_from_zero() {
    let script = two_turns(Vec::new(), ToolEnvelope::text("r"));
    let record = script.recorder.into_record().unwrap();
    let id = |turn_index| TurnId {
        loop_id: "s.cfg.1".into(),
        turn_index,
    };
    let turns: Vec<&TurnId> = record.turns.iter().map(|turn| &turn.turn_id).collect();
    assert_eq!(turns, [&id(0), &id(1)]);
    let of_messages: Vec<TurnId> = record
        .messages
        .iter()
        .filter_map(|message| message.turn_id.clone())
        .collect();
    assert_eq!(of_messages, [id(0), id(0), id(0), id(1)]);
}

// proves: TURN-2, TURN-10, TURN-16, TURN-18, TURN-19, TURN-31, LOOP-91, TURN-63
#[test]
fn turn_start_has_trigger() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", ToolEnvelope::text("r")),
    ]);
    script.feed_all([
        steer("and that"),
        text_answer("done"),
        text_answer("that too"),
    ]);
    script.feed(Input::Committed);
    let record = script.recorder.into_record().unwrap();
    let causes: Vec<TurnTrigger> = record.turns.iter().map(|turn| turn.triggered_by).collect();
    use TurnTrigger::{Continuation, User};
    // The prompt, a tool round trip, and the steering.
    assert_eq!(causes, [User, Continuation, Continuation]);
    let inputs: Vec<usize> = record
        .turns
        .iter()
        .map(|turn| turn.input_messages.len())
        .collect();
    assert_eq!(inputs, [1, 0, 1]);
}

// proves: TURN-38, TURN-40
#[test]
fn calls_are_read_from_response_content() {
    let call = |id: &str, name: &str| Content::ToolCall(ToolCall::new(id, name, json!({"of": id})));
    let content = vec![
        Content::text("first"),
        call("1", "read"),
        Content::Thinking {
            text: "hm".to_owned(),
            signature: None,
        },
        call("2", "list"),
    ];
    let mut script = LoopHarness::start(prompt_spec());
    script.feed(model_answered(content, ModelStop::ToolUse, None));
    let expected = [
        ("1".to_owned(), "read".to_owned(), json!({"of": "1"})),
        ("2".to_owned(), "list".to_owned(), json!({"of": "2"})),
    ];
    let three = |call: &ToolCall| {
        let args = (*call.args).clone();
        (call.call_id.to_string(), call.name.clone(), args)
    };
    let messages = script.messages();
    let read: Vec<_> = messages[1].message.calls().map(three).collect();
    assert_eq!(read, expected);
    let wanted: Vec<_> = script
        .published_events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallRequested { call, .. } => Some(three(call)),
            _ => None,
        })
        .collect();
    assert_eq!(wanted, expected);
    let user = Message::User {
        content: vec![call("3", "read")],
    };
    assert_eq!(user.calls().count(), 0, "only the model calls tools");
}

// proves: LOOP-9, LOOP-49, LOOP-51, LOOP-52, LOOP-89, LOOP-26, LOOP-50
#[test]
fn running_loop_exposes_spec_usage_and_turn() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([text_delta(0, "x"), calls_answer(&["a"]), allow("a")]);
    let open = script.recorder.record().unwrap();
    assert_eq!(open.status, LoopStatus::Running);
    assert_eq!((open.messages.len(), open.turns.len()), (2, 1));
    assert_eq!((open.ended_at, open.outcome.clone()), (None, None));
    script.feed_all([
        tool_ended("a", ToolEnvelope::text("r")),
        text_answer("done"),
    ]);
    let whole = script.recorder.record().unwrap();
    assert_eq!(whole.status, LoopStatus::Completed);
    // Before the commit, `LoopEnd` is in the record alone: each prefix of the published events runs.
    let events = &script.published_events;
    for count in 1..=events.len() {
        let recorder = fold_events(&events[..count]);
        let status = recorder.record().unwrap().status;
        assert_eq!(status, LoopStatus::Running, "{count} events");
    }
}

// proves: LOOP-28
#[test]
fn caller_metadata_is_kept_unchanged() {
    let metadata = json!({"request": "r-1", "trace": [1, null, {"deep": 2.5}]});
    let mut spec = prompt_spec();
    spec.metadata = Some(metadata.clone());
    let mut script = LoopHarness::start(spec);
    script.feed_all([text_answer("done"), Input::Committed]);
    let record = script.recorder.into_record().unwrap();
    assert_eq!(record.metadata, Some(metadata));
    let plain = two_turns(Vec::new(), ToolEnvelope::text("r"));
    assert_eq!(plain.recorder.record().unwrap().metadata, None);
}

// proves: LOOP-30, LOOP-33, LOOP-34, TURN-36
#[test]
fn config_snapshot_wins_over_response_model() {
    let script = two_turns(Vec::new(), ToolEnvelope::text("r"));
    let record = script.recorder.into_record().unwrap();
    let answers: Vec<_> = record
        .messages
        .iter()
        .filter_map(|message| match &message.message {
            Message::Assistant {
                stop,
                model,
                provider,
                usage,
                ..
            } => {
                let tokens = usage.map(|usage| (usage.input, usage.output));
                Some((*stop, model.as_str(), provider.as_str(), tokens))
            }
            _ => None,
        })
        .collect();
    let expected = [
        (
            MessageStop::ToolUse,
            "real-model",
            "real-provider",
            Some((10, 3)),
        ),
        (
            MessageStop::Stop,
            "real-model",
            "real-provider",
            Some((5, 2)),
        ),
    ];
    assert_eq!(answers, expected);
    let config = record.config.unwrap();
    assert_eq!(config.model, "snap-model");
    assert_eq!(config.provider, "snap-provider");
}

// proves: R8, C-19
#[test]
fn events_of_one_row_share_correlation_id() {
    let mut script = LoopHarness::start(prompt_spec());
    let thought = Input::ModelDelta(ModelDelta::Thinking {
        block: 0,
        text: "hm".to_owned(),
    });
    script.feed_all([thought, text_delta(1, "a"), text_delta(1, "b")]);
    script.feed_all([
        calls_answer(&["c1", "c2"]),
        permission_requested("c1"),
        allow("c1"),
    ]);
    script.feed_all([
        tool_ended("c1", ToolEnvelope::text("r")),
        allow("c2"),
        tool_ended("c2", ToolEnvelope::text("r")),
    ]);
    script.feed_all([text_delta(0, "c"), text_answer("done"), Input::Committed]);
    let ids: Vec<String> = script
        .published_events
        .iter()
        .filter_map(Event::correlation_id)
        .collect();
    let expected = [
        // One id for each content block.
        "s.cfg.1.m1.0",
        "s.cfg.1.m1.1",
        "s.cfg.1.m1.1",
        // Both requested; then permission requested, resolved, started, ended.
        "c1",
        "c2",
        "c1",
        "c1",
        "c1",
        "c1",
        "c2",
        "c2",
        "s.cfg.1.m4.0",
    ];
    assert_eq!(ids, expected);
}
