//! Parses the usage report of a response.

use crate::token_count::{TokenCount, TokenCountError};
use serde::Deserialize;
use serde_json::value::RawValue;
use turnery_engine::Usage;

#[derive(Deserialize)]
struct UsageReport {
    input_tokens: Option<TokenCount>,
    output_tokens: Option<TokenCount>,
    total_tokens: Option<TokenCount>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<TokenCount>,
    cache_write_tokens: Option<TokenCount>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<TokenCount>,
}

/// Parses a usage report; `None` if it is empty or partly unreadable.
pub(super) fn parse_usage(raw: &RawValue) -> Option<Usage> {
    let report: UsageReport = serde_json::from_str(raw.get()).ok()?;
    if report.input_tokens.is_none() && report.output_tokens.is_none() {
        return None;
    }
    report.to_usage().ok()
}

impl UsageReport {
    /// Converts to turnery's counts: input excludes cached tokens, and output includes reasoning.
    fn to_usage(&self) -> Result<Usage, TokenCountError> {
        let all_input = TokenCount::value_or_zero(self.input_tokens)?;
        let details = self.input_tokens_details.as_ref();
        let read = details.and_then(|details| details.cached_tokens);
        let cache_read = TokenCount::value_or_zero(read)?.min(all_input);
        let written = details.and_then(|details| details.cache_write_tokens);
        let cache_write = TokenCount::value_or_zero(written)?.min(all_input - cache_read);
        let output = TokenCount::value_or_zero(self.output_tokens)?;
        let details = self.output_tokens_details.as_ref();
        let reasoning =
            TokenCount::value_or_zero(details.and_then(|details| details.reasoning_tokens))?;
        // OpenAI counts reasoning as output; servers that copy it may not, which their total reveals (quirk 45).
        let sum = all_input.saturating_add(output).saturating_add(reasoning);
        let is_separate = reasoning > output || self.total_tokens == Some(TokenCount::Known(sum));
        Ok(Usage {
            input: all_input - cache_read - cache_write,
            output: match is_separate {
                true => output.saturating_add(reasoning),
                false => output,
            },
            reasoning,
            cache_read,
            cache_write,
        })
    }
}
