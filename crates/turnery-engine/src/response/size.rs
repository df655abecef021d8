//! Bounds on the size of one answer, and the running count that is checked against them.

use super::{Response, called};
use crate::Content;

/// Bounds on one answer of a model. A longer answer is stopped while it streams (UP-1).
///
/// The defaults lie far above what a model can say. The longest output of a hosted model is 128,000
/// tokens, about 600 KB of text; 16 MiB leaves 128 bytes for each of them. An answer with more than a
/// hundred calls is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Text, reasoning and arguments of calls together. Unit: bytes.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u64,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            bytes: 16 * 1024 * 1024,
            calls: 1_000,
        }
    }
}

/// The bound that an answer exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerOverrun {
    /// [`AnswerLimits::bytes`].
    #[error("Max answer size reached ({limit} bytes)")]
    Bytes {
        /// The bound.
        limit: u64,
    },
    /// [`AnswerLimits::calls`].
    #[error("Max calls of one answer reached ({limit})")]
    Calls {
        /// The bound.
        limit: u64,
    },
}

/// The size of an answer so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerSize {
    bytes: u64,
    calls: u64,
}

impl AnswerSize {
    /// Counted for every block beside its content, so that many small blocks are bounded too.
    /// Unit: bytes.
    pub const BLOCK: usize = 128;

    /// The size of a whole answer. Arguments of calls count as the bytes of their JSON strings only.
    #[must_use]
    pub fn of(response: &Response) -> Self {
        let mut size = Self::default();
        for item in &response.content {
            size.add(Self::BLOCK);
            match item {
                Content::Text { text } | Content::Thinking { text, .. } => size.add(text.len()),
                Content::ToolCall(_)
                | Content::Image(_)
                | Content::Audio(_)
                | Content::Opaque { .. } => {}
            }
            if let Some(call) = called(item) {
                size.add_call();
                size.add(call.args.as_str().map_or(0, str::len));
            }
        }
        size
    }

    /// Counts content.
    pub fn add(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts one call.
    pub fn add_call(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// Bytes so far, blocks included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fails with the bound that the answer exceeds.
    ///
    /// # Errors
    ///
    /// The first bound that is exceeded; an answer that just reaches a bound is within it.
    pub fn check(&self, limits: &AnswerLimits) -> Result<(), AnswerOverrun> {
        if self.bytes > limits.bytes {
            return Err(AnswerOverrun::Bytes {
                limit: limits.bytes,
            });
        }
        if self.calls > limits.calls {
            return Err(AnswerOverrun::Calls {
                limit: limits.calls,
            });
        }
        Ok(())
    }
}
