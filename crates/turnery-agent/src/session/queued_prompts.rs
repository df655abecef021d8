//! Runs prompts that wait in the store: another host has queued them while the session was in use.

use super::{
    PromptError, PromptOptions, Session,
    command::{PromptKind, QueuedPrompt, SessionCommand},
    counter::SharedCounter,
    prompt_handle::QueueSlot,
    result::PromptEnd,
};
use crate::cancels::Cancels;
use futures_util::future::BoxFuture;
use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use turnery_engine::{CommitError, Content, PromptId, SessionId};
use turnery_store::{Owner, PromptRemoval, QueuedPrompt as StoredPrompt, Store, StoreError};

/// Time without a command after which an idle session looks for queued prompts, so that prompts of its client come
/// first and need not pay for it.
const IDLE_DELAY: Duration = Duration::from_millis(100);

/// Time after which a session that another host holds is tried again, if a prompt waits in it.
const BUSY_DELAY: Duration = Duration::from_secs(2);

/// Prompt that was stored to be run later.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedReceipt {
    /// The prompt, whose id the loops that run it name.
    pub prompt: StoredPrompt,
    /// Process that runs a prompt of the session now; `None` if there is none.
    pub holder: Option<String>,
}

impl Session {
    /// Stores a prompt, to be run once by any host that has the session open and
    /// [runs queued prompts](crate::Settings::runs_queued_prompts): by one that runs a prompt now after that one, else
    /// by this session if it does so, else by a later one. Prompts are run in the order of these calls. Nobody receives
    /// the result; the loops are found by the id of the prompt.
    pub async fn queue_prompt(&self, content: Vec<Content>) -> Result<QueuedReceipt, StoreError> {
        let (store, id) = (self.store(), self.id());
        let holder = find_holder(Arc::clone(store), id.clone()).await?;
        let prompt = StoredPrompt {
            id: PromptId::from(turnery_store::new_uuid().to_string()),
            content,
            head_version: store.info(id).await?.head_version,
        };
        store.queue_prompt(id, prompt.clone()).await?;
        // A session that is closed or has too much to do finds the prompt later.
        let is_held = holder.is_some();
        let _ = self.send(SessionCommand::FindQueued { is_held }, (), ());
        Ok(QueuedReceipt { prompt, holder })
    }
}

/// Returns a description of the process that runs a prompt of a session. In a task of its own, which releases the lane
/// even if the caller is dropped.
async fn find_holder(store: Arc<dyn Store>, id: SessionId) -> Result<Option<String>, StoreError> {
    let found = tokio::spawn(async move {
        match store.claim(&id, &Owner::for_this_process()).await {
            Ok(claimed) => store.release(&claimed.lane).await.map(|()| None),
            Err(StoreError::Busy { holder, .. }) => Ok(Some(holder)),
            Err(error) => Err(error),
        }
    });
    let found = found.await;
    found.unwrap_or_else(|error| Err(StoreError::Broken(error.to_string())))
}

/// Looks for queued prompts when the session is opened, after each prompt, and on request.
pub(crate) struct QueueWatch {
    pub(super) store: Arc<dyn Store>,
    pub(super) session_id: SessionId,
    pub(super) active_prompts: SharedCounter,
    /// Cancel token of all prompts.
    pub(super) cancel_all: Arc<Mutex<CancellationToken>>,
    /// Search in progress.
    pub(super) search: Option<BoxFuture<'static, Option<StoredPrompt>>>,
}

impl QueueWatch {
    /// Starts to look for a prompt, because one has ended, which was a queued one itself or not.
    pub(super) fn begin_after(&mut self, end: &PromptEnd, was_queued: bool) {
        match end {
            // Cancelled before it began: what the user has just stopped does not start again.
            Ok(result) if was_queued && result.loops.is_empty() => {}
            Ok(_) | Err(PromptError::AlreadyRun | PromptError::Withdrawn) => {
                self.begin(IDLE_DELAY);
            }
            Err(PromptError::Busy { .. }) => self.begin(BUSY_DELAY),
            // The next queued prompt would fail like this one.
            Err(_) => {}
        }
    }

    /// Starts to look for a prompt, after the host that holds the session if there is one.
    pub(super) fn begin_on_request(&mut self, is_held: bool) {
        self.begin(if is_held { BUSY_DELAY } else { IDLE_DELAY });
    }

    fn begin(&mut self, delay: Duration) {
        let (store, id) = (Arc::clone(&self.store), self.session_id.clone());
        self.search = Some(Box::pin(async move {
            sleep(delay).await;
            match store.queued_prompts(&id).await {
                Ok(prompts) => prompts.into_iter().next(),
                Err(error) => {
                    tracing::warn!(session = %id, %error, "failed to look for queued prompts");
                    None
                }
            }
        }));
    }

    /// Resolves with the first queued prompt, once it was found.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<QueuedPrompt> {
        let Some(search) = &mut self.search else {
            return Poll::Pending;
        };
        let found = ready!(search.as_mut().poll(cx));
        self.search = None;
        let Some(queued) = found else {
            return Poll::Pending;
        };
        let all = self.cancel_all.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        // Counted under the lock, so that a cancel of all prompts counts this one.
        let (cancel_all, active_guard) = (all.clone(), self.active_prompts.increment());
        drop(all);
        let options = PromptOptions::default();
        Poll::Ready(QueuedPrompt {
            kind: PromptKind::Input(queued.content.clone()),
            evaluation: None,
            cancels: Cancels {
                prompt: options.cancel.clone(),
                session: cancel_all,
            },
            options: PromptOptions {
                queued: Some(Arc::new(queued)),
                ..options
            },
            reply: None,
            inserted: None,
            slot: QueueSlot::default(),
            active_guard,
        })
    }
}

/// Starts a queued prompt. Fails if it was run or withdrawn. The caller must hold the lane.
pub(super) async fn start_queued(
    store: Arc<dyn Store>,
    id: SessionId,
    queued: Arc<StoredPrompt>,
) -> Result<(), PromptError> {
    let lost = |error: StoreError| PromptError::Lost(CommitError::Store(error.to_string()));
    let is_started = store.start_queued_prompt(&id, &queued.id).await;
    if !is_started.map_err(lost)? && !faulty!(RunWithdrawn) {
        return Err(PromptError::AlreadyRun);
    }
    let since = store.loops(&id, queued.head_version).await.map_err(lost)?;
    if since.iter().any(|record| queued.was_run_by(record)) && !faulty!(RunQueuedTwice) {
        remove_queued(store, id, queued).await;
        return Err(PromptError::AlreadyRun);
    }
    Ok(())
}

/// Removes a queued prompt that was run. If that fails, its loop shows the next holder that it was.
pub(super) async fn remove_queued(store: Arc<dyn Store>, id: SessionId, queued: Arc<StoredPrompt>) {
    let removed = store.remove_queued_prompt(&id, &queued.id, PromptRemoval::Run);
    if let Err(error) = removed.await {
        tracing::warn!(session = %id, %error, "failed to remove a queued prompt that was run");
    }
}
