//! Tests of the serialized form of events, records and outcomes.

use super::fixtures::{prompt_spec, stops};
use super::harness::{
    LoopHarness, allow, calls_answer, model_failed, model_retried, permission_requested,
    text_answer, text_delta, tool_ended,
};
use super::random_run::any_run;
use crate::{
    ContinuationKind, Event, EventKind, Input, LlmMessage, LoopId, LoopStatus, Message, ModelDelta,
    ModelErrorKind, Outcome, PlanEntry, SessionId, StopClass, ToolEnvelope, TurnFinish, TurnId,
    TurnStop, TurnTrigger, Usage,
};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fmt::Debug;

/// Checks that each name round-trips to its variant, and that any other name is rejected.
fn assert_serialized_names<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    words: &[(&str, T)],
) {
    for (word, variant) in words {
        assert_eq!(&serde_json::from_value::<T>(json!(word)).unwrap(), variant);
        assert_eq!(serde_json::to_value(variant).unwrap(), json!(word));
    }
    let other = serde_json::from_value::<T>(json!("other"));
    assert!(other.is_err(), "{other:?}");
}

// proves: TURN-15, TURN-61
#[test]
fn turn_triggers_serialize() {
    use TurnTrigger::{Branch, Continuation, SubAgent, User};
    let words = [
        ("user", User),
        ("sub_agent", SubAgent),
        ("continuation", Continuation),
        ("branch", Branch),
    ];
    assert_serialized_names(&words);
    for (_, trigger) in words {
        // A fifth one would not compile here.
        match trigger {
            User | SubAgent | Continuation | Branch => {}
        }
    }
}

// proves: LOOP-15
#[test]
fn loop_statuses_serialize() {
    use LoopStatus::{Aborted, Completed, Pending, Rejected, Running};
    let words = [
        ("pending", Pending),
        ("running", Running),
        ("completed", Completed),
        ("rejected", Rejected),
        ("aborted", Aborted),
    ];
    assert_serialized_names(&words);
    for (_, status) in words {
        match status {
            Pending | Running | Completed | Rejected | Aborted => {}
        }
    }
}

// proves: LOOP-16
#[test]
fn continuation_kinds_serialize() {
    use ContinuationKind::{Branch, Compaction, Default, Initial, Rerun};
    let words = [
        ("initial", Initial),
        ("default", Default),
        ("rerun", Rerun),
        ("branch", Branch),
        ("compaction", Compaction),
    ];
    assert_serialized_names(&words);
    for (_, kind) in words {
        match kind {
            Initial | Default | Rerun | Branch | Compaction => {}
        }
    }
}

// proves: LASH-14, LASH-28
#[test]
fn ten_stops_in_five_classes() {
    for (stop, class) in stops() {
        assert_eq!(stop.class(), class, "{stop:?}");
        // An eleventh one would not compile here.
        match stop {
            TurnStop::Cancelled
            | TurnStop::InvalidInput { reason: _ }
            | TurnStop::Incomplete
            | TurnStop::ProviderError(_)
            | TurnStop::MaxTurns(_)
            | TurnStop::ToolFailure { message: _ }
            | TurnStop::PluginAbort { reason: _ }
            | TurnStop::RuntimeError { message: _ }
            | TurnStop::SubmittedError { value: _ }
            | TurnStop::ToolError {
                tool_name: _,
                value: _,
            } => {}
        }
    }
    let of = |class| stops().iter().filter(|(_, its)| *its == class).count();
    let counts = [
        of(StopClass::Host),
        of(StopClass::Provider),
        of(StopClass::Runtime),
        of(StopClass::Fatal),
        of(StopClass::Rlm),
    ];
    assert_eq!(counts, [2, 2, 3, 1, 2]);
}

// proves: LASH-1, LASH-2, LASH-3
#[test]
fn outcome_serializes_under_its_category() {
    /// A caller that needs only the category.
    fn category(outcome: &Outcome) -> &'static str {
        match outcome {
            Outcome::Finished(..) => "finished",
            Outcome::FrameSwitch { .. } => "frame_switch",
            Outcome::Stopped(_) => "stopped",
        }
    }
    let finishes = [
        TurnFinish::AssistantMessage { text: "x".into() },
        TurnFinish::FinalValue { value: json!(1) },
        TurnFinish::ToolValue {
            tool_name: "t".to_owned(),
            value: json!([2]),
        },
    ];
    let switch = Outcome::FrameSwitch {
        frame_id: "f".to_owned(),
        task: "t".to_owned(),
    };
    let mut all: Vec<(Outcome, &str)> = vec![(switch, "frame_switch")];
    all.extend(finishes.map(|finish| (Outcome::Finished(finish, None), "finished")));
    all.extend(stops().map(|(stop, _)| (Outcome::Stopped(stop), "stopped")));
    for (outcome, name) in all {
        assert_eq!(category(&outcome), name);
        let written = serde_json::to_value(&outcome).unwrap();
        let keys: Vec<&String> = written["outcome"].as_object().unwrap().keys().collect();
        assert_eq!(keys, [name], "the category can be read from outside too");
        assert_eq!(serde_json::from_value::<Outcome>(written).unwrap(), outcome);
    }
}

// proves: TURN-12, LASH-107, LASH-108, LASH-109, LASH-110, LASH-111, I1, C-16
#[test]
fn usage_total_is_derived() {
    let usage = Usage {
        input: 1,
        output: 20,
        reasoning: 15,
        cache_read: 300,
        cache_write: 4000,
    };
    assert_eq!(usage.total(), 4321, "reasoning is a part of output");
    let expected = json!({"input": 1, "output": 20, "reasoning": 15, "cache_read": 300,
        "cache_write": 4000, "total_tokens": 4321});
    assert_eq!(serde_json::to_value(usage).unwrap(), expected);
    // A total that does not fit the rest is not read, and none is needed.
    let wrong = json!({"input": 1, "output": 20, "reasoning": 15, "cache_read": 300, "cache_write": 4000,
        "total_tokens": 7});
    assert_eq!(serde_json::from_value::<Usage>(wrong).unwrap(), usage);
    let before = json!({"input": 1, "output": 20});
    assert_eq!(serde_json::from_value::<Usage>(before).unwrap().total(), 21);
    // If a provider reports more reasoning than output, the reasoning is capped and the total recomputed.
    let mut script = LoopHarness::start(prompt_spec());
    let mut answer = text_answer("done");
    if let Input::ModelAnswered { response, .. } = &mut answer {
        response.usage = Some(Usage {
            output: 5,
            reasoning: 9,
            ..Usage::default()
        });
    }
    script.feed(answer);
    let spent = script.machine.usage();
    assert_eq!((spent.reasoning, spent.total()), (5, 5));
}

// proves: TURN-6, TURN-62
#[test]
fn message_turn_id_is_optional() {
    let message = |turn_id| LlmMessage {
        message_id: "m".into(),
        turn_id,
        message: Message::user("hi"),
    };
    let turn_id = TurnId {
        loop_id: "s.cfg.1".into(),
        turn_index: 7,
    };
    let said = json!({"role": "user", "content": [{"type": "text", "text": "hi"}]});
    let with = json!({"message_id": "m", "turn_id": {"loop_id": "s.cfg.1", "turn_index": 7},
        "message": said});
    let without = json!({"message_id": "m", "message": said});
    for (message, written) in [(message(Some(turn_id)), with), (message(None), without)] {
        assert_eq!(serde_json::to_value(&message).unwrap(), written);
        let read: LlmMessage = serde_json::from_value(written).unwrap();
        assert_eq!(read, message);
    }
}

/// Returns the events of a run with fragments, a permission request, a failed call, a plan, and a network
/// error.
fn eventful_run() -> Vec<Event> {
    let mut script = LoopHarness::start(prompt_spec());
    let call_id = || "a".into();
    script.feed_all([
        text_delta(0, "x"),
        calls_answer(&["a", "b"]),
        permission_requested("a"),
        allow("a"),
    ]);
    script.feed_all([
        Input::ToolOutput {
            call_id: call_id(),
            text: "out".to_owned(),
        },
        Input::PlanUpdated {
            call_id: call_id(),
            entries: vec![serde_json::from_value::<PlanEntry>(json!({"content": "one"})).unwrap()],
        },
        tool_ended("a", ToolEnvelope::text("r")),
        tool_ended(
            "b",
            ToolEnvelope::failed(crate::ToolErrorKind::NotFound, "no"),
        ),
        model_retried(),
        text_delta(0, "y"),
        model_failed(ModelErrorKind::Network),
        Input::Committed,
    ]);
    script.published_events
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

// proves: R7
#[test]
fn absent_fields_are_omitted() {
    let mut events = eventful_run();
    assert!(events.len() > 25, "{}", events.len());
    let last = events.last().unwrap();
    // The end of a group without a judge.
    let group_end = Event {
        kind: EventKind::ParallelEnd {
            winner: last.loop_id.clone(),
            evaluation_usage: Usage::default(),
            judge: None,
            command: None,
        },
        ..last.clone()
    };
    events.push(group_end);
    for event in events {
        let written = serde_json::to_value(&event).unwrap();
        assert!(!has_null(&written), "{written}");
        assert_eq!(serde_json::from_value::<Event>(written).unwrap(), event);
    }
}

proptest! {
    // proves: R7
    #[test]
    fn absent_fields_are_omitted_in_any_run(script in any_run()) {
        for event in script.published_events {
            let written = serde_json::to_value(&event).unwrap();
            prop_assert!(!has_null(&written), "{}", written);
        }
    }
}

// proves: TURN-61
#[test]
fn turns_have_start_and_end_events() {
    let words: Vec<String> = eventful_run()
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["event"].clone())
        .filter_map(|word| word.as_str().map(str::to_owned))
        .filter(|word| word.starts_with("turn_"))
        .collect();
    assert_eq!(words, ["turn_start", "turn_end", "turn_start", "turn_end"]);
}

// proves: TURN-51, TURN-52, TURN-53, TURN-54, D-17, C-20, TURN-61
#[test]
fn delta_serializes_only_the_fragment() {
    let block = 3;
    let text = "piece".to_owned();
    let deltas = [
        (
            ModelDelta::Text {
                block,
                text: text.clone(),
            },
            json!({"type": "text", "block": 3, "text": "piece"}),
        ),
        (
            ModelDelta::Thinking {
                block,
                text: text.clone(),
            },
            json!({"type": "thinking", "block": 3, "text": "piece"}),
        ),
        (
            ModelDelta::ToolCallArgs {
                block,
                name: "read".to_owned(),
                fragment: text,
            },
            json!({"type": "tool_call_args", "block": 3, "name": "read", "fragment": "piece"}),
        ),
    ];
    for (delta, written) in deltas {
        let kind = EventKind::Delta {
            message_id: "m".into(),
            delta,
        };
        // No partial message, and so none that could be empty.
        assert_eq!(
            serde_json::to_value(kind).unwrap(),
            json!({"event": "delta", "message_id": "m", "delta": written})
        );
    }
}

// proves: D-13
#[test]
fn session_id_is_loop_id_prefix() {
    for (id, session, number) in [
        ("s1.offline.1", "s1", 1),
        ("s1.qwen2.5-coder.v1.12", "s1", 12),
        ("0199-ab.a.b.c.d.3", "0199-ab", 3),
    ] {
        assert_eq!(LoopId::from(id).session_id(), SessionId::from(session));
        assert_eq!(LoopId::from(id).number(), Some(number));
    }
}
