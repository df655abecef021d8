//! Tests of Gemini, against the chunks in its documentation.

use crate::wire::{post, start_model};
use acp_conformance::model::{Api, ConversationMessage, MessageRole};
use serde_json::{Value, json};

const STREAM_PATH: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
const WHOLE_PATH: &str = "/v1beta/models/gemini-x:generateContent";

fn request() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be terse."}]},
        "tools": [{"functionDeclarations": [
            {"name": "read_file", "parametersJsonSchema": {"type": "object", "properties": {"absolute_path": {"type": "string"}}, "required": ["absolute_path"]}},
            {"name": "run_shell_command", "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}, "required": ["command"]}},
        ]}],
        "contents": [
            {"role": "user", "parts": [{"text": "Look"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {"absolute_path": "/b"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read_file", "response": {"output": "bee"}}}]},
        ],
    })
}

fn chunk_json(part: Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
        "modelVersion": "gemini-x", "responseId": "resp_0",
    })
}

#[tokio::test]
async fn thoughts_text_and_calls_are_parts() {
    let model = start_model("think \"a\"\ntext \"one\"\ncall read {\"path\": \"/a\"}\ncall shell {\"command\": \"ls\"}\nusage 11 7").await;
    let chunks = post(&model, STREAM_PATH, &request()).await.unnamed_events();
    let mut last = chunk_json(json!({"text": ""}));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] =
        json!({"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18});
    assert_eq!(
        chunks,
        [
            chunk_json(json!({"text": "a", "thought": true})),
            chunk_json(json!({"text": "one"})),
            chunk_json(
                json!({"functionCall": {"name": "read_file", "args": {"absolute_path": "/a"}}})
            ),
            chunk_json(
                json!({"functionCall": {"name": "run_shell_command", "args": {"command": "ls"}}})
            ),
            last,
        ]
    );
}

#[tokio::test]
async fn unstreamed_response_is_one_chunk_or_an_array() {
    let model =
        start_model("text \"one \"\ntext \"two\"\nlength\n---\nrefuse\n---\ntext \"x\"").await;
    let whole = post(&model, WHOLE_PATH, &request()).await.json();
    let candidate = &whole["candidates"][0];
    assert_eq!(candidate["content"]["parts"], json!([{"text": "one two"}]));
    assert_eq!(candidate["finishReason"], "MAX_TOKENS");
    let whole = post(&model, WHOLE_PATH, &request()).await.json();
    assert_eq!(whole["candidates"][0]["finishReason"], "SAFETY");
    let path = "/v1beta/models/gemini-x:streamGenerateContent";
    let array = post(&model, path, &request()).await.json();
    assert_eq!(
        array[0]["candidates"][0]["content"]["parts"],
        json!([{"text": "x"}])
    );
    assert_eq!(array.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn errors_are_a_status_or_an_event() {
    let model = start_model("error 503\n---\ntext \"x\"\nerror 429 \"slow down\"").await;
    let error = post(&model, STREAM_PATH, &request()).await;
    assert_eq!(error.status, 503);
    assert_eq!(
        error.json(),
        json!({"error": {"code": 503, "message": "scripted error 503", "status": "UNAVAILABLE"}})
    );
    let chunks = post(&model, STREAM_PATH, &request()).await.unnamed_events();
    assert_eq!(
        chunks.last(),
        Some(
            &json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}})
        )
    );
}

#[tokio::test]
async fn request_is_recorded() {
    let model = start_model("text \"x\"").await;
    post(&model, STREAM_PATH, &request()).await;
    let asked = model.conversation_exchanges().remove(0).request.unwrap();
    assert_eq!((asked.api, asked.streaming), (Api::Gemini, true));
    assert_eq!(
        (asked.model.as_str(), asked.system_prompt.as_str()),
        ("gemini-x", "Be terse.")
    );
    let said = |by, text: &str| ConversationMessage {
        role: by,
        text: text.to_owned(),
    };
    assert_eq!(
        asked.messages,
        [
            said(MessageRole::User, "Look"),
            said(MessageRole::Model, "read_file {\"absolute_path\":\"/b\"}"),
            said(MessageRole::Tool, "{\"output\":\"bee\"}"),
        ]
    );
}
