//! Turn stream: the activities of one running prompt, for whoever asks for them (LASH-53, LASH-97).

use crate::{PromptOutput, TurnActivity, TurnError, turn_builder::Started};
use futures_util::Stream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::mpsc;

/// The activities of one running prompt, as they happen. It belongs to that prompt and cannot be taken
/// up again by another reader (LASH-52); what is behind is in the output, and in the session's records.
///
/// Dropping it neither cancels the prompt nor loses anything of it.
#[must_use = "a stream that is kept and not read holds its prompt back"]
pub struct TurnStream {
    activities: mpsc::Receiver<TurnActivity>,
    started: Started,
}

impl TurnStream {
    pub(crate) fn new(activities: mpsc::Receiver<TurnActivity>, started: Started) -> Self {
        Self {
            activities,
            started,
        }
    }

    /// The next activity; `None` once the prompt has come to its end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<TurnActivity> {
        self.activities.recv().await
    }

    /// The end of the prompt. What has not been read by now is in the output's activities.
    pub async fn finish(self) -> Result<PromptOutput, TurnError> {
        let Self {
            activities,
            started,
        } = self;
        // From now on it holds nothing back.
        drop(activities);
        started.output().await
    }
}

impl Stream for TurnStream {
    type Item = TurnActivity;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TurnActivity>> {
        self.activities.poll_recv(cx)
    }
}
