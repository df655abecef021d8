//! Tests of the stored form: literal JSON of earlier versions, and round trips.

use super::*;
use crate::{Event, EventKind, LoopRecord, SessionId, Timestamp, Usage};
use proptest::prelude::*;
use serde_json::json;

fn read(outcome: &Value, detail: &Value) -> Outcome {
    let mut stored = json!({"outcome": outcome});
    if !detail.is_null() {
        stored["detail"] = detail.clone();
    }
    serde_json::from_value(stored).unwrap()
}

fn failed(kind: ModelErrorKind, message: &str) -> TurnStop {
    let message = message.to_owned();
    TurnStop::ProviderError(ProviderFailure::Failed { kind, message })
}

fn max_turns(kind: LimitKind, text: &str) -> TurnStop {
    let text = text.to_owned();
    TurnStop::MaxTurns(ReachedLimit { kind, text })
}

// proves: LASH-14
#[test]
fn stored_pairs_are_read_and_written_unchanged() {
    let no = || "no".to_owned();
    let limit = json!({"limit": {"kind": "turns", "text": "no"}});
    let runtime = json!({"runtime": {"message": "no"}});
    let provider = json!({"provider": {"kind": "rate_limit", "message": "no"}});
    let value = json!([1]);
    let rows = [
        ("cancelled".into(), Value::Null, TurnStop::Cancelled),
        (
            "invalid_input".into(),
            json!({"rejection": {"reason": "no"}}),
            TurnStop::InvalidInput { reason: no() },
        ),
        ("incomplete".into(), Value::Null, TurnStop::Incomplete),
        (
            "provider_error".into(),
            provider,
            failed(ModelErrorKind::RateLimit, "no"),
        ),
        (
            "provider_error".into(),
            "refusal".into(),
            TurnStop::ProviderError(ProviderFailure::Refused),
        ),
        (
            "max_turns".into(),
            limit.clone(),
            max_turns(LimitKind::Turns, "no"),
        ),
        (
            "tool_failure".into(),
            runtime.clone(),
            TurnStop::ToolFailure { message: no() },
        ),
        (
            "plugin_abort".into(),
            runtime.clone(),
            TurnStop::PluginAbort { reason: no() },
        ),
        (
            "runtime_error".into(),
            runtime,
            TurnStop::RuntimeError { message: no() },
        ),
        (
            json!({"submitted_error": {"value": [1]}}),
            Value::Null,
            TurnStop::SubmittedError {
                value: value.clone(),
            },
        ),
        (
            json!({"tool_error": {"tool_name": "no", "value": [1]}}),
            Value::Null,
            TurnStop::ToolError {
                tool_name: no(),
                value,
            },
        ),
    ];
    let mut all: Vec<(Value, Value, Outcome)> = rows
        .into_iter()
        .map(|(stop, detail, read)| (json!({"stopped": stop}), detail, Outcome::Stopped(read)))
        .collect();
    let finish = json!({"finished": {"assistant_message": {"text": "so far"}}});
    let finished = |limit| {
        let text = "so far".into();
        Outcome::Finished(TurnFinish::AssistantMessage { text }, limit)
    };
    let (kind, text) = (LimitKind::Turns, no());
    all.push((finish.clone(), Value::Null, finished(None)));
    all.push((finish, limit, finished(Some(ReachedLimit { kind, text }))));
    let switch = json!({"frame_switch": {"frame_id": "f", "task": "t"}});
    let (frame_id, task) = ("f".to_owned(), "t".to_owned());
    all.push((switch, Value::Null, Outcome::FrameSwitch { frame_id, task }));
    for (outcome, detail, expected) in all {
        assert_eq!(read(&outcome, &detail), expected);
        let mut stored = json!({"outcome": outcome});
        if !detail.is_null() {
            stored["detail"] = detail;
        }
        assert_eq!(json!(expected), stored);
    }
}

/// Pairs that an outcome cannot be: the message that was shown for them stays.
#[test]
fn impossible_pairs_are_read_with_nearest_meaning() {
    let limit = json!({"limit": {"kind": "cost", "text": "Max cost"}});
    let runtime = json!({"runtime": {"message": "it broke"}});
    let continued = json!({"continued": {"loop_id": "s.m.2"}});
    let rejection = json!({"rejection": {"reason": "not that"}});
    let provider = json!({"provider": {"kind": "auth", "message": "no key"}});
    let invalid_input = "the prompt ended early (invalid input)";
    let (incomplete, runtime_error) = (
        "the answer was cut off at the model's output limit",
        "the prompt ended early (runtime error)",
    );
    let rows = [
        ("invalid_input", Value::Null, invalid_input),
        ("invalid_input", runtime.clone(), "it broke"),
        (
            "provider_error",
            Value::Null,
            "the prompt ended early (provider error)",
        ),
        ("provider_error", runtime.clone(), "it broke"),
        (
            "max_turns",
            Value::Null,
            "the prompt ended early (limit reached)",
        ),
        ("max_turns", provider, "no key"),
        (
            "tool_failure",
            Value::Null,
            "the prompt ended early (tool failure)",
        ),
        ("tool_failure", limit.clone(), "Max cost"),
        (
            "plugin_abort",
            Value::Null,
            "the prompt ended early (plugin abort)",
        ),
        ("plugin_abort", rejection, "not that"),
        ("runtime_error", continued.clone(), runtime_error),
        ("runtime_error", "refusal".into(), REFUSED),
        ("cancelled", limit.clone(), "cancelled"),
        ("cancelled", continued, "cancelled"),
        ("incomplete", limit, incomplete),
    ];
    for (stop, detail, message) in rows {
        let outcome = read(&json!({"stopped": stop}), &detail);
        let report = outcome.report();
        assert_eq!(report.message.as_deref(), Some(message), "{stop} {detail}");
        assert_eq!(report.exact, format!("stopped.{stop}"), "{detail}");
    }
    let finished = json!({"finished": {"final_value": {"value": 1}}});
    let read = read(&finished, &runtime);
    let value = json!(1);
    assert_eq!(
        read,
        Outcome::Finished(TurnFinish::FinalValue { value }, None)
    );
}

/// The members of records and events stand where earlier versions wrote them; only the total of a usage is new.
#[test]
fn record_and_event_of_before_are_read_and_written_in_their_form() {
    let event = r#"{"session_id":"s","loop_id":"s.m.1","seq":3,"at":"1970-01-01T00:00:00Z","event":"loop_end","outcome":{"stopped":"max_turns"},"detail":{"limit":{"kind":"turns","text":"Max turns reached (1/1)"}},"usage":{"input":1,"output":2,"reasoning":0,"cache_read":0,"cache_write":0}}"#;
    let read: Event = serde_json::from_str(event).unwrap();
    let EventKind::LoopEnd { outcome, usage, .. } = &read.kind else {
        panic!("{read:?}");
    };
    let stop = max_turns(LimitKind::Turns, "Max turns reached (1/1)");
    assert_eq!(*outcome, Outcome::Stopped(stop.clone()));
    assert_eq!((usage.input, usage.output), (1, 2));
    let with_total = event.replace(
        r#""cache_write":0}"#,
        r#""cache_write":0,"total_tokens":3}"#,
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), with_total);

    let (session, agent) = (SessionId::from("s"), "a".to_owned());
    let mut record = LoopRecord::new_running(session, "s.m.1".into(), agent, Timestamp::UNIX_EPOCH);
    let running = serde_json::to_string(&record).unwrap();
    assert!(!running.contains("outcome") && !running.contains("detail"));
    assert_eq!(
        serde_json::from_str::<LoopRecord>(&running).unwrap(),
        record
    );
    record.outcome = Some(Outcome::Stopped(stop));
    record.usage = Usage::default();
    let written = serde_json::to_string(&record).unwrap();
    let members = r#""status":"running","outcome":{"stopped":"max_turns"},"detail":{"limit":{"kind":"turns","text":"Max turns reached (1/1)"}},"continuation_kind":"#;
    assert!(written.contains(members), "{written}");
    assert_eq!(
        serde_json::from_str::<LoopRecord>(&written).unwrap(),
        record
    );
    let broken = written.replace("max_turns", "max_turn");
    assert!(serde_json::from_str::<LoopRecord>(&broken).is_err());
}

fn any_limit() -> impl Strategy<Value = ReachedLimit> {
    let kinds = prop::sample::select(vec![
        LimitKind::Turns,
        LimitKind::Tokens,
        LimitKind::Duration,
        LimitKind::Cost,
        LimitKind::Answer,
    ]);
    (kinds, ".*").prop_map(|(kind, text)| ReachedLimit { kind, text })
}

fn any_failure() -> impl Strategy<Value = ProviderFailure> {
    use ModelErrorKind as K;
    let kinds = prop::sample::select(vec![
        K::Network,
        K::Protocol,
        K::Unfinished,
        K::RateLimit,
        K::Overloaded,
        K::Auth,
        K::ContextOverflow,
        K::BadRequest,
        K::Timeout,
        K::AnswerLimit,
    ]);
    prop_oneof![
        Just(ProviderFailure::Refused),
        (kinds, ".*").prop_map(|(kind, message)| ProviderFailure::Failed { kind, message }),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(|text| json!({"why": [text]})),
    ]
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let text = || ".*".prop_map(String::from);
    let finish = prop_oneof![
        ".*".prop_map(|text| TurnFinish::AssistantMessage {
            text: text.as_str().into()
        }),
        any_value().prop_map(|value| TurnFinish::FinalValue { value }),
        (text(), any_value())
            .prop_map(|(tool_name, value)| TurnFinish::ToolValue { tool_name, value }),
    ];
    let stop = prop_oneof![
        Just(TurnStop::Cancelled),
        Just(TurnStop::Incomplete),
        text().prop_map(|reason| TurnStop::InvalidInput { reason }),
        any_failure().prop_map(TurnStop::ProviderError),
        any_limit().prop_map(TurnStop::MaxTurns),
        text().prop_map(|message| TurnStop::ToolFailure { message }),
        text().prop_map(|reason| TurnStop::PluginAbort { reason }),
        text().prop_map(|message| TurnStop::RuntimeError { message }),
        any_value().prop_map(|value| TurnStop::SubmittedError { value }),
        (text(), any_value())
            .prop_map(|(tool_name, value)| TurnStop::ToolError { tool_name, value }),
    ];
    prop_oneof![
        (finish, prop::option::of(any_limit()))
            .prop_map(|(finish, limit)| Outcome::Finished(finish, limit)),
        (text(), text()).prop_map(|(frame_id, task)| Outcome::FrameSwitch { frame_id, task }),
        stop.prop_map(Outcome::Stopped),
    ]
}

proptest! {
    #[test]
    fn stored_outcome_round_trips(outcome in any_outcome()) {
        let written = serde_json::to_string(&outcome).unwrap();
        prop_assert_eq!(serde_json::from_str::<Outcome>(&written).unwrap(), outcome.clone());
        let end = EventKind::LoopEnd { outcome, usage: Usage::default(), rejection: None };
        let written = serde_json::to_string(&end).unwrap();
        prop_assert_eq!(serde_json::from_str::<EventKind>(&written).unwrap(), end);
    }
}
