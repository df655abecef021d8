//! Turns that have not started, and what follows a turn.

use crate::{Content, Outcome, ResponseText, TurnTrigger};
use std::collections::VecDeque;

/// Inputs of a turn that has not started.
#[derive(Clone, Debug)]
pub(super) struct PendingTurn {
    pub(super) trigger: TurnTrigger,
    /// Prompt, or input injected by a checkpoint.
    pub(super) prompt: Option<QueuedMessage>,
    /// Steering or follow-up messages.
    pub(super) queued: Vec<QueuedMessage>,
    /// Notice with which the engine begins the turn.
    pub(super) notice: Option<TurnNotice>,
}

/// Why the engine begins a turn that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnNotice {
    /// The model must finish with a tool's decision (UP-33).
    FinishRequired,
    /// The context window overflowed within a response.
    Overflow,
}

impl PendingTurn {
    /// Creates a turn that continues the loop, after tool results or with more input.
    pub(super) fn continuation(prompt: Option<QueuedMessage>) -> Self {
        Self {
            trigger: TurnTrigger::Continuation,
            prompt,
            queued: Vec::new(),
            notice: None,
        }
    }

    /// Creates a turn that begins with a notice of the engine.
    pub(super) fn with_notice(notice: TurnNotice) -> Self {
        Self {
            notice: Some(notice),
            ..Self::continuation(None)
        }
    }
}

/// User message with an optional warning.
#[derive(Clone, Debug)]
pub(super) struct QueuedMessage {
    pub(super) content: Vec<Content>,
    /// Warning of an input filter for the model.
    pub(super) warning: Option<String>,
}

impl From<Vec<Content>> for QueuedMessage {
    fn from(content: Vec<Content>) -> Self {
        Self {
            content,
            warning: None,
        }
    }
}

impl QueuedMessage {
    /// Returns the content as sent to the model.
    pub(super) fn into_content(self) -> Vec<Content> {
        let mut content = self.content;
        if let Some(warning) = self.warning {
            content.push(Content::text(format!("[Warning: {warning}]")));
        }
        content
    }
}

/// Step after a turn, or before the first one.
#[derive(Clone, Debug)]
pub(super) enum NextStep {
    /// Start a turn.
    Turn(PendingTurn),
    /// The model is done; finish unless the user has more input.
    ModelDone {
        /// Text of the final response.
        text: ResponseText,
        /// True once the checkpoint hook has agreed.
        checkpoint_passed: bool,
    },
    /// End the loop because a response is too large; holds the limit's message.
    ResponseTooLarge(String),
    /// End the loop.
    EndLoop(Outcome),
}

/// User messages being checked by the input filter.
#[derive(Clone, Debug)]
pub(super) struct InputFiltering {
    /// Next step if the filter rejects all messages.
    pub(super) fallback: NextStep,
    pub(super) accepted: Vec<QueuedMessage>,
    pub(super) pending: VecDeque<Vec<Content>>,
}
