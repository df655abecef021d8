//! Bounds on one answer: its bytes, its calls, and what is kept of an answer that exceeds them.

use super::fixture::spec;
use super::script::{Script, answer, call, failed, text};
use crate::{
    AnswerLimits, AnswerSize, Content, Detail, FaultKind, Finish, Input, LimitKind, Limits,
    Message, MessageStop, ModelDelta, ModelStop, Outcome, TurnStop,
};

const BLOCK: u64 = AnswerSize::BLOCK as u64;

fn limited(bytes: u64, calls: u64) -> Limits {
    Limits {
        answer: AnswerLimits { bytes, calls },
        ..Limits::default()
    }
}

fn args(block: u32, fragment: &str) -> Input {
    Input::Delta(ModelDelta::ToolCallArgs {
        block,
        name: "tool".to_owned(),
        fragment: fragment.to_owned(),
    })
}

/// Feeds a prompt, and gives the text that is kept, how the message stopped, and the limit's text.
fn end_of(limits: Limits, inputs: Vec<Input>) -> (String, MessageStop, String) {
    let mut script = Script::start(spec(limits));
    script.feed_all(inputs).feed(Input::Committed);
    script.lines();
    let Some(Finish::Done {
        outcome: Outcome::Stopped(TurnStop::MaxTurns),
        detail:
            Some(Detail::Limit {
                kind: LimitKind::Answer,
                text,
            }),
        ..
    }) = script.finish.clone()
    else {
        panic!("no limit: {:?}", script.finish);
    };
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
fn streamed_answer_beyond_its_bytes_is_stopped_and_kept() {
    let bytes = BLOCK + 4;
    let size = format!("Max answer size reached ({bytes} bytes)");
    let ends = end_of(limited(bytes, 9), vec![text(0, "abcd"), text(0, "e")]);
    assert_eq!(
        ends,
        ("abcde".to_owned(), MessageStop::Length, size.clone())
    );
    // Blocks count too, so that many small ones do not add up unseen.
    let ends = end_of(limited(bytes, 9), vec![text(0, "a"), text(1, "b")]);
    assert_eq!(ends, ("a|b".to_owned(), MessageStop::Length, size.clone()));
    // Arguments count, although they are not kept.
    let ends = end_of(limited(bytes, 9), vec![args(0, "{\"a\""), args(0, ":1")]);
    assert_eq!(ends, (String::new(), MessageStop::Length, size));
}

// proves: UP-1
#[test]
fn answer_beyond_its_calls_runs_none_of_them() {
    let calls = "Max calls of one answer reached (1)".to_owned();
    let two = vec![Content::text("both"), call("a"), call("b")];
    let ends = end_of(
        limited(9_999, 1),
        vec![answer(two, ModelStop::ToolUse, None)],
    );
    assert_eq!(
        ends,
        ("both".to_owned(), MessageStop::Length, calls.clone())
    );
    let streamed = vec![text(0, "x"), args(1, "{}"), args(2, "{")];
    let ends = end_of(limited(9_999, 1), streamed);
    assert_eq!(ends, ("x".to_owned(), MessageStop::Length, calls));
}

// proves: UP-1
#[test]
fn answer_that_reaches_its_bounds_is_whole() {
    let mut script = Script::start(spec(limited(BLOCK + 4, 1)));
    let whole = answer(vec![Content::text("abcd")], ModelStop::EndTurn, None);
    script.feed_all(vec![text(0, "abcd"), whole, Input::Committed]);
    script.lines();
    assert!(matches!(
        script.finish,
        Some(Finish::Done {
            outcome: Outcome::Finished(_),
            detail: None,
            ..
        })
    ));
}

/// An adapter that stopped reading says so with a fault of its own.
// proves: UP-1
#[test]
fn answer_limit_of_the_adapter_is_a_limit_of_the_loop() {
    let inputs = vec![text(0, "half"), failed(FaultKind::AnswerLimit)];
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
fn model_of_an_answer_beyond_its_bounds_is_stopped_at_once() {
    let mut script = Script::start(spec(limited(BLOCK, 1)));
    script.lines();
    script.feed(text(0, "a"));
    let lines = script.lines();
    assert_eq!(lines[2], "> stop model", "{lines:?}");
}
