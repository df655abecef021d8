//! Tests of the recorder, and of deserializing stored records.

use super::fixtures::prompt_spec;
use super::harness::{
    LoopHarness, allow, calls_answer, fold_events, model_retried, text_answer, text_delta,
    tool_ended,
};
use crate::{
    ChildLoopRef, EventKind, Input, LoopId, LoopRecord, LoopStatus, Message, ModelErrorKind,
    Outcome, ProviderFailure, Recorder, Timestamp, ToolEnvelope, TurnRecord, TurnStop, Usage,
    oracle, recover_interrupted_loops,
};
use std::sync::Arc;

fn two_turns() -> LoopHarness {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([text_delta(0, "x"), calls_answer(&["a"]), allow("a")]);
    script.feed_all([
        tool_ended("a", ToolEnvelope::text("r")),
        text_answer("done"),
    ]);
    script.feed(Input::Committed);
    script
}

// proves: TURN-1
#[test]
fn retried_model_call_adds_no_turn() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed_all([model_retried(), text_answer("x"), Input::Committed]);
    let record = script.recorder.into_record().unwrap();
    assert_eq!((record.turns.len(), record.attempts.len()), (1, 1));
}

/// TURN-3, TURN-11, TURN-13, TURN-14, TURN-63, C-13, D-4, LOOP-25, LOOP-26, LOOP-45, LOOP-83.
// proves: TURN-1, TURN-3, TURN-13, TURN-14, TURN-30, TURN-63, LOOP-3, LOOP-5, LOOP-25, LOOP-26
// proves: LOOP-45, LOOP-83, LASH-8, D-4, C-13
#[test]
fn record_has_turns_and_messages_once() {
    let record = two_turns().recorder.into_record().unwrap();
    let ids: Vec<&str> = record
        .messages
        .iter()
        .map(|m| m.message_id.as_str())
        .collect();
    let expected = ["s.cfg.1.m0", "s.cfg.1.m1", "s.cfg.1.m2", "s.cfg.1.m3"];
    assert_eq!(ids, expected);
    let [first, second] = &record.turns[..] else {
        panic!("two turns: {:?}", record.turns);
    };
    // These eight parts and no others.
    let TurnRecord {
        turn_id: _,
        triggered_by: _,
        usage: _,
        input_messages: _,
        output_message: _,
        tool_results: _,
        started_at: _,
        ended_at: _,
    } = first;
    assert_eq!(first.input_messages, ["s.cfg.1.m0".into()]);
    assert_eq!(first.output_message, Some("s.cfg.1.m1".into()));
    assert_eq!(first.tool_results, ["s.cfg.1.m2".into()]);
    assert_eq!(second.input_messages, []);
    assert_eq!(second.output_message, Some("s.cfg.1.m3".into()));
    let cost = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    assert_eq!(
        (first.usage, second.usage),
        (Some(cost(10, 3)), Some(cost(5, 2)))
    );
    assert_eq!(record.usage, cost(15, 5));
    let at = |seconds| Timestamp::from_timestamp(seconds, 0);
    assert_eq!((Some(first.started_at), first.ended_at), (at(0), at(4)));
    assert_eq!((Some(second.started_at), second.ended_at), (at(4), at(5)));
    assert_eq!((Some(record.started_at), record.ended_at), (at(0), at(5)));
    assert!(record.on_chain);
}

/// One second passes with each input: the answer, then permission and end of each call.
// proves: TURN-14
#[test]
fn turn_ends_with_its_last_call() {
    let mut script = LoopHarness::start(prompt_spec());
    script.feed(calls_answer(&["a", "b"]));
    script.feed_all([allow("a"), tool_ended("a", ToolEnvelope::text("r"))]);
    assert_eq!(script.recorder.record().unwrap().turns[0].ended_at, None);
    script.feed_all([allow("b"), tool_ended("b", ToolEnvelope::text("r"))]);
    let ended_at = script.recorder.record().unwrap().turns[0].ended_at;
    assert_eq!(ended_at, Timestamp::from_timestamp(5, 0));
}

/// LOOP-80, D-5, D-8: fragments leave gaps, everything else is kept.
// proves: LOOP-78, LOOP-79, LOOP-80, D-5
#[test]
fn streaming_events_leave_seq_gap() {
    let record = two_turns().recorder.into_record().unwrap();
    let seqs: Vec<u64> = record.events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs[..6], [0, 1, 2, 3, 4, 6]);
    assert_eq!((seqs.len(), seqs.last()), (19, Some(&19)));
    oracle::check_stored(&record.events).unwrap();
}

/// LOOP-54, C-3, S5: without its `LoopEnd` a loop is aborted and off the chain; with it, it is not.
// proves: LOOP-26, LOOP-49, LOOP-52, LOOP-54, C-3
#[test]
fn record_without_loop_end_is_aborted() {
    let script = two_turns();
    let whole = script.recorder.clone().into_aborted().unwrap();
    assert_eq!(whole.status, LoopStatus::Completed);
    let running = script
        .published_events
        .iter()
        .position(|event| matches!(event.kind, EventKind::ToolExecutionStart { .. }));
    let cut = fold_events(&script.published_events[..=running.unwrap()])
        .into_aborted()
        .unwrap();
    assert_eq!(cut.status, LoopStatus::Aborted);
    assert_eq!(
        (cut.outcome, cut.ended_at, cut.on_chain),
        (None, None, false)
    );
    assert_eq!(cut.turns[0].tool_results, []);
    assert_eq!(Recorder::new().into_aborted(), None);
}

fn invalid_input() -> TurnStop {
    let reason = "no".to_owned();
    TurnStop::InvalidInput { reason }
}

fn plugin_abort() -> TurnStop {
    let reason = "not that".to_owned();
    TurnStop::PluginAbort { reason }
}

/// LOOP-27, LOOP-53, C-7, row 6a and row 11: off the chain.
// proves: LOOP-27, LOOP-53, UP-35, C-2, LOOP-49, LOOP-52
#[test]
fn refused_loop_is_off_chain() {
    let script = two_turns();
    let cases = [
        (invalid_input(), Some("no"), LoopStatus::Rejected),
        (plugin_abort(), None, LoopStatus::Completed),
    ];
    for (stop, reason, status) in cases {
        let mut end = script.published_events.last().unwrap().clone();
        end.kind = EventKind::LoopEnd {
            outcome: Outcome::Stopped(stop),
            usage: Usage::default(),
            rejection: reason.map(str::to_owned),
        };
        let start = &script.published_events[0];
        let own_end = script.published_events.last().unwrap();
        let record = fold_events([start, &end, start, own_end])
            .into_record()
            .unwrap();
        assert_eq!((record.status, record.on_chain), (status, false));
        assert_eq!(record.rejection.as_deref(), reason);
    }
}

/// The end of a journalled loop was not committed, but it says whether the loop was refused.
// proves: UP-35, S5
#[test]
fn interrupted_loop_stays_off_chain_if_refused() {
    let failure = ProviderFailure::Failed {
        kind: ModelErrorKind::Network,
        message: "it broke".to_owned(),
    };
    let cases = [
        (invalid_input(), Some("no"), false),
        (plugin_abort(), None, false),
        (
            TurnStop::ProviderError(ProviderFailure::Refused),
            None,
            false,
        ),
        (TurnStop::ProviderError(failure), None, true),
        (TurnStop::Cancelled, None, true),
    ];
    for (stop, reason, stays) in cases {
        let mut events = two_turns().recorder.into_record().unwrap().events;
        let rejection = reason.map(str::to_owned);
        let name = format!("{stop:?}");
        events.last_mut().unwrap().kind = EventKind::LoopEnd {
            outcome: Outcome::Stopped(stop),
            usage: Usage::default(),
            rejection,
        };
        let record = recover_interrupted_loops(&[events]).pop().unwrap();
        let found = (record.status, record.on_chain, record.outcome);
        assert_eq!(found, (LoopStatus::Aborted, stays, None), "{name}");
    }
}

/// A call that ran a loop elsewhere is linked to it, by its end and in the record; others are not.
// proves: TURN-45, LOOP-65, LOOP-66, LOOP-67, LOOP-68, LOOP-69
#[test]
fn child_loop_is_linked() {
    let mut script = LoopHarness::start(prompt_spec());
    let child = |child_loop_id: &str| ToolEnvelope {
        child_loop_id: Some(child_loop_id.into()),
        ..ToolEnvelope::text("r")
    };
    script.feed(calls_answer(&["a", "b", "c"]));
    script.feed_all([allow("a"), tool_ended("a", ToolEnvelope::text("r"))]);
    script.feed_all([allow("b"), tool_ended("b", child("s-sub-1.other.cfg.7"))]);
    script.feed_all([allow("c"), tool_ended("c", child("s-sub-2.cfg.1"))]);
    let named = script
        .published_events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionEnd {
                call_id,
                child_loop_id,
                ..
            } => Some((call_id.as_str(), child_loop_id.as_ref().map(LoopId::as_str))),
            _ => None,
        });
    let named: Vec<_> = named.collect();
    let expected = [
        ("a", None),
        ("b", Some("s-sub-1.other.cfg.7")),
        ("c", Some("s-sub-2.cfg.1")),
    ];
    assert_eq!(named, expected);
    let record = script.recorder.into_record().unwrap();
    let link = |call: &str, child: &str, session: &str| ChildLoopRef {
        tool_call_id: call.into(),
        tool_name: format!("tool-{call}"),
        child_loop_id: child.into(),
        child_session_id: session.into(),
    };
    let links = [
        link("b", "s-sub-1.other.cfg.7", "s-sub-1"),
        link("c", "s-sub-2.cfg.1", "s-sub-2"),
    ];
    assert_eq!(record.child_loop_refs, links);
}

/// LOOP-31, LOOP-32: without a host configuration, the first response names the model.
// proves: LOOP-31, LOOP-32
#[test]
fn config_falls_back_to_first_response() {
    let mut events = two_turns().published_events;
    if let EventKind::LoopStart { config, .. } = &mut events[0].kind {
        *config = None;
    }
    assert_eq!(
        fold_events(&events[..1]).into_record().unwrap().config,
        None
    );
    let last_response = events
        .iter_mut()
        .rev()
        .find_map(|event| match &mut event.kind {
            EventKind::MessageEnd { message } => match &mut Arc::make_mut(message).message {
                Message::Assistant { model, .. } => Some(model),
                _ => None,
            },
            _ => None,
        });
    *last_response.unwrap() = "other-model".to_owned();
    let ended_at_once = fold_events([&events[0], events.last().unwrap()]);
    assert_eq!(ended_at_once.into_record().unwrap().config, None);
    let config = fold_events(&events).into_record().unwrap().config.unwrap();
    assert_eq!(config.model, "real-model");
    assert_eq!(config.provider, "real-provider");
}

/// R5, LOOP-49, LOOP-82: a record ignores events after its end, before its start, and of other loops.
// proves: LOOP-9, LOOP-49, LOOP-82, R5
#[test]
fn record_ignores_events_after_loop_end() {
    let events = two_turns().published_events;
    let whole = fold_events(&events).into_record();
    let mut stranger = events[3].clone();
    stranger.loop_id = "s.cfg.2".into();
    let noisy = events[1..3].iter().chain(&events[..4]).chain([&stranger]);
    let mut second_end = events.last().unwrap().clone();
    if let EventKind::LoopEnd {
        outcome, rejection, ..
    } = &mut second_end.kind
    {
        *outcome = Outcome::Stopped(invalid_input());
        *rejection = Some("no".to_owned());
    }
    let noisy = noisy
        .chain(&events[4..])
        .chain(&events)
        .chain([&second_end]);
    assert_eq!(fold_events(noisy).into_record(), whole);
}

/// TURN-65, LOOP-61: a record from before turns existed, with an unknown field.
// proves: TURN-65, LOOP-61
#[test]
fn old_record_deserializes() {
    let old = serde_json::json!({
        "loop_id": "s.cfg.1", "session_id": "s", "agent_id": "a", "status": "completed",
        "continuation_kind": "initial", "started_at": "2026-01-02T03:04:05Z",
        "usage": {"input": 1, "output": 2}, "messages": [], "on_chain": true, "mood": "good"
    });
    let record: LoopRecord = serde_json::from_value(old).unwrap();
    assert_eq!(record.turns, []);
    assert_eq!(record.usage.total(), 3);
}
