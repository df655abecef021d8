//! Tests of OpenAI Chat Completions, against the chunks in its documentation.

use crate::wire::{post, start_model};
use acp_conformance::model::{Api, ConversationMessage, MessageRole};
use serde_json::{Value, json};

const PATH: &str = "/v1/chat/completions";

fn request(stream: bool) -> Value {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"]});
    json!({
        "model": "m", "stream": stream,
        "tools": [{"type": "function", "function": {"name": "write", "parameters": parameters}}],
        "messages": [
            {"role": "system", "content": "Be terse."},
            {"role": "user", "content": [{"type": "text", "text": "Write"}, {"type": "text", "text": "it"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "write", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
    })
}

fn chunk_json(delta: Value, finish: Value) -> Value {
    json!({
        "id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

#[tokio::test]
async fn reasoning_text_and_calls_are_deltas() {
    let model = start_model("think \"a\"\ntext \"one\"\ncall write {\"path\": \"/a\", \"text\": \"t\"}\ncall tool:gone {}\nusage 11 7").await;
    let chunks = post(&model, PATH, &request(true)).await.unnamed_events();
    let null = Value::Null;
    let call = |call: Value| chunk_json(json!({"tool_calls": [call]}), Value::Null);
    // The order of the two arguments is unspecified.
    let arguments =
        chunks[4]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].clone();
    let read: Value = serde_json::from_str(arguments.as_str().unwrap()).unwrap();
    assert_eq!(read, json!({"path": "/a", "content": "t"}));
    assert_eq!(
        chunks,
        [
            chunk_json(json!({"role": "assistant", "content": ""}), null.clone()),
            chunk_json(json!({"reasoning_content": "a"}), null.clone()),
            chunk_json(json!({"content": "one"}), null),
            call(
                json!({"index": 0, "id": "call_0_0", "type": "function", "function": {"name": "write", "arguments": ""}})
            ),
            call(json!({"index": 0, "function": {"arguments": arguments}})),
            call(
                json!({"index": 1, "id": "call_0_1", "type": "function", "function": {"name": "gone", "arguments": ""}})
            ),
            call(json!({"index": 1, "function": {"arguments": "{}"}})),
            chunk_json(json!({}), json!("tool_calls")),
            json!({
                "id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m", "choices": [],
                "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
            }),
            json!("[DONE]"),
        ]
    );
}

#[tokio::test]
async fn unstreamed_response_is_one_completion() {
    let model = start_model("think \"a\"\ntext \"one \"\ntext \"two\"\ncall tool:gone {\"a\": 1}\n---\ntext \"x\"\nlength\n---\nrefuse \"no\"").await;
    let completion = post(&model, PATH, &request(false)).await.json();
    assert_eq!(completion["object"], "chat.completion");
    assert_eq!(
        completion["choices"],
        json!([{
            "index": 0,
            "message": {
                "role": "assistant", "content": "one two", "reasoning_content": "a",
                "tool_calls": [{"id": "call_0_0", "type": "function", "function": {"name": "gone", "arguments": "{\"a\":1}"}}],
            },
            "finish_reason": "tool_calls",
        }])
    );
    let completion = post(&model, PATH, &request(false)).await.json();
    assert_eq!(completion["choices"][0]["finish_reason"], "length");
    let completion = post(&model, PATH, &request(false)).await.json();
    let choice = &completion["choices"][0];
    assert_eq!(choice["finish_reason"], "content_filter");
    assert_eq!(
        choice["message"],
        json!({"role": "assistant", "content": null, "refusal": "no"})
    );
}

#[tokio::test]
async fn errors_are_a_status_or_an_event() {
    let model = start_model("error 429\n---\ntext \"x\"\nerror 500 \"broke\"").await;
    let error = post(&model, PATH, &request(true)).await;
    assert_eq!(error.status, 429);
    assert_eq!(error.json()["error"]["type"], "rate_limit_exceeded");
    let chunks = post(&model, PATH, &request(true)).await.unnamed_events();
    assert_eq!(
        chunks.last(),
        Some(
            &json!({"error": {"message": "broke", "type": "server_error", "param": null, "code": null}})
        )
    );
}

#[tokio::test]
async fn request_is_recorded() {
    let model = start_model("text \"x\"").await;
    post(&model, PATH, &request(true)).await;
    let asked = model.conversation_exchanges().remove(0).request.unwrap();
    assert_eq!(
        (asked.api, asked.system_prompt.as_str()),
        (Api::Chat, "Be terse.")
    );
    let said = |by, text: &str| ConversationMessage {
        role: by,
        text: text.to_owned(),
    };
    assert_eq!(
        asked.messages,
        [
            said(MessageRole::User, "Write\nit"),
            said(MessageRole::Model, "write {}"),
            said(MessageRole::Tool, "done"),
        ]
    );
}
