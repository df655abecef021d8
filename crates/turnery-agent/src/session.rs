//! Session: the handle of an open session. Cheap to clone; all clones reach the same task.

mod gate;
mod history;
mod leaf;
mod mail;
mod run;
mod steps;
mod task;

pub(crate) use history::{History, chain};
pub(crate) use mail::{MAILBOX, Mail, Prompt, Set};
pub(crate) use task::{Task, offered};

use crate::{CancellationToken, sink::Listener};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{mpsc, oneshot, watch};
use turnery_engine::{CommitFault, Content, Detail, Outcome, SessionId, Usage};
use turnery_models::{ModelInfo, Thinking, UnknownModel};
use turnery_store::{Store, StoreError};
use turnery_tools::Mode;

/// Prompts that may wait in one session.
pub const PROMPTS_WAITING: usize = 64;

/// An open session.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

/// What all clones of a handle share.
struct Shared {
    id: SessionId,
    mailbox: mpsc::Sender<Mail>,
    store: Arc<dyn Store>,
    options: watch::Receiver<SessionOptions>,
    /// Fires for every prompt started so far; a new one takes its place at each cancel.
    all: Mutex<CancellationToken>,
    /// Prompts started and not answered yet.
    open: Arc<AtomicUsize>,
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

/// A prompt that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// More prompts are waiting than a session holds.
    #[error("this session already has {0} prompts waiting; wait for one to end, or cancel")]
    Full(usize),
    /// The session is closed.
    #[error("the session is closed; open it again")]
    Closed,
}

/// A setting that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] UnknownModel),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session is closed.
    #[error("the session is closed; open it again")]
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

/// A prompt that left nothing behind: an error of the host, never an outcome (S8, LASH-33).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Another process or handle is at work in the session; it did not begin.
    #[error("the session is busy: {holder} is at work in it; try again when it is done")]
    Busy {
        /// Who.
        holder: String,
    },
    /// It could not be stored.
    #[error(transparent)]
    Lost(#[from] CommitFault),
}

/// A prompt that was accepted. Awaiting it gives the result, after every event of the prompt has
/// been pushed and the commit has succeeded. Dropping it does not cancel the prompt.
pub struct Ticket {
    result: oneshot::Receiver<Result<PromptResult, PromptError>>,
}

impl Ticket {
    /// The end of the prompt.
    pub async fn result(self) -> Result<PromptResult, PromptError> {
        self.result.await.unwrap_or_else(|_| {
            Err(PromptError::Lost(CommitFault::Store(
                "the session ended unexpectedly; open it again".to_owned(),
            )))
        })
    }
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        mailbox: mpsc::Sender<Mail>,
        store: Arc<dyn Store>,
        options: watch::Receiver<SessionOptions>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                id,
                mailbox,
                store,
                options,
                all: Mutex::new(CancellationToken::new()),
                open: Arc::new(AtomicUsize::new(0)),
            }),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Queue a prompt; prompts run one after the other, in this order. Does not wait: calls made one
    /// after the other are queued in that order. `cancel` is the prompt's own token.
    pub fn start(
        &self,
        input: Vec<Content>,
        cancel: CancellationToken,
    ) -> Result<Ticket, StartError> {
        self.listen(input, cancel, Listener::default())
    }

    /// The same, with somebody who listens to just this prompt.
    pub(crate) fn listen(
        &self,
        input: Vec<Content>,
        cancel: CancellationToken,
        listener: Listener,
    ) -> Result<Ticket, StartError> {
        let open = OpenPrompt::new(&self.shared.open);
        if open.before >= PROMPTS_WAITING {
            return Err(StartError::Full(PROMPTS_WAITING));
        }
        let (reply, result) = oneshot::channel();
        let all = self
            .shared
            .all
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let prompt = Prompt {
            input,
            cancel,
            cancel_all: all,
            listener,
            reply,
            _open: open,
        };
        self.shared
            .mailbox
            .try_send(Mail::Prompt(prompt))
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => StartError::Full(PROMPTS_WAITING),
                mpsc::error::TrySendError::Closed(_) => StartError::Closed,
            })?;
        Ok(Ticket { result })
    }

    /// Cancel all prompts of this handle and its clones, running and waiting (LASH-93). Returns how
    /// many there were. A prompt started later is not touched.
    pub fn cancel_running_turns(&self) -> usize {
        let fired = {
            let mut all = self
                .shared
                .all
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *all)
        };
        let count = self.shared.open.load(Ordering::Acquire);
        fired.cancel();
        count
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// How the session is set.
    #[must_use]
    pub fn options(&self) -> SessionOptions {
        self.shared.options.borrow().clone()
    }

    /// Act more or less freely, from the next judged call on, even in mid-prompt.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), SetError> {
        self.set(Set::Mode(mode)).await
    }

    /// Use another model from the next turn on.
    pub async fn set_model(&self, name: &str) -> Result<(), SetError> {
        self.set(Set::Model(name.parse()?)).await
    }

    /// Think more or less from the next turn on.
    pub async fn set_thinking(&self, thinking: Thinking) -> Result<(), SetError> {
        self.set(Set::Thinking(thinking)).await
    }

    async fn set(&self, what: Set) -> Result<(), SetError> {
        let (reply, result) = oneshot::channel();
        let sent = self.shared.mailbox.send(Mail::Set { what, reply }).await;
        sent.map_err(|_| SetError::Closed)?;
        result.await.unwrap_or(Err(SetError::Closed))
    }

    /// Cancel what runs, wait until it has ended, and let the session go. Every ticket is answered.
    pub async fn close(&self) {
        self.cancel_running_turns();
        let (reply, done) = oneshot::channel();
        if self.shared.mailbox.send(Mail::Close(reply)).await.is_ok() {
            // Answered, or dropped with the task: gone either way.
            let _ = done.await;
        }
    }
}

/// Counts a prompt as open for as long as it lives.
pub(crate) struct OpenPrompt {
    count: Arc<AtomicUsize>,
    before: usize,
}

impl OpenPrompt {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        Self {
            count: Arc::clone(count),
            before: count.fetch_add(1, Ordering::AcqRel),
        }
    }
}

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}
