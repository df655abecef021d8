//! Tests the parsing of result maps and of stored responses.

use super::{call, thinking};
use serde_json::{Value, json};
use turnery_engine::{
    Content, ModelStop, Response, ResponseKind, ResponseOverrides, ToolEnvelope, ToolResult, Usage,
};

fn from_result_map(map: Value) -> Response {
    Response::from_result_map(&map, ResponseOverrides::default()).expect("a response")
}

// proves: JIDO-15
#[test]
fn final_answer_from_result_map() {
    let response = from_result_map(json!({
        "type": "final_answer", "text": "42", "usage": {"input_tokens": 10}
    }));
    let expected = Response {
        content: vec![Content::text("42")],
        stop: ModelStop::EndTurn,
        raw_stop: None,
        usage: Some(Usage {
            input: 10,
            ..Usage::default()
        }),
        model: String::new(),
        provider: "unknown".to_owned(),
        tool_results: Vec::new(),
        request: None,
    };
    assert_eq!(response, expected);
}

// proves: JIDO-8, JIDO-11, JIDO-15
#[test]
fn calls_and_results_from_result_map() {
    let map = json!({
        "type": "tool_calls", "text": null, "thinking_content": "Hm", "model": "m-1",
        "tool_calls": [{"id": "call_abc", "name": "multiply", "arguments": {"a": 6, "b": 7}}],
        "tool_results": [
            {"id": "call_abc", "name": "multiply", "content": "{\"product\":42}"}
        ]
    });
    let response = from_result_map(map.clone());
    assert_eq!(response.kind(), ResponseKind::ToolCalls);
    assert_eq!(
        response.content,
        [
            thinking("Hm"),
            call("call_abc", "multiply", json!({"a": 6, "b": 7}))
        ]
    );
    assert_eq!(response.tool_results.len(), 1);
    assert_eq!(response.tool_results[0].content(), "{\"product\":42}");
    // The same map is a source like any other.
    assert_eq!(
        Response::from_response(map, ResponseOverrides::with_model("tag")).map(|it| it.model),
        Ok("tag".to_owned())
    );
}

// proves: JIDO-16
#[test]
fn result_map_type_may_contradict_calls() {
    let says = from_result_map(json!({"type": "tool_calls", "tool_calls": []}));
    assert_eq!((says.calls().count(), says.needs_tools()), (0, true));
    let has = from_result_map(json!({"type": "final_answer", "tool_calls": [{"name": "x"}]}));
    assert_eq!(
        (has.kind(), has.needs_tools()),
        (ResponseKind::FinalAnswer, true)
    );
    let untold = from_result_map(json!({"text": "hi"}));
    assert_eq!(
        (untold.kind(), untold.needs_tools()),
        (ResponseKind::FinalAnswer, false)
    );
}

// proves: JIDO-15
#[test]
fn stored_response_round_trips() {
    let stored = Response {
        content: vec![call("a", "x", json!({}))],
        stop: ModelStop::ToolUse,
        raw_stop: Some("tool_use".to_owned()),
        usage: None,
        model: "m-1".to_owned(),
        provider: "acme".to_owned(),
        tool_results: vec![ToolResult::new(
            "a".into(),
            "x".to_owned(),
            ToolEnvelope::json(json!({"n": 1})).with_effects(vec![json!({"kind": "emit"})]),
        )],
        request: None,
    };
    let map = serde_json::to_value(&stored).expect("a map");
    assert_eq!(map["tool_results"][0]["content"], json!("{\"n\":1}"));
    assert_eq!(from_result_map(map), stored);
}

#[test]
fn malformed_result_map_is_rejected() {
    for (map, words) in [
        (
            json!([]),
            "the answer is a list, not an object; give the whole of what the provider sent",
        ),
        (
            json!({"type": "answer"}),
            "type of the answer is text, not tool_calls or final_answer",
        ),
        (
            json!({"stop": "never", "content": []}),
            "a part of the answer is something else, not that of a stored response",
        ),
        (
            json!({"tool_results": "none"}),
            "tool_results of the answer is text, not a list of results",
        ),
    ] {
        let error =
            Response::from_result_map(&map, ResponseOverrides::default()).expect_err("refused");
        assert_eq!(error.to_string(), words);
    }
}
