//! Makes the loops of simulated prompts.

use crate::samples;
use std::{sync::Arc, time::Duration};
use turnery_engine::{Event, EventKind, LoopId, LoopRecord, SessionId};

/// State of a session as its agent knows it.
#[derive(Clone, Debug)]
pub(crate) struct KnownState {
    pub(crate) head: u64,
    pub(crate) tip: Option<LoopId>,
    pub(crate) last_number: u64,
}

/// Number of events of a loop that are journalled. The last event is stored with the commit.
pub(crate) const JOURNALLED_EVENTS: usize = 8;

/// A loop that a prompt may run.
#[derive(Clone, Debug)]
pub(crate) struct PromptLoop {
    pub(crate) session: SessionId,
    pub(crate) number: u32,
    /// Distinguishes the loop from any other with the same id: part of all its times, in microseconds.
    pub(crate) mark: u32,
    pub(crate) parent: Option<LoopId>,
}

impl PromptLoop {
    pub(crate) fn id(&self) -> LoopId {
        samples::loop_id(self.session.as_str(), self.number)
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let events = samples::events(self.session.as_str(), self.number, "Why?");
        self.adapt(events)
    }

    pub(crate) fn record(&self, on_chain: bool) -> Arc<LoopRecord> {
        let mut record = samples::record(self.session.as_str(), self.number, "Why?");
        record.on_chain = on_chain;
        record.events = self.adapt(record.events);
        record.parent_loop_id = self.parent.clone();
        record.started_at += self.delay();
        record.ended_at = record.ended_at.map(|at| at + self.delay());
        for turn in &mut record.turns {
            turn.started_at += self.delay();
            turn.ended_at = turn.ended_at.map(|at| at + self.delay());
        }
        Arc::new(record)
    }

    fn delay(&self) -> Duration {
        Duration::from_micros(self.mark.into())
    }

    fn adapt(&self, mut events: Vec<Event>) -> Vec<Event> {
        for event in &mut events {
            event.at += self.delay();
        }
        if let EventKind::LoopStart { parent_loop_id, .. } = &mut events[0].kind {
            parent_loop_id.clone_from(&self.parent);
        }
        events
    }
}

/// Returns the mark of the loop to which an event belongs.
pub(crate) fn mark_of(event: &Event) -> u32 {
    event.at.timestamp_subsec_micros()
}
