//! The session task: the one owner of a session's state. Prompts run one after the other.

use super::{
    History, Mail, Prompt, PromptError, PromptOptions, PromptResult, SessionOptions, Set, SetError,
    known::Known, mail::Word, tools::Tools,
};
use crate::{Item, Ports, Settings, observe::Observing, sink::Tap, trace_sink::Tracing};
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{mpsc, oneshot, watch};
use turnery_engine::{CommitFault, FrameId, MessageId};
use turnery_models::{Catalogue, Model, ModelInfo, ModelName};
use turnery_store::{Opened, Owner, SessionInfo, SessionPatch, Store, StoreError};
use turnery_tools::{Policy, Toolbox, Workspace};

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
            match self.mailbox.recv().await {
                Some(mail) => self.mail(mail).await,
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
    pub(crate) async fn mail(&mut self, mail: Mail) {
        match mail {
            Mail::Prompt(prompt) => self.waiting.push_back(*prompt),
            Mail::Word(word) => self.words.push_back(word),
            Mail::Set { what, reply } => {
                let _ = reply.send(self.set(what).await);
            }
            Mail::Close(reply) => self.closing.push(reply),
        }
    }

    /// Change a setting: stored first, so that one which could not be stored is not in force. What the
    /// store says of the session besides is left alone: another handle may have been at work in it,
    /// and only a claim may learn of that.
    async fn set(&mut self, what: Set) -> Result<(), SetError> {
        match what {
            Set::Mode(mode) => {
                let patch = SessionPatch {
                    mode: Some(mode.as_str().to_owned()),
                    ..SessionPatch::default()
                };
                self.store.patch(&self.info.id, patch).await?;
                self.policy.mode = mode;
                self.options.send_modify(|options| options.mode = mode);
            }
            Set::Model(name) => {
                let model = self.models.model(&name)?;
                let patch = SessionPatch {
                    model: Some(name.to_string()),
                    ..SessionPatch::default()
                };
                self.store.patch(&self.info.id, patch).await?;
                self.model = model;
                let models = offered(&self.models, &*self.model, &self.settings.model);
                self.options.send_modify(|options| {
                    options.model = name.to_string();
                    options.models = models;
                });
            }
            Set::Title(title) => {
                let patch = SessionPatch {
                    title: Some(Some(title.clone())),
                    ..SessionPatch::default()
                };
                self.store.patch(&self.info.id, patch).await?;
                self.info.title = Some(title);
            }
            Set::Thinking(thinking) => {
                let patch = SessionPatch {
                    thinking: Some(thinking.as_str().to_owned()),
                    ..SessionPatch::default()
                };
                self.store.patch(&self.info.id, patch).await?;
                self.settings.thinking = thinking;
                self.options
                    .send_modify(|options| options.thinking = thinking);
            }
        }
        Ok(())
    }

    /// The next mail, in mid-prompt. Never the end of it: then nobody has anything more to say.
    pub(crate) fn poll_mail(&mut self, cx: &mut Context<'_>) -> Poll<Option<Mail>> {
        match self.mailbox.is_closed() {
            true => Poll::Pending,
            false => self.mailbox.poll_recv(cx),
        }
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
            self.mail(mail).await;
        }
        self.ports.outbox.push(Item::Ended(end));
    }

    /// Take the lane, and catch up if somebody else has been at work in the session.
    pub(crate) async fn claim(&mut self) -> Result<Opened, PromptError> {
        let opened =
            self.store
                .claim(&self.info.id, &self.owner)
                .await
                .map_err(|error| match error {
                    StoreError::Busy { holder, .. } => PromptError::Busy { holder },
                    other => PromptError::Lost(CommitFault::Store(other.to_string())),
                })?;
        let stale = opened.info.head_version != self.info.head_version
            || opened.info.tip_loop_id != self.info.tip_loop_id;
        if stale
            && !faulty!(NoCatchingUp)
            && let Err(error) = self.reload(&opened.info).await
        {
            let _ = self.store.release(&opened.lane).await;
            return Err(PromptError::Lost(CommitFault::Store(error.to_string())));
        }
        // Only now: whoever could not catch up has to try again at the next prompt.
        self.info = opened.info.clone();
        Ok(opened)
    }

    async fn reload(&mut self, info: &SessionInfo) -> Result<(), StoreError> {
        let chain = self.store.history(&info.id).await?.loops;
        self.history = History::of(&chain);
        self.frame_id = chain.last().and_then(|last| last.frame_id.clone());
        Ok(())
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
