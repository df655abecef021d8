//! Observing: a session's activities for readers who come and go, with cursors to take up again where
//! they left (LASH-54, UP-32). Beside the stream of one prompt, and never in its way: a reader who is
//! slow misses what is not kept any more, and is told so.

use crate::{Projection, Session, TurnActivity};
use serde::Serialize;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;
use turnery_engine::{Event, EventKind, LoopId, LoopRecord, Outcome};
use turnery_store::StoreError;

/// How many items are kept for readers who come back.
const KEPT: usize = 2048;

/// A place in what is observed of a session, to go on from. Holds for one opening of the session: used
/// with another one, it leads to a gap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl From<String> for Cursor {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One thing that is observed. The set may grow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Observed {
    /// A prompt shows something.
    Activity(TurnActivity),
    /// A loop is stored: from now on its messages are in the session's records.
    Committed {
        /// The loop.
        loop_id: LoopId,
        /// Why it ended; a frame switch tells the frame that is next.
        outcome: Outcome,
    },
    /// Something was missed. What is stored of it is in the session's records: read those, and pass over
    /// what follows of loops that are among them.
    Gap,
}

/// What is kept, and who waits for more.
struct Kept {
    /// Tells this opening of the session from others.
    epoch: uuid::Uuid,
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    /// Nothing is kept until somebody wants to know.
    is_observed: bool,
    items: VecDeque<Observed>,
    /// The number of the first item that is kept.
    first: u64,
}

impl Kept {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// The number that the next item will have.
    fn end(&self) -> u64 {
        self.first + self.items.len() as u64
    }
}

impl Session {
    /// What is stored of the session: its loops, oldest first, with their messages. What a message came
    /// to is read here; the stream only shows it in the making (LASH-78).
    pub async fn records(&self) -> Result<Vec<Arc<LoopRecord>>, StoreError> {
        self.store().loops(self.id(), 0).await
    }
}

/// The end of the session task.
pub(crate) struct Observing {
    kept: Arc<Kept>,
    more: watch::Sender<()>,
    projection: Projection,
}

/// The end of the session's handles.
#[derive(Clone)]
pub(crate) struct Observable {
    kept: Arc<Kept>,
    more: watch::Receiver<()>,
}

/// Both ends.
pub(crate) fn observing() -> (Observing, Observable) {
    let kept = Arc::new(Kept {
        epoch: turnery_store::new_uuid(),
        ring: Mutex::default(),
    });
    let (sender, receiver) = watch::channel(());
    let observable = Observable {
        kept: Arc::clone(&kept),
        more: receiver,
    };
    let observing = Observing {
        kept,
        more: sender,
        projection: Projection::default(),
    };
    (observing, observable)
}

impl Observing {
    /// Something happened.
    pub(crate) fn push(&mut self, event: &Event) {
        let mut ring = self.kept.ring();
        if !ring.is_observed {
            self.projection.pass_over(event);
            return;
        }
        let observed = match &event.kind {
            EventKind::LoopEnd { outcome, .. } => Some(Observed::Committed {
                loop_id: event.loop_id.clone(),
                outcome: outcome.clone(),
            }),
            _ => self.projection.on(event).map(Observed::Activity),
        };
        let Some(observed) = observed else {
            return;
        };
        if ring.items.len() == KEPT {
            ring.items.pop_front();
            ring.first += 1;
        }
        ring.items.push_back(observed);
        drop(ring);
        self.more.send_replace(());
    }
}

impl Observable {
    /// Observe from now on, or from a place on.
    pub(crate) fn observe(&self, after: Option<&Cursor>) -> Observer {
        let mut ring = self.kept.ring();
        let end = ring.end();
        ring.is_observed = true;
        drop(ring);
        let place = match after {
            None => Some(end),
            Some(cursor) => self.place(cursor).filter(|place| *place <= end),
        };
        Observer {
            observable: self.clone(),
            place,
        }
    }

    fn place(&self, cursor: &Cursor) -> Option<u64> {
        let (epoch, place) = cursor.0.split_once('.')?;
        (epoch == self.kept.epoch.simple().to_string())
            .then(|| place.parse().ok())
            .flatten()
    }
}

/// Reads what happens in a session.
pub struct Observer {
    observable: Observable,
    /// The number of the next item to read; none if that is not known, which is a gap.
    place: Option<u64>,
}

impl Observer {
    /// Where to go on after what has been read so far.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        let kept = &self.observable.kept;
        let place = self.place.unwrap_or_else(|| kept.ring().first);
        Cursor(format!("{}.{place}", kept.epoch.simple()))
    }

    /// The next thing; `None` once the session is closed. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Observed> {
        loop {
            self.observable.more.mark_unchanged();
            if let Some(observed) = self.kept() {
                return Some(observed);
            }
            if self.observable.more.changed().await.is_err() {
                return self.kept();
            }
        }
    }

    /// The next thing, if it is there.
    fn kept(&mut self) -> Option<Observed> {
        let ring = self.observable.kept.ring();
        let Some(place) = self.place.filter(|place| *place >= ring.first) else {
            self.place = Some(ring.first);
            return Some(Observed::Gap);
        };
        let at = usize::try_from(place - ring.first).ok()?;
        let observed = ring.items.get(at)?.clone();
        self.place = Some(place + 1);
        Some(observed)
    }
}
