//! Session: the handle of an open session. Cheap to clone; all clones reach the same task.

mod background;
mod budget;
mod committing;
mod evaluating;
mod gate;
mod history;
mod kept;
mod known;
mod leaf;
mod mail;
mod most;
mod options;
mod plan;
mod prompting;
mod result;
mod run;
mod steps;
mod task;
mod tools;
mod watch;

pub use budget::{UnknownPrice, known_price};
pub use options::{PromptOptions, SessionOptions};
pub use result::{
    ContinueError, DeliveryReceipt, PromptError, PromptResult, Ticket, ToolExecution,
};

pub(crate) use background::BackgroundWork;
pub(crate) use budget::Budget;
pub(crate) use history::History;
pub(crate) use known::Known;
pub(crate) use mail::{MAILBOX, Mail, Prompt, Set};
pub(crate) use task::{Task, offered};
pub(crate) use tools::Tools;

use crate::{CancellationToken, Cursor, Observer, observe::Observable, sink::Listener};
use mail::{Place, Tries, When, Word, Work};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{mpsc, oneshot, watch::Receiver};
use turnery_engine::{Content, LoopId, SessionId};
use turnery_models::{Thinking, UnknownModel};
use turnery_store::{Store, StoreError};
use turnery_tools::{Mode, Servers};

/// Prompts that may wait in one session.
pub const PROMPTS_WAITING: usize = 64;
/// Steering messages and follow-ups that one prompt takes.
pub const WORDS_WAITING: usize = 64;

/// Candidates that one prompt is tried under, all at once (LOOP-70).
pub const CANDIDATES: usize = 8;

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
    observable: Observable,
    options: Receiver<SessionOptions>,
    servers: Option<Arc<Servers>>,
    /// Fires for every prompt started so far; a new one takes its place at each cancel.
    all: Mutex<CancellationToken>,
    /// Prompts started and not answered yet.
    open: Counter,
    /// What has been said to the running prompt.
    words: Counter,
}

/// A prompt that was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// More prompts are waiting than a session holds.
    #[error("this session already has {0} prompts waiting; wait for one to end, or cancel")]
    Full(usize),
    /// More candidates than one prompt is tried under.
    #[error("{0} candidates are too many for one prompt; name at most {CANDIDATES}")]
    Candidates(usize),
    /// The session is closed.
    #[error("the session is closed; open it again")]
    Closed,
}

/// Something that could not be said to a running prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SayError {
    /// No prompt is running or waiting.
    #[error("no prompt is running in this session; start one")]
    Idle,
    /// More has been said than a prompt takes.
    #[error("the running prompt has been told {0} things already; wait for it to end")]
    Full(usize),
    /// There is nothing in it.
    #[error("there is nothing in the message; say something")]
    Empty,
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

impl Session {
    pub(crate) fn new(
        id: SessionId,
        mailbox: mpsc::Sender<Mail>,
        store: Arc<dyn Store>,
        observable: Observable,
        options: Receiver<SessionOptions>,
        servers: Option<Arc<Servers>>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                id,
                mailbox,
                store,
                observable,
                options,
                servers,
                all: Mutex::new(CancellationToken::new()),
                open: Counter::default(),
                words: Counter::default(),
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
        self.prompt(input, PromptOptions::cancelled_by(cancel))
    }

    /// The same, with what is different for this one.
    pub fn prompt(
        &self,
        input: Vec<Content>,
        options: PromptOptions,
    ) -> Result<Ticket, StartError> {
        self.queue(Work::Say(input), options)
    }

    /// Queue a prompt that an MCP server writes: `command` is one of its prompts, `typed` its arguments,
    /// and `rest` is said besides. If nothing comes of it, the ticket says why.
    pub fn prompt_of_server(
        &self,
        command: String,
        typed: String,
        rest: Vec<Content>,
        options: PromptOptions,
    ) -> Result<Ticket, StartError> {
        let work = Work::Server {
            command,
            typed,
            rest,
        };
        self.queue(work, options)
    }

    /// Its MCP servers, if it has any.
    #[must_use]
    pub fn servers(&self) -> Option<&Servers> {
        self.shared.servers.as_deref()
    }

    /// The same, with somebody who listens to just this prompt.
    pub(crate) fn listen(
        &self,
        input: Vec<Content>,
        options: PromptOptions,
        listener: Listener,
    ) -> Result<Ticket, StartError> {
        self.queue_for(Work::Say(input), options, listener, None)
    }

    /// Queue a prompt that lets the model go on, with nothing new said to it (LOOP-18). Refused by its
    /// ticket when the model has had the last word.
    pub fn go_on(&self, options: PromptOptions) -> Result<Ticket, StartError> {
        self.queue(Work::Continue, options)
    }

    /// Queue a prompt that runs a loop again, `None` being the last one, whatever became of it: from
    /// where that one began, with the same input (LOOP-19). The new loop takes its place: neither it nor
    /// what followed it is in the context any more (UP-12).
    pub fn rerun(
        &self,
        which: Option<LoopId>,
        options: PromptOptions,
    ) -> Result<Ticket, StartError> {
        self.queue(Work::Rerun(which), options)
    }

    /// Queue a prompt that goes on from the end of an earlier loop with something else (LOOP-20). What
    /// followed that loop before is not in the context any more (UP-12).
    pub fn branch(
        &self,
        from: LoopId,
        input: Vec<Content>,
        options: PromptOptions,
    ) -> Result<Ticket, StartError> {
        self.queue(Work::Branch(from, input), options)
    }

    /// Queue a prompt that does nothing but summarise older messages (LOOP-21, UP-13).
    pub fn compact(&self, options: PromptOptions) -> Result<Ticket, StartError> {
        self.queue(Work::Compact, options)
    }

    fn queue(&self, work: Work, options: PromptOptions) -> Result<Ticket, StartError> {
        self.queue_for(work, options, Listener::default(), None)
    }

    fn queue_for(
        &self,
        work: Work,
        options: PromptOptions,
        listener: Listener,
        tries: Option<Tries>,
    ) -> Result<Ticket, StartError> {
        let (open, cancel_all) = self.enter();
        if open.before >= PROMPTS_WAITING {
            return Err(StartError::Full(PROMPTS_WAITING));
        }
        let (reply, result) = oneshot::channel();
        let (insert, inserted) = oneshot::channel();
        let place = Place::default();
        let cancels = (options.cancel.clone(), cancel_all.clone());
        let prompt = Prompt {
            work,
            tries,
            options,
            cancel_all,
            listener,
            reply: Some(reply),
            inserted: Some(insert),
            place: place.clone(),
            open,
        };
        self.shared
            .mailbox
            .try_send(Mail::Prompt(Box::new(prompt)))
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => StartError::Full(PROMPTS_WAITING),
                mpsc::error::TrySendError::Closed(_) => StartError::Closed,
            })?;
        Ok(Ticket {
            result,
            inserted,
            place,
            cancels,
            withdrawn: false,
        })
    }

    /// Count a new prompt, and give it the token of all: under the lock under which they are cancelled and
    /// counted.
    fn enter(&self) -> (Open, CancellationToken) {
        let all = self.shared.all.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        (self.shared.open.open(), all.clone())
    }

    fn cancel_all(&self) -> CancellationToken {
        let all = self.shared.all.lock();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tell the running prompt something, as soon as it can hear it: after the call at work, never in
    /// mid-stream (UP-5). What it does not get to hear is not lost: it becomes the next prompt, before
    /// those that wait, and is cancelled if this one was.
    pub fn steer(&self, content: Vec<Content>) -> Result<(), SayError> {
        self.say(When::Soon, content, None)
    }

    /// Tell the running prompt something once it would end (UP-6). Like [`steer`](Self::steer) otherwise.
    pub fn follow_up(&self, content: Vec<Content>) -> Result<(), SayError> {
        self.say(When::AtTheEnd, content, None)
    }

    /// Like [`steer`](Self::steer), for who waits to know: what the prompt does not get to hear is not run.
    pub fn try_steer(&self, content: Vec<Content>) -> Result<DeliveryReceipt, SayError> {
        self.try_say(When::Soon, content)
    }

    /// Like [`follow_up`](Self::follow_up), for who waits to know, as with [`try_steer`](Self::try_steer).
    pub fn try_follow_up(&self, content: Vec<Content>) -> Result<DeliveryReceipt, SayError> {
        self.try_say(When::AtTheEnd, content)
    }

    fn try_say(&self, when: When, content: Vec<Content>) -> Result<DeliveryReceipt, SayError> {
        let (reply, heard) = oneshot::channel();
        self.say(when, content, Some(reply))?;
        Ok(DeliveryReceipt { heard })
    }

    fn say(
        &self,
        when: When,
        content: Vec<Content>,
        reply: Option<oneshot::Sender<()>>,
    ) -> Result<(), SayError> {
        if self.shared.open.count() == 0 {
            return Err(match self.shared.mailbox.is_closed() {
                true => SayError::Closed,
                false => SayError::Idle,
            });
        }
        if content.is_empty() {
            return Err(SayError::Empty);
        }
        let room = self.shared.words.open();
        if room.before >= WORDS_WAITING {
            return Err(SayError::Full(WORDS_WAITING));
        }
        let word = Word {
            when,
            content,
            reply,
            is_heard: false,
            cancel_all: self.cancel_all(),
            _room: room,
            prompts: self.shared.open.clone(),
        };
        self.shared
            .mailbox
            .try_send(Mail::Word(word))
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => SayError::Full(WORDS_WAITING),
                mpsc::error::TrySendError::Closed(_) => SayError::Closed,
            })
    }

    /// Cancel all prompts of this handle and its clones, running and waiting (LASH-93). Returns how
    /// many there were. A prompt started later is not touched.
    pub fn cancel_running_turns(&self) -> usize {
        // Under one lock: a prompt that is counted is one that the token reaches.
        let (fired, count) = {
            let mut all = self
                .shared
                .all
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut *all), self.shared.open.count())
        };
        fired.cancel();
        count
    }

    /// Observe what happens in the session, in all its prompts: from now on, or from a place on where an
    /// earlier reader was (LASH-54).
    #[must_use]
    pub fn observe(&self, after: Option<&Cursor>) -> Observer {
        self.shared.observable.observe(after)
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

    /// Name the session, for good: no prompt gives it another title.
    pub async fn set_title(&self, title: &str) -> Result<(), SetError> {
        self.set(Set::Title(title.to_owned())).await
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
        self.finish().await;
    }

    /// Let every prompt that was started come to its end, and then let the session go.
    pub async fn finish(&self) {
        let (reply, done) = oneshot::channel();
        if self.shared.mailbox.send(Mail::Close(reply)).await.is_ok() {
            // Answered, or dropped with the task: gone either way.
            let _ = done.await;
        }
    }
}

/// Counts what is open: prompts, or words that wait.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// One more, for as long as it lives.
    pub(crate) fn open(&self) -> Open {
        Open {
            before: self.0.fetch_add(1, Ordering::AcqRel),
            counter: self.clone(),
        }
    }
}

/// One of what is counted.
pub(crate) struct Open {
    counter: Counter,
    before: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counter.0.fetch_sub(1, Ordering::AcqRel);
    }
}
