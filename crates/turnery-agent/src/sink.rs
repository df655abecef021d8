//! Sink: where the activities of one prompt go, one after the other, each awaited before the next.

use crate::{CancellationToken, Item, Outbox, Projection, TurnActivity, observe::Observing};
use futures_util::{FutureExt as _, future::BoxFuture};
use std::{
    mem,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};
use tokio::{select, sync::mpsc, time::sleep};
use turnery_engine::Event;
use turnery_tools::grace;

/// Takes the activities of a running prompt (LASH-55).
///
/// `emit` is awaited: nothing is shown, asked or begun before it has returned, so a slow sink slows the
/// prompt, and a sink that wants to go its own way has its own queue (LASH-79 to 81). A sink that panics
/// gets nothing more; the prompt goes on, and an error activity says so (LASH-83). After a cancel it is
/// waited for a moment only; what it did not take is in the prompt's output.
pub trait ActivitySink: Send + Sync + 'static {
    /// Take one.
    fn emit(&self, activity: TurnActivity) -> BoxFuture<'_, ()>;
}

/// A sink over a bounded channel: `emit` waits only while it is full, so its bound says how far the
/// prompt may run ahead (LASH-82). Once nobody receives any more, activities are dropped.
#[derive(Clone, Debug)]
pub struct ChannelSink(mpsc::Sender<TurnActivity>);

impl ChannelSink {
    /// A sink, and where its activities come out. `room` is at least 1.
    #[must_use]
    pub fn new(room: usize) -> (Self, mpsc::Receiver<TurnActivity>) {
        let (sender, receiver) = mpsc::channel(room.max(1));
        (Self(sender), receiver)
    }
}

impl ActivitySink for ChannelSink {
    fn emit(&self, activity: TurnActivity) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.0.send(activity).await;
        })
    }
}

/// Who listens to one prompt. By default nobody does, and nothing is made of its events.
#[derive(Default)]
pub(crate) struct Listener {
    sink: Option<Arc<dyn ActivitySink>>,
    gathered: Option<Gathered>,
}

/// All activities of one prompt so far, whatever became of its sink (LASH-86).
#[derive(Clone, Default)]
pub(crate) struct Gathered(Arc<Mutex<Vec<TurnActivity>>>);

impl Gathered {
    fn push(&self, activity: TurnActivity) {
        self.lock().push(activity);
    }

    pub(crate) fn take(&self) -> Vec<TurnActivity> {
        mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TurnActivity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Gathers all activities, and gives each of them to the sink, if there is one.
    pub(crate) fn new(sink: Option<Arc<dyn ActivitySink>>) -> (Self, Gathered) {
        let gathered = Gathered::default();
        let listener = Self {
            sink,
            gathered: Some(gathered.clone()),
        };
        (listener, gathered)
    }
}

/// The end of a session task that a listener hears: lasts for all loops of one prompt.
#[derive(Default)]
pub(crate) struct Tap {
    listener: Listener,
    projection: Projection,
    /// Either cancels the prompt.
    cancel: (CancellationToken, CancellationToken),
    /// The sink at work, and why it is given nothing more.
    emitting: Option<BoxFuture<'static, Option<&'static str>>>,
    broken: Option<&'static str>,
}

impl Tap {
    /// For a prompt that either token cancels.
    pub(crate) fn new(listener: Listener, cancel: (CancellationToken, CancellationToken)) -> Self {
        Self {
            listener,
            cancel,
            ..Self::default()
        }
    }

    /// Ready when the sink has taken what it was given.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(emitting) = &mut self.emitting {
            let Poll::Ready(broken) = emitting.as_mut().poll(cx) else {
                return Poll::Pending;
            };
            self.emitting = None;
            if let Some(why) = broken {
                tracing::warn!("{why}");
                self.listener.sink = None;
                self.broken = broken;
            }
        }
        Poll::Ready(())
    }

    /// Ready, once, with what to tell of a sink that broke.
    pub(crate) fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        let _ = self.poll_idle(cx);
        self.poll_told()
    }

    /// The same of what is known already.
    pub(crate) fn poll_told(&mut self) -> Poll<String> {
        match self.broken.take() {
            Some(why) => Poll::Ready(why.to_owned()),
            None => Poll::Pending,
        }
    }

    /// Take an event: gather it first, then begin to give it to the sink (R6). Only after `poll_idle`
    /// was ready.
    fn push(&mut self, event: &Event) {
        let Some(gathered) = &self.listener.gathered else {
            return;
        };
        let Some(activity) = self.projection.on(event) else {
            return;
        };
        gathered.push(activity.clone());
        if let Some(sink) = &self.listener.sink {
            let sink = Arc::clone(sink);
            let (one, all) = self.cancel.clone();
            let emit = AssertUnwindSafe(async move { sink.emit(activity).await }).catch_unwind();
            self.emitting = Some(Box::pin(async move {
                let given_up = async {
                    select! {
                        () = one.cancelled() => {}
                        () = all.cancelled() => {}
                    }
                    sleep(grace::CALL).await;
                };
                select! {
                    biased;
                    ended = emit => ended.err().map(|_| BROKEN),
                    () = given_up => Some(STUCK),
                }
            }));
        }
    }
}

const STUCK: &str = "the sink of this prompt's activities did not come back after a cancel, and is given no more of them";
const BROKEN: &str = "the sink of this prompt's activities panicked, and is given no more of them; the prompt goes on";

/// A session's outbox, the running prompt's tap, and whoever observes, as one: there is room when the
/// first two have it.
pub(crate) struct Shown<'a> {
    pub(crate) outbox: &'a mut dyn Outbox,
    pub(crate) tap: &'a mut Tap,
    pub(crate) observing: &'a mut Observing,
}

impl Shown<'_> {
    /// Ready when an item may be pushed.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.tap.poll_idle(cx) {
            Poll::Ready(()) => self.outbox.poll_room(cx),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Ready when something else than showing may be done.
    pub(crate) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.tap.poll_idle(cx)
    }

    /// Show an item.
    pub(crate) fn push(&mut self, item: Item<'_>) {
        self.outbox.push(item);
        if let Item::Live(event) = item {
            self.tap.push(event);
            self.observing.push(event);
        }
    }
}
