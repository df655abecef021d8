//! Text out of every shape of answer.

use serde_json::{Value, json};
use turnery_engine::{Response, ResponseOverrides, extract_from_content, extract_text};

// proves: JIDO-49
#[test]
fn string_is_its_own_text() {
    assert_eq!(extract_text(&json!("hello")), "hello");
}

// proves: JIDO-50
#[test]
fn text_of_message() {
    assert_eq!(
        extract_text(&json!({"message": {"content": "hello"}})),
        "hello"
    );
}

// proves: JIDO-51
#[test]
fn text_of_first_choice() {
    let answer = json!({"choices": [
        {"message": {"content": "hello"}}, {"message": {"content": "no"}}
    ]});
    assert_eq!(extract_text(&answer), "hello");
}

// proves: JIDO-52
#[test]
fn null_has_no_text() {
    assert_eq!(extract_text(&Value::Null), "");
}

// proves: JIDO-53, JIDO-54, C-19
#[test]
fn blocks_are_joined_by_newlines() {
    let blocks = json!([
        {"type": "text", "text": "part 1"},
        {"type": "tool_use", "id": "a", "name": "x", "input": {}},
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "part 2"}
    ]);
    assert_eq!(extract_from_content(&blocks), "part 1\npart 2");
    assert_eq!(extract_from_content(&json!("bare")), "bare");
    assert_eq!(extract_from_content(&json!(["a", "b"])), "a\nb");
    assert_eq!(
        extract_from_content(&json!({"type": "text", "text": "one"})),
        "one"
    );
    assert_eq!(extract_from_content(&Value::Null), "");
}

// proves: JIDO-48
#[test]
fn every_response_shape_gives_its_text() {
    for (answer, text) in [
        (
            json!({"message": {"content": [{"type": "text", "text": "a"}]}}),
            "a",
        ),
        (
            json!({"role": "assistant", "content": [
                {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            "a\nb",
        ),
        (
            json!({"output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "content": [{"type": "output_text", "text": "a"}]}]}),
            "a",
        ),
        (
            json!({"candidates": [{"content": {"parts": [
                {"text": "hm", "thought": true}, {"text": "a"}, {"text": "b"}]}}]}),
            "a\nb",
        ),
        (json!({"choices": [{"text": "a"}]}), "a"),
        (json!({"text": "a"}), "a"),
        (json!({"type": "final_answer", "text": "a"}), "a"),
        (json!([{"type": "text", "text": "a"}]), "a"),
        // Shapes that are broken have no text; they are no failure either.
        (json!({"choices": []}), ""),
        (json!({"choices": [{"message": {"content": 7}}]}), ""),
        (json!({"candidates": [7]}), ""),
        (json!({"output": {"text": "a"}}), ""),
        (json!({"anything": "else"}), ""),
        (json!(7), ""),
        (json!(true), ""),
    ] {
        assert_eq!(extract_text(&answer), text, "{answer}");
    }
}

// proves: JIDO-9, JIDO-54, C-19
#[test]
fn response_text_is_its_blocks_text() {
    let answer = json!({"content": [
        {"type": "text", "text": "part 1"}, {"type": "text", "text": "part 2"}]});
    let response =
        Response::from_response(answer, ResponseOverrides::default()).expect("a response");
    assert_eq!(response.text(), "part 1\npart 2");
}
