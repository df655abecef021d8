//! Defines the handles to wait for a prompt and for the delivery of an interjection.

use super::{
    errors::{InterjectError, PromptError},
    result::PromptResult,
};
use crate::cancels::Cancels;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::oneshot;
use turnery_engine::{CommitError, MessageId};

/// Receipt of an interjection: resolves once the running prompt has delivered it or a filter has dropped it.
pub struct DeliveryReceipt {
    pub(super) delivered: oneshot::Receiver<()>,
}

impl DeliveryReceipt {
    /// Waits until the interjection is delivered to the model or dropped by a filter. Returns
    /// [`InterjectError::Idle`] if the prompt ends first; the interjection is then discarded.
    pub async fn result(self) -> Result<(), InterjectError> {
        self.delivered.await.map_err(|_| InterjectError::Idle)
    }
}

/// Handle of an accepted prompt. Its result arrives after all events of the prompt have been pushed and the
/// commit has succeeded. Dropping the handle does not cancel the prompt.
pub struct PromptHandle {
    pub(super) result: oneshot::Receiver<Result<PromptResult, PromptError>>,
    pub(super) inserted: oneshot::Receiver<MessageId>,
    pub(super) slot: QueueSlot,
    pub(super) cancels: Cancels,
    /// True if this handle withdrew the prompt before it began.
    pub(super) withdrawn: bool,
}

impl PromptHandle {
    /// Waits until the prompt's message is part of the conversation and returns its id, long before the
    /// prompt ends; `None` if there will be no message, in which case the result gives the reason. A cancel
    /// before the prompt begins withdraws it at once.
    pub async fn inserted(&mut self) -> Option<MessageId> {
        tokio::select! {
            biased;
            inserted = &mut self.inserted => return inserted.ok(),
            () = self.cancels.cancelled() => {}
        }
        self.withdrawn = self.slot.take();
        match self.withdrawn {
            true => None,
            false => (&mut self.inserted).await.ok(),
        }
    }

    /// Waits for the result of the prompt.
    pub async fn result(self) -> Result<PromptResult, PromptError> {
        if self.withdrawn {
            return Err(PromptError::Withdrawn);
        }
        self.result.await.unwrap_or_else(|_| {
            Err(PromptError::Lost(CommitError::Store(
                "the session ended unexpectedly; open it again".to_owned(),
            )))
        })
    }
}

/// Slot of a prompt in the queue. The prompt either begins or is withdrawn, whichever takes the slot first.
#[derive(Clone, Default)]
pub(crate) struct QueueSlot(Arc<AtomicBool>);

impl QueueSlot {
    /// Takes the slot; true only for the first caller.
    pub(crate) fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}
