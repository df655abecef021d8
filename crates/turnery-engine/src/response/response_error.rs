//! Errors of building a response.

use serde_json::Value;

/// Error of converting a [`ResponseSource`](crate::ResponseSource), a vendor's JSON or a history message, to
/// a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The source is not a JSON object.
    #[error("the answer is {found}, not an object; give the whole of what the provider sent")]
    NotAnObject {
        /// JSON type of the source.
        found: &'static str,
    },
    /// The object has no known shape.
    #[error(
        "the answer has no choices, output, candidates, message, content or type, so it is of no known shape"
    )]
    UnknownShape,
    /// A part of the source is malformed.
    #[error("{at} of the answer is {found}, not {wanted}")]
    Malformed {
        /// Path of the part.
        at: String,
        /// Expected value.
        wanted: &'static str,
        /// JSON type of the part, in words; "missing" for null.
        found: &'static str,
    },
    /// The source is an error response of the provider. Its message is omitted, because it may contain part
    /// of a key.
    #[error("the provider sent an error in place of an answer")]
    ProviderError,
    /// The message is not an assistant message.
    #[error("only an assistant message can become a response")]
    NotAssistantMessage,
    /// The message is incomplete.
    #[error("the message is incomplete and cannot become a response; call the model again")]
    Unfinished,
}

impl ResponseError {
    pub(super) fn not_an_object(found: &Value) -> Self {
        Self::NotAnObject {
            found: describe_json_type(found),
        }
    }

    pub(super) fn malformed(at: impl Into<String>, wanted: &'static str, found: &Value) -> Self {
        Self::Malformed {
            at: at.into(),
            wanted,
            found: describe_json_type(found),
        }
    }
}

/// Describes the JSON type of a value.
fn describe_json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "missing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
