//! Token usage. Unknown usage is `None`, never zero.

use crate::SessionId;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Labels for the source of spent tokens (LASH-112, UP-19).
pub mod source {
    /// Turns of the session itself.
    pub const TURN: &str = "turn";
    /// Sub-agent.
    pub const SUBAGENT: &str = "subagent";
    /// Summaries of history.
    pub const COMPACTION: &str = "compaction";
    /// Judges of parallel evaluations.
    pub const EVALUATION: &str = "evaluation";
    /// Any other child session.
    pub const CHILD: &str = "child";
}

/// Token usage of one or more model calls. Unit: tokens. Written with the total as `total_tokens`, which is not read
/// back (TURN-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "UsageWithTotal")]
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

/// Usage as it is written.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UsageWithTotal {
    /// Uncached input only (LASH-107).
    input: u64,
    /// All output, reasoning included (LASH-108).
    output: u64,
    /// The part of `output` spent on reasoning (LASH-111).
    reasoning: u64,
    /// Input read from the provider's cache (LASH-109).
    cache_read: u64,
    /// Input written to the provider's cache (LASH-110).
    cache_write: u64,
    /// Sum of input, output and both cache fields.
    total_tokens: u64,
}

impl From<Usage> for UsageWithTotal {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            reasoning: usage.reasoning,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            total_tokens: usage.total(),
        }
    }
}

impl Usage {
    /// Returns the total, always computed rather than taken from the provider (I1).
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Returns input and output without cached tokens: the part that the token limit counts (UP-1).
    #[must_use]
    pub fn uncached(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the usage with reasoning capped at the output, whatever the provider claims (I1).
    #[must_use]
    pub fn normalized(self) -> Self {
        Self {
            reasoning: self.reasoning.min(self.output),
            ..self
        }
    }

    /// Returns the tokens that this call occupied in the model's context window.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
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

/// Usage of a child session with one model (LASH-101, UP-19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChildUsage {
    /// Child session.
    pub session_id: SessionId,
    /// Purpose: one of the labels in [`source`].
    pub source: String,
    /// `provider/model`.
    pub model: String,
    /// Turn that `usage` belongs to, counted from 0 over all loops of the child session.
    pub iteration: u32,
    /// Usage of that turn; `None` if the provider did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Usage of the child session so far, with this source and model.
    pub cumulative: Usage,
}

impl ChildUsage {
    /// Keeps the latest report per session, source and model (UP-19).
    pub fn update_totals(totals: &mut Vec<Self>, report: &Self) {
        let key = |it: &Self| (it.session_id.clone(), it.source.clone(), it.model.clone());
        match totals.iter_mut().find(|it| key(it) == key(report)) {
            Some(total) => total.clone_from(report),
            None => totals.push(report.clone()),
        }
    }
}
