//! Defines the handle of an open session.

use super::{
    PromptOptions, SessionOptions,
    command::{
        Delivery, EvaluationRequest, Interjection, MAX_PENDING_INTERJECTIONS, MAX_QUEUED_PROMPTS,
        OptionChange, PromptKind, QueuedPrompt, SessionCommand,
    },
    counter::SharedCounter,
    errors::{InterjectError, SetOptionError, StartError},
    prompt_handle::{DeliveryReceipt, PromptHandle, QueueSlot},
};
use crate::{
    cancels::Cancels,
    code_mode::Protocol,
    evaluate::{Candidate, MAX_CANDIDATES, SelectionStrategy},
    observe::{EventSource, Observer, ObserverCursor},
    usage_report::UsageReport,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
    watch::Receiver,
};
use tokio_util::sync::CancellationToken;
use turnery_engine::{Content, LoopId, LoopRecord, SessionId};
use turnery_models::{ModelInfo, ModelName, ModelRegistry, Thinking};
use turnery_store::{Store, StoreError};
use turnery_tools::{McpServers, Mode};

/// Handle of an open session. Cheap to clone; all clones reach the same session task.
#[derive(Clone)]
pub struct Session {
    shared: Arc<SessionShared>,
}

/// State shared by all clones of a handle.
pub(super) struct SessionShared {
    pub(super) id: SessionId,
    pub(super) mailbox: mpsc::Sender<SessionCommand>,
    pub(super) store: Arc<dyn Store>,
    pub(super) observable: EventSource,
    pub(super) options: Receiver<SessionOptions>,
    pub(super) models: Arc<ModelRegistry>,
    /// Model of the settings, with which the session began.
    pub(super) configured_model: ModelName,
    pub(super) servers: Option<Arc<McpServers>>,
    /// Cancels every prompt started so far; replaced by a new token at each cancel.
    pub(super) all: Arc<Mutex<CancellationToken>>,
    /// Number of prompts started and not finished.
    pub(super) open: SharedCounter,
    /// Number of pending interjections.
    pub(super) interjections: SharedCounter,
}

impl From<SessionShared> for Session {
    fn from(shared: SessionShared) -> Self {
        let shared = Arc::new(shared);
        Self { shared }
    }
}

impl Session {
    /// Returns the session id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Queues a prompt without waiting. Prompts run one at a time, in the order of these calls. `cancel`
    /// cancels this prompt only.
    pub fn start(
        &self,
        input: Vec<Content>,
        cancel: CancellationToken,
    ) -> Result<PromptHandle, StartError> {
        self.prompt(input, PromptOptions::cancelled_by(cancel))
    }

    /// Like [`start`](Self::start), with options for this prompt.
    pub fn prompt(
        &self,
        input: Vec<Content>,
        options: PromptOptions,
    ) -> Result<PromptHandle, StartError> {
        self.queue(PromptKind::Input(input), options)
    }

    /// Queues a prompt whose content an MCP server generates from the MCP prompt `command` and the arguments
    /// typed after it; the remaining content is appended. If the server fails, the handle returns
    /// [`PromptError::Server`](super::PromptError::Server).
    pub fn prompt_from_mcp(
        &self,
        command: String,
        args: String,
        extra_content: Vec<Content>,
        options: PromptOptions,
    ) -> Result<PromptHandle, StartError> {
        let kind = PromptKind::McpPrompt {
            command,
            args,
            extra_content,
        };
        self.queue(kind, options)
    }

    /// Returns the session's MCP servers, if any are configured.
    #[must_use]
    pub fn servers(&self) -> Option<&McpServers> {
        self.shared.servers.as_deref()
    }

    /// Queues a prompt that continues the conversation without new input (LOOP-18). The handle returns
    /// [`ContinueError::Answered`](super::ContinueError::Answered) if the last message is the model's.
    pub fn continue_loop(&self, options: PromptOptions) -> Result<PromptHandle, StartError> {
        self.queue(PromptKind::Continue, options)
    }

    /// Queues a prompt that reruns a loop, by default the last one, whatever its outcome: from the same
    /// starting point with the same input (LOOP-19). The new loop replaces the old one and everything after
    /// it in the context (UP-12).
    pub fn rerun(
        &self,
        which: Option<LoopId>,
        options: PromptOptions,
    ) -> Result<PromptHandle, StartError> {
        self.queue(PromptKind::Rerun(which), options)
    }

    /// Queues a prompt that branches off at the end of an earlier loop with new input (LOOP-20). Loops after
    /// that one leave the context (UP-12).
    pub fn branch(
        &self,
        from: LoopId,
        input: Vec<Content>,
        options: PromptOptions,
    ) -> Result<PromptHandle, StartError> {
        self.queue(PromptKind::Branch(from, input), options)
    }

    /// Queues a prompt that only summarizes older messages (LOOP-21, UP-13).
    pub fn compact(&self, options: PromptOptions) -> Result<PromptHandle, StartError> {
        self.queue(PromptKind::Compact, options)
    }

    fn queue(&self, kind: PromptKind, options: PromptOptions) -> Result<PromptHandle, StartError> {
        self.enqueue_with(kind, options, None)
    }

    fn enqueue_with(
        &self,
        kind: PromptKind,
        options: PromptOptions,
        evaluation: Option<EvaluationRequest>,
    ) -> Result<PromptHandle, StartError> {
        let (open, cancel_all) = {
            let all = self.lock_cancel_token();
            (self.shared.open.increment(), all.clone())
        };
        if open.before >= MAX_QUEUED_PROMPTS {
            return Err(StartError::Full(MAX_QUEUED_PROMPTS));
        }
        let (reply, result) = oneshot::channel();
        let (insert, inserted) = oneshot::channel();
        let slot = QueueSlot::default();
        let cancels = Cancels {
            prompt: options.cancel.clone(),
            session: cancel_all,
        };
        let prompt = QueuedPrompt {
            kind,
            evaluation,
            options,
            cancels: cancels.clone(),
            reply: Some(reply),
            inserted: Some(insert),
            slot: slot.clone(),
            active_guard: open,
        };
        let full = StartError::Full(MAX_QUEUED_PROMPTS);
        self.send(
            SessionCommand::Prompt(Box::new(prompt)),
            full,
            StartError::Closed,
        )?;
        Ok(PromptHandle {
            result,
            inserted,
            slot,
            cancels,
            withdrawn: false,
        })
    }

    /// Locks the cancel token of all prompts. A prompt is counted under this lock, so that the token reaches
    /// exactly the prompts that [`cancel_prompts`](Self::cancel_prompts) counts.
    fn lock_cancel_token(&self) -> MutexGuard<'_, CancellationToken> {
        let all = self.shared.all.lock();
        all.unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a command without waiting.
    pub(super) fn send<E>(&self, command: SessionCommand, full: E, closed: E) -> Result<(), E> {
        let sent = self.shared.mailbox.try_send(command);
        sent.map_err(|error| match error {
            TrySendError::Full(_) => full,
            TrySendError::Closed(_) => closed,
        })
    }

    /// Sends a steering message to the running prompt. The model sees it after the current call, never in
    /// mid-stream (UP-5). If the prompt ends first, the message becomes the next prompt, ahead of the queue,
    /// and is cancelled if the running prompt was.
    pub fn steer(&self, content: Vec<Content>) -> Result<(), InterjectError> {
        self.interject(Delivery::Steering, content, None)
    }

    /// Sends a follow-up that is delivered when the running prompt would end (UP-6). Otherwise like
    /// [`steer`](Self::steer).
    pub fn follow_up(&self, content: Vec<Content>) -> Result<(), InterjectError> {
        self.interject(Delivery::FollowUp, content, None)
    }

    /// Like [`steer`](Self::steer), but returns a receipt, and drops the message if the prompt ends before
    /// delivery.
    pub fn try_steer(&self, content: Vec<Content>) -> Result<DeliveryReceipt, InterjectError> {
        self.try_interject(Delivery::Steering, content)
    }

    /// Like [`follow_up`](Self::follow_up), but returns a receipt; see [`try_steer`](Self::try_steer).
    pub fn try_follow_up(&self, content: Vec<Content>) -> Result<DeliveryReceipt, InterjectError> {
        self.try_interject(Delivery::FollowUp, content)
    }

    fn try_interject(
        &self,
        when: Delivery,
        content: Vec<Content>,
    ) -> Result<DeliveryReceipt, InterjectError> {
        let (reply, delivered) = oneshot::channel();
        self.interject(when, content, Some(reply))?;
        Ok(DeliveryReceipt { delivered })
    }

    fn interject(
        &self,
        when: Delivery,
        content: Vec<Content>,
        reply: Option<oneshot::Sender<()>>,
    ) -> Result<(), InterjectError> {
        if self.shared.open.count() == 0 {
            return Err(match self.shared.mailbox.is_closed() {
                true => InterjectError::Closed,
                false => InterjectError::Idle,
            });
        }
        if content.is_empty() {
            return Err(InterjectError::Empty);
        }
        let pending = self.shared.interjections.increment();
        if pending.before >= MAX_PENDING_INTERJECTIONS {
            return Err(InterjectError::Full(MAX_PENDING_INTERJECTIONS));
        }
        let interjection = Interjection {
            delivery: when,
            content,
            reply,
            is_delivered: false,
            cancel_all: self.lock_cancel_token().clone(),
            _pending: pending,
            active_prompts: self.shared.open.clone(),
        };
        let full = InterjectError::Full(MAX_PENDING_INTERJECTIONS);
        self.send(
            SessionCommand::Interject(interjection),
            full,
            InterjectError::Closed,
        )
    }

    /// Cancels all running and queued prompts of this handle and its clones, and returns their number
    /// (LASH-93). Prompts started later are unaffected.
    pub fn cancel_prompts(&self) -> usize {
        let (cancelled, count) = {
            let mut all = self.lock_cancel_token();
            (std::mem::take(&mut *all), self.shared.open.count())
        };
        cancelled.cancel();
        count
    }

    /// Observes all prompts of the session, from now on or from the cursor of an earlier observer (LASH-54).
    #[must_use]
    pub fn observe(&self, after: Option<&ObserverCursor>) -> Observer {
        self.shared.observable.observe(after)
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Returns the current options.
    #[must_use]
    pub fn options(&self) -> SessionOptions {
        self.shared.options.borrow().clone()
    }

    /// Returns the models to choose from: the listed ones, the configured one if it has a key, and the current one.
    #[must_use]
    pub fn models(&self) -> Vec<ModelInfo> {
        let listed = self.shared.models.list_models();
        let unlisted = self.unlisted_models(|name| listed.iter().any(|it| it.name == *name));
        unlisted.into_iter().chain(listed).collect()
    }

    /// Returns the names of the [`models`](Self::models), in the same order.
    #[must_use]
    pub fn model_names(&self) -> Vec<ModelName> {
        let listed = self.shared.models.list_names();
        let unlisted = self
            .unlisted_models(|name| listed.contains(name))
            .into_iter();
        unlisted.map(|it| it.name).chain(listed).collect()
    }

    /// Returns the models that can be chosen although they are not listed, in the order in which they are offered.
    fn unlisted_models(&self, is_listed: impl Fn(&ModelName) -> bool) -> Vec<ModelInfo> {
        let (models, configured) = (&self.shared.models, &self.shared.configured_model);
        let current = Arc::clone(&self.shared.options.borrow().model);
        let mut unlisted = Vec::new();
        if !is_listed(&current.name) {
            unlisted.push(ModelInfo::clone(&current));
        }
        // The user must be able to switch back to the configured model.
        if *configured != current.name
            && !is_listed(configured)
            && models.require_key(configured).is_ok()
            && let Ok(home) = models.model(configured)
            && home.info().name != current.name
            && !is_listed(&home.info().name)
        {
            unlisted.push(home.info().clone());
        }
        unlisted
    }

    /// Sets the permission mode, effective from the next permission check, even within a running prompt.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), SetOptionError> {
        self.set(OptionChange::Mode(mode)).await
    }

    /// Sets the model, effective from the next turn.
    pub async fn set_model(&self, name: &str) -> Result<(), SetOptionError> {
        self.set(OptionChange::Model(name.parse()?)).await
    }

    /// Takes over what the model's provider has stated about it since it was set, effective from the next turn.
    pub async fn reload_model(&self) -> Result<(), SetOptionError> {
        self.set(OptionChange::ReloadModel).await
    }

    /// Sets the thinking level, effective from the next turn.
    pub async fn set_thinking(&self, thinking: Thinking) -> Result<(), SetOptionError> {
        self.set(OptionChange::Thinking(thinking)).await
    }

    /// Sets how the model acts, effective from the next prompt.
    pub async fn set_protocol(&self, protocol: Protocol) -> Result<(), SetOptionError> {
        self.set(OptionChange::Protocol(protocol)).await
    }

    /// Sets the title; prompts no longer change it.
    pub async fn set_title(&self, title: &str) -> Result<(), SetOptionError> {
        self.set(OptionChange::Title(title.to_owned())).await
    }

    async fn set(&self, change: OptionChange) -> Result<(), SetOptionError> {
        let (reply, result) = oneshot::channel();
        let sent = self
            .shared
            .mailbox
            .send(SessionCommand::SetOption { change, reply })
            .await;
        sent.map_err(|_| SetOptionError::Closed)?;
        result.await.unwrap_or(Err(SetOptionError::Closed))
    }

    /// Cancels all prompts, waits until they have ended and closes the session. Every prompt handle receives
    /// its result.
    pub async fn close(&self) {
        self.cancel_prompts();
        self.finish().await;
    }

    /// Waits until every prompt started so far has ended, then closes the session.
    pub async fn finish(&self) {
        let (reply, done) = oneshot::channel();
        // Fails if the session is closed already; then the reply is dropped.
        let _ = self.shared.mailbox.send(SessionCommand::Close(reply)).await;
        // Answered, or dropped with the task: the session is closed either way.
        let _ = done.await;
    }

    /// Returns true if a prompt is running or queued.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.shared.open.count() > 0
    }

    /// Returns the stored loops of the session with their messages, oldest first. Final messages are read
    /// here; the stream only shows them as deltas (LASH-78).
    pub async fn records(&self) -> Result<Vec<Arc<LoopRecord>>, StoreError> {
        self.store().loops(self.id(), 0).await
    }

    /// Returns the record so far of the running loop (LOOP-89); `None` if no loop runs, or only candidates do.
    pub async fn open_loop(&self) -> Option<Arc<LoopRecord>> {
        let (reply, record) = oneshot::channel();
        let command = SessionCommand::OpenLoop(reply);
        self.shared.mailbox.send(command).await.ok()?;
        record.await.ok()?
    }

    /// Returns the stored usage of the session; the running loop is not included (LASH-105).
    pub async fn usage_report(&self) -> Result<UsageReport, StoreError> {
        let records = self.records().await?;
        Ok(UsageReport::from_records(&records))
    }

    /// Queues a prompt that runs under several configurations at once (LOOP-70); without candidates, under
    /// the session's own. The winner's answer is shown, and the next prompt follows it. The others are stored
    /// too and can be continued with [`branch`](Self::branch).
    ///
    /// Candidates share one folder, so they and their sub-agents run in
    /// [`Mode::Plan`]: they read and search, and change nothing. Interjections
    /// become the next prompt. An empty input continues the conversation, like
    /// [`continue_loop`](Self::continue_loop). Hooks run for each candidate; a rejection of one rejects all.
    /// At most [`MAX_CANDIDATES`] are accepted. The result contains the loops and usage of all candidates, in
    /// their order; the judge's usage is in their `parallel_group`.
    pub fn evaluate(
        &self,
        input: Vec<Content>,
        candidates: Vec<Candidate>,
        strategy: SelectionStrategy,
        options: PromptOptions,
    ) -> Result<PromptHandle, StartError> {
        if candidates.len() > MAX_CANDIDATES {
            return Err(StartError::Candidates(candidates.len()));
        }
        let kind = match input.is_empty() {
            true => PromptKind::Continue,
            false => PromptKind::Input(input),
        };
        let evaluation = EvaluationRequest {
            candidates,
            strategy,
        };
        self.enqueue_with(kind, options, Some(evaluation))
    }
}
