//! Tokens spent. Unknown usage is `None` of an `Option<Usage>`, never zeros.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Source labels of spent tokens (LASH-112, UP-19).
pub mod source {
    /// The session's own turns.
    pub const TURN: &str = "turn";
    /// A sub-agent.
    pub const SUBAGENT: &str = "subagent";
    /// Summaries of history.
    pub const COMPACTION: &str = "compaction";
    /// Judges of parallel evaluations.
    pub const EVALUATION: &str = "evaluation";
    /// Any other child session.
    pub const CHILD: &str = "child";
}

/// Tokens of one model call, or a sum of such. Unit: tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Uncached input only (LASH-107).
    pub input: u64,
    /// All output, reasoning included (LASH-108).
    pub output: u64,
    /// The part of `output` spent on reasoning (LASH-111).
    #[serde(default)]
    pub reasoning: u64,
    /// Input read from the provider's cache (LASH-109).
    #[serde(default)]
    pub cache_read: u64,
    /// Input written to the provider's cache (LASH-110).
    #[serde(default)]
    pub cache_write: u64,
}

impl Usage {
    /// Derived, never taken from the provider (identity I1).
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Input and output, without what went through a cache: what the token limit counts (UP-1).
    #[must_use]
    pub fn fresh(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The same, with reasoning as a part of the output, whatever the provider claims (I1).
    #[must_use]
    pub fn consistent(self) -> Self {
        Self {
            reasoning: self.reasoning.min(self.output),
            ..self
        }
    }

    /// Tokens that the model has read: what fills its context window.
    #[must_use]
    pub fn context(&self) -> u64 {
        self.total()
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}
