//! Keeps the work of a session in order, and collects the events that are to be journalled.

use crate::{
    Lane, StoreError,
    journal_append::{JournalAppend, TruncatedJournals, gap_error},
};
use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::sleep,
};
use turnery_engine::{LoopId, SessionId};

/// Longest time that events wait whose writing nobody awaits, so that those of a whole turn are written in one step, or
/// not at all if their commit arrives first.
const LINGER: Duration = Duration::from_millis(20);

/// Maximum number of events of a session that wait to be written.
const MAX_WAITING_EVENTS: usize = 16_384;

/// Queues of the sessions that were used recently.
#[derive(Default)]
pub(super) struct SessionQueues(RefCell<HashMap<SessionId, Rc<SessionQueue>>>);

/// Queue of a session.
#[derive(Default)]
pub(super) struct SessionQueue {
    /// Resolves when the last turn is over.
    last_turn: RefCell<Option<oneshot::Receiver<()>>>,
    /// Notified when somebody takes a turn.
    taken: Notify,
    waiting: RefCell<Vec<WaitingAppend>>,
    is_flush_queued: Cell<bool>,
    /// Long texts that were stored while this lane was held.
    texts: RefCell<(u64, HashSet<String>)>,
}

/// Events that are to be journalled.
pub(super) struct WaitingAppend {
    pub(super) append: JournalAppend,
    waiter: Option<oneshot::Sender<Result<(), StoreError>>>,
}

/// Place in the queue of a session. The next one begins when this is dropped.
pub(super) struct Turn {
    previous: Option<oneshot::Receiver<()>>,
    _over: oneshot::Sender<()>,
}

impl Turn {
    /// Waits until all earlier turns are over.
    pub(super) async fn wait(&mut self) {
        if let Some(previous) = self.previous.take() {
            // The sender is dropped at the end of its turn.
            let _ = previous.await;
        }
    }
}

impl SessionQueues {
    pub(super) fn of(&self, session: &SessionId) -> Rc<SessionQueue> {
        let mut queues = self.0.borrow_mut();
        Rc::clone(queues.entry(session.clone()).or_default())
    }

    /// Removes queues without work.
    pub(super) fn remove_idle(&self) {
        self.0
            .borrow_mut()
            .retain(|_, queue| Rc::strong_count(queue) > 1 || !queue.waiting.borrow().is_empty());
    }
}

impl SessionQueue {
    /// Takes the next place. Call it in the order of the calls of the store.
    pub(super) fn take_turn(&self) -> Turn {
        let (over, is_over) = oneshot::channel();
        self.taken.notify_one();
        Turn {
            previous: self.last_turn.replace(Some(is_over)),
            _over: over,
        }
    }

    /// Adds events to be journalled. Returns the turn in which to call [`flush`](Self::flush), unless one is queued.
    pub(super) fn push(
        &self,
        append: JournalAppend,
        waiter: Option<oneshot::Sender<Result<(), StoreError>>>,
        truncated: &TruncatedJournals,
    ) -> Option<Turn> {
        let refusal = if !truncated.accepts(&append) {
            Some(gap_error(&append))
        } else if self.waiting.borrow().len() >= MAX_WAITING_EVENTS {
            let error = "the database cannot keep up with what is to be stored";
            truncated.add(append.loop_id.clone(), error);
            Some(StoreError::Broken(error.to_owned()))
        } else {
            None
        };
        if let Some(error) = refusal {
            if let Some(waiter) = waiter {
                let _ = waiter.send(Err(error));
            }
            return None;
        }
        if waiter.is_some() {
            self.taken.notify_one();
        }
        self.waiting
            .borrow_mut()
            .push(WaitingAppend { append, waiter });
        (!self.is_flush_queued.replace(true)).then(|| {
            let (over, is_over) = oneshot::channel();
            Turn {
                previous: self.last_turn.replace(Some(is_over)),
                _over: over,
            }
        })
    }

    /// Drops waiting events of loops that are about to be committed. If the commit fails, their journals lack these
    /// events.
    pub(super) fn drop_settled(
        &self,
        lane: &Lane,
        loops: &[LoopId],
        truncated: &TruncatedJournals,
    ) {
        self.waiting.borrow_mut().retain(|it| {
            let is_settled = it.waiter.is_none()
                && it.append.lane == *lane
                && loops.contains(&it.append.loop_id);
            if is_settled {
                truncated.add_silently(it.append.loop_id.clone());
            }
            !is_settled
        });
    }

    /// Writes the events that wait, with `write`, which returns the lanes that are not held.
    pub(super) async fn flush(
        self: Rc<Self>,
        mut turn: Turn,
        truncated: Arc<TruncatedJournals>,
        write: impl AsyncFnOnce(&Self, &[WaitingAppend]) -> Result<Vec<Lane>, StoreError>,
    ) {
        turn.wait().await;
        if self.waiting.borrow().iter().all(|it| it.waiter.is_none()) {
            tokio::select! {
                () = self.taken.notified() => {}
                () = sleep(LINGER) => {}
            }
        }
        self.is_flush_queued.set(false);
        let batch = self.waiting.take();
        if batch.is_empty() {
            return;
        }
        let written = write(&self, &batch).await;
        for WaitingAppend { append, waiter } in batch {
            if let Err(error) = &written {
                truncated.add(append.loop_id.clone(), &error.to_string());
            }
            if let Some(waiter) = waiter {
                let written = match &written {
                    Ok(lost) if lost.contains(&append.lane) => {
                        Err(StoreError::LaneLost(append.lane.session_id))
                    }
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.clone()),
                };
                // Nobody waits if the caller has dropped its future.
                let _ = waiter.send(written);
            }
        }
    }

    /// Runs `with` with the names of the texts that were stored under the lane with this fence.
    pub(super) fn with_texts<T>(
        &self,
        fence: u64,
        with: impl FnOnce(&mut HashSet<String>) -> T,
    ) -> T {
        let mut known = self.texts.borrow_mut();
        if known.0 != fence {
            *known = (fence, HashSet::new());
        }
        with(&mut known.1)
    }

    /// Forgets the names of stored texts: the session may be another one of the same id.
    pub(super) fn forget_texts(&self) {
        *self.texts.borrow_mut() = Default::default();
    }
}
