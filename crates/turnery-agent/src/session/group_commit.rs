//! Defers the commit of a candidate's loop to that of its group (S6).

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use turnery_store::{Commit, StoreError};

/// Ended loop of a candidate, which waits for the commit of its group.
pub(super) struct CandidateCommit {
    pub(super) index: usize,
    pub(super) commit: Commit,
    pub(super) stored: oneshot::Sender<Result<u64, StoreError>>,
}

/// Sends the commit of one candidate to its group.
#[derive(Clone)]
pub(crate) struct GroupCommitSender {
    pub(super) index: usize,
    pub(super) results: mpsc::Sender<CandidateCommit>,
}

impl GroupCommitSender {
    /// Resolves with the result of the group's commit.
    pub(super) fn commit(self, commit: Commit) -> BoxFuture<'static, Result<u64, StoreError>> {
        Box::pin(async move {
            let gone = || StoreError::Broken("the evaluation was given up".to_owned());
            let (stored, answer) = oneshot::channel();
            let result = CandidateCommit {
                index: self.index,
                commit,
                stored,
            };
            self.results.send(result).await.map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }
}
