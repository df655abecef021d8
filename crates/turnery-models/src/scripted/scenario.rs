//! Scenario: the file that `scripted:FILE` plays. The texts here are also those of its JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use turnery_engine::{FaultKind, Usage};

/// A list of answers that a scripted model gives, one per call of the model.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Scenario of a scripted model")]
pub struct Scenario {
    /// Where editors find the schema of this file. Not used otherwise.
    #[serde(default, rename = "$schema")]
    pub schema: Option<String>,
    /// A short name, shown to people.
    #[serde(default)]
    pub name: Option<String>,
    /// What the scenario is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Begin again after the last answer. Otherwise a call after the last answer fails and says so.
    #[serde(default)]
    pub repeat: bool,
    /// Find the next answer by counting the answers in the conversation. Parallel sessions are then
    /// independent, and a session that is loaded later goes on where it was. When false, calls are
    /// counted for the whole process.
    #[serde(default = "yes")]
    pub by_history: bool,
    /// The model says that it takes recordings.
    #[serde(default)]
    pub audio: bool,
    /// The answers. Those with `when` are tried first at every call; the others are given in order.
    pub answers: Vec<Answer>,
}

fn yes() -> bool {
    true
}

impl Scenario {
    /// The answers that are given in order.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(|answer| answer.when.is_none())
    }
}

/// One answer of the model: steps, played in order, and how it ends.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Give this answer whenever the condition holds, instead of in order.
    #[serde(default)]
    pub when: Option<When>,
    /// What happens, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// How it ends. When absent: `tool_use` after a tool call, `stop` otherwise.
    #[serde(default)]
    pub end: Option<End>,
    /// The tokens that the answer claims to have cost. When absent they are unknown.
    #[serde(default)]
    pub usage: Option<Tokens>,
}

/// When an answer fits. All conditions that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The last message of the user contains this text. Alone, it fits the first answer to that
    /// message only, not the ones after tool results.
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
pub enum Step {
    /// Prose, in fragments.
    Text(Vec<String>),
    /// Reasoning, in fragments.
    Thinking(Vec<String>),
    /// A request to use a tool; its arguments come in so many fragments.
    ToolCall(ToolUse, usize),
    /// Silence. Unit: milliseconds.
    Delay(u64),
    /// Silence for ever: until the call is cancelled.
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
    text: Option<Words>,
    /// Reasoning: a string, or a list of strings that arrive one by one.
    #[serde(default)]
    thinking: Option<Words>,
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
pub enum Words {
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
pub enum End {
    /// All is said.
    Stop,
    /// The model waits for its tools.
    ToolUse,
    /// The output limit cut it short.
    Length,
    /// The model refuses.
    Refusal,
    /// The call fails after the steps.
    Error(Fault),
}

/// How a call of the model fails.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The sort of failure.
    pub kind: FaultWord,
    /// What a person reads.
    #[serde(default)]
    pub message: Option<String>,
    /// The HTTP status.
    #[serde(default)]
    pub status: Option<u16>,
    /// How long the provider asks to wait. Unit: milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

/// The sort of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultWord {
    /// No connection, or it broke off.
    Network,
    /// The stream was not what the API promises.
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
    /// The provider refuses the request as it is.
    BadRequest,
    /// The provider fell silent.
    Timeout,
}

/// Tokens that an answer claims to have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Input that came from no cache.
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

impl TryFrom<StepFields> for Step {
    type Error = String;

    fn try_from(fields: StepFields) -> Result<Self, String> {
        let chunks = fields.chunks.unwrap_or(1);
        if chunks == 0 {
            return Err("`chunks` must be 1 or more".to_owned());
        }
        let mut steps = Vec::new();
        steps.extend(fields.text.map(|words| Self::Text(words.pieces(chunks))));
        steps.extend(
            fields
                .thinking
                .map(|words| Self::Thinking(words.pieces(chunks))),
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

impl Words {
    fn pieces(self, chunks: usize) -> Vec<String> {
        match self {
            Self::Whole(text) => split(&text, chunks),
            Self::Pieces(pieces) => pieces,
        }
    }
}

/// At most `count` pieces of about equal length in characters, none empty.
pub(super) fn split(text: &str, count: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let size = letters.len().div_ceil(count.max(1)).max(1);
    letters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

impl From<FaultWord> for FaultKind {
    fn from(word: FaultWord) -> Self {
        match word {
            FaultWord::Network => Self::Network,
            FaultWord::Protocol => Self::Protocol,
            FaultWord::Unfinished => Self::Unfinished,
            FaultWord::RateLimit => Self::RateLimit,
            FaultWord::Overloaded => Self::Overloaded,
            FaultWord::Auth => Self::Auth,
            FaultWord::ContextOverflow => Self::ContextOverflow,
            FaultWord::BadRequest => Self::BadRequest,
            FaultWord::Timeout => Self::Timeout,
        }
    }
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input: tokens.input,
            output: tokens.output,
            reasoning: tokens.reasoning,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
        }
    }
}
