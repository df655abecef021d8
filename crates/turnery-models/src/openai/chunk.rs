//! Deserializes one chunk of a Chat Completions stream, borrowed, in all variants that servers send.

use crate::{
    json_str::JsonStr,
    token_count::{TokenCount, TokenCountError},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnery_engine::Usage;

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
}

#[derive(Deserialize)]
pub(super) struct ChoiceDelta<'a> {
    /// A string, or Mistral's list of parts.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// DeepSeek, vLLM, llama.cpp, LM Studio.
    pub(super) reasoning_content: Option<JsonStr<'a>>,
    /// OpenRouter, Ollama, newer vLLM.
    pub(super) reasoning: Option<JsonStr<'a>>,
    pub(super) refusal: Option<JsonStr<'a>>,
    pub(super) tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// Predecessor of `tool_calls`, for a single call.
    pub(super) function_call: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ToolCallDelta<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
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

#[derive(Deserialize)]
pub(super) struct OpenAiUsage {
    prompt_tokens: Option<TokenCount>,
    completion_tokens: Option<TokenCount>,
    total_tokens: Option<TokenCount>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Option<TokenCount>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<TokenCount>,
    /// OpenRouter.
    cache_write_tokens: Option<TokenCount>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<TokenCount>,
}

impl OpenAiUsage {
    /// Parses a usage report; `None` if it is empty or partly unreadable.
    pub(super) fn parse(raw: &RawValue) -> Option<Usage> {
        let report: Self = serde_json::from_str(raw.get()).ok()?;
        if report.prompt_tokens.is_none() && report.completion_tokens.is_none() {
            return None;
        }
        report.to_usage().ok()
    }

    /// Converts to turnery's counts: input excludes cached tokens, and output includes reasoning.
    fn to_usage(&self) -> Result<Usage, TokenCountError> {
        let prompt = TokenCount::value_or_zero(self.prompt_tokens)?;
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cache_read =
            TokenCount::value_or_zero(cached.or(self.prompt_cache_hit_tokens))?.min(prompt);
        let written = details.and_then(|details| details.cache_write_tokens);
        let cache_write = TokenCount::value_or_zero(written)?.min(prompt - cache_read);
        let completion = TokenCount::value_or_zero(self.completion_tokens)?;
        let reasoning = self.completion_tokens_details.as_ref();
        let reasoning =
            TokenCount::value_or_zero(reasoning.and_then(|details| details.reasoning_tokens))?;
        // Some servers count reasoning separately from the completion; their total reveals this.
        let beside = prompt.saturating_add(completion).saturating_add(reasoning);
        let is_beside =
            reasoning > completion || self.total_tokens == Some(TokenCount::Known(beside));
        Ok(Usage {
            input: prompt - cache_read - cache_write,
            output: if is_beside {
                completion.saturating_add(reasoning)
            } else {
                completion
            },
            reasoning,
            cache_read,
            cache_write,
        })
    }
}
