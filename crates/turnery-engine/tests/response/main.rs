//! Responses: built from every source, classified, and projected.

mod building;
mod projection;
mod properties;
mod result_map;
mod text;
mod vendors;

use serde_json::{Value, json};
use turnery_engine::{Content, Response, ResponseError, ResponseOverrides, ToolCall};

/// A call with an object of arguments.
fn call(id: &str, name: &str, args: Value) -> Content {
    Content::ToolCall(ToolCall::new(id, name, args))
}

fn thinking(text: &str) -> Content {
    Content::Thinking {
        text: text.to_owned(),
        signature: None,
    }
}

/// An answer of chat completions with this message.
fn chat(message: &Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    })
}

fn build(map: Value) -> Response {
    Response::from_response(map, ResponseOverrides::default()).expect("a response")
}

fn build_error(map: Value) -> ResponseError {
    Response::from_response(map, ResponseOverrides::default()).expect_err("no response")
}
