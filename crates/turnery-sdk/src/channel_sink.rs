//! Sends activities to a channel.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use turnery_agent::{ActivitySink, PromptActivity};

/// Sink that writes to a bounded channel: `emit` waits while it is full, so the capacity limits how far the
/// prompt runs ahead (LASH-82). Activities are dropped once the receiver is gone.
#[derive(Clone, Debug)]
pub struct ChannelSink(mpsc::Sender<PromptActivity>);

impl ChannelSink {
    /// Creates a sink and its receiver. A capacity of 0 counts as 1.
    #[must_use]
    pub fn new(capacity: usize) -> (Self, mpsc::Receiver<PromptActivity>) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (Self(sender), receiver)
    }
}

impl ActivitySink for ChannelSink {
    fn emit(&self, activity: PromptActivity) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.0.send(activity).await;
        })
    }
}
