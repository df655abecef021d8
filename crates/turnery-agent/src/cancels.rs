//! Combines the tokens that cancel a prompt.

use tokio::select;
use tokio_util::sync::CancellationToken;

/// Tokens of which either cancels a prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancels {
    /// Cancels this prompt only.
    pub(crate) prompt: CancellationToken,
    /// Cancels all prompts that the session had accepted when this one was queued.
    pub(crate) session: CancellationToken,
}

impl Cancels {
    /// Returns true if either token is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.prompt.is_cancelled() || self.session.is_cancelled()
    }

    /// Resolves when either token is cancelled.
    pub(crate) async fn cancelled(&self) {
        select! {
            biased;
            () = self.prompt.cancelled() => {}
            () = self.session.cancelled() => {}
        }
    }
}
