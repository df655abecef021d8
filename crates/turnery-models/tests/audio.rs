//! Tests how audio is sent to models, over a real socket.

mod server;

use serde_json::json;
use server::{assistant, sent_messages, tool_call, tool_result};
use turnery_engine::{AudioData, Content, Message};
use turnery_models::Api;

fn recording(mime_type: &str, base64: &str) -> Content {
    Content::Audio(AudioData {
        mime_type: mime_type.to_owned(),
        base64: base64.into(),
    })
}

/// A prompt with two recordings, and a tool that returns a third.
fn recorded_conversation() -> Vec<Message> {
    vec![
        Message::User {
            content: vec![
                Content::text("listen"),
                recording("audio/x-wav", "UklGRg=="),
                recording("audio/mpeg", "SUQz"),
            ],
        },
        assistant(vec![tool_call("c_a", "read", json!({}))]),
        tool_result("c_a", vec![recording("audio/wav", "QUJD")], false),
    ]
}

// proves: CHAT-84
#[tokio::test]
async fn audio_model_is_sent_the_recording() {
    let audio = |data: &str, format: &str| json!({"type": "input_audio", "input_audio": {"data": data, "format": format}});
    assert_eq!(
        sent_messages(Api::OpenAi, "gpt-audio", recorded_conversation()).await,
        [
            json!({"role": "user", "content": [
                {"type": "text", "text": "listen"}, audio("UklGRg==", "wav"), audio("SUQz", "mp3")]}),
            json!({"role": "tool", "tool_call_id": "c_a", "content": "(a recording: see the next message)"}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "Recordings that c_a gave:"}, audio("QUJD", "wav")]}),
        ]
    );
}

/// The model of a session may change: audio that the new API does not accept would make every later prompt
/// fail.
// proves: ANTHROPIC-84
#[tokio::test]
async fn other_model_is_sent_a_placeholder() {
    let wav = "[audio (audio/x-wav) omitted: this model does not accept audio]";
    let mp3 = "[audio (audio/mpeg) omitted: this model does not accept audio]";
    let tool = "[audio (audio/wav) omitted: this model does not accept audio]";
    assert_eq!(
        sent_messages(Api::OpenAi, "m1", recorded_conversation()).await,
        [
            json!({"role": "user", "content": format!("listen\n\n{wav}\n\n{mp3}")}),
            json!({"role": "tool", "tool_call_id": "c_a", "content": tool}),
        ]
    );
    let cached = json!({"type": "ephemeral"});
    assert_eq!(
        sent_messages(Api::Anthropic, "claude-opus-4-8", recorded_conversation()).await,
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

/// An imported document may contain anything.
#[tokio::test]
async fn unsupported_recording_is_replaced() {
    let content = vec![recording("audio/ogg", "T2dn")];
    let left_out = "[audio (audio/ogg) omitted: this model does not accept audio]";
    assert_eq!(
        sent_messages(Api::OpenAi, "gpt-audio", vec![Message::User { content }]).await,
        [json!({"role": "user", "content": left_out})]
    );
}
