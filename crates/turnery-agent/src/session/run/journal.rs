//! Journals the events of a running loop, in order and one write at a time.

use futures_util::future::BoxFuture;
use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};
use turnery_engine::{Event, LoopId};
use turnery_store::{Lane, Store, StoreError};

/// Maximum delay before events are journalled. Events that are committed earlier need no write of their own.
const JOURNAL_DELAY: Duration = Duration::from_millis(20);

/// Journal of one loop. Its methods take all events of the loop's record so far.
pub(super) struct Journal {
    store: Arc<dyn Store>,
    lane: Lane,
    loop_id: LoopId,
    /// Number of events that are journalled or need not be.
    journalled: usize,
    /// Deadline for journalling the rest.
    due: Option<Pin<Box<Sleep>>>,
    /// Write in progress; no queued effect is taken meanwhile.
    writing: Option<BoxFuture<'static, Result<(), StoreError>>>,
    /// Events to write after that.
    unwritten: Vec<Event>,
}

impl Journal {
    /// Creates the journal of a loop whose first `journalled` events are in it already.
    pub(super) fn new(
        store: Arc<dyn Store>,
        lane: Lane,
        loop_id: LoopId,
        journalled: usize,
    ) -> Self {
        Self {
            store,
            lane,
            loop_id,
            journalled,
            due: None,
            writing: None,
            unwritten: Vec::new(),
        }
    }

    /// Returns true while a write is in progress.
    pub(super) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Takes the write in progress; dropped, it does not happen if it has not begun.
    pub(super) fn take_write(&mut self) -> Option<BoxFuture<'static, Result<(), StoreError>>> {
        self.writing.take()
    }

    /// Forgets what is journalled: the record was passed to the store as a whole.
    pub(super) fn reset(&mut self) {
        self.journalled = 0;
        self.due = None;
    }

    /// Resolves with the result of the write in progress, if there is one.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StoreError>> {
        match &mut self.writing {
            Some(writing) => writing.as_mut().poll(cx).map(|written| {
                self.writing = None;
                written
            }),
            None => Poll::Pending,
        }
    }

    /// Resolves when events have waited long enough for [`write_due`](Self::write_due).
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.due {
            Some(due) => due.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Schedules a write if events wait for one.
    pub(super) fn schedule(&mut self, events: &[Event]) {
        if self.due.is_none() && events.len() > self.journalled {
            self.due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL_DELAY)));
        }
    }

    /// Writes all events that are not journalled yet, without waiting for the result. Called when they are
    /// due; while another write is in progress, they are queued behind it.
    pub(super) fn write_due(&mut self, events: &[Event]) {
        let events = self.take_new(events);
        if self.writing.is_some() {
            self.unwritten.extend(events);
        } else if !events.is_empty() {
            self.store.append(&self.lane, &self.loop_id, events);
        }
    }

    /// Writes all remaining events. Nothing is shown or begun until they are written, so that everything
    /// shown survives a crash (S5).
    pub(super) fn write_now(&mut self, events: &[Event]) {
        if faulty!(JournalAfterNextCall) {
            return;
        }
        let events = self.take_new(events);
        match self.writing {
            Some(_) if !faulty!(DropJournalWrite) => self.unwritten.extend(events),
            Some(_) | None => self.begin_write(events),
        }
    }

    /// Handles the result of a write, and writes the events that arrived meanwhile. If the store fails, the
    /// prompt continues without a journal, which is only evidence; the next write starts from the first
    /// event.
    pub(super) fn after_write(&mut self, written: Result<(), StoreError>, events: &[Event]) {
        let unwritten = mem::take(&mut self.unwritten);
        match written {
            Ok(()) => self.begin_write(unwritten),
            Err(error) => {
                tracing::warn!(%error, "failed to journal");
                self.journalled = 0;
                if unwritten.is_empty() {
                    self.due = Some(Box::pin(sleep_until(Instant::now() + JOURNAL_DELAY)));
                } else {
                    self.write_now(events);
                }
            }
        }
    }

    fn take_new(&mut self, events: &[Event]) -> Vec<Event> {
        self.due = None;
        let events = events.get(self.journalled..).unwrap_or_default().to_vec();
        self.journalled += events.len();
        events
    }

    /// Starts to write `events`; the store receives them at the first poll. Requires that no write is in
    /// progress, since a store takes events in call order.
    fn begin_write(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let store = Arc::clone(&self.store);
        let (lane, loop_id) = (self.lane.clone(), self.loop_id.clone());
        self.writing = Some(Box::pin(async move {
            store.append_now(&lane, &loop_id, events).await
        }));
    }
}
