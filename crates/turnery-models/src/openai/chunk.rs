//! Deserializes one chunk of a Chat Completions stream, borrowed, in all variants that servers send.

use crate::json_str::JsonStr;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) model: Option<JsonStr<'a>>,
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Option<ChoiceDelta<'a>>,
    pub(super) finish_reason: Option<JsonStr<'a>>,
    /// Moonshot.
    pub(super) usage: Option<&'a RawValue>,
    /// OpenRouter.
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct ChoiceDelta<'a> {
    /// A string, or Mistral's list of parts.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// DeepSeek, Kimi, GLM, older vLLM, llama.cpp, LM Studio.
    pub(super) reasoning_content: Option<JsonStr<'a>>,
    /// OpenRouter, Groq, Ollama, newer vLLM.
    pub(super) reasoning: Option<JsonStr<'a>>,
    /// GitHub Copilot.
    pub(super) reasoning_text: Option<JsonStr<'a>>,
    /// OpenRouter: a list of pieces of structured reasoning.
    pub(super) reasoning_details: Option<&'a RawValue>,
    pub(super) refusal: Option<JsonStr<'a>>,
    pub(super) tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// Predecessor of `tool_calls`, for a single call.
    pub(super) function_call: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ToolCallDelta<'a> {
    /// A number; some servers send it as a string.
    #[serde(borrow)]
    pub(super) index: Option<&'a RawValue>,
    pub(super) id: Option<JsonStr<'a>>,
    pub(super) function: Option<FunctionDelta<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<JsonStr<'a>>,
    /// A string of JSON; some servers send the object itself.
    pub(super) arguments: Option<&'a RawValue>,
}

/// Part of content given as a list.
#[derive(Deserialize)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<JsonStr<'a>>,
    pub(super) thinking: Option<Vec<TextPart<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct TextPart<'a> {
    #[serde(borrow)]
    pub(super) text: Option<JsonStr<'a>>,
}
