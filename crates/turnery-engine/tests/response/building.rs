//! What a response is built from, and what it then is.

use super::{build, build_error, call, chat};
use serde_json::json;
use turnery_engine::{
    Content, Message, MessageStop, ModelStop, Response, ResponseError, ResponseKind,
    ResponseOverrides, ToolEnvelope, ToolResult, Usage,
};

fn sample_response() -> Response {
    Response {
        content: vec![
            Content::text("Let me see."),
            call("call_abc", "multiply", json!({"a": 6, "b": 7})),
        ],
        stop: ModelStop::ToolUse,
        raw_stop: Some("tool_calls".to_owned()),
        usage: Some(Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        }),
        model: "m-1".to_owned(),
        provider: "acme".to_owned(),
        tool_results: Vec::new(),
        request: None,
    }
}

// proves: JIDO-4, JIDO-5
#[test]
fn response_source_is_unchanged() {
    let results = vec![ToolResult::new(
        "call_abc".into(),
        "multiply".to_owned(),
        ToolEnvelope::json(json!({"product": 42})),
    )];
    let odd = Response {
        stop: ModelStop::EndTurn,
        ..sample_response().with_tool_results(results)
    };
    for response in [sample_response(), odd] {
        let again = Response::from_response(response.clone(), ResponseOverrides::default());
        assert_eq!(again, Ok(response));
    }
}

// proves: JIDO-4
#[test]
fn history_message_becomes_response() {
    let Response {
        content,
        model,
        provider,
        usage,
        ..
    } = sample_response();
    let message = Message::Assistant {
        content,
        stop: MessageStop::ToolUse,
        model,
        provider,
        usage,
        error: None,
        request: None,
    };
    let expected = Response {
        raw_stop: None,
        ..sample_response()
    };
    assert_eq!(
        Response::from_response(message, ResponseOverrides::default()),
        Ok(expected)
    );
}

#[test]
fn only_complete_assistant_message_is_accepted() {
    let user = Message::user("hello");
    assert_eq!(
        Response::from_response(user, ResponseOverrides::default()),
        Err(ResponseError::NotAssistantMessage)
    );
    let cut = Message::Assistant {
        content: vec![Content::text("hel")],
        stop: MessageStop::Aborted,
        model: String::new(),
        provider: String::new(),
        usage: None,
        error: None,
        request: None,
    };
    assert_eq!(
        Response::from_response(cut, ResponseOverrides::default()),
        Err(ResponseError::Unfinished)
    );
}

// proves: JIDO-5, JIDO-7
#[test]
fn model_can_be_overridden() {
    let named = Response::from_response(
        sample_response(),
        ResponseOverrides::with_model("my-custom-tag"),
    );
    let expected = Response {
        model: "my-custom-tag".to_owned(),
        ..sample_response()
    };
    assert_eq!(named, Ok(expected));
    let map = chat(&json!({"content": "hi"}));
    let named = Response::from_response(map, ResponseOverrides::with_model("my-custom-tag"));
    assert_eq!(named.map(|it| it.model), Ok("my-custom-tag".to_owned()));
}

// proves: JIDO-8, JIDO-10, JIDO-11, JIDO-12, JIDO-13
#[test]
fn raw_map_fills_every_field() {
    let response = build(chat(&json!({
        "content": "Let me see.",
        "reasoning_content": "6 times 7",
        "tool_calls": [{
            "id": "call_abc",
            "type": "function",
            "function": {"name": "multiply", "arguments": "{\"a\":6,\"b\":7}"}
        }]
    })));
    assert_eq!(response.kind(), ResponseKind::ToolCalls);
    assert_eq!(response.text(), "Let me see.");
    assert_eq!(response.thinking().as_deref(), Some("6 times 7"));
    let calls: Vec<_> = response.calls().collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].call_id.as_str(), "call_abc");
    assert_eq!(calls[0].name, "multiply");
    assert_eq!(*calls[0].args, json!({"a": 6, "b": 7}));
    let usage = response.usage.expect("usage");
    assert_eq!((usage.input, usage.output), (10, 5));
    assert_eq!(response.model, "m-1");
    assert_eq!(response.provider, "unknown");
    assert_eq!(response.tool_results, []);
}

// proves: JIDO-9, JIDO-71, JIDO-72, JIDO-8
#[test]
fn no_calls_is_final_answer_and_no_content_is_empty_text() {
    for (message, text) in [
        (json!({"content": null}), ""),
        (json!({}), ""),
        (json!({"content": null, "tool_calls": null}), ""),
        (json!({"content": "", "tool_calls": []}), ""),
        (json!({"content": "hi", "tool_calls": []}), "hi"),
    ] {
        // Some servers say that they call tools and then do not.
        for word in ["stop", "tool_calls"] {
            let mut map = chat(&message);
            map["choices"][0]["finish_reason"] = json!(word);
            let response = build(map);
            assert_eq!(response.kind(), ResponseKind::FinalAnswer, "{message}");
            assert_eq!(response.text(), text, "{message}");
        }
    }
}

// proves: JIDO-10
#[test]
fn missing_thinking_is_none() {
    let response = build(chat(&json!({"content": "42"})));
    assert_eq!(response.thinking(), None);
}

// proves: JIDO-16, JIDO-77
#[test]
fn needs_tools_by_stop_or_calls() {
    let says = Response {
        content: vec![Content::text("I will call.")],
        ..sample_response()
    };
    assert_eq!(
        (says.kind(), says.needs_tools()),
        (ResponseKind::ToolCalls, true)
    );
    let has = Response {
        stop: ModelStop::EndTurn,
        ..sample_response()
    };
    assert_eq!(
        (has.kind(), has.needs_tools()),
        (ResponseKind::FinalAnswer, true)
    );
    let neither = Response {
        content: vec![Content::text("42")],
        stop: ModelStop::EndTurn,
        ..sample_response()
    };
    assert!(!neither.needs_tools());
}

// proves: D-16
#[test]
fn settled_response_drops_cut_off_calls() {
    for stop in [ModelStop::Length, ModelStop::Refusal] {
        let cut = Response {
            stop,
            ..sample_response()
        }
        .settled();
        assert_eq!(cut.content, [Content::text("Let me see.")]);
        assert_eq!(cut.stop, stop);
    }
    let whole = Response {
        stop: ModelStop::EndTurn,
        ..sample_response()
    };
    assert_eq!(whole.settled(), sample_response());
}

#[test]
fn stored_response_without_results_loads() {
    let stored = r#"{
        "content": [{"type": "text", "text": "42"}],
        "stop": "end_turn", "model": "m-1", "provider": "acme"
    }"#;
    let response: Response = serde_json::from_str(stored).expect("a response");
    assert_eq!(response.text(), "42");
    assert_eq!(response.tool_results, []);
}

#[test]
fn invalid_answer_is_explained() {
    for (map, words) in [
        (
            json!("42"),
            "the answer is text, not an object; give the whole of what the provider sent",
        ),
        (
            json!({"answer": 42}),
            "the answer has no choices, output, candidates, message, content or type, so it is of no \
             known shape",
        ),
        (
            json!({"error": {"message": "Incorrect API key provided: sk-12"}}),
            "the provider sent an error in place of an answer",
        ),
        (
            json!({"choices": []}),
            "choices[0].message of the answer is missing, not a message",
        ),
        (
            json!({"choices": [{"message": 42}]}),
            "choices[0].message of the answer is a number, not a message",
        ),
        (
            chat(&json!({"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]})),
            "choices[0].message.tool_calls[0].name of the answer is missing, not the name of a tool",
        ),
        (
            chat(&json!({"tool_calls": "multiply"})),
            "choices[0].message.tool_calls of the answer is text, not a call of a tool",
        ),
        (
            json!({"content": {"text": "hi"}}),
            "content of the answer is an object, not text or a list of blocks",
        ),
        (
            json!({"candidates": []}),
            "candidates[0] of the answer is missing, not an object",
        ),
        (
            json!({"output": [], "status": "failed"}),
            "the provider sent an error in place of an answer",
        ),
        (
            json!({"type": "tool_calls", "tool_calls": [7]}),
            "tool_calls[0] of the answer is a number, not a call of a tool",
        ),
        (
            json!({"type": "final_answer", "tool_results": [{"id": "a"}]}),
            "tool_results[0] of the answer is an object, not the result of a call",
        ),
    ] {
        assert_eq!(build_error(map).to_string(), words);
    }
}

// proves: JIDO-11
#[test]
fn missing_call_ids_are_assigned_and_bad_args_kept() {
    let response = build(chat(&json!({"tool_calls": [
        {"id": "a", "function": {"name": "x", "arguments": ""}},
        {"id": "a", "function": {"name": "x", "arguments": "{oops"}},
        {"function": {"name": "x"}},
        {"id": "call_2", "function": {"name": "x", "arguments": {"k": 1}}}
    ]})));
    assert_eq!(
        response.content,
        [
            call("a", "x", json!({})),
            call("call_2", "x", json!("{oops")),
            call("call_3", "x", json!({})),
            call("call_4", "x", json!({"k": 1})),
        ]
    );
}
