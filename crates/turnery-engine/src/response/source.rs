//! Source: what a response can be built from, and why it sometimes cannot.

use super::{Response, maps};
use crate::{Content, Message, MessageStop, ModelStop};
use serde_json::Value;

/// What a response is built from (JIDO-4).
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// One that is there already: it stays as it is (JIDO-5).
    Response(Response),
    /// An assistant's message of the history.
    Message(Message),
    /// A vendor's answer (OpenAI chat completions or responses, Anthropic messages, Gemini
    /// generateContent), or a map that was stored.
    Map(Value),
}

impl From<Response> for Source {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

impl From<Message> for Source {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl From<Value> for Source {
    fn from(map: Value) -> Self {
        Self::Map(map)
    }
}

/// Names to be given to a response instead of those that it came with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The model (JIDO-7).
    pub model: Option<String>,
    /// The provider. A vendor's map does not say who served it: without this it is `unknown`.
    pub provider: Option<String>,
}

impl Named {
    /// As the answer of this model.
    pub fn model(model: impl Into<String>) -> Self {
        Self {
            model: Some(model.into()),
            provider: None,
        }
    }

    fn name(self, mut response: Response) -> Response {
        if let Some(model) = self.model {
            response.model = model;
        }
        if let Some(provider) = self.provider {
            response.provider = provider;
        }
        response
    }
}

impl Response {
    /// Build a response from whatever there is (JIDO-4). Missing text is empty text (JIDO-72), no
    /// calls make a final answer (JIDO-71), and what cannot be understood is an error.
    pub fn from_response(source: impl Into<Source>, named: Named) -> Result<Self, ResponseError> {
        let response = match source.into() {
            Source::Response(response) => response,
            Source::Message(message) => of_message(message)?,
            Source::Map(map) => maps::read(&map, named.provider.as_deref())?,
        };
        Ok(named.name(response))
    }

    /// Build a response from a map that says what it is: `type`, `text`, `thinking_content`,
    /// `tool_calls`, `usage`, `model`, `tool_results`, each of which may be missing; or from a
    /// response as it was stored (JIDO-15).
    pub fn from_result_map(map: &Value, named: Named) -> Result<Self, ResponseError> {
        maps::classified(map, named.provider.as_deref()).map(|response| named.name(response))
    }
}

fn of_message(message: Message) -> Result<Response, ResponseError> {
    let Message::Assistant {
        content,
        stop,
        model,
        provider,
        usage,
        error,
    } = message
    else {
        return Err(ResponseError::NotAnAnswer);
    };
    let has_calls = content
        .iter()
        .any(|item| matches!(item, Content::ToolCall(_)));
    let stop = match (stop, error) {
        (MessageStop::Stop | MessageStop::ToolUse, None) => super::stop_of(has_calls),
        (MessageStop::Length, None) => ModelStop::Length,
        (MessageStop::GuardRail, None) => ModelStop::Refusal,
        (MessageStop::Error | MessageStop::Aborted, _) | (_, Some(_)) => {
            return Err(ResponseError::Unfinished);
        }
    };
    Ok(Response {
        content,
        stop,
        raw_stop: None,
        usage,
        model,
        provider,
        tool_results: Vec::new(),
    })
}

/// Why there is no response in what was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Something else than a JSON object.
    #[error("the answer is {found}, not an object; give the whole of what the provider sent")]
    NotAnObject {
        /// What it is instead.
        found: &'static str,
    },
    /// An object of no shape that is known.
    #[error(
        "the answer has no choices, output, candidates, message, content or type, so it is of no known shape"
    )]
    UnknownShape,
    /// A part of it is not what its shape promises.
    #[error("{at} of the answer is {found}, not {wanted}")]
    Malformed {
        /// Where.
        at: String,
        /// What belongs there.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// The provider reports a failure. What it says is not repeated: it may hold a part of a key.
    #[error("the provider sent an error in place of an answer")]
    Failed,
    /// A message that no model wrote.
    #[error("only a message of the assistant is an answer")]
    NotAnAnswer,
    /// A message that broke off.
    #[error("the message broke off, so it is no answer; call the model again")]
    Unfinished,
}

impl ResponseError {
    pub(super) fn malformed(at: impl Into<String>, wanted: &'static str, found: &Value) -> Self {
        Self::Malformed {
            at: at.into(),
            wanted,
            found: kind_of(found),
        }
    }
}

/// What a value is, in words.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "missing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
