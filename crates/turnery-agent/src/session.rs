//! Session: the handle of an open session. Cheap to clone; all clones reach the same task.

use crate::CancellationToken;
use turnery_engine::{CommitFault, Content, Detail, Outcome, SessionId, Usage};
use turnery_models::{ModelInfo, Thinking, UnknownModel};
use turnery_store::StoreError;
use turnery_tools::Mode;

/// An open session.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
}

/// How the session is set, and what it may be set to.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// How freely the agent acts.
    pub mode: Mode,
    /// `provider/model` in use.
    pub model: String,
    /// Models to offer; the one in use is among them.
    pub models: Vec<ModelInfo>,
    /// How much the model is to think.
    pub thinking: Thinking,
}

/// More prompts are waiting than a session holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this session already has {0} prompts waiting; wait for one to end, or cancel")]
pub struct QueueFull(pub usize);

/// A setting that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// There is no such model, or its key is missing.
    #[error(transparent)]
    Model(#[from] UnknownModel),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session is closed.
    #[error("the session is closed")]
    Closed,
}

/// What came of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// Why it ended.
    pub outcome: Outcome,
    /// What is known beside it.
    pub detail: Option<Detail>,
    /// Of all its turns.
    pub usage: Usage,
}

/// A prompt that was accepted. Awaiting it gives the result, after every event of the prompt has
/// been pushed and the commit has succeeded. Dropping it does not cancel the prompt.
pub struct Ticket {
    result: tokio::sync::oneshot::Receiver<Result<PromptResult, CommitFault>>,
}

impl Ticket {
    /// The end of the prompt.
    pub async fn result(self) -> Result<PromptResult, CommitFault> {
        self.result.await.unwrap_or_else(|_| {
            Err(CommitFault::Store(
                "the session ended unexpectedly; open it again".to_owned(),
            ))
        })
    }
}

impl Session {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Queue a prompt; prompts run one after the other, in this order. Does not wait: calls made one
    /// after the other are queued in that order. `cancel` is the prompt's own token.
    pub fn start(
        &self,
        input: Vec<Content>,
        cancel: CancellationToken,
    ) -> Result<Ticket, QueueFull> {
        let _ = (input, cancel);
        Err(QueueFull(0))
    }

    /// Cancel all prompts of this handle, running and waiting (LASH-93). Returns how many there were.
    /// A prompt started later is not touched.
    pub fn cancel_running_turns(&self) -> usize {
        0
    }

    /// How the session is set.
    #[must_use]
    pub fn options(&self) -> SessionOptions {
        SessionOptions {
            mode: Mode::Ask,
            model: String::new(),
            models: Vec::new(),
            thinking: Thinking::Default,
        }
    }

    /// Act more or less freely, from the next judged call on, even in mid-prompt.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), SetError> {
        let _ = mode;
        Err(SetError::Closed)
    }

    /// Use another model from the next turn on.
    pub async fn set_model(&self, name: &str) -> Result<(), SetError> {
        let _ = name;
        Err(SetError::Closed)
    }

    /// Think more or less from the next turn on.
    pub async fn set_thinking(&self, thinking: Thinking) -> Result<(), SetError> {
        let _ = thinking;
        Err(SetError::Closed)
    }

    /// Cancel what runs, wait until it has ended, and let the session go. Every ticket is answered.
    pub async fn close(&self) {}
}
