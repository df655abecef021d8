//! Stop reasons of model responses, and their names at all vendors.

use serde::{Deserialize, Serialize};

/// Reason why a model response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStop {
    /// The model finished.
    EndTurn,
    /// The model requested tool calls.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The model refused, or a content filter intervened.
    Refusal,
}

impl ModelStop {
    /// Returns the stop reason for a vendor's name, from one table for all vendors, since no name has two
    /// meanings. Unknown names count as `EndTurn`.
    #[must_use]
    pub fn from_vendor_reason(word: &str) -> Self {
        match word {
            "tool_use" | "tool_calls" | "function_call" => Self::ToolUse,
            // A paused response is incomplete too.
            "length"
            | "model_length"
            | "max_tokens"
            | "max_output_tokens"
            | "model_context_window_exceeded"
            | "pause_turn"
            | "MAX_TOKENS" => Self::Length,
            "refusal" | "content_filter" | "SAFETY" | "RECITATION" | "BLOCKLIST"
            | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => Self::Refusal,
            _ => Self::EndTurn,
        }
    }

    /// Returns the stop reason of a response. A length limit or refusal named by the vendor takes precedence;
    /// otherwise the presence of calls decides, because many servers report a normal end after calls, and
    /// some report calls without any (JIDO-71).
    #[must_use]
    pub fn from_response(word: Option<&str>, has_calls: bool, has_refused: bool) -> Self {
        match word.map(Self::from_vendor_reason) {
            Some(stop @ (Self::Length | Self::Refusal)) => stop,
            Some(Self::EndTurn | Self::ToolUse) | None => match (has_calls, has_refused) {
                (true, _) => Self::ToolUse,
                (false, true) => Self::Refusal,
                (false, false) => Self::EndTurn,
            },
        }
    }
}
