//! Tests of the size limits of a response, and of what is kept of an oversized one.

use super::fixtures::spec_with_limits;
use super::harness::{LoopHarness, model_answered, model_failed, text_delta, tool_call};
use crate::{
    Content, Input, LimitKind, Limits, LoopFinish, Message, MessageStop, ModelDelta,
    ModelErrorKind, ModelStop, Outcome, ResponseLimits, ResponseSize, TurnStop,
};

const BLOCK: u64 = ResponseSize::BLOCK_OVERHEAD_BYTES as u64;

fn limited(bytes: u64, calls: u64) -> Limits {
    Limits {
        response: ResponseLimits { bytes, calls },
        ..Limits::default()
    }
}

fn args(block: u32, fragment: &str) -> Input {
    Input::ModelDelta(ModelDelta::ToolCallArgs {
        block,
        name: "tool".to_owned(),
        fragment: fragment.to_owned(),
    })
}

/// Feeds a prompt; returns the kept text, the stop reason of the message, and the text of the limit.
fn end_of(limits: Limits, inputs: Vec<Input>) -> (String, MessageStop, String) {
    let mut script = LoopHarness::start(spec_with_limits(limits));
    script.feed_all(inputs).feed(Input::Committed);
    script.lines();
    let Outcome::Stopped(TurnStop::MaxTurns(limit)) = script.outcome() else {
        panic!("no limit: {:?}", script.finish);
    };
    assert_eq!(limit.kind, LimitKind::Answer);
    let text = limit.text;
    let record = script.recorder.record().unwrap();
    let said: Vec<&Message> = record.messages.iter().map(|it| &it.message).collect();
    let [
        ..,
        Message::Assistant { content, stop, .. },
        Message::System { text: told },
    ] = said.as_slice()
    else {
        panic!("{said:?}");
    };
    assert_eq!(*told, format!("[Agent stopped: {text}]"));
    let kept: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    assert_eq!(kept.len(), content.len(), "nothing but text is kept");
    (kept.join("|"), *stop, text)
}

// proves: UP-1
#[test]
fn response_over_byte_limit_is_stopped_and_kept() {
    let bytes = BLOCK + 4;
    let size = format!("Max answer size reached ({bytes} bytes)");
    let ends = end_of(
        limited(bytes, 9),
        vec![text_delta(0, "abcd"), text_delta(0, "e")],
    );
    assert_eq!(
        ends,
        ("abcde".to_owned(), MessageStop::Length, size.clone())
    );
    // Blocks count too, so that many small ones do not add up unseen.
    let ends = end_of(
        limited(bytes, 9),
        vec![text_delta(0, "a"), text_delta(1, "b")],
    );
    assert_eq!(ends, ("a|b".to_owned(), MessageStop::Length, size.clone()));
    // Arguments count, although they are not kept.
    let ends = end_of(limited(bytes, 9), vec![args(0, "{\"a\""), args(0, ":1")]);
    assert_eq!(ends, (String::new(), MessageStop::Length, size));
}

// proves: UP-1
#[test]
fn response_over_call_limit_runs_no_call() {
    let calls = "Max calls of one answer reached (1)".to_owned();
    let two = vec![Content::text("both"), tool_call("a"), tool_call("b")];
    let ends = end_of(
        limited(9_999, 1),
        vec![model_answered(two, ModelStop::ToolUse, None)],
    );
    assert_eq!(
        ends,
        ("both".to_owned(), MessageStop::Length, calls.clone())
    );
    let streamed = vec![text_delta(0, "x"), args(1, "{}"), args(2, "{")];
    let ends = end_of(limited(9_999, 1), streamed);
    assert_eq!(ends, ("x".to_owned(), MessageStop::Length, calls));
}

// proves: UP-1
#[test]
fn response_at_limit_is_accepted() {
    let mut script = LoopHarness::start(spec_with_limits(limited(BLOCK + 4, 1)));
    let whole = model_answered(vec![Content::text("abcd")], ModelStop::EndTurn, None);
    script.feed_all(vec![text_delta(0, "abcd"), whole, Input::Committed]);
    script.lines();
    assert!(matches!(
        script.finish,
        Some(LoopFinish::Committed {
            outcome: Outcome::Finished(_, None),
            ..
        })
    ));
}

/// An adapter that stopped reading reports a dedicated error.
// proves: UP-1
#[test]
fn adapter_response_limit_stops_loop_at_limit() {
    let inputs = vec![
        text_delta(0, "half"),
        model_failed(ModelErrorKind::AnswerLimit),
    ];
    let ends = end_of(Limits::default(), inputs);
    let expected = (
        "half".to_owned(),
        MessageStop::Length,
        "it broke".to_owned(),
    );
    assert_eq!(ends, expected);
}

// proves: UP-1
#[test]
fn oversized_response_stops_model_at_once() {
    let mut script = LoopHarness::start(spec_with_limits(limited(BLOCK, 1)));
    script.lines();
    script.feed(text_delta(0, "a"));
    let lines = script.lines();
    assert_eq!(lines[2], "> stop model", "{lines:?}");
}
