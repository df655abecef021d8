//! One chunk of a Chat Completions stream, borrowed, in all the shapes that servers give it.

use crate::{
    text::Text,
    tokens::{Tokens, Unreadable},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnery_engine::Usage;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(default, borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default, borrow)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default, borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    /// A string, or Mistral's list of parts.
    #[serde(default, borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// DeepSeek, vLLM, llama.cpp, LM Studio.
    #[serde(default, borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    /// OpenRouter, Ollama, newer vLLM.
    #[serde(default, borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    /// What tool calls were before there could be several.
    #[serde(default, borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(default, borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(default, borrow)]
    pub(super) name: Option<Text<'a>>,
    /// A string of JSON, or from some servers the object itself.
    #[serde(default, borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// One part of a content that is a list.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(default, borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) thinking: Option<Vec<TextPart<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct TextPart<'a> {
    #[serde(default, borrow)]
    pub(super) text: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    prompt_tokens: Option<Tokens>,
    completion_tokens: Option<Tokens>,
    total_tokens: Option<Tokens>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Option<Tokens>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<Tokens>,
    /// OpenRouter.
    cache_write_tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<Tokens>,
}

impl WireUsage {
    /// The usage of a report; `None` when it says nothing or not all of it can be read.
    pub(super) fn read(raw: &RawValue) -> Option<Usage> {
        let report: Self = serde_json::from_str(raw.get()).ok()?;
        if report.prompt_tokens.is_none() && report.completion_tokens.is_none() {
            return None;
        }
        report.usage().ok()
    }

    /// In our buckets: what came from the cache is not input, and reasoning is part of the output.
    fn usage(&self) -> Result<Usage, Unreadable> {
        let prompt = Tokens::or_zero(self.prompt_tokens)?;
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cache_read = Tokens::or_zero(cached.or(self.prompt_cache_hit_tokens))?.min(prompt);
        let written = details.and_then(|details| details.cache_write_tokens);
        let cache_write = Tokens::or_zero(written)?.min(prompt - cache_read);
        let completion = Tokens::or_zero(self.completion_tokens)?;
        let reasoning = self.completion_tokens_details.as_ref();
        let reasoning = Tokens::or_zero(reasoning.and_then(|details| details.reasoning_tokens))?;
        // Some count reasoning beside the completion; their own total tells.
        let beside = prompt.saturating_add(completion).saturating_add(reasoning);
        let is_beside = reasoning > completion || self.total_tokens == Some(Tokens::Known(beside));
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
