//! Pieces of a response, before they become content.

use super::tool_call::RawCall;
use serde_json::Value;

/// Provider of responses that do not name one.
pub(super) const UNKNOWN_PROVIDER: &str = "unknown";

/// Piece of a response, unparsed.
pub(super) enum ResponsePiece<'a> {
    Text(&'a str),
    Thinking {
        text: &'a str,
        signature: Option<&'a str>,
    },
    Image {
        mime_type: &'a str,
        base64: &'a str,
    },
    /// Refusal text of the provider.
    Refusal(&'a str),
    Call(RawCall<'a>),
    Opaque(&'a Value),
}

impl<'a> ResponsePiece<'a> {
    /// Returns the text of an answer or a refusal.
    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) | Self::Refusal(text) => Some(text),
            _ => None,
        }
    }
}
