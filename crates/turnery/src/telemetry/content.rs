//! Renders messages as the JSON of `gen_ai.input.messages` and `gen_ai.output.messages`.
//!
//! Media and opaque blocks are left out but named, since they may be large.

use serde_json::{Value, json};
use turnery_engine::{Content, Message, ToolEnvelope};

/// Longest text of an attribute. Unit: bytes.
const MAX_BYTES: usize = 64 << 10;

/// Appends the message that a model receives to `messages`; does nothing for a message of the model itself.
pub(super) fn push_input(messages: &mut Vec<Value>, message: &Message) {
    let parts = match message {
        Message::System { text } => vec![text_part("text", text)],
        Message::User { content } => parts(content),
        Message::ToolResult {
            call_id, content, ..
        } => vec![json!({
            "type": "tool_call_response",
            "id": call_id,
            "response": shorten(&join_text(content)),
        })],
        Message::Assistant { .. } => return,
    };
    let role = message.role();
    messages.push(json!({"role": role, "parts": parts}));
}

/// Returns the message of a response.
pub(super) fn output(content: &[Content], finish_reason: &str) -> Value {
    json!([{"role": "assistant", "parts": parts(content), "finish_reason": finish_reason}])
}

/// Returns the result of a call.
pub(super) fn result_text(envelope: &ToolEnvelope) -> String {
    shorten(&envelope.to_model_text())
}

/// Returns the JSON text of a value of an attribute.
pub(super) fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => shorten(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            shorten(&value.to_string())
        }
    }
}

fn parts(content: &[Content]) -> Vec<Value> {
    content.iter().map(part).collect()
}

fn part(content: &Content) -> Value {
    match content {
        Content::Text { text } => text_part("text", text),
        Content::Thinking { text, .. } => text_part("reasoning", text),
        Content::ToolCall(call) => json!({
            "type": "tool_call",
            "id": call.call_id,
            "name": call.name,
            "arguments": to_text(&call.args),
        }),
        Content::Image(_) => json!({"type": "image"}),
        Content::Audio(_) => json!({"type": "audio"}),
        Content::Document(_) => json!({"type": "document"}),
        Content::Opaque { .. } => json!({"type": "opaque"}),
    }
}

fn text_part(kind: &str, text: &str) -> Value {
    json!({"type": kind, "content": shorten(text)})
}

fn join_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(Content::as_text).collect();
    texts.join("\n")
}

/// Returns the text, cut at the maximum length.
fn shorten(text: &str) -> String {
    if text.len() <= MAX_BYTES {
        return text.to_owned();
    }
    let mut end = MAX_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}... {} more bytes", text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = format!("a{}", "é".repeat(MAX_BYTES));
        let short = shorten(&text);
        assert_eq!(
            short.strip_prefix(&text[..MAX_BYTES - 1]).unwrap(),
            "... 65538 more bytes"
        );
        assert_eq!(shorten("é"), "é");
    }
}
