//! Parses requests and encodes responses in the wire format of an API.

use super::{
    anthropic, chat,
    encoder::{ResponseEnd, ResponseHead, ResponsePart, StreamEncoder},
    gemini,
    request::{Api, ModelRequest},
    responses,
};
use serde_json::Value;

/// Returns the stream encoder of an API.
pub(super) fn stream_encoder(api: Api, head: ResponseHead) -> Box<dyn StreamEncoder> {
    match api {
        Api::Anthropic => Box::new(anthropic::AnthropicEncoder::new(head)),
        Api::Chat => Box::new(chat::ChatEncoder::new(head)),
        Api::Responses => Box::new(responses::ResponsesEncoder::new(head)),
        Api::Gemini => Box::new(gemini::GeminiEncoder::new(head)),
    }
}

/// Encodes a response that is not streamed.
pub(super) fn encode_whole(
    api: Api,
    head: &ResponseHead,
    parts: &[ResponsePart],
    end: ResponseEnd,
) -> Value {
    match api {
        Api::Anthropic => anthropic::encode_whole(head, parts, end),
        Api::Chat => chat::encode_whole(head, parts, end),
        Api::Responses => responses::encode_whole(head, parts, end),
        Api::Gemini => gemini::encode_whole(head, parts, end),
    }
}

/// Parses a request; Gemini has the model's name in `path`.
pub(super) fn parse_request(api: Api, path: &str, body: &Value) -> ModelRequest {
    match api {
        Api::Anthropic => anthropic::parse_request(body),
        Api::Chat => chat::parse_request(body),
        Api::Responses => responses::parse_request(body),
        Api::Gemini => gemini::parse_request(path, body),
    }
}

/// Returns the body of an HTTP error.
pub(super) fn encode_error_body(api: Api, status: u16, message: &str) -> Value {
    match api {
        Api::Anthropic => anthropic::error_body(status, message),
        Api::Chat | Api::Responses => chat::error_body(status, message),
        Api::Gemini => gemini::error_body(status, message),
    }
}
