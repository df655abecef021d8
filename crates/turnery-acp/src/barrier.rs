//! Barrier: a session begins its next prompt only after the answer to the one before is in the write
//! queue. Without it, the first words of a waiting prompt could overtake that answer.
//!
//! A session knows when a prompt has begun, the connection when no answer is ready any more: the one
//! asks, the other lets pass.

use tokio::sync::{mpsc, oneshot};

/// Sessions that wait at once; more pass unasked.
const WAITING: usize = 4096;

/// Where sessions ask.
#[derive(Clone, Debug)]
pub(crate) struct Barrier(mpsc::Sender<oneshot::Sender<()>>);

/// Where the connection lets pass.
pub(crate) type Waiting = mpsc::Receiver<oneshot::Sender<()>>;

impl Barrier {
    pub(crate) fn new() -> (Self, Waiting) {
        let (sender, waiting) = mpsc::channel(WAITING);
        (Self(sender), waiting)
    }

    /// Ready once all answers that are ready now are in the queue, or the connection has ended.
    pub(crate) fn pass(&self) -> impl Future<Output = ()> + Send + 'static {
        let (pass, passed) = oneshot::channel();
        let asked = self.0.try_send(pass).is_ok();
        async move {
            if asked {
                let _ = passed.await;
            }
        }
    }
}
