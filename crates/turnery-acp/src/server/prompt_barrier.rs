//! Delays the next prompt of a session until the response to the previous one is in the write queue. Otherwise
//! the first updates of a queued prompt could overtake that response.
//!
//! The session knows when a prompt begins; only the connection knows when no response is ready. So the session
//! asks and the connection lets it pass.

use tokio::sync::{mpsc, oneshot};

/// Maximum number of waiting sessions; more pass without waiting.
const MAX_WAITING_SESSIONS: usize = 4096;

/// Session side of the barrier.
#[derive(Clone, Debug)]
pub(crate) struct PromptBarrier(mpsc::Sender<oneshot::Sender<()>>);

/// Connection side of the barrier.
pub(crate) type BarrierReceiver = mpsc::Receiver<oneshot::Sender<()>>;

impl PromptBarrier {
    pub(crate) fn new() -> (Self, BarrierReceiver) {
        let (sender, waiting) = mpsc::channel(MAX_WAITING_SESSIONS);
        (Self(sender), waiting)
    }

    /// Waits until all responses that are ready now are in the queue, or the connection has ended.
    pub(crate) fn wait_for_responses(&self) -> impl Future<Output = ()> + Send + 'static {
        let (pass, passed) = oneshot::channel();
        let is_queued = self.0.try_send(pass).is_ok();
        async move {
            if is_queued {
                let _ = passed.await;
            }
        }
    }
}
