//! What a response becomes in the history.

use super::{build, call, chat};
use serde_json::json;
use turnery_engine::{
    Content, ImageData, Message, MessageStop, Response, Role, ToolEnvelope, ToolError,
    ToolErrorKind, ToolResult,
};

fn response_with_calls() -> Response {
    build(chat(&json!({
        "content": "Let me see.",
        "tool_calls": [
            {"id": "c1", "function": {"name": "multiply", "arguments": "{\"a\":6}"}},
            {"id": "c2", "function": {"name": "nothing", "arguments": "{}"}}
        ]
    })))
}

fn response_with_results() -> Response {
    let product = ToolEnvelope::json(json!({"product": 42}));
    let missing = ToolEnvelope::failed(ToolErrorKind::NotFound, "there is no such tool");
    response_with_calls().with_tool_results(vec![
        ToolResult::new("c1".into(), "multiply".to_owned(), product),
        ToolResult::new("c2".into(), "nothing".to_owned(), missing),
    ])
}

// proves: JIDO-14, JIDO-73, JIDO-74
#[test]
fn only_with_tool_results_fills_results() {
    let response = response_with_calls();
    assert_eq!(response.tool_results, []);
    let other = response_with_results();
    assert_eq!(other.tool_results.len(), 2);
    assert_eq!(other.content, response.content);
    assert_eq!(response.tool_results, []);
    // A vendor's response has none, whatever it contains.
    let mut map = chat(&json!({"content": "hi"}));
    map["tool_results"] = json!([{"id": "c1", "name": "multiply", "content": "42"}]);
    assert_eq!(build(map).tool_results, []);
}

// proves: JIDO-21, JIDO-22, JIDO-23, JIDO-24, C-23
#[test]
fn tool_result_has_id_name_json_and_envelope() {
    let [product, missing] = &response_with_results().tool_results[..] else {
        panic!("two results");
    };
    assert_eq!(product.id().as_str(), "c1");
    assert_eq!(product.name(), "multiply");
    assert_eq!(product.content(), "{\"product\":42}");
    assert_eq!(product.raw_result().value, Some(json!({"product": 42})));
    assert_eq!(missing.content(), "there is no such tool");
    let failure = missing.raw_result().result.as_ref().expect_err("a failure");
    assert_eq!(failure.kind, ToolErrorKind::NotFound);
    let stored = serde_json::to_value(product).expect("JSON");
    assert_eq!(
        stored,
        json!({
            "id": "c1", "name": "multiply", "content": "{\"product\":42}",
            "raw_result": {
                "result": {"Ok": [{"type": "text", "text": "{\"product\":42}"}]},
                "value": {"product": 42}
            }
        })
    );
}

// proves: JIDO-29
#[test]
fn assistant_message_has_content_and_calls() {
    let message = response_with_results().assistant_message();
    assert_eq!(message.role(), Role::Assistant);
    assert_eq!(message.text(), "Let me see.");
    let calls: Vec<&str> = message.calls().map(|call| call.name.as_str()).collect();
    assert_eq!(calls, ["multiply", "nothing"]);
    let Message::Assistant { stop, model, .. } = &message else {
        panic!("the assistant's");
    };
    assert_eq!((*stop, model.as_str()), (MessageStop::ToolUse, "m-1"));
}

// proves: JIDO-30, C-23
#[test]
fn each_result_is_one_tool_message() {
    let expected = [
        Message::ToolResult {
            call_id: "c1".into(),
            tool_name: "multiply".to_owned(),
            content: vec![Content::text("{\"product\":42}")],
            is_error: false,
        },
        Message::ToolResult {
            call_id: "c2".into(),
            tool_name: "nothing".to_owned(),
            content: vec![Content::text("there is no such tool")],
            is_error: true,
        },
    ];
    let messages = response_with_results().tool_messages();
    assert_eq!(messages, expected);
    assert!(messages.iter().all(|message| message.role() == Role::Tool));
}

// proves: JIDO-2, JIDO-77
#[test]
fn history_has_four_roles() {
    let roles = [
        Message::System {
            text: "You are a calculator.".to_owned(),
        },
        Message::user("What is 6 * 7?"),
        response_with_results().assistant_message(),
        response_with_results().tool_messages().remove(0),
    ]
    .map(|message| message.role());
    let words = serde_json::to_value(roles).expect("JSON");
    assert_eq!(words, json!(["system", "user", "assistant", "tool"]));
}

#[test]
fn images_reach_model_and_value_replaces_empty_content() {
    let picture = Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "iVBO".into(),
    });
    let content = vec![Content::text("a picture:"), picture];
    let shown = ToolEnvelope {
        value: Some(json!({"width": 1})),
        ..ToolEnvelope::ok(content.clone())
    };
    assert_eq!(shown.to_model_content(), (content, false));
    let silent = ToolEnvelope {
        value: Some(json!([1, 2])),
        ..ToolEnvelope::ok(Vec::new())
    };
    assert_eq!(
        silent.to_model_content(),
        (vec![Content::text("[1,2]")], false)
    );
}

// proves: JIDO-41, JIDO-42, JIDO-43, JIDO-76
#[test]
fn result_tuples_convert_to_envelopes() {
    let failure = ToolError {
        kind: ToolErrorKind::ExecutionError,
        message: "no".to_owned(),
        details: None,
    };
    let ok = ToolEnvelope::from(Ok(json!({"product": 42})));
    assert_eq!(ok.value, Some(json!({"product": 42})));
    assert!(ok.effects.is_empty());
    let error = ToolEnvelope::from(Err(failure.clone()));
    assert_eq!(error.result, Err(failure.clone()));
    assert!(error.effects.is_empty());
    let effects = vec![json!({"kind": "emit", "type": "sum"})];
    let ok = ToolEnvelope::from((Ok(json!(42)), effects.clone()));
    assert_eq!(ok.result, Ok(vec![Content::text("42")]));
    assert_eq!(ok.effects, effects);
    let error = ToolEnvelope::from((Err(failure.clone()), effects.clone()));
    assert_eq!((error.result, error.effects), (Err(failure), effects));
}

// proves: JIDO-29
#[test]
fn message_call_equals_response_call() {
    let message = response_with_calls().assistant_message();
    let Message::Assistant { content, .. } = message else {
        panic!("the assistant's");
    };
    assert_eq!(content[1], call("c1", "multiply", json!({"a": 6})));
}
