//! Response: a model's answer, normalised, whatever API it came by, and what is to be said back.
//!
//! Four steps make a turn, and each is here or beside it: **normalise** ([`Response::from_response`],
//! [`Response::from_result_map`]), **classify** ([`Response::kind`], [`Response::needs_tools`]),
//! **execute** (the tools crate's `run_tools`, which gives a new response that holds the results)
//! and **project** ([`Response::assistant_message`], [`Response::tool_messages`]). The engine's own
//! loop goes through the same functions. Nothing here does IO, panics, or changes a response in
//! place (JIDO-3).
//!
//! For whom (JIDO-77): hosts that write a loop of their own, code that looks at answers before it
//! decides, and code that turns answers into history. Whoever only wants an answer takes the agent
//! crate's `converse` or `ask`.

mod delta;
mod fault;
mod maps;
mod result;
mod size;
mod source;
mod stop;
mod text;

pub use delta::ModelDelta;
pub use fault::{FaultKind, ModelFault};
pub use result::{ToolResult, tool_message};
pub use size::{AnswerLimits, AnswerOverrun, AnswerSize};
pub use source::{Named, ResponseError, Source};
pub use stop::ModelStop;
pub use text::{extract_from_content, extract_text};

use crate::{Content, Message, MessageStop, ToolCall, Usage, message::joined_text};
use serde::{Deserialize, Serialize};

/// The normalised answer of one model call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Text, reasoning and calls in the order the model gave them.
    pub content: Vec<Content>,
    /// Why it stopped.
    pub stop: ModelStop,
    /// The vendor's own word for that, kept as evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop: Option<String>,
    /// What it cost, if the provider said so (JIDO-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it (JIDO-13).
    pub model: String,
    /// The provider that served it.
    pub provider: String,
    /// What came of its calls, in call order. Empty until they have been executed: only execution
    /// and [`Response::with_tool_results`] fill it (JIDO-14, JIDO-73).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<ToolResult>,
}

/// What an answer is (JIDO-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseKind {
    /// It asks for tools.
    ToolCalls,
    /// It is what the model wants to say.
    FinalAnswer,
}

impl Response {
    /// What the answer says it is (JIDO-8). See [`Response::needs_tools`] for what is to be done.
    #[must_use]
    pub fn kind(&self) -> ResponseKind {
        match self.stop {
            ModelStop::ToolUse => ResponseKind::ToolCalls,
            ModelStop::EndTurn | ModelStop::Length | ModelStop::Refusal => {
                ResponseKind::FinalAnswer
            }
        }
    }

    /// Whether tools are to run before the model goes on: it says so, or it has calls. Either is
    /// enough, since stored and foreign answers may have only one of them (JIDO-16).
    #[must_use]
    pub fn needs_tools(&self) -> bool {
        self.kind() == ResponseKind::ToolCalls || self.calls().next().is_some()
    }

    /// The text blocks, joined by newlines; empty if there are none (JIDO-9, JIDO-72, C-19).
    #[must_use]
    pub fn text(&self) -> String {
        joined_text(&self.content)
    }

    /// Whether [`text`](Self::text) is empty.
    pub(crate) fn says_nothing(&self) -> bool {
        let mut texts = self.content.iter().filter_map(Content::as_text);
        matches!((texts.next(), texts.next()), (None | Some(""), None))
    }

    /// The readable reasoning, its blocks joined by newlines (JIDO-10).
    #[must_use]
    pub fn thinking(&self) -> Option<String> {
        let blocks: Vec<&str> = self.content.iter().filter_map(thought).collect();
        (!blocks.is_empty()).then(|| blocks.join("\n"))
    }

    /// The calls that it asks for, in order (JIDO-11).
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(called)
    }

    /// The same answer with these results, without running anything (JIDO-74).
    #[must_use]
    pub fn with_tool_results(self, tool_results: Vec<ToolResult>) -> Self {
        Self {
            tool_results,
            ..self
        }
    }

    /// The answer as the loop goes on with it: calls that may be cut short are dropped, for they
    /// will have no results (D-16), why it stopped agrees with whether it has calls (JIDO-71), and
    /// the usage adds up (I1).
    #[must_use]
    pub fn settled(mut self) -> Self {
        match self.stop {
            ModelStop::Length | ModelStop::Refusal => {
                self.content.retain(|item| called(item).is_none());
            }
            ModelStop::EndTurn | ModelStop::ToolUse => {
                let has_calls = self.calls().next().is_some();
                self.stop = stop_of(has_calls);
            }
        }
        self.usage = self.usage.map(Usage::consistent);
        self
    }

    /// The answer as a message of the history (JIDO-29). Its content holds the calls.
    #[must_use]
    pub fn assistant_message(&self) -> Message {
        self.clone().into_assistant_message()
    }

    /// The same without a copy.
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
        }
    }

    /// The results as messages of the history, one each, in call order (JIDO-30). After the
    /// assistant's message they make a request that any model takes (JIDO-31).
    #[must_use]
    pub fn tool_messages(&self) -> Vec<Message> {
        self.tool_results.iter().map(ToolResult::message).collect()
    }
}

/// Why an answer stopped that has calls, or none.
fn stop_of(has_calls: bool) -> ModelStop {
    match has_calls {
        true => ModelStop::ToolUse,
        false => ModelStop::EndTurn,
    }
}

fn called(item: &Content) -> Option<&ToolCall> {
    match item {
        Content::ToolCall(call) => Some(call),
        Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::Thinking { .. }
        | Content::Opaque { .. } => None,
    }
}

fn thought(item: &Content) -> Option<&str> {
    match item {
        Content::Thinking { text, .. } if !text.is_empty() => Some(text),
        Content::Thinking { .. }
        | Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::ToolCall(_)
        | Content::Opaque { .. } => None,
    }
}
