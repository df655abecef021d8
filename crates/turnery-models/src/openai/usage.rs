//! Reads the usage report of a Chat Completions response, in the forms of all servers.

use crate::token_count::{TokenCount, TokenCountError};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnery_engine::Usage;

#[derive(Deserialize)]
struct ChatUsageReport {
    prompt_tokens: Option<TokenCount>,
    completion_tokens: Option<TokenCount>,
    total_tokens: Option<TokenCount>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Option<TokenCount>,
    /// Moonshot.
    cached_tokens: Option<TokenCount>,
}

#[derive(Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<TokenCount>,
    /// OpenRouter.
    cache_write_tokens: Option<TokenCount>,
    /// Qwen.
    cache_creation_input_tokens: Option<TokenCount>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<TokenCount>,
}

/// Usage reports of a response so far. The last readable one applies.
#[derive(Default)]
pub(super) struct ChatUsage {
    usage: Option<Usage>,
}

impl ChatUsage {
    /// Reads a report. An empty one changes nothing; a partly unreadable one makes the usage unknown.
    pub(super) fn read(&mut self, raw: &RawValue) {
        let Ok(report) = serde_json::from_str::<ChatUsageReport>(raw.get()) else {
            self.usage = None;
            return;
        };
        if report.prompt_tokens.is_some() || report.completion_tokens.is_some() {
            self.usage = report.to_usage().ok();
        }
    }

    pub(super) fn into_usage(self) -> Option<Usage> {
        self.usage
    }
}

impl ChatUsageReport {
    /// Converts to turnery's counts: input excludes cached tokens, and output includes reasoning.
    fn to_usage(&self) -> Result<Usage, TokenCountError> {
        let prompt = TokenCount::value_or_zero(self.prompt_tokens)?;
        let details = self.prompt_tokens_details.as_ref();
        let cached = details
            .and_then(|details| details.cached_tokens)
            .or(self.prompt_cache_hit_tokens)
            .or(self.cached_tokens);
        let cache_read = TokenCount::value_or_zero(cached)?.min(prompt);
        let written = details.and_then(|details| {
            details
                .cache_write_tokens
                .or(details.cache_creation_input_tokens)
        });
        let cache_write = TokenCount::value_or_zero(written)?.min(prompt - cache_read);
        let completion = TokenCount::value_or_zero(self.completion_tokens)?;
        let reasoning = self.completion_tokens_details.as_ref();
        let reasoning =
            TokenCount::value_or_zero(reasoning.and_then(|details| details.reasoning_tokens))?;
        let is_total = |sum| self.total_tokens == Some(TokenCount::Known(sum));
        let sum = prompt.saturating_add(completion);
        // Some servers count reasoning beside the completion. Their total tells; without one, more reasoning than
        // completion does.
        let is_beside =
            !is_total(sum) && (is_total(sum.saturating_add(reasoning)) || reasoning > completion);
        Ok(Usage {
            input: prompt - cache_read - cache_write,
            output: match is_beside {
                true => completion.saturating_add(reasoning),
                false => completion,
            },
            reasoning: match is_beside {
                true => reasoning,
                false => reasoning.min(completion),
            },
            cache_read,
            cache_write,
        })
    }
}
