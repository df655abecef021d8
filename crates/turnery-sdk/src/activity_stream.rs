//! Streams the activities of one running prompt (LASH-53, LASH-97).

use crate::prompt_builder::{PromptOutput, RunError, StartedPrompt};
use futures_util::Stream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;
use turnery_agent::PromptActivity;

/// Activities of one running prompt, in real time. The stream cannot be resumed by another reader (LASH-52);
/// past activities are in the output and in the session's records.
///
/// Dropping the stream does not cancel the prompt; its messages are then found only in the session's records.
/// [`finish`](Self::finish) returns all activities, read or not.
#[must_use = "a stream that is kept and not read holds its prompt back"]
pub struct ActivityStream {
    activities: mpsc::Receiver<PromptActivity>,
    prompt: StartedPrompt,
}

impl ActivityStream {
    pub(crate) fn new(activities: mpsc::Receiver<PromptActivity>, prompt: StartedPrompt) -> Self {
        Self { activities, prompt }
    }

    /// Returns the next activity; `None` after the prompt has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<PromptActivity> {
        self.activities.recv().await
    }

    /// Waits for the end of the prompt. Activities not read from the stream are in the output.
    pub async fn finish(self) -> Result<PromptOutput, RunError> {
        let Self { activities, prompt } = self;
        // A dropped receiver no longer blocks the prompt.
        drop(activities);
        prompt.wait_for_output().await
    }
}

impl Stream for ActivityStream {
    type Item = PromptActivity;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PromptActivity>> {
        self.activities.poll_recv(cx)
    }
}
