//! Client: whoever is at the other end of a session. Asks go to it, events are shown to it.

use crate::{PromptError, PromptResult, Question, Reply};
use futures_util::future::BoxFuture;
use std::{
    future::ready,
    sync::Arc,
    task::{Context, Poll},
};
use turnery_engine::{CallDetail, CallId, Event, SessionId, Timestamp};
use turnery_models::MissingKey;
use turnery_tools::{Files, LocalFiles, Rule, Terminals};

/// All that a session needs of its client.
pub struct Ports {
    /// Who answers asks.
    pub client: Arc<dyn Client>,
    /// Where events go.
    pub outbox: Box<dyn Outbox>,
    /// How text files are reached: on disk, or through the editor.
    pub files: Arc<dyn Files>,
    /// Terminals that the client lends.
    pub terminals: Option<Arc<dyn Terminals>>,
}

impl Ports {
    /// Local files, and this client and outbox.
    #[must_use]
    pub fn local(client: Arc<dyn Client>, outbox: Box<dyn Outbox>) -> Self {
        Self {
            client,
            outbox,
            files: Arc::new(LocalFiles),
            terminals: None,
        }
    }

    /// Local files, and nobody who answers or is shown anything.
    #[must_use]
    pub fn silent() -> Self {
        Self::local(Arc::new(Silent), Box::new(Silent))
    }
}

/// The person at the other end.
pub trait Client: Send + Sync + 'static {
    /// May this call run? Waits as long as it takes. Dropping the future takes the question back.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Answer>;

    /// Whether the person can be asked what the model wants to know. If not, the model is not offered
    /// to ask.
    fn takes_questions(&self) -> bool {
        false
    }

    /// A question of the model's. Waits as long as it takes. Dropping the future takes it back.
    fn question(&self, _question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async { Reply::NoAnswer("nobody is there to ask".to_owned()) })
    }

    /// The next call of the model needs a key that is not there. The person may give it now, by a way
    /// that neither this session nor its model sees; done when there is nothing more to wait for, and
    /// the call finds out what came of it. Dropping the future takes the question back.
    fn wants_key(&self, _session: SessionId, _missing: MissingKey) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// A question whether a call may run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The session.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments as the model gave them.
    pub args: Arc<serde_json::Value>,
    /// How to show it, with the diff where there is one.
    pub detail: CallDetail,
    /// What may be answered: at most one of each kind, ids unique.
    pub options: Vec<AskOption>,
    /// The rule that "always allow" stands for; `None` when no rule can stand for the call.
    pub rule: Option<Rule>,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskOption {
    /// Its id.
    pub id: String,
    /// For the button, for example `Always allow "cargo test"`.
    pub name: String,
    /// What it means.
    pub kind: OptionKind,
}

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// This call.
    AllowOnce,
    /// This call, and for the rest of the session all like it.
    AllowAlways,
    /// Not this call; the turn goes on.
    RejectOnce,
    /// Not this call, nor for the rest of the session any like it.
    RejectAlways,
}

/// What the person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Chose an option. An id that was not offered counts as no.
    Chose(String),
    /// Cancelled the prompt instead.
    Cancelled,
    /// Nobody can be asked, or the answer made no sense: not allowed. The text says why.
    NoAnswer(String),
}

/// Where the items of one session go, in order. A full outbox holds the session back.
pub trait Outbox: Send + 'static {
    /// Ready when one more item may be pushed. Also ready when nobody listens any more.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Take one item. Only after `poll_room` was ready. The room is used up, whether or not the item is
    /// one that this outbox shows.
    fn push(&mut self, item: Item<'_>);

    /// Gives back room that was waited for or promised and is not needed. Called when a session becomes
    /// idle, so that an outbox which shares a queue with others holds no place in it meanwhile.
    fn release_room(&mut self) {}

    /// Whether it is given `Item::Ended` as well. Who waits for tickets needs no such thing.
    fn follows(&self) -> bool {
        false
    }
}

/// What an outbox is given.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// An event of a running loop.
    Live(&'a Event),
    /// A stored event, shown again while a session is loaded. Those of `EventKind::PASSING` are left
    /// out: the text of a message is in its `MessageEnd`.
    Replay(&'a Event),
    /// The session has a new title, or was active.
    Info {
        /// Its title.
        title: Option<&'a str>,
        /// When it was last active.
        updated_at: Timestamp,
    },
    /// A prompt has come to its end: nothing more of it follows. Only for an outbox that `follows`.
    Ended(&'a Result<PromptResult, PromptError>),
}

/// A client that answers nothing and shows nothing: what the policy does not allow is denied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Client for Silent {
    fn ask(&self, _ask: Ask) -> BoxFuture<'_, Answer> {
        Box::pin(async { Answer::NoAnswer("nobody is there to ask".to_owned()) })
    }
}

impl Outbox for Silent {
    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
    fn push(&mut self, _item: Item<'_>) {}
}
