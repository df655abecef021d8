//! Damage: parts of a store that cannot be read, or that differ from what was written.

use serde::Serialize;
use std::{fmt, path::PathBuf, sync::Arc};
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// One damaged part of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Session that the part belongs to; `None` for the database as a whole.
    pub session_id: Option<SessionId>,
    /// The damaged part.
    #[serde(flatten)]
    pub part: DamagedPart,
    /// Predicate of a sentence whose subject is the part, for example "cannot be read: ...".
    pub reason: String,
}

/// Kind of a damaged part, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum DamagedPart {
    /// The database file: its pages, indexes, or rows that belong to no session.
    Database,
    /// The row of the session itself.
    Session,
    /// The reference to the loop that the next prompt follows.
    Tip,
    /// The content of a loop.
    Loop {
        /// Id of the loop.
        loop_id: LoopId,
    },
    /// The reference from a loop to the loop before it.
    Parent {
        /// Id of the loop that holds the reference.
        loop_id: LoopId,
    },
    /// A note in the transcript (see [`TranscriptNote`](crate::TranscriptNote)).
    #[serde(rename = "remark")]
    Note {
        /// Key of its row.
        #[serde(rename = "remark")]
        note: i64,
    },
    /// Journalled events of a loop that was never committed.
    Journal {
        /// Id of the loop.
        loop_id: LoopId,
    },
    /// An effect of a tool that was not delivered yet (see [`PendingEffect`](crate::PendingEffect)).
    Effect {
        /// Key of its row.
        effect: i64,
    },
}

impl Damage {
    pub(crate) fn new(session: &SessionId, part: DamagedPart, reason: impl Into<String>) -> Self {
        Self {
            session_id: Some(session.clone()),
            part,
            reason: reason.into(),
        }
    }

    pub(crate) fn in_database(reason: impl Into<String>) -> Self {
        Self {
            session_id: None,
            part: DamagedPart::Database,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            DamagedPart::Database => f.write_str("the database")?,
            DamagedPart::Session => f.write_str("the session's own row")?,
            DamagedPart::Tip => f.write_str("the reference to the last loop")?,
            DamagedPart::Loop { loop_id } | DamagedPart::Parent { loop_id } => {
                write!(f, "loop {loop_id}")?;
            }
            DamagedPart::Note { note } => write!(f, "note {note} of the transcript")?,
            DamagedPart::Effect { effect } => write!(f, "effect {effect}")?,
            DamagedPart::Journal { loop_id } => write!(f, "the journal of loop {loop_id}")?,
        }
        write!(f, " {}", self.reason)
    }
}

/// Loops that the next prompt follows, as returned by [`Store::history`](crate::Store::history).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Readable loops, oldest first, without their events. The parent of each is the nearest readable
    /// ancestor.
    pub loops: Vec<Arc<LoopRecord>>,
    /// Damage among these loops; empty if the session is undamaged.
    pub damage: Vec<Damage>,
    /// True if these are all loops of the session: none was rejected, for example.
    pub has_all_loops: bool,
}

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Copy of the whole database from before the repair; `None` if nothing had to be changed.
    pub backup: Option<PathBuf>,
    /// Changes made, one sentence each.
    pub changes: Vec<String>,
    /// Damage that remains.
    pub left: Vec<Damage>,
}
