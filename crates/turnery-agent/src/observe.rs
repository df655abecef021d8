//! Publishes a session's activities to observers that come and go and resume from cursors (LASH-54, UP-32).
//! Observers never block a prompt: one that falls behind receives [`ObservedEvent::Gap`].

use crate::activity::{Projection, PromptActivity};
use serde::Serialize;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;
use turnery_engine::{Event, EventKind, LoopId, Outcome};

/// Number of events buffered for observers that resume.
const BUFFER_CAPACITY: usize = 2048;

/// Position in the observed events, to resume from. Valid for one opening of the session; elsewhere it yields
/// a gap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct ObserverCursor(String);

impl From<String> for ObserverCursor {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for ObserverCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Observed event. The set may grow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ObservedEvent {
    /// Activity of a prompt.
    Activity(PromptActivity),
    /// A loop was stored: its messages are now in the session's records.
    Committed {
        /// The loop.
        loop_id: LoopId,
        /// Outcome of the loop; a frame switch names the next frame.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// The candidates of an evaluation begin. Their activities follow, interleaved: each names its loop.
    CandidatesStarted {
        /// Loops of the candidates, in their order.
        loop_ids: Vec<LoopId>,
    },
    /// An evaluation has a winner, and all its loops are stored.
    WinnerSelected {
        /// Loop of the winner.
        loop_id: LoopId,
    },
    /// Events were missed. Read the session's records for what is stored of them, and ignore later activities
    /// of loops found there.
    Gap,
}

/// Buffer of published events.
struct EventBuffer {
    /// Distinguishes this opening of the session from others.
    epoch: uuid::Uuid,
    ring: Mutex<EventRing>,
}

#[derive(Default)]
struct EventRing {
    /// False until the first observer arrives; nothing is buffered before.
    is_observed: bool,
    items: VecDeque<ObservedEvent>,
    /// Index of the first buffered event.
    first_index: u64,
}

impl EventBuffer {
    fn ring(&self) -> MutexGuard<'_, EventRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventRing {
    /// Index of the next event.
    fn next_index(&self) -> u64 {
        self.first_index + self.items.len() as u64
    }

    fn push(&mut self, observed: ObservedEvent) {
        if self.items.len() == BUFFER_CAPACITY {
            self.items.pop_front();
            self.first_index += 1;
        }
        self.items.push_back(observed);
    }
}

/// Sending half, owned by the session task.
pub(crate) struct EventPublisher {
    buffer: Arc<EventBuffer>,
    changed: watch::Sender<()>,
    projection: Projection,
    /// True for a candidate, whose group publishes the end.
    is_candidate: bool,
}

/// Receiving half, owned by the session's handles.
#[derive(Clone)]
pub(crate) struct EventSource {
    buffer: Arc<EventBuffer>,
    changed: watch::Receiver<()>,
}

/// Creates both halves.
pub(crate) fn observer_channel() -> (EventPublisher, EventSource) {
    let buffer = Arc::new(EventBuffer {
        epoch: turnery_store::new_uuid(),
        ring: Mutex::default(),
    });
    let (sender, receiver) = watch::channel(());
    let source = EventSource {
        buffer: Arc::clone(&buffer),
        changed: receiver,
    };
    let publisher = EventPublisher {
        buffer,
        changed: sender,
        projection: Projection::default(),
        is_candidate: false,
    };
    (publisher, source)
}

impl EventPublisher {
    /// Creates the publisher of a candidate, which publishes to the same observers.
    pub(crate) fn for_candidate(&self) -> Self {
        Self {
            buffer: Arc::clone(&self.buffer),
            changed: self.changed.clone(),
            projection: Projection::default(),
            is_candidate: true,
        }
    }

    pub(crate) fn push(&mut self, event: &Event) {
        let mut ring = self.buffer.ring();
        if !ring.is_observed {
            self.projection.project_unobserved(event);
            return;
        }
        let observed = match &event.kind {
            EventKind::LoopEnd { .. } if self.is_candidate => None,
            EventKind::LoopEnd { .. } | EventKind::ParallelEnd { .. } => observed_end(event),
            _ => self.projection.project(event).map(ObservedEvent::Activity),
        };
        if let Some(observed) = observed {
            ring.push(observed);
            drop(ring);
            self.changed.send_replace(());
        }
    }

    /// Publishes the end of a loop or a group. Ignores other events, which a candidate has published already.
    pub(crate) fn push_end(&self, event: &Event) {
        if let Some(observed) = observed_end(event) {
            self.publish(observed);
        }
    }

    /// Publishes that these candidates begin.
    pub(crate) fn push_candidates(&self, loop_ids: &[LoopId]) {
        self.publish(ObservedEvent::CandidatesStarted {
            loop_ids: loop_ids.to_vec(),
        });
    }

    fn publish(&self, observed: ObservedEvent) {
        let mut ring = self.buffer.ring();
        if ring.is_observed {
            ring.push(observed);
            drop(ring);
            self.changed.send_replace(());
        }
    }
}

/// Returns the end of a loop or a group; `None` for other events.
fn observed_end(event: &Event) -> Option<ObservedEvent> {
    match &event.kind {
        EventKind::LoopEnd { outcome, .. } => Some(ObservedEvent::Committed {
            loop_id: event.loop_id.clone(),
            outcome: outcome.clone(),
        }),
        EventKind::ParallelEnd { winner, .. } => Some(ObservedEvent::WinnerSelected {
            loop_id: winner.clone(),
        }),
        _ => None,
    }
}

impl EventSource {
    /// Creates an observer that starts now or at a cursor.
    pub(crate) fn observe(&self, after: Option<&ObserverCursor>) -> Observer {
        let mut ring = self.buffer.ring();
        let end = ring.next_index();
        ring.is_observed = true;
        drop(ring);
        let place = match after {
            None => Some(end),
            Some(cursor) => self.parse_position(cursor).filter(|place| *place <= end),
        };
        Observer {
            source: self.clone(),
            position: place,
        }
    }

    fn parse_position(&self, cursor: &ObserverCursor) -> Option<u64> {
        let (epoch, place) = cursor.0.split_once('.')?;
        (epoch == self.buffer.epoch.simple().to_string())
            .then(|| place.parse().ok())
            .flatten()
    }
}

/// Reads the observed events of a session.
pub struct Observer {
    source: EventSource,
    /// Index of the next event to read; `None` for an unknown cursor, which yields a gap.
    position: Option<u64>,
}

impl Observer {
    /// Returns the cursor after the last event that was read.
    #[must_use]
    pub fn cursor(&self) -> ObserverCursor {
        let buffer = &self.source.buffer;
        let place = self.position.unwrap_or_else(|| buffer.ring().first_index);
        ObserverCursor(format!("{}.{place}", buffer.epoch.simple()))
    }

    /// Returns the next event; `None` after the session is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<ObservedEvent> {
        loop {
            self.source.changed.mark_unchanged();
            if let Some(observed) = self.next_buffered() {
                return Some(observed);
            }
            if self.source.changed.changed().await.is_err() {
                return self.next_buffered();
            }
        }
    }

    fn next_buffered(&mut self) -> Option<ObservedEvent> {
        let ring = self.source.buffer.ring();
        let Some(place) = self.position.filter(|place| *place >= ring.first_index) else {
            self.position = Some(ring.first_index);
            return Some(ObservedEvent::Gap);
        };
        let at = usize::try_from(place - ring.first_index).ok()?;
        let observed = ring.items.get(at)?.clone();
        self.position = Some(place + 1);
        Some(observed)
    }
}
