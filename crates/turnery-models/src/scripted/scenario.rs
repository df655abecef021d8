//! Scenario file played by `scripted:FILE`. The doc comments are the descriptions in its JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnery_engine::{ModelErrorKind, Usage};

/// A list of answers that a scripted model gives, one per call of the model.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Scenario of a scripted model")]
pub struct Scenario {
    /// Where editors find the schema of this file. Not used otherwise.
    #[serde(default, rename = "$schema")]
    pub schema: Option<String>,
    /// A short name for display.
    #[serde(default)]
    pub name: Option<String>,
    /// What the scenario is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Start again after the last answer. Otherwise a call after the last answer fails with an error.
    #[serde(default)]
    pub repeat: bool,
    /// Find the next answer by counting the answers in the conversation. Parallel sessions are then
    /// independent, and a session that is loaded later continues where it was. When false, calls are counted
    /// for the whole process.
    #[serde(default = "yes")]
    pub by_history: bool,
    /// The model reports that it accepts audio.
    #[serde(default)]
    pub audio: bool,
    /// The answers. Those with `when` are tried first at every call; the others are given in order.
    pub answers: Vec<ScriptedAnswer>,
}

fn yes() -> bool {
    true
}

impl Scenario {
    /// Returns the answers that are given in order.
    pub(super) fn ordered_answers(&self) -> impl Iterator<Item = &ScriptedAnswer> {
        self.answers.iter().filter(|answer| answer.when.is_none())
    }
}

/// One answer of the model: steps, played in order, and how it ends.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// Give this answer whenever the condition holds, instead of in order.
    #[serde(default)]
    pub when: Option<AnswerCondition>,
    /// What happens, in order.
    #[serde(default)]
    pub steps: Vec<AnswerStep>,
    /// How it ends. When absent: `tool_use` after a tool call, `stop` otherwise.
    #[serde(default)]
    pub end: Option<AnswerEnd>,
    /// The tokens that the answer claims to have cost. When absent they are unknown.
    #[serde(default)]
    pub usage: Option<ScriptedUsage>,
}

/// When an answer matches. All given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerCondition {
    /// The last message of the user contains this text. Alone, it matches the first answer to that message
    /// only, not the ones after tool results.
    #[serde(default)]
    pub last_user_contains: Option<String>,
    /// The conversation ends in a tool result that contains this text.
    #[serde(default)]
    pub last_tool_result_contains: Option<String>,
}

/// One thing that happens in an answer: exactly one of `text`, `thinking`, `tool_call`, `delay_ms`
/// and `wait_for_cancel`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "StepFields")]
pub enum AnswerStep {
    /// Prose, in fragments.
    Text(Vec<String>),
    /// Reasoning, in fragments.
    Thinking(Vec<String>),
    /// A tool call; its arguments arrive in this many fragments.
    ToolCall(ToolUse, usize),
    /// Delay. Unit: milliseconds.
    Delay(u64),
    /// Delay until the call is cancelled.
    WaitForCancel,
}

/// One thing that happens in an answer: exactly one of `text`, `thinking`, `tool_call`, `delay_ms`
/// and `wait_for_cancel`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    rename = "Step",
    extend("oneOf" = [
        {"required": ["text"]}, {"required": ["thinking"]}, {"required": ["tool_call"]},
        {"required": ["delay_ms"]}, {"required": ["wait_for_cancel"]}
    ])
)]
struct StepFields {
    /// Prose: a string, or a list of strings that arrive one by one.
    #[serde(default)]
    text: Option<ScriptedText>,
    /// Reasoning: a string, or a list of strings that arrive one by one.
    #[serde(default)]
    thinking: Option<ScriptedText>,
    /// A request to use a tool.
    #[serde(default)]
    tool_call: Option<ToolUse>,
    /// With `text`, `thinking` or `tool_call`: let it arrive in this many pieces of about equal length.
    #[serde(default)]
    #[schemars(range(min = 1))]
    chunks: Option<usize>,
    /// Say nothing for this long. Unit: milliseconds.
    #[serde(default)]
    delay_ms: Option<u64>,
    /// `true`: say nothing more until the call is cancelled.
    #[serde(default)]
    wait_for_cancel: Option<bool>,
}

/// A text, whole or in the pieces in which it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub enum ScriptedText {
    /// The whole text.
    Whole(String),
    /// The pieces, in order.
    Pieces(Vec<String>),
}

/// A request to use a tool.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// The tool's name, for example `read_file`.
    pub name: String,
    /// Its arguments: an object; a string stands for a model that writes no JSON.
    #[serde(default)]
    pub args: Value,
    /// The call's id. When absent it is made from the position, so it differs each time.
    #[serde(default)]
    pub id: Option<String>,
}

/// How an answer ends.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEnd {
    /// The response is complete.
    Stop,
    /// The model waits for its tools.
    ToolUse,
    /// The output limit truncated the response.
    Length,
    /// The model refuses.
    Refusal,
    /// The call fails after the steps.
    Error(ScriptedError),
}

/// How a call of the model fails.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// Kind of failure.
    #[serde(with = "ScriptedErrorKind")]
    pub kind: ModelErrorKind,
    /// Message shown to the user.
    #[serde(default)]
    pub message: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: Option<u16>,
    /// Delay that the provider requests. Unit: milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

/// Kind of a failure.
// All kinds except `AnswerLimit`, which depends on the limit of the call.
#[derive(Deserialize, JsonSchema)]
#[serde(remote = "ModelErrorKind", rename_all = "snake_case")]
#[schemars(rename = "ScriptedErrorKind")]
enum ScriptedErrorKind {
    /// No connection, or the connection was lost.
    Network,
    /// The stream violates the API.
    Protocol,
    /// The stream ended without saying that the answer was over.
    Unfinished,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The key is missing or wrong.
    Auth,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// The provider rejects the request.
    BadRequest,
    /// The provider stopped sending.
    Timeout,
}

/// Token usage that an answer reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedUsage {
    /// Input that was not cached.
    #[serde(default)]
    pub input: u64,
    /// All output, reasoning included.
    #[serde(default)]
    pub output: u64,
    /// The part of the output that was reasoning.
    #[serde(default)]
    pub reasoning: u64,
    /// Input read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl TryFrom<StepFields> for AnswerStep {
    type Error = String;

    fn try_from(fields: StepFields) -> Result<Self, String> {
        let chunks = fields.chunks.unwrap_or(1);
        if chunks == 0 {
            return Err("`chunks` must be 1 or more".to_owned());
        }
        let mut steps = Vec::new();
        steps.extend(
            fields
                .text
                .map(|words| Self::Text(words.into_pieces(chunks))),
        );
        steps.extend(
            fields
                .thinking
                .map(|words| Self::Thinking(words.into_pieces(chunks))),
        );
        steps.extend(fields.tool_call.map(|call| Self::ToolCall(call, chunks)));
        steps.extend(fields.delay_ms.map(Self::Delay));
        match fields.wait_for_cancel {
            Some(true) => steps.push(Self::WaitForCancel),
            Some(false) => return Err("`wait_for_cancel` can only be true".to_owned()),
            None => {}
        }
        let count = steps.len();
        match (steps.pop(), count) {
            (Some(step), 1) => Ok(step),
            (_, count) => Err(format!(
                "a step has exactly one of `text`, `thinking`, `tool_call`, `delay_ms` and `wait_for_cancel`; this one has {count}"
            )),
        }
    }
}

impl ScriptedText {
    fn into_pieces(self, chunks: usize) -> Vec<String> {
        match self {
            Self::Whole(text) => split_evenly(&text, chunks),
            Self::Pieces(pieces) => pieces,
        }
    }
}

/// Splits a text into at most `count` non-empty pieces of about equal length in characters.
pub(super) fn split_evenly(text: &str, count: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let size = letters.len().div_ceil(count.max(1)).max(1);
    letters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

impl From<ScriptedUsage> for Usage {
    fn from(tokens: ScriptedUsage) -> Self {
        Self {
            input: tokens.input,
            output: tokens.output,
            reasoning: tokens.reasoning,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
        }
    }
}
