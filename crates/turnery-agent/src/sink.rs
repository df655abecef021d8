//! Delivers the activities of one prompt to its sink, one at a time, each awaited before the next.

use crate::{
    activity::{Projection, PromptActivity},
    cancels::Cancels,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use std::{
    fmt, mem,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};
use tokio::{select, time::sleep};
use turnery_engine::Event;
use turnery_tools::grace;

/// Receives the activities of a running prompt (LASH-55).
///
/// The prompt waits for each `emit`, so a slow sink slows the prompt; a sink that must not do so needs its
/// own queue (LASH-79 to 81). A sink that panics receives nothing more; the prompt continues, and an error
/// activity reports it (LASH-83). After a cancel the prompt waits for the sink only briefly; activities that
/// it missed are in the prompt's output.
pub trait ActivitySink: Send + Sync + 'static {
    /// Receives one activity.
    fn emit(&self, activity: PromptActivity) -> BoxFuture<'_, ()>;
}

/// Sink and log of one prompt. By default both are absent, and no activities are built.
#[derive(Clone, Default)]
pub struct PromptSinks {
    sink: Option<Arc<dyn ActivitySink>>,
    log: Option<ActivityLog>,
}

/// All activities of one prompt so far, even if its sink failed (LASH-86).
#[derive(Clone, Default)]
pub struct ActivityLog(Arc<Mutex<Vec<PromptActivity>>>);

impl ActivityLog {
    fn push(&self, activity: PromptActivity) {
        self.lock().push(activity);
    }

    /// Returns the activities logged so far, and forgets them.
    #[must_use]
    pub fn take(&self) -> Vec<PromptActivity> {
        mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PromptActivity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PromptSinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptSinks").finish_non_exhaustive()
    }
}

impl PromptSinks {
    /// Creates sinks that log all activities and pass each to `sink`, if given.
    #[must_use]
    pub fn new(sink: Option<Arc<dyn ActivitySink>>) -> (Self, ActivityLog) {
        let log = ActivityLog::default();
        let sinks = Self {
            sink,
            log: Some(log.clone()),
        };
        (sinks, log)
    }
}

/// Drives the sink of one prompt from the session task, across all loops of the prompt.
#[derive(Default)]
pub(crate) struct SinkDriver {
    sinks: PromptSinks,
    projection: Projection,
    cancels: Cancels,
    /// Pending `emit`; yields the reason if the sink is to receive nothing more.
    emitting: Option<BoxFuture<'static, Option<&'static str>>>,
    failure: Option<&'static str>,
}

impl SinkDriver {
    pub(crate) fn new(sinks: PromptSinks, cancels: Cancels) -> Self {
        Self {
            sinks,
            cancels,
            ..Self::default()
        }
    }

    /// Resolves when the sink has taken the last activity.
    pub(crate) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(emitting) = &mut self.emitting {
            let Poll::Ready(failure) = emitting.as_mut().poll(cx) else {
                return Poll::Pending;
            };
            self.emitting = None;
            if let Some(why) = failure {
                tracing::warn!("{why}");
                self.sinks.sink = None;
                self.failure = failure;
            }
        }
        Poll::Ready(())
    }

    /// Resolves once with the error of a sink that failed.
    pub(crate) fn poll_failure(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        let _ = self.poll_idle(cx);
        self.poll_known_failure()
    }

    /// Like [`poll_failure`](Self::poll_failure), without polling the sink.
    pub(crate) fn poll_known_failure(&mut self) -> Poll<String> {
        match self.failure.take() {
            Some(why) => Poll::Ready(why.to_owned()),
            None => Poll::Pending,
        }
    }

    /// Logs the activity of an event, then starts to emit it (R6). Must follow a `poll_idle` that was ready.
    pub(crate) fn push(&mut self, event: &Event) {
        let Some(log) = &self.sinks.log else {
            return;
        };
        let Some(activity) = self.projection.project(event) else {
            return;
        };
        log.push(activity.clone());
        if let Some(sink) = &self.sinks.sink {
            let sink = Arc::clone(sink);
            let cancels = self.cancels.clone();
            let emit = AssertUnwindSafe(async move { sink.emit(activity).await }).catch_unwind();
            self.emitting = Some(Box::pin(async move {
                let given_up = async {
                    cancels.cancelled().await;
                    sleep(grace::CALL).await;
                };
                select! {
                    biased;
                    ended = emit => ended.err().map(|_| SINK_PANICKED),
                    () = given_up => Some(SINK_STUCK),
                }
            }));
        }
    }
}

const SINK_STUCK: &str = "the sink of this prompt's activities did not return after a cancel and receives no more of them";
const SINK_PANICKED: &str = "the sink of this prompt's activities panicked and receives no more of them; the prompt continues";
