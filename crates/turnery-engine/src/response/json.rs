//! Parses JSON responses, as sent by vendors or as stored by hosts.
//!
//! Parsing has two steps. A [`ResponseShape`] finds the pieces and never fails, which is all that
//! `extract_text` needs; then the pieces become content, which fails for a call without a name.

mod chat_message;
mod fields;
mod gemini;
mod openai_responses;
mod piece;
mod result_map;
mod tool_call;
mod usage;

pub use chat_message::extract_from_content;
pub(super) use result_map::{has_result_type, parse_result_map};

use crate::{CallIds, Content, ImageData, ModelStop, Response, ResponseError};
use fields::{JsonObject, first_text, get_or_null};
use piece::{ResponsePiece, UNKNOWN_PROVIDER};
use serde_json::Value;

/// Shape of a response.
pub(super) enum ResponseShape<'a> {
    /// OpenAI chat completions, and maps that hold a single `message`.
    Choice(&'a JsonObject),
    /// OpenAI responses.
    Output(&'a JsonObject),
    /// Gemini generateContent.
    Candidate(&'a JsonObject),
    /// Anthropic messages and history messages, which have the content at the top level.
    Message(&'a JsonObject),
}

impl<'a> ResponseShape<'a> {
    pub(super) fn detect(map: &'a JsonObject) -> Option<Self> {
        let is_list = |key: &str| map.get(key).is_some_and(Value::is_array);
        if is_list("choices") {
            Some(Self::Choice(map))
        } else if is_list("output") {
            Some(Self::Output(map))
        } else if is_list("candidates") || map.contains_key("promptFeedback") {
            Some(Self::Candidate(map))
        } else if map.contains_key("message") {
            Some(Self::Choice(map))
        } else if map.contains_key("content") || map.contains_key("tool_calls") {
            Some(Self::Message(map))
        } else {
            None
        }
    }

    /// Returns the text of the response, even if other parts are malformed.
    pub(super) fn text(&self) -> String {
        let pieces = self.pieces();
        let texts: Vec<&str> = pieces.iter().filter_map(ResponsePiece::text).collect();
        texts.join("\n")
    }

    fn pieces(&self) -> Vec<ResponsePiece<'a>> {
        let mut pieces = Vec::new();
        match self {
            Self::Choice(map) => chat_message::collect_choice_pieces(map, &mut pieces),
            Self::Output(map) => openai_responses::collect_pieces(map, &mut pieces),
            Self::Candidate(map) => gemini::collect_pieces(map, &mut pieces),
            Self::Message(map) => chat_message::collect_message_pieces(map, "", &mut pieces),
        }
        pieces
    }

    /// Returns the vendor's stop reason.
    fn raw_stop(&self) -> Option<&'a str> {
        match self {
            Self::Choice(map) => chat_message::choice_stop_reason(map),
            Self::Output(map) => openai_responses::stop_reason(map),
            Self::Candidate(map) => gemini::stop_reason(map),
            Self::Message(map) => first_text(map, &["stop_reason", "finish_reason"]),
        }
    }

    /// Fails if the response reports a failure or a cancellation, or if its message or content is malformed
    /// or is missing where the shape requires one.
    fn check(&self) -> Result<(), ResponseError> {
        match self {
            Self::Choice(map) => chat_message::check_choice(map),
            Self::Output(map) => openai_responses::check(map),
            Self::Candidate(map) => gemini::check(map),
            Self::Message(map) => match get_or_null(map, "content") {
                Value::Null | Value::String(_) | Value::Array(_) => Ok(()),
                found @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Err(
                    ResponseError::malformed("content", "text or a list of blocks", found),
                ),
            },
        }
    }
}

/// Parses a vendor's response or a stored map.
pub(super) fn parse_response(
    answer: &Value,
    provider: Option<&str>,
) -> Result<Response, ResponseError> {
    let Value::Object(map) = answer else {
        return Err(ResponseError::not_an_object(answer));
    };
    if result_map::is_result_map(map) {
        return parse_result_map(answer, provider);
    }
    if map.get("error").is_some_and(|error| !error.is_null()) {
        return Err(ResponseError::ProviderError);
    }
    let shape = ResponseShape::detect(map).ok_or(ResponseError::UnknownShape)?;
    shape.check()?;
    let provider = provider.unwrap_or(UNKNOWN_PROVIDER);
    let mut ids = CallIds::default();
    let mut has_refused = false;
    let mut content = Vec::new();
    for piece in shape.pieces() {
        has_refused |= matches!(piece, ResponsePiece::Refusal(_));
        content.push(piece_to_content(piece, provider, &mut ids)?);
    }
    let raw_stop = shape.raw_stop();
    let stop = ModelStop::from_response(raw_stop, !ids.is_empty(), has_refused);
    let usage = ["usage", "usageMetadata"]
        .iter()
        .find_map(|key| map.get(*key));
    Ok(Response {
        content,
        stop,
        raw_stop: raw_stop.map(str::to_owned),
        usage: usage
            .unwrap_or(answer)
            .as_object()
            .and_then(usage::parse_usage),
        model: first_text(map, &["model", "modelVersion"])
            .unwrap_or_default()
            .to_owned(),
        provider: provider.to_owned(),
        tool_results: Vec::new(),
        request: None,
    })
}

fn piece_to_content(
    piece: ResponsePiece<'_>,
    provider: &str,
    ids: &mut CallIds,
) -> Result<Content, ResponseError> {
    Ok(match piece {
        ResponsePiece::Text(text) | ResponsePiece::Refusal(text) => Content::text(text),
        ResponsePiece::Thinking { text, signature } => Content::Thinking {
            text: text.to_owned(),
            signature: signature.map(str::to_owned),
        },
        ResponsePiece::Image { mime_type, base64 } => Content::Image(ImageData {
            mime_type: mime_type.to_owned(),
            base64: base64.into(),
        }),
        ResponsePiece::Call(call) => Content::ToolCall(call.parse(ids)?),
        ResponsePiece::Opaque(value) => Content::Opaque {
            provider: provider.to_owned(),
            value: value.clone(),
        },
    })
}
