//! Stop: why a model's answer ended, and the vendors' words for it.

use serde::{Deserialize, Serialize};

/// Why a model's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelStop {
    /// It had said all.
    EndTurn,
    /// It wants tools.
    ToolUse,
    /// The output limit.
    Length,
    /// It refuses, or a content filter does.
    Refusal,
}

impl ModelStop {
    /// What a vendor's word means. One table for all of them: no word means two things. A word that
    /// is not here says that the model had said all.
    #[must_use]
    pub fn of_word(word: &str) -> Self {
        match word {
            "tool_use" | "tool_calls" | "function_call" => Self::ToolUse,
            // A paused answer has not said all either.
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

    /// Why an answer stopped for which the vendor has this word. Many servers say that they stopped
    /// after calls, and some that they called without any: so the calls decide (JIDO-71).
    #[must_use]
    pub fn of_answer(word: Option<&str>, has_calls: bool, has_refused: bool) -> Self {
        match word.map(Self::of_word) {
            Some(stop @ (Self::Length | Self::Refusal)) => stop,
            Some(Self::EndTurn | Self::ToolUse) | None => match (has_calls, has_refused) {
                (true, _) => Self::ToolUse,
                (false, true) => Self::Refusal,
                (false, false) => Self::EndTurn,
            },
        }
    }
}
