//! Tracks the commit of a running loop.

use futures_util::future::BoxFuture;
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use turnery_engine::LoopRecord;
use turnery_store::StoreError;

/// Commit of a loop; empty until the loop ends.
#[derive(Default)]
pub(super) struct LoopCommit {
    /// Record that was passed to the store.
    pub(super) record: Option<Arc<LoopRecord>>,
    pub(super) committing: Option<BoxFuture<'static, Result<u64, StoreError>>>,
    /// Resolves when the cancelled prompt stops waiting for its commit.
    pub(super) overdue_timer: Option<BoxFuture<'static, ()>>,
    /// True once the commit continues in the background.
    pub(super) is_overdue: bool,
    /// True if the loop gives the session its title.
    pub(super) title_is_new: bool,
}

impl LoopCommit {
    /// Resolves once, with the session's new head version.
    pub(super) fn poll_committed(&mut self, cx: &mut Context<'_>) -> Poll<Result<u64, StoreError>> {
        match &mut self.committing {
            Some(committing) => committing.as_mut().poll(cx).map(|committed| {
                self.committing = None;
                self.overdue_timer = None;
                committed
            }),
            None => Poll::Pending,
        }
    }

    /// Resolves once, when the commit is overdue.
    pub(super) fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.overdue_timer {
            Some(patience) => patience
                .as_mut()
                .poll(cx)
                .map(|()| self.overdue_timer = None),
            None => Poll::Pending,
        }
    }
}
