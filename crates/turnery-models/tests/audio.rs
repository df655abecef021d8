//! Recordings on their way to a model, over a real socket.

mod server;

use serde_json::{Value, json};
use server::{call, events, request, serve};
use std::sync::Arc;
use turnery_engine::{AudioData, Content, Message, MessageStop, ToolCall};
use turnery_models::Api;

const OPENAI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn recording(mime_type: &str, base64: &str) -> Content {
    Content::Audio(AudioData {
        mime_type: mime_type.to_owned(),
        base64: base64.into(),
    })
}

/// A prompt with two recordings, and a tool that answers with a third.
fn talk() -> Vec<Message> {
    vec![
        Message::User {
            content: vec![
                Content::text("listen"),
                recording("audio/x-wav", "UklGRg=="),
                recording("audio/mpeg", "SUQz"),
            ],
        },
        Message::Assistant {
            content: vec![Content::ToolCall(ToolCall {
                call_id: "c_a".into(),
                name: "read".to_owned(),
                args: Arc::new(json!({})),
            })],
            stop: MessageStop::ToolUse,
            model: "m".to_owned(),
            provider: "acme".to_owned(),
            usage: None,
            error: None,
        },
        Message::ToolResult {
            call_id: "c_a".into(),
            tool_name: "read".to_owned(),
            content: vec![recording("audio/wav", "QUJD")],
            is_error: false,
        },
    ]
}

/// What goes out as messages, the system prompt and the call left out.
async fn sent(api: Api, model: &str, messages: Vec<Message>) -> Vec<Value> {
    let server = serve(vec![events(OPENAI)]).await;
    let model = server.model_with(api, model, 0);
    // What comes back does not matter here, and the other API would not understand it.
    let _ = call(&*model, request(messages)).await;
    let mut bodies = server.bodies();
    let mut messages = match bodies.remove(0)["messages"].take() {
        Value::Array(messages) => messages,
        other => panic!("{other}"),
    };
    messages.retain(|message| !matches!(message["role"].as_str(), Some("system" | "assistant")));
    messages
}

#[tokio::test]
async fn a_model_that_listens_is_sent_the_recording() {
    let audio = |data: &str, format: &str| json!({"type": "input_audio", "input_audio": {"data": data, "format": format}});
    assert_eq!(
        sent(Api::OpenAi, "gpt-audio", talk()).await,
        [
            json!({"role": "user", "content": [
                {"type": "text", "text": "listen"}, audio("UklGRg==", "wav"), audio("SUQz", "mp3")]}),
            json!({"role": "tool", "tool_call_id": "c_a", "content": "(a recording: see the next message)"}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "Recordings that c_a gave:"}, audio("QUJD", "wav")]}),
        ]
    );
}

/// The model of a session may be changed: a recording that the other API cannot take would make it refuse
/// every later prompt.
#[tokio::test]
async fn a_model_that_does_not_is_told_what_it_misses() {
    let wav = "[a recording (audio/x-wav) is left out here: this model takes none]";
    let mp3 = "[a recording (audio/mpeg) is left out here: this model takes none]";
    let tool = "[a recording (audio/wav) is left out here: this model takes none]";
    assert_eq!(
        sent(Api::OpenAi, "m1", talk()).await,
        [
            json!({"role": "user", "content": format!("listen\n\n{wav}\n\n{mp3}")}),
            json!({"role": "tool", "tool_call_id": "c_a", "content": tool}),
        ]
    );
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        sent(Api::Anthropic, "claude-opus-4-8", talk()).await,
        [
            json!({"role": "user", "content": [
                {"type": "text", "text": "listen"},
                {"type": "text", "text": wav},
                {"type": "text", "text": mp3, "cache_control": cached},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c_a", "cache_control": cached,
                 "content": [{"type": "text", "text": tool}]},
            ]}),
        ]
    );
}

/// A document that was imported may hold anything.
#[tokio::test]
async fn a_recording_of_another_sort_is_left_out() {
    let content = vec![recording("audio/ogg", "T2dn")];
    let left_out = "[a recording (audio/ogg) is left out here: this model takes none]";
    assert_eq!(
        sent(Api::OpenAi, "gpt-audio", vec![Message::User { content }]).await,
        [json!({"role": "user", "content": left_out})]
    );
}
