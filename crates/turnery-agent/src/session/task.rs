//! Runs the session task, the sole owner of a session's state. Prompts run one at a time.

use super::{
    BackgroundWork, Budget, OptionChange, PromptError, PromptOptions, PromptResult, QueuedPrompt,
    SessionCommand, SessionHistory, SessionOptions, SetOptionError, approvals::RememberedApprovals,
    command::Interjection, prompt_guard::PromptGuard, run::beginning::PendingBeginning,
    tools::SessionTools,
};
use crate::{
    ClientPorts, OutboxItem, Settings,
    observe::EventPublisher,
    sink::{SessionOutput, SinkDriver},
    trace_sink::ModelCallTracer,
};
use futures_util::future::BoxFuture;
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::sync::{mpsc, oneshot, watch};
use turnery_engine::{CommitError, FrameId, LoopRecord, MessageId};
use turnery_models::{Model, ModelInfo, ModelName, ModelRegistry, Thinking};
use turnery_store::{
    ClaimedLane, LoopBeginning, Owner, SessionInfo, SessionPatch, Store, StoreError,
};
use turnery_tools::{Mode, Policy, Toolbox, Workspace};

/// State of one open session.
pub(crate) struct SessionTask {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Arc<ModelRegistry>,
    /// Tools that can be called now.
    pub(crate) toolbox: Toolbox,
    /// Rebuilds the toolbox when servers change.
    pub(crate) tools: SessionTools,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) ports: ClientPorts,
    pub(crate) settings: Settings,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) policy: Policy,
    pub(crate) info: SessionInfo,
    pub(crate) history: SessionHistory,
    /// Current frame; `None` is the first.
    pub(crate) frame_id: Option<FrameId>,
    /// Fixed part of every request (system prompt, tool schemas). Unit: tokens.
    pub(crate) overhead: u64,
    pub(crate) owner: Owner,
    /// Approvals of the session that the user sees: its own, or its topmost parent's.
    pub(crate) shown_as: RememberedApprovals,
    /// Number of parent sessions.
    pub(crate) depth: u8,
    /// Budget of a child session, shared with its parent's prompt.
    pub(crate) lent: Option<Budget>,
    pub(crate) options: watch::Sender<SessionOptions>,
    pub(crate) mailbox: mpsc::Receiver<SessionCommand>,
    /// Traces model calls.
    pub(crate) tracing: ModelCallTracer,
    /// Sinks of the running prompt.
    pub(crate) tap: SinkDriver,
    /// Publishes events to observers of the session.
    pub(crate) observing: EventPublisher,
    /// Receives the message id once the running prompt is inserted into history.
    pub(crate) inserting: Option<oneshot::Sender<MessageId>>,
    /// Queued prompts.
    pub(crate) waiting: VecDeque<QueuedPrompt>,
    /// Pending interjections of the running prompt.
    pub(crate) words: VecDeque<Interjection>,
    /// Number of the last loop that was shown but not stored; never reused (LOOP-10).
    pub(crate) lost: u64,
    /// If true, failed commits are retried; a candidate leaves that to its group.
    pub(crate) retries: bool,
    /// Option change that is being stored.
    pub(crate) setting: Option<PendingOption>,
    /// Commits and releases of earlier prompts that the store has not finished.
    pub(crate) background: BackgroundWork,
    /// Callers that wait for the session to close; empty while it stays open.
    pub(crate) closing: Vec<oneshot::Sender<()>>,
}

impl SessionTask {
    /// Serves the mailbox until the session is closed, or every handle is dropped and all prompts are done.
    pub(crate) async fn serve(mut self) {
        // Callers that only probed whether the session opens have dropped their handle by now.
        if !self.mailbox.is_closed() {
            self.tools.start();
        }
        loop {
            // Interjections that arrived while the last prompt was ending.
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
            match self.next_command().await {
                Some(mail) => self.mail(mail),
                None => break,
            }
        }
        // Later commands are rejected by the closed mailbox; queued prompts are dropped here, which resolves
        // their handles.
        self.mailbox.close();
        while let Ok(mail) = self.mailbox.try_recv() {
            if let SessionCommand::Close(reply) = mail {
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

    /// Handles one command, between prompts or during one.
    pub(crate) fn mail(&mut self, mail: SessionCommand) {
        match mail {
            SessionCommand::Prompt(prompt) => self.waiting.push_back(*prompt),
            SessionCommand::Word(word) => self.words.push_back(word),
            SessionCommand::Set { change, reply } => self.set(change, reply),
            SessionCommand::Close(reply) => self.closing.push(reply),
        }
    }

    /// Starts to change an option: stored first, so that a change that cannot be stored does not take effect.
    /// Other session data in the store is not read: another handle may have changed it, and only a claim may
    /// pick that up.
    fn set(&mut self, what: OptionChange, reply: oneshot::Sender<Result<(), SetOptionError>>) {
        let change = match self.change(what) {
            Ok(change) => change,
            Err(error) => {
                let _ = reply.send(Err(error));
                return;
            }
        };
        let mut patch = SessionPatch::default();
        match &change {
            ResolvedOption::Mode(mode) => patch.mode = Some(mode.as_str().to_owned()),
            ResolvedOption::Model(model) => patch.model = Some(model.info().name.to_string()),
            ResolvedOption::Title(title) => patch.title = Some(Some(title.clone())),
            ResolvedOption::Thinking(thinking) => {
                patch.thinking = Some(thinking.as_str().to_owned())
            }
        }
        let (store, id) = (Arc::clone(&self.store), self.info.id.clone());
        self.setting = Some(PendingOption {
            change,
            stored: Box::pin(async move { store.patch(&id, patch).await.map(drop) }),
            reply,
        });
    }

    fn change(&self, what: OptionChange) -> Result<ResolvedOption, SetOptionError> {
        Ok(match what {
            OptionChange::Mode(mode) => ResolvedOption::Mode(mode),
            OptionChange::Model(name) => ResolvedOption::Model(self.models.model(&name)?),
            OptionChange::Title(title) => ResolvedOption::Title(title),
            OptionChange::Thinking(thinking) => ResolvedOption::Thinking(thinking),
        })
    }

    /// Resolves when no option is being stored.
    fn poll_option_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(setting) = &mut self.setting {
            let stored = ready!(setting.stored.as_mut().poll(cx));
            if let Some(PendingOption { change, reply, .. }) = self.setting.take() {
                if stored.is_ok() {
                    self.apply_option(change);
                }
                let _ = reply.send(stored.map_err(SetOptionError::from));
            }
        }
        Poll::Ready(())
    }

    /// Applies a stored option.
    fn apply_option(&mut self, change: ResolvedOption) {
        match change {
            ResolvedOption::Mode(mode) => {
                self.policy.mode = mode;
                self.options.send_modify(|options| options.mode = mode);
            }
            ResolvedOption::Model(model) => {
                self.model = model;
                let models = selectable_models(&self.models, &*self.model, &self.settings.model);
                self.options.send_modify(|options| {
                    options.model = self.model.info().name.to_string();
                    options.models = models;
                });
            }
            ResolvedOption::Title(title) => self.info.title = Some(title),
            ResolvedOption::Thinking(thinking) => {
                self.settings.thinking = thinking;
                self.options
                    .send_modify(|options| options.thinking = thinking);
            }
        }
    }

    /// Polls the next command during a prompt; pending while an option is being stored, since commands are
    /// handled in order. Never resolves to `None`: a closed mailbox stays pending.
    pub(crate) fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Option<SessionCommand>> {
        ready!(self.poll_option_change(cx));
        match self.mailbox.is_closed() {
            true => Poll::Pending,
            false => self.mailbox.poll_recv(cx),
        }
    }

    /// Waits for the next command between prompts; `None` once every handle is dropped.
    async fn next_command(&mut self) -> Option<SessionCommand> {
        poll_fn(|cx| {
            ready!(self.poll_option_change(cx));
            self.mailbox.poll_recv(cx)
        })
        .await
    }

    /// Pushes the end of a prompt to an outbox that wants it. Option changes are still served, so that a slow
    /// client does not block them.
    pub(crate) async fn show_prompt_end(&mut self, end: &PromptEnd) {
        if !self.ports.outbox.follows() {
            return;
        }
        while let Some(mail) = poll_fn(|cx| match self.poll_command(cx) {
            Poll::Ready(Some(mail)) => Poll::Ready(Some(mail)),
            Poll::Ready(None) | Poll::Pending => self.ports.outbox.poll_room(cx).map(|()| None),
        })
        .await
        {
            self.mail(mail);
        }
        self.ports.outbox.push(OutboxItem::Ended(end));
    }

    /// Notifies the client if the prompt waits for an earlier one that is still being stored.
    pub(crate) fn poll_background_notice(&mut self, cx: &mut Context<'_>) {
        let mut shown = SessionOutput {
            outbox: &mut *self.ports.outbox,
            tap: &mut self.tap,
            observing: &mut self.observing,
        };
        self.background.poll_notice(cx, &mut shown);
    }

    /// Claims the lane once the store has finished earlier prompts, and reloads the history if another owner
    /// has changed the session. `None` if the prompt was cancelled and the store does not respond.
    pub(crate) async fn claim(
        &mut self,
        watch: &mut PromptGuard,
        beginning: Option<Arc<LoopBeginning>>,
    ) -> Result<Option<ClaimedLane>, PromptError> {
        let earlier = self.background.take();
        let claim = LaneClaim {
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
        let ClaimResult {
            opened,
            chain,
            pending,
        } = match watch.wait_for_store(self, claim).await {
            Ok(claimed) => claimed?,
            Err(claim) => {
                self.background.start(async move {
                    if let Ok(ClaimResult {
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
            self.history = SessionHistory::of(&chain);
            self.frame_id = chain.last().and_then(|last| last.frame_id.clone());
        }
        // Only after the history was reloaded: if that failed, the next prompt must try again.
        self.info = opened.info.clone();
        watch.hold_lane(opened.lane.clone());
        watch.beginning = pending;
        Ok(Some(opened))
    }
}

/// Option change that takes effect once it is stored.
pub(crate) struct PendingOption {
    change: ResolvedOption,
    stored: BoxFuture<'static, Result<(), StoreError>>,
    reply: oneshot::Sender<Result<(), SetOptionError>>,
}

/// New value of an option, resolved.
enum ResolvedOption {
    Mode(Mode),
    Model(Arc<dyn Model>),
    Title(String),
    Thinking(Thinking),
}

/// Claim of a session's lane.
struct LaneClaim {
    store: Arc<dyn Store>,
    owner: Owner,
    /// Session as of the last claim.
    known: SessionInfo,
    /// First events of the prompt's loop, if they can be predicted.
    beginning: Option<Arc<LoopBeginning>>,
}

/// Result of a claim.
struct ClaimResult {
    opened: ClaimedLane,
    /// History, if the known one is out of date.
    chain: Option<Vec<Arc<LoopRecord>>>,
    /// First events of the prompt's loop, if they were journalled.
    pending: Option<PendingBeginning>,
}

impl LaneClaim {
    /// Claims the session, and reads its history if the known one is out of date.
    async fn make(self) -> Result<ClaimResult, PromptError> {
        let lost = |error: StoreError| PromptError::Lost(CommitError::Store(error.to_string()));
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
            return Ok(ClaimResult {
                opened,
                chain: None,
                pending,
            });
        }
        match self.store.history(&opened.info.id).await {
            Ok(history) => Ok(ClaimResult {
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

/// Returns the selectable models: those with a key, the configured one and the current one.
pub(crate) fn selectable_models(
    models: &ModelRegistry,
    current: &dyn Model,
    configured: &ModelName,
) -> Vec<ModelInfo> {
    let mut list = models.list_models();
    // The user must be able to switch back to the configured model.
    let home = models.require_key(configured).ok();
    let home = home.and_then(|()| models.model(configured).ok());
    for model in [home.as_deref(), Some(current)].into_iter().flatten() {
        if list.iter().all(|info| info.name != model.info().name) {
            list.insert(0, model.info().clone());
        }
    }
    list
}

/// Result of a prompt, or the error of one that left nothing behind.
pub(crate) type PromptEnd = Result<PromptResult, PromptError>;
