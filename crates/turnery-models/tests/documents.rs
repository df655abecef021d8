//! Tests how documents and images are sent to models that accept them, and to others, over a real socket.

mod server;

use serde_json::json;
use server::{assistant, picture, sent_messages, tool_call, tool_result};
use turnery_engine::{Content, DocumentData, Message};
use turnery_models::Api;

fn pdf(name: &str, base64: &str) -> Content {
    Content::Document(DocumentData {
        name: name.to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: base64.into(),
    })
}

/// A prompt with a document, and a tool that returns another.
fn conversation() -> Vec<Message> {
    vec![
        Message::User {
            content: vec![Content::text("sum up"), pdf("/w/a b.pdf", "JVBERi0=")],
        },
        assistant(vec![tool_call("c_a", "read", json!({}))]),
        tool_result("c_a", vec![pdf("c.pdf", "JVBERi0x")], false),
    ]
}

#[tokio::test]
async fn anthropic_model_is_sent_documents() {
    let cached = json!({"type": "ephemeral"});
    let document = |title: &str, data: &str| {
        json!({"type": "document", "title": title,
            "source": {"type": "base64", "media_type": "application/pdf", "data": data}})
    };
    let mut last = document("/w/a b.pdf", "JVBERi0=");
    last["cache_control"] = cached.clone();
    assert_eq!(
        sent_messages(Api::Anthropic, "claude-opus-4-8", conversation()).await,
        [
            json!({"role": "user", "content": [{"type": "text", "text": "sum up"}, last]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c_a", "cache_control": cached,
                 "content": [document("c.pdf", "JVBERi0x")]},
            ]}),
        ]
    );
}

/// Quirk 63: a server that is not known to accept documents gets a note in their place.
// proves: CHAT-63
#[tokio::test]
async fn unknown_server_is_sent_a_note() {
    let note = |name: &str| {
        format!(
            "[document {name} omitted: this model does not accept documents, but its text can be extracted with a tool]"
        )
    };
    assert_eq!(
        sent_messages(Api::OpenAi, "gpt-5", conversation()).await,
        [
            json!({"role": "user", "content": format!("sum up\n\n{}", note("/w/a b.pdf"))}),
            json!({"role": "tool", "tool_call_id": "c_a", "content": note("c.pdf")}),
        ]
    );
}

/// Quirk 63: an image is an error for a model that takes text only, also one from before the model was chosen.
#[tokio::test]
async fn text_model_is_sent_a_note_for_an_image() {
    let messages = vec![Message::User {
        content: vec![Content::text("look"), picture()],
    }];
    let sent = sent_messages(Api::OpenAi, "deepseek-chat", messages).await;
    let note = "[image (image/png) omitted: this model does not accept images]";
    assert_eq!(
        sent,
        [json!({"role": "user", "content": format!("look\n\n{note}")})]
    );
}
