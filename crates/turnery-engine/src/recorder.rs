//! Recorder: a pure fold over the event stream. Replaying a stored stream gives an equal record (TURN-5).

use crate::{Event, LoopRecord};

/// Folds the events of one loop into its record.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    record: Option<LoopRecord>,
}

impl Recorder {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Take in one event. Streaming fragments leave no trace but the gap in `seq`.
    pub fn fold(&mut self, _event: &Event) {}

    /// The record so far; `None` before `LoopStart`.
    #[must_use]
    pub fn record(&self) -> Option<&LoopRecord> {
        self.record.as_ref()
    }

    /// The record, for the commit.
    #[must_use]
    pub fn into_record(self) -> Option<LoopRecord> {
        self.record
    }
}
