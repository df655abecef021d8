//! Model responses, normalised across all provider APIs, and their conversion into history.
//!
//! Four steps make a turn: **normalise** ([`Response::from_response`], [`Response::from_result_map`]),
//! **classify** ([`Response::kind`], [`Response::needs_tools`]), **execute** (`run_tools` in the tools crate,
//! which returns a new response with the results) and **project** ([`Response::assistant_message`],
//! [`Response::tool_messages`]). The engine's own loop uses the same functions. Nothing here does IO, panics,
//! or modifies a response in place (JIDO-3).
//!
//! Intended for hosts with their own agent loop, for code that inspects responses before deciding, and for
//! code that converts responses into history (JIDO-77). Callers that only need an answer use `converse`
//! of the `turnery-sdk` crate.

pub(crate) mod call_parts;
pub(crate) mod extract_text;
mod json;
pub(crate) mod model_delta;
pub(crate) mod model_error;
pub(crate) mod model_stop;
pub(crate) mod response_error;
pub(crate) mod response_limits;
pub(crate) mod source;
pub(crate) mod tool_result;

use crate::{
    Content, Message, MessageStop, ModelStop, RequestFingerprint, ToolCall, ToolResult, Usage,
    message::join_text,
};
use serde::{Deserialize, Serialize};

/// Normalised response of one model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Text, reasoning and calls in the order in which the model produced them.
    pub content: Vec<Content>,
    /// Reason why the response ended.
    pub stop: ModelStop,
    /// Stop reason as the vendor worded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop: Option<String>,
    /// Token usage, if the provider reported it (JIDO-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Model that produced the response, as named by the provider (JIDO-13).
    pub model: String,
    /// Provider that served the model.
    pub provider: String,
    /// Results of the calls, in call order. Empty until the calls were executed; set only by execution, by
    /// [`Response::with_tool_results`], and by reading a stored response or a result map (JIDO-14, JIDO-73).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<ToolResult>,
    /// Request that the response answers, if the adapter reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestFingerprint>,
}

/// Kind of a response (JIDO-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// The model requests tool calls.
    ToolCalls,
    /// The model is done.
    FinalAnswer,
}

impl Response {
    /// Returns the kind according to the stop reason (JIDO-8). To decide whether to run tools, use
    /// [`Response::needs_tools`].
    #[must_use]
    pub fn kind(&self) -> ResponseKind {
        match self.stop {
            ModelStop::ToolUse => ResponseKind::ToolCalls,
            ModelStop::EndTurn | ModelStop::Length | ModelStop::Refusal => {
                ResponseKind::FinalAnswer
            }
        }
    }

    /// Returns true if tools must run before the model continues: the stop reason says so, or the response
    /// has calls. Either is enough, because stored and foreign responses may have only one of them (JIDO-16).
    #[must_use]
    pub fn needs_tools(&self) -> bool {
        self.kind() == ResponseKind::ToolCalls || self.calls().next().is_some()
    }

    /// Returns the text blocks, joined by newlines; empty if there are none (JIDO-9, JIDO-72, C-19).
    #[must_use]
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// Returns true if [`text`](Self::text) is empty.
    pub(crate) fn is_text_empty(&self) -> bool {
        let mut texts = self.content.iter().filter_map(Content::as_text);
        matches!((texts.next(), texts.next()), (None | Some(""), None))
    }

    /// Returns the readable reasoning, its blocks joined by newlines (JIDO-10).
    #[must_use]
    pub fn thinking(&self) -> Option<String> {
        let blocks: Vec<&str> = self.content.iter().filter_map(as_thinking).collect();
        (!blocks.is_empty()).then(|| blocks.join("\n"))
    }

    /// Returns the requested calls, in order (JIDO-11).
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Content::as_tool_call)
    }

    /// Returns the response with these results, without running anything (JIDO-74).
    #[must_use]
    pub fn with_tool_results(self, tool_results: Vec<ToolResult>) -> Self {
        Self {
            tool_results,
            ..self
        }
    }

    /// Returns the response in the form that the loop continues with: calls that may be truncated are
    /// dropped, because they will have no results (D-16), the stop reason matches the presence of calls
    /// (JIDO-71), and the usage is consistent (I1).
    #[must_use]
    pub fn settled(mut self) -> Self {
        match self.stop {
            ModelStop::Length | ModelStop::Refusal => {
                self.content.retain(|item| item.as_tool_call().is_none());
            }
            ModelStop::EndTurn | ModelStop::ToolUse => {
                let has_calls = self.calls().next().is_some();
                self.stop = ModelStop::from_response(None, has_calls, false);
            }
        }
        self.usage = self.usage.map(Usage::normalized);
        self
    }

    /// Returns the response as an assistant message, including its calls (JIDO-29).
    #[must_use]
    pub fn assistant_message(&self) -> Message {
        self.clone().into_assistant_message()
    }

    /// Converts the response into an assistant message without copying.
    #[must_use]
    pub fn into_assistant_message(self) -> Message {
        Message::Assistant {
            content: self.content,
            stop: match self.stop {
                ModelStop::EndTurn => MessageStop::Stop,
                ModelStop::ToolUse => MessageStop::ToolUse,
                ModelStop::Length => MessageStop::Length,
                ModelStop::Refusal => MessageStop::GuardRail,
            },
            model: self.model,
            provider: self.provider,
            usage: self.usage,
            error: None,
            request: self.request,
        }
    }

    /// Returns the results as messages, one each, in call order (JIDO-30). Following the assistant message,
    /// they form a request that every model accepts (JIDO-31).
    #[must_use]
    pub fn tool_messages(&self) -> Vec<Message> {
        self.tool_results.iter().map(ToolResult::message).collect()
    }
}

fn as_thinking(item: &Content) -> Option<&str> {
    match item {
        Content::Thinking { text, .. } if !text.is_empty() => Some(text),
        _ => None,
    }
}
