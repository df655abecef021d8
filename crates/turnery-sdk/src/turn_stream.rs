//! Streams the activities of one running prompt (LASH-53, LASH-97).

use crate::turn_builder::{PromptOutput, StartedPrompt, TurnError};
use futures_util::Stream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;
use turnery_agent::TurnActivity;

/// Activities of one running prompt, in real time. The stream cannot be resumed by another reader (LASH-52);
/// past activities are in the output and in the session's records.
///
/// Dropping the stream neither cancels the prompt nor loses any of its activities.
#[must_use = "a stream that is kept and not read holds its prompt back"]
pub struct TurnStream {
    activities: mpsc::Receiver<TurnActivity>,
    prompt: StartedPrompt,
}

impl TurnStream {
    pub(crate) fn new(activities: mpsc::Receiver<TurnActivity>, prompt: StartedPrompt) -> Self {
        Self { activities, prompt }
    }

    /// Returns the next activity; `None` after the prompt has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<TurnActivity> {
        self.activities.recv().await
    }

    /// Waits for the end of the prompt. Activities not read from the stream are in the output.
    pub async fn finish(self) -> Result<PromptOutput, TurnError> {
        let Self { activities, prompt } = self;
        // A dropped receiver no longer blocks the prompt.
        drop(activities);
        prompt.wait_for_output().await
    }
}

impl Stream for TurnStream {
    type Item = TurnActivity;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TurnActivity>> {
        self.activities.poll_recv(cx)
    }
}
