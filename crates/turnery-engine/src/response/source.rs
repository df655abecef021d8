//! Sources from which a response can be built.

use super::json;
use crate::{Message, MessageStop, ModelStop, Response, ResponseError};
use serde_json::Value;

/// Source of a response (JIDO-4).
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseSource {
    /// Existing response, used unchanged (JIDO-5).
    Response(Response),
    /// Assistant message from history.
    Message(Message),
    /// Response of a vendor (OpenAI chat completions or responses, Anthropic messages, Gemini
    /// generateContent), a result map, or a stored [`Response`]; see [`Response::from_result_map`].
    Map(Value),
}

impl From<Response> for ResponseSource {
    fn from(response: Response) -> Self {
        Self::Response(response)
    }
}

impl From<Message> for ResponseSource {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}

impl From<Value> for ResponseSource {
    fn from(map: Value) -> Self {
        Self::Map(map)
    }
}

/// Model and provider names that replace those in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseOverrides {
    /// Model (JIDO-7).
    pub model: Option<String>,
    /// Provider. Responses of vendors do not name it; without an override it is `unknown`.
    pub provider: Option<String>,
}

impl ResponseOverrides {
    /// Overrides the model only.
    pub fn with_model(model: impl Into<String>) -> Self {
        Self {
            model: Some(model.into()),
            provider: None,
        }
    }

    fn apply_to(self, mut response: Response) -> Response {
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
    /// Builds a response from any source (JIDO-4). Missing text is empty (JIDO-72), and a response without
    /// calls is a final answer (JIDO-71). Fails if the source cannot be parsed.
    pub fn from_response(
        source: impl Into<ResponseSource>,
        overrides: ResponseOverrides,
    ) -> Result<Self, ResponseError> {
        let response = match source.into() {
            ResponseSource::Response(response) => response,
            ResponseSource::Message(message) => response_from_message(message)?,
            ResponseSource::Map(map) => json::parse_response(&map, overrides.provider.as_deref())?,
        };
        Ok(overrides.apply_to(response))
    }

    /// Builds a response from a result map with the fields `type`, `text`, `thinking_content`, `tool_calls`,
    /// `usage`, `model` and `tool_results`, each of which may be missing, or from a stored response
    /// (JIDO-15).
    pub fn from_result_map(
        map: &Value,
        overrides: ResponseOverrides,
    ) -> Result<Self, ResponseError> {
        json::parse_result_map(map, overrides.provider.as_deref())
            .map(|response| overrides.apply_to(response))
    }
}

fn response_from_message(message: Message) -> Result<Response, ResponseError> {
    let Message::Assistant {
        content,
        stop,
        model,
        provider,
        usage,
        error,
        request,
    } = message
    else {
        return Err(ResponseError::NotAssistantMessage);
    };
    let has_calls = content.iter().any(|item| item.as_tool_call().is_some());
    let stop = match (stop, error) {
        (MessageStop::Stop | MessageStop::ToolUse, None) => {
            ModelStop::from_response(None, has_calls, false)
        }
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
        request,
    })
}
