//! Claims the lane of a session, the exclusive right to commit to it, for one prompt.

use super::{
    PromptError, pending_beginning::PendingBeginning, prompt_guard::PromptGuard, task::SessionTask,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use turnery_engine::{CommitError, LoopRecord};
use turnery_store::{ClaimedLane, LoopBeginning, Owner, SessionInfo, Store, StoreError};

impl SessionTask {
    /// Claims the lane once the store has finished earlier prompts, and reloads the history if another owner
    /// has changed the session. `None` if the prompt was cancelled and the store does not respond.
    pub(crate) async fn claim(
        &mut self,
        guard: &mut PromptGuard,
        beginning: Option<Arc<LoopBeginning>>,
    ) -> Result<Option<ClaimedLane>, PromptError> {
        let earlier = self.background.take_work();
        let store = Arc::clone(&self.env.store);
        let (owner, known) = (self.owner.clone(), self.conversation.info.clone());
        let claim = claim_lane(Arc::clone(&store), owner, known, beginning);
        let claim: BoxFuture<'static, _> = Box::pin(async move {
            earlier.await;
            claim.await
        });
        let ClaimResult {
            opened,
            chain,
            pending,
        } = match guard.wait_for_store(self, claim).await {
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
            self.conversation.continue_from(&chain);
            self.apply_system_prompt();
        }
        // Only after the history was reloaded: if that failed, the next prompt must try again.
        self.conversation.info = opened.info.clone();
        guard.hold_lane(opened.lane.clone());
        guard.beginning = pending;
        Ok(Some(opened))
    }
}

/// Result of a claim.
struct ClaimResult {
    opened: ClaimedLane,
    /// History, if the known one is out of date.
    chain: Option<Vec<Arc<LoopRecord>>>,
    /// First events of the prompt's loop, if they were journalled.
    pending: Option<PendingBeginning>,
}

/// Claims the session, and reads its history if it is no longer that of `known`. `beginning` holds the first
/// events of the prompt's loop, if they can be predicted.
async fn claim_lane(
    store: Arc<dyn Store>,
    owner: Owner,
    known: SessionInfo,
    beginning: Option<Arc<LoopBeginning>>,
) -> Result<ClaimResult, PromptError> {
    let lost = |error: StoreError| PromptError::Lost(CommitError::Store(error.to_string()));
    let claimed = match beginning {
        Some(beginning) => PendingBeginning::claim(&store, &known.id, &owner, beginning).await,
        None => {
            let opened = store.claim(&known.id, &owner).await;
            opened.map(|opened| (opened, None))
        }
    };
    let (opened, pending) = claimed.map_err(|error| match error {
        StoreError::Busy { holder, .. } => PromptError::Busy { holder },
        other => lost(other),
    })?;
    let stale = opened.info.head_version != known.head_version
        || opened.info.tip_loop_id != known.tip_loop_id;
    let mut chain = None;
    if stale && !faulty!(SkipReload) {
        match store.history(&opened.info.id).await {
            Ok(history) => chain = Some(history.loops),
            Err(error) => {
                drop(pending);
                let _ = store.release(&opened.lane).await;
                return Err(lost(error));
            }
        }
    }
    Ok(ClaimResult {
        opened,
        chain,
        pending,
    })
}
