//! Tests of Anthropic Messages, against the events in its documentation.

use crate::wire::{post, start_model};
use acp_conformance::model::{Api, ConversationMessage, ExchangeRole, ExchangeState, MessageRole};
use serde_json::{Value, json};

fn request(stream: bool) -> Value {
    json!({
        "model": "claude-x", "max_tokens": 100, "stream": stream,
        "system": [{"type": "text", "text": "Be terse."}, {"type": "text", "text": "Be kind."}],
        "tools": [{"name": "Read", "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}}],
        "messages": [
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": [{"type": "text", "text": "I do."}, {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/b"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "bee"}]}, {"type": "text", "text": "and go on"}]},
        ],
    })
}

#[tokio::test]
async fn thinking_text_and_call_are_blocks() {
    let model = start_model("think \"a\"\nthink \"b\"\ntext \"one \"\ntext \"two\"\ncall read {\"path\": \"/a\"}\nusage 11 7").await;
    let events = post(&model, "/v1/messages?beta=true", &request(true))
        .await
        .named_events();
    let usage = json!({"input_tokens": 11, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 7});
    assert_eq!(events[0]["type"], "message_start");
    let message = &events[0]["message"];
    assert_eq!(message["id"], "msg_0");
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["model"], "claude-x");
    assert_eq!(message["content"], json!([]));
    assert_eq!(message["stop_reason"], Value::Null);
    assert_eq!(
        events[1..],
        [
            json!({"type": "ping"}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "a"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "b"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2lnbmVk"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "one "}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "two"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "toolu_0_2", "name": "Read", "input": {}}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"file_path\":\"/a\"}"}}),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": usage}),
            json!({"type": "message_stop"}),
        ]
    );
}

#[tokio::test]
async fn unstreamed_response_is_one_message() {
    let model = start_model("think \"a\"\ntext \"one \"\ntext \"two\"\ncall read {\"path\": \"/a\"}\n---\ntext \"x\"\nlength\n---\nrefuse").await;
    let message = post(&model, "/v1/messages", &request(false)).await.json();
    assert_eq!(
        message["content"],
        json!([
            {"type": "thinking", "thinking": "a", "signature": "c2lnbmVk"},
            {"type": "text", "text": "one two"},
            {"type": "tool_use", "id": "toolu_0_2", "name": "Read", "input": {"file_path": "/a"}},
        ])
    );
    assert_eq!(message["type"], "message");
    assert_eq!(message["stop_reason"], "tool_use");
    let message = post(&model, "/v1/messages", &request(false)).await.json();
    assert_eq!(message["stop_reason"], "max_tokens");
    let message = post(&model, "/v1/messages", &request(false)).await.json();
    assert_eq!(
        (&message["stop_reason"], &message["content"]),
        (&json!("refusal"), &json!([]))
    );
}

#[tokio::test]
async fn errors_are_a_status_or_an_event() {
    let model = start_model("error 529 \"busy\"\n---\ntext \"x\"\nerror 500").await;
    let error = post(&model, "/v1/messages", &request(true)).await;
    assert_eq!(error.status, 529);
    assert_eq!(
        error.json(),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    );
    let events = post(&model, "/v1/messages", &request(true))
        .await
        .named_events();
    assert_eq!(
        events.last(),
        Some(
            &json!({"type": "error", "error": {"type": "api_error", "message": "scripted error 500"}})
        )
    );
}

#[tokio::test]
async fn request_is_recorded() {
    let model = start_model("text \"x\"").await;
    post(&model, "/v1/messages", &request(true)).await;
    let exchange = model.conversation_exchanges().remove(0);
    assert_eq!(
        (exchange.role, exchange.state),
        (ExchangeRole::Main(0), ExchangeState::Answered)
    );
    let asked = exchange.request.unwrap();
    assert_eq!((asked.api, asked.streaming), (Api::Anthropic, true));
    assert_eq!(asked.system_prompt, "Be terse.\nBe kind.");
    let said = |by, text: &str| ConversationMessage {
        role: by,
        text: text.to_owned(),
    };
    assert_eq!(
        asked.messages,
        [
            said(MessageRole::User, "Look"),
            said(MessageRole::Model, "I do."),
            said(MessageRole::Model, "Read {\"file_path\":\"/b\"}"),
            said(MessageRole::Tool, "bee"),
            said(MessageRole::User, "and go on"),
        ]
    );
    assert_eq!(exchange.body, request(true));
}
