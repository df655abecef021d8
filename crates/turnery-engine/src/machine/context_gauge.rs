//! Tracks the size of the context, to decide when history is compacted.

use super::ContextBudget;
use crate::{ContextSize, Message, Usage};

/// Minimum growth of the context before another compaction attempt. Unit: percent.
const MIN_GROWTH_PERCENT: u64 = 10;

/// Tracks the size of the context.
#[derive(Clone, Debug)]
pub(super) struct ContextGauge {
    pub(super) size: ContextSize,
    /// Minimum size for another attempt, whether or not the last one succeeded.
    retry_above: u64,
    /// True if compaction was attempted in this turn.
    pub(super) attempted: bool,
    overflow: ResponseOverflow,
}

/// Context overflow within a response of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseOverflow {
    None,
    /// The next turn compacts.
    Pending,
    Handled,
}

impl ContextGauge {
    pub(super) fn new(context: &ContextBudget) -> Self {
        Self {
            size: context.size,
            retry_above: 0,
            attempted: false,
            overflow: ResponseOverflow::None,
        }
    }

    /// Makes the next turn compact; false if that has happened before.
    pub(super) fn note_overflow(&mut self) -> bool {
        let is_first = self.overflow == ResponseOverflow::None;
        if is_first {
            self.overflow = ResponseOverflow::Pending;
        }
        is_first
    }

    /// Returns true if this turn must compact because of an overflow.
    pub(super) fn take_overflow(&mut self) -> bool {
        let is_pending = self.overflow == ResponseOverflow::Pending;
        if is_pending {
            self.overflow = ResponseOverflow::Handled;
        }
        is_pending
    }

    pub(super) fn begin_turn(&mut self) {
        self.attempted = false;
    }

    /// Adds the estimated size of a new message.
    pub(super) fn add(&mut self, message: &Message) {
        self.size += ContextSize::of_message(message);
    }

    /// Replaces the estimate with the provider's token count; a server that counts nothing reports zero.
    pub(super) fn set_measured(&mut self, usage: &Usage) {
        let tokens = usage.context_tokens();
        if tokens > 0 {
            self.size.tokens = tokens;
        }
    }

    /// Sets the size after a compaction attempt, successful or not, and the minimum size for the next
    /// attempt.
    pub(super) fn set_compacted_size(&mut self, after: ContextSize) {
        self.size = after;
        self.retry_above = after
            .tokens
            .saturating_add(after.tokens / (100 / MIN_GROWTH_PERCENT));
    }

    /// Returns true if the context has reached the compaction threshold and has grown enough since the last
    /// attempt.
    pub(super) fn is_full(&self, context: &ContextBudget) -> bool {
        let full = |window: u64| {
            let tokens = u128::from(self.size.tokens) * 100;
            tokens >= u128::from(window) * u128::from(context.compact_at)
        };
        context.compact_at > 0
            && self.size.tokens >= self.retry_above
            && context.window.is_some_and(full)
    }
}
