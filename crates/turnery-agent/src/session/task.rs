//! The session task: the one owner of a session's state. Prompts run one after the other.

use super::{
    BackgroundWork, Budget, History, Mail, Prompt, PromptError, PromptOptions, PromptResult,
    SessionOptions, Set, SetError, known::Known, mail::Word, run::beginning::PendingBeginning,
    tools::Tools, watch::Watch,
};
use crate::{
    Item, Ports, Settings,
    observe::Observing,
    sink::{Shown, Tap},
    trace_sink::Tracing,
};
use futures_util::future::BoxFuture;
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::{mpsc, oneshot, watch};
use turnery_engine::{CommitFault, FrameId, LoopRecord, MessageId};
use turnery_models::{Catalogue, Model, ModelInfo, ModelName, Thinking};
use turnery_store::{LoopBeginning, Opened, Owner, SessionInfo, SessionPatch, Store, StoreError};
use turnery_tools::{Mode, Policy, Toolbox, Workspace};

/// The state of one open session.
pub(crate) struct Task {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Arc<Catalogue>,
    /// What can be called now.
    pub(crate) toolbox: Toolbox,
    /// Where that is made anew when servers change.
    pub(crate) tools: Tools,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) policy: Policy,
    pub(crate) info: SessionInfo,
    pub(crate) history: History,
    /// The frame that it stands in; none is the first.
    pub(crate) frame_id: Option<FrameId>,
    /// What of every request is no message: the system prompt, the tools. Unit: tokens.
    pub(crate) overhead: u64,
    pub(crate) owner: Owner,
    /// The session that the person knows: its own, or the one that its parents belong to.
    pub(crate) shown_as: Known,
    /// How many sessions lie above it.
    pub(crate) depth: u8,
    /// What a child session's prompt draws on.
    pub(crate) lent: Option<Budget>,
    pub(crate) options: watch::Sender<SessionOptions>,
    pub(crate) mailbox: mpsc::Receiver<Mail>,
    /// Who is told of each call of a model.
    pub(crate) tracing: Tracing,
    /// Who listens to the running prompt.
    pub(crate) tap: Tap,
    /// Whoever observes the session.
    pub(crate) observing: Observing,
    /// Who wants to know which message the running prompt became.
    pub(crate) inserting: Option<oneshot::Sender<MessageId>>,
    /// Prompts that arrived while one ran.
    pub(crate) waiting: VecDeque<Prompt>,
    /// What has been said to the running prompt and is not heard yet.
    pub(crate) words: VecDeque<Word>,
    /// The number of the last loop that was shown but not stored; never reused (LOOP-10).
    pub(crate) lost: u64,
    /// Whether a commit that failed is tried again; a candidate's is that of its group.
    pub(crate) retries: bool,
    /// The setting that is being stored.
    pub(crate) setting: Option<Setting>,
    /// Commits and releases of earlier prompts that the store has not finished.
    pub(crate) background: BackgroundWork,
    /// Set once the session is to end: who wants to know.
    pub(crate) closing: Vec<oneshot::Sender<()>>,
}

impl Task {
    /// Serve the mailbox until the session is closed, or every handle is gone and all prompts are done.
    pub(crate) async fn serve(mut self) {
        // Whoever only looked whether the session can be opened has let go of it by now.
        if !self.mailbox.is_closed() {
            self.tools.start();
        }
        loop {
            // Said while the last prompt was on its way out.
            for word in std::mem::take(&mut self.words) {
                let prompt = word.into_prompt(PromptOptions::default());
                self.waiting.extend(prompt);
            }
            let next = if faulty!(LastPromptFirst) {
                self.waiting.pop_back()
            } else {
                self.waiting.pop_front()
            };
            if let Some(prompt) = next {
                self.prompt(prompt).await;
                continue;
            }
            if !self.closing.is_empty() {
                break;
            }
            if !faulty!(KeepRoomWhenIdle) {
                self.ports.outbox.release_room();
            }
            match self.next_mail().await {
                Some(mail) => self.mail(mail),
                None => break,
            }
        }
        // Whatever still comes in is refused by the closed mailbox; prompts that made it in before
        // are dropped here, which answers their tickets.
        self.mailbox.close();
        while let Ok(mail) = self.mailbox.try_recv() {
            if let Mail::Close(reply) = mail {
                self.closing.push(reply);
            }
        }
        let closing = std::mem::take(&mut self.closing);
        let servers = self.tools.servers();
        drop(self);
        if let Some(servers) = servers {
            servers.close().await;
        }
        for reply in closing {
            let _ = reply.send(());
        }
    }

    /// Take in one piece of mail, between prompts or in the middle of one.
    pub(crate) fn mail(&mut self, mail: Mail) {
        match mail {
            Mail::Prompt(prompt) => self.waiting.push_back(*prompt),
            Mail::Word(word) => self.words.push_back(word),
            Mail::Set { what, reply } => self.set(what, reply),
            Mail::Close(reply) => self.closing.push(reply),
        }
    }

    /// Begins to change a setting: stored first, so that one which could not be stored is not in force. What
    /// the store says of the session besides is left alone: another handle may have been at work in it,
    /// and only a claim may learn of that.
    fn set(&mut self, what: Set, reply: oneshot::Sender<Result<(), SetError>>) {
        let change = match self.change(what) {
            Ok(change) => change,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let mut patch = SessionPatch::default();
        match &change {
            Change::Mode(mode) => patch.mode = Some(mode.as_str().to_owned()),
            Change::Model(model) => patch.model = Some(model.info().name.to_string()),
            Change::Title(title) => patch.title = Some(Some(title.clone())),
            Change::Thinking(thinking) => patch.thinking = Some(thinking.as_str().to_owned()),
        }
        let (store, id) = (Arc::clone(&self.store), self.info.id.clone());
        self.setting = Some(Setting {
            change,
            stored: Box::pin(async move { store.patch(&id, patch).await.map(drop) }),
            reply,
        });
    }

    fn change(&self, what: Set) -> Result<Change, SetError> {
        Ok(match what {
            Set::Mode(mode) => Change::Mode(mode),
            Set::Model(name) => Change::Model(self.models.model(&name)?),
            Set::Title(title) => Change::Title(title),
            Set::Thinking(thinking) => Change::Thinking(thinking),
        })
    }

    /// Ready when no setting is being stored.
    fn poll_setting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(setting) = &mut self.setting {
            let stored = ready!(setting.stored.as_mut().poll(cx));
            if let Some(Setting { change, reply, .. }) = self.setting.take() {
                if stored.is_ok() {
                    self.apply(change);
                }
                let _ = reply.send(stored.map_err(SetError::from));
            }
        }
        Poll::Ready(())
    }

    /// Puts a stored setting in force.
    fn apply(&mut self, change: Change) {
        match change {
            Change::Mode(mode) => {
                self.policy.mode = mode;
                self.options.send_modify(|options| options.mode = mode);
            }
            Change::Model(model) => {
                self.model = model;
                let models = offered(&self.models, &*self.model, &self.settings.model);
                self.options.send_modify(|options| {
                    options.model = self.model.info().name.to_string();
                    options.models = models;
                });
            }
            Change::Title(title) => self.info.title = Some(title),
            Change::Thinking(thinking) => {
                self.settings.thinking = thinking;
                self.options
                    .send_modify(|options| options.thinking = thinking);
            }
        }
    }

    /// The next mail, in mid-prompt; none while a setting is being stored, since mail is taken in in its
    /// order. Never the end of it: then nobody has anything more to say.
    pub(crate) fn poll_mail(&mut self, cx: &mut Context<'_>) -> Poll<Option<Mail>> {
        ready!(self.poll_setting(cx));
        match self.mailbox.is_closed() {
            true => Poll::Pending,
            false => self.mailbox.poll_recv(cx),
        }
    }

    /// The next mail between prompts; `None` once every handle is gone.
    async fn next_mail(&mut self) -> Option<Mail> {
        poll_fn(|cx| {
            ready!(self.poll_setting(cx));
            self.mailbox.poll_recv(cx)
        })
        .await
    }

    /// Show that a prompt is over, to an outbox that wants to know. Settings are changed meanwhile: a
    /// slow client is nobody else's trouble.
    pub(crate) async fn show_end(&mut self, end: &PromptEnd) {
        if !self.ports.outbox.follows() {
            return;
        }
        while let Some(mail) = poll_fn(|cx| match self.poll_mail(cx) {
            Poll::Ready(Some(mail)) => Poll::Ready(Some(mail)),
            Poll::Ready(None) | Poll::Pending => self.ports.outbox.poll_room(cx).map(|()| None),
        })
        .await
        {
            self.mail(mail);
        }
        self.ports.outbox.push(Item::Ended(end));
    }

    /// Tells the client if the prompt waits for an earlier one that is still being stored.
    pub(crate) fn poll_background_notice(&mut self, cx: &mut Context<'_>) {
        let mut shown = Shown {
            outbox: &mut *self.ports.outbox,
            tap: &mut self.tap,
            observing: &mut self.observing,
        };
        self.background.poll_notice(cx, &mut shown);
    }

    /// Takes the lane once the store is done with earlier prompts, and catches up if somebody else has been
    /// at work in the session. `None` if the prompt was cancelled and the store does not answer.
    pub(crate) async fn claim(
        &mut self,
        watch: &mut Watch,
        beginning: Option<Arc<LoopBeginning>>,
    ) -> Result<Option<Opened>, PromptError> {
        let earlier = self.background.take();
        let claim = Claim {
            store: Arc::clone(&self.store),
            owner: self.owner.clone(),
            known: self.info.clone(),
            beginning,
        };
        let store = Arc::clone(&self.store);
        let claim: BoxFuture<'static, _> = Box::pin(async move {
            earlier.await;
            claim.make().await
        });
        let Claimed {
            opened,
            chain,
            pending,
        } = match watch.wait_for_store(self, claim).await {
            Ok(claimed) => claimed?,
            Err(claim) => {
                self.background.start(async move {
                    if let Ok(Claimed {
                        opened, pending, ..
                    }) = claim.await
                    {
                        drop(pending);
                        let _ = store.release(&opened.lane).await;
                    }
                });
                return Ok(None);
            }
        };
        if let Some(chain) = chain {
            self.history = History::of(&chain);
            self.frame_id = chain.last().and_then(|last| last.frame_id.clone());
        }
        // Only now: whoever could not catch up has to try again at the next prompt.
        self.info = opened.info.clone();
        watch.hold(opened.lane.clone());
        watch.beginning = pending;
        Ok(Some(opened))
    }
}

/// A setting that is in force once it is stored.
pub(crate) struct Setting {
    change: Change,
    stored: BoxFuture<'static, Result<(), StoreError>>,
    reply: oneshot::Sender<Result<(), SetError>>,
}

/// A setting's new value.
enum Change {
    Mode(Mode),
    Model(Arc<dyn Model>),
    Title(String),
    Thinking(Thinking),
}

/// A claim that is about to be made.
struct Claim {
    store: Arc<dyn Store>,
    owner: Owner,
    /// The session as the last claim found it.
    known: SessionInfo,
    /// First events of the prompt's loop, if they are known.
    beginning: Option<Arc<LoopBeginning>>,
}

/// Result of a claim.
struct Claimed {
    opened: Opened,
    /// The history, if the known one is out of date.
    chain: Option<Vec<Arc<LoopRecord>>>,
    /// First events of the prompt's loop, if they were journalled.
    pending: Option<PendingBeginning>,
}

impl Claim {
    /// Claims the session, and reads its history if it is not the one that is known.
    async fn make(self) -> Result<Claimed, PromptError> {
        let lost = |error: StoreError| PromptError::Lost(CommitFault::Store(error.to_string()));
        let (id, owner) = (&self.known.id, &self.owner);
        let claimed = match self.beginning {
            Some(beginning) => PendingBeginning::claim(&self.store, id, owner, beginning).await,
            None => {
                let opened = self.store.claim(id, owner).await;
                opened.map(|opened| (opened, None))
            }
        };
        let (opened, pending) = claimed.map_err(|error| match error {
            StoreError::Busy { holder, .. } => PromptError::Busy { holder },
            other => lost(other),
        })?;
        let stale = opened.info.head_version != self.known.head_version
            || opened.info.tip_loop_id != self.known.tip_loop_id;
        if !stale || faulty!(NoCatchingUp) {
            return Ok(Claimed {
                opened,
                chain: None,
                pending,
            });
        }
        match self.store.history(&opened.info.id).await {
            Ok(history) => Ok(Claimed {
                opened,
                chain: Some(history.loops),
                pending,
            }),
            Err(error) => {
                drop(pending);
                let _ = self.store.release(&opened.lane).await;
                Err(lost(error))
            }
        }
    }
}

/// The models to offer: those within reach, the configured one, and the one in use.
pub(crate) fn offered(
    models: &Catalogue,
    current: &dyn Model,
    configured: &ModelName,
) -> Vec<ModelInfo> {
    let mut list = models.list();
    // Whoever chose another one must find the way back.
    let home = models.ready(configured).ok();
    let home = home.and_then(|()| models.model(configured).ok());
    for model in [home.as_deref(), Some(current)].into_iter().flatten() {
        if list.iter().all(|info| info.name != model.info().name) {
            list.insert(0, model.info().clone());
        }
    }
    list
}

/// What a prompt came to, or why it left nothing behind.
pub(crate) type PromptEnd = Result<PromptResult, PromptError>;
