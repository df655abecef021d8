//! Maps: answers as JSON, as the vendors send them or as somebody stored them.
//!
//! Reading is in two steps. A [`Shape`] finds its pieces and never fails, which is all that
//! `extract_text` wants; then the pieces become content, which fails for a call without a name.

mod call;
mod classified;
mod gemini;
mod message;
mod responses;
mod usage;

pub(super) use classified::{is_said, read as classified};
pub(super) use message::texts;

use super::{Response, ResponseError, source::kind_of};
use crate::{Content, ImageData, ModelStop};
use call::{Calls, RawCall};
use serde_json::{Map, Value};

/// Whose answer it is when nobody says so.
const UNKNOWN: &str = "unknown";

/// The shape of an answer.
pub(super) enum Shape<'a> {
    /// OpenAI chat completions, and whatever holds one `message`.
    Choice(&'a Map<String, Value>),
    /// OpenAI responses.
    Output(&'a Map<String, Value>),
    /// Gemini generateContent.
    Candidate(&'a Map<String, Value>),
    /// Anthropic messages, and messages of a history: the content is at the top.
    Message(&'a Map<String, Value>),
}

/// A piece of an answer as it stands in its map.
enum Piece<'a> {
    Text(&'a str),
    Thinking {
        text: &'a str,
        signature: Option<&'a str>,
    },
    Image {
        mime_type: &'a str,
        base64: &'a str,
    },
    /// The provider's own words for a refusal.
    Refusal(&'a str),
    Call(RawCall<'a>),
    Opaque(&'a Value),
}

impl<'a> Shape<'a> {
    pub(super) fn of(map: &'a Map<String, Value>) -> Option<Self> {
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

    /// The text of the answer, whatever else is wrong with it.
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self
            .pieces()
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Text(text) | Piece::Refusal(text) => Some(text),
                Piece::Thinking { .. }
                | Piece::Image { .. }
                | Piece::Call(_)
                | Piece::Opaque(_) => None,
            })
            .collect();
        texts.join("\n")
    }

    fn pieces(&self) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        match self {
            Self::Choice(map) => message::choice(map, &mut pieces),
            Self::Output(map) => responses::output(map, &mut pieces),
            Self::Candidate(map) => gemini::parts(map, &mut pieces),
            Self::Message(map) => message::message(map, "", &mut pieces),
        }
        pieces
    }

    /// The vendor's word for why it stopped.
    fn raw_stop(&self) -> Option<&'a str> {
        match self {
            Self::Choice(map) => message::choice_stop(map),
            Self::Output(map) => responses::stop(map),
            Self::Candidate(map) => gemini::stop(map),
            Self::Message(map) => text_at(map, &["stop_reason", "finish_reason"]),
        }
    }

    /// A part without which there is no answer in this shape.
    fn check(&self) -> Result<(), ResponseError> {
        match self {
            Self::Choice(map) => message::check_choice(map),
            Self::Output(map) => responses::check(map),
            Self::Candidate(map) => gemini::check(map),
            Self::Message(map) => match map.get("content").unwrap_or(&Value::Null) {
                Value::Null | Value::String(_) | Value::Array(_) => Ok(()),
                found @ (Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Err(
                    ResponseError::malformed("content", "text or a list of blocks", found),
                ),
            },
        }
    }
}

/// Read a vendor's answer, or a map that was stored.
pub(super) fn read(answer: &Value, provider: Option<&str>) -> Result<Response, ResponseError> {
    let Value::Object(map) = answer else {
        let found = kind_of(answer);
        return Err(ResponseError::NotAnObject { found });
    };
    if classified::is_classified(map) {
        return classified::read(answer, provider);
    }
    if map.get("error").is_some_and(|error| !error.is_null()) {
        return Err(ResponseError::Failed);
    }
    let shape = Shape::of(map).ok_or(ResponseError::UnknownShape)?;
    shape.check()?;
    let provider = provider.unwrap_or(UNKNOWN);
    let mut calls = Calls::default();
    let mut has_refused = false;
    let mut content = Vec::new();
    for piece in shape.pieces() {
        has_refused |= matches!(piece, Piece::Refusal(_));
        content.push(settle(piece, provider, &mut calls)?);
    }
    let raw_stop = shape.raw_stop();
    let stop = ModelStop::of_answer(raw_stop, !calls.is_empty(), has_refused);
    let usage = ["usage", "usageMetadata"]
        .iter()
        .find_map(|key| map.get(*key));
    Ok(Response {
        content,
        stop,
        raw_stop: raw_stop.map(str::to_owned),
        usage: usage.unwrap_or(answer).as_object().and_then(usage::read),
        model: text_at(map, &["model", "modelVersion"])
            .unwrap_or_default()
            .to_owned(),
        provider: provider.to_owned(),
        tool_results: Vec::new(),
    })
}

fn settle(piece: Piece<'_>, provider: &str, calls: &mut Calls) -> Result<Content, ResponseError> {
    Ok(match piece {
        Piece::Text(text) | Piece::Refusal(text) => Content::text(text),
        Piece::Thinking { text, signature } => Content::Thinking {
            text: text.to_owned(),
            signature: signature.map(str::to_owned),
        },
        Piece::Image { mime_type, base64 } => Content::Image(ImageData {
            mime_type: mime_type.to_owned(),
            base64: base64.into(),
        }),
        Piece::Call(call) => Content::ToolCall(calls.settle(call)?),
        Piece::Opaque(value) => Content::Opaque {
            provider: provider.to_owned(),
            value: value.clone(),
        },
    })
}

/// The first of these that is text.
fn text_at<'a>(map: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter()
        .find_map(|key| map.get(*key).and_then(Value::as_str))
}
