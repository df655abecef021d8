//! Tests of loops that must finish with a tool's decision.

use super::fixtures::spec_with_limits;
use super::harness::{
    LoopHarness, allow, calls_answer, control_envelope, limit, steer, text_answer, tool_ended,
};
use crate::{
    Effect, EventKind, Input, LimitKind, Limits, Loop, LoopSpec, Message, Outcome, Termination,
    TextValue, Timestamp, ToolChoice, ToolControl, ToolEnvelope, ToolErrorKind, TurnFinish,
    TurnStop,
};
use serde_json::json;

const REMINDER: &str = "A reply in prose does not end this task. Call `finish` with the result, or \
    `submit_error` if there can be none.";

fn spec(turns: u32) -> LoopSpec {
    LoopSpec {
        termination: Termination::FinishRequired,
        forced_reply: true,
        ..spec_with_limits(Limits {
            turns,
            ..Limits::default()
        })
    }
}

fn outcome_of(spec: LoopSpec, inputs: Vec<Input>) -> (LoopHarness, Outcome) {
    let mut script = LoopHarness::start(spec);
    script.feed_all(inputs).feed(Input::Committed);
    let outcome = script.outcome();
    (script, outcome)
}

fn system_messages(script: LoopHarness) -> Vec<String> {
    let record = script.recorder.into_record().unwrap();
    let messages = record.messages.iter().map(|message| &message.message);
    let texts = messages.filter_map(|message| match message {
        Message::System { text } => Some(text.clone()),
        Message::User { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
    });
    texts.collect()
}

/// The reminder is part of the next turn, and a value then ends the loop.
// proves: LASH-113, LASH-114, TURN-67
#[test]
fn prose_is_followed_by_reminder() {
    let value = json!({"rating": "low"});
    let submitted = control_envelope("told", ToolControl::Submit(value.clone()));
    let inputs = vec![
        text_answer("It is low."),
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", submitted),
    ];
    let (script, outcome) = outcome_of(spec(5), inputs);
    let finish = TurnFinish::FinalValue { value };
    assert_eq!(outcome, Outcome::Finished(finish, None));
    assert_eq!(system_messages(script), [REMINDER]);
}

/// Only the request after the reminder requires a call.
// proves: UP-33
#[test]
fn reminder_requires_a_call() {
    let mut out = Vec::new();
    let now = Timestamp::default();
    let mut machine = Loop::start(spec(5), now, &mut out);
    let failed = ToolEnvelope::failed(ToolErrorKind::Validation, "no");
    for input in [
        text_answer("It is low."),
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", failed),
    ] {
        machine.handle_input(now, input, &mut out);
    }
    let choices: Vec<ToolChoice> = out
        .iter()
        .filter_map(|effect| match effect {
            Effect::CallModel { tool_choice, .. } => Some(*tool_choice),
            _ => None,
        })
        .collect();
    assert_eq!(
        choices,
        [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Auto]
    );
}

/// A rejected value goes back to the model like any other failed call.
#[test]
fn rejected_value_is_followed_by_another_turn() {
    let rejected = ToolEnvelope::failed(ToolErrorKind::Validation, "/rating: 5 is not a string");
    let accepted = control_envelope("told", ToolControl::Submit(json!("low")));
    let inputs = vec![
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", rejected),
        calls_answer(&["b"]),
        allow("b"),
        tool_ended("b", accepted),
    ];
    let (script, outcome) = outcome_of(spec(5), inputs);
    let finish = TurnFinish::FinalValue {
        value: json!("low"),
    };
    assert_eq!(outcome, Outcome::Finished(finish, None));
    assert_eq!(system_messages(script), Vec::<String>::new());
}

/// Reminders are bounded by the turn limit, at which no last reply in prose is requested.
// proves: UP-3
#[test]
fn reminders_end_at_turn_limit() {
    let (script, outcome) = outcome_of(spec(2), vec![text_answer("one"), text_answer("two")]);
    let reached = limit(LimitKind::Turns, "Max turns reached (2/2)");
    assert_eq!(outcome, Outcome::Stopped(TurnStop::MaxTurns(reached)));
    let stopped = "[Agent stopped: Max turns reached (2/2)]";
    assert_eq!(system_messages(script), [REMINDER, stopped]);
}

fn text_with_value(text: &str, value: TextValue) -> Input {
    let Input::ModelAnswered {
        response, calls, ..
    } = text_answer(text)
    else {
        unreachable!("an answer");
    };
    Input::ModelAnswered {
        response,
        calls,
        value,
    }
}

/// The value is on the stream and is the outcome, as if it had been submitted.
// proves: LASH-114
#[test]
fn value_in_text_ends_the_loop() {
    let value = json!({"rating": "low"});
    let input = text_with_value("{}", TextValue::Accepted(value.clone()));
    let (script, outcome) = outcome_of(spec(5), vec![input]);
    let finish = TurnFinish::FinalValue {
        value: value.clone(),
    };
    assert_eq!(outcome, Outcome::Finished(finish, None));
    let record = script.recorder.into_record().unwrap();
    let shown = record.events.iter().filter_map(|event| match &event.kind {
        EventKind::FinalValue { value } => Some(value),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [&value]);
}

/// Where prose may end the loop, its text is the answer whatever it contains.
#[test]
fn value_in_text_is_prose_where_prose_is_allowed() {
    let natural = LoopSpec {
        termination: Termination::Natural,
        ..spec(5)
    };
    let input = text_with_value("1", TextValue::Accepted(json!(1)));
    let (_, outcome) = outcome_of(natural, vec![input]);
    let finish = TurnFinish::AssistantMessage { text: "1".into() };
    assert_eq!(outcome, Outcome::Finished(finish, None));
}

/// The reasons follow the reminder, and belong to one reply.
#[test]
fn rejected_value_in_text_is_explained() {
    let rejected = TextValue::Rejected("\"rating\" is a required property".to_owned());
    let inputs = vec![
        text_with_value("{}", rejected),
        text_answer("It is low."),
        text_with_value("1", TextValue::Accepted(json!(1))),
    ];
    let (script, _) = outcome_of(spec(5), inputs);
    let explained = format!(
        "{REMINDER} The value in your reply does not fit its schema either:\n\"rating\" is a required property"
    );
    assert_eq!(system_messages(script), [&explained, REMINDER]);
}

/// The error says what the model answered. Calls begin the count of reminders anew.
// proves: UP-33
#[test]
fn third_prose_in_a_row_ends_the_loop() {
    let failed = ToolEnvelope::failed(ToolErrorKind::Validation, "no");
    let long = "It is low. ".repeat(50);
    let inputs = vec![
        text_answer("one"),
        text_answer("two"),
        calls_answer(&["a"]),
        allow("a"),
        tool_ended("a", failed),
        text_answer("three"),
        text_answer("four"),
        text_answer(&long),
    ];
    let (script, outcome) = outcome_of(spec(50), inputs);
    let Outcome::Stopped(TurnStop::RuntimeError { message }) = outcome else {
        panic!("{outcome:?}");
    };
    for part in [
        "text 3 times",
        "`finish`",
        "\"It is low.",
        "…\"",
        "another model",
        "protocol",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.len() < 600, "{message}");
    assert_eq!(system_messages(script), [REMINDER; 4]);
}

/// Steering takes the place of the reminder. The time limit still stops the loop.
#[test]
fn steering_comes_before_reminder() {
    let inputs = vec![
        steer("say it in French"),
        text_answer("Low."),
        text_answer("Bas."),
        Input::TimeUp,
    ];
    let (script, outcome) = outcome_of(spec(5), inputs);
    let Outcome::Stopped(TurnStop::MaxTurns(reached)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(reached.kind, LimitKind::Duration);
    assert_eq!(system_messages(script)[0], REMINDER);
}
