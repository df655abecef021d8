//! Holds the commands that a session task has received and not finished.

use super::{
    command::{Interjection, QueuedPrompt, SessionCommand},
    option_change::PendingOptionChange,
};
use std::collections::VecDeque;
use tokio::sync::{mpsc, oneshot};

/// Mailbox of a session task, and the commands taken from it.
pub(crate) struct Inbox {
    pub(crate) mailbox: mpsc::Receiver<SessionCommand>,
    pub(crate) prompts: VecDeque<QueuedPrompt>,
    /// Pending interjections of the running prompt.
    pub(crate) interjections: VecDeque<Interjection>,
    /// Option change that is being stored.
    pub(crate) option_change: Option<PendingOptionChange>,
    /// Callers that wait for the session to close; empty while it stays open.
    pub(crate) closing: Vec<oneshot::Sender<()>>,
}

impl Inbox {
    pub(crate) fn new(mailbox: mpsc::Receiver<SessionCommand>) -> Self {
        Self {
            mailbox,
            prompts: VecDeque::new(),
            interjections: VecDeque::new(),
            option_change: None,
            closing: Vec::new(),
        }
    }
}
