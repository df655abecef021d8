//! Describes a runtime on which a store runs its short jobs.

use std::{fmt, future::poll_fn, sync::Arc, task::Poll};
use tokio::runtime::Handle;

/// Runtime on which a store runs its short jobs, since switching threads takes longer than they do. Needs at
/// least two threads, so that a hanging disk does not block it.
#[derive(Clone)]
pub struct InlineRuntime {
    /// Handle of the runtime.
    pub runtime: Handle,
    /// Called every 50 ms while a runtime thread hangs in a job, so that other threads take over its tasks.
    pub on_stall: Arc<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for InlineRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineRuntime").finish_non_exhaustive()
    }
}

/// Lets ready tasks run first.
///
/// Does not use `yield_now`: a yielding task stays on its own worker thread, which may be blocked by a slow
/// disk.
pub async fn yield_to_ready_tasks() {
    let mut has_waited = false;
    poll_fn(|cx| match std::mem::replace(&mut has_waited, true) {
        true => Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}
