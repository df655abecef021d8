//! Defines the error of all stores.

use turnery_engine::{LoopId, SessionId};

/// Error of a store operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No such session.
    #[error("there is no session {0}; list the sessions to see which there are")]
    NotFound(SessionId),
    /// A session with this id already exists.
    #[error("session {0} exists already")]
    Exists(SessionId),
    /// The session is in use elsewhere.
    #[error("session {session} is busy: {holder} is at work in it")]
    Busy {
        /// Id of the session.
        session: SessionId,
        /// Description of the holder.
        holder: String,
    },
    /// Another owner has claimed the lane.
    #[error("somebody else has taken over session {0}")]
    LaneLost(SessionId),
    /// The head version is not the expected one.
    #[error("session has changed: expected version {expected}, found {actual}")]
    HeadConflict {
        /// Version that the caller expected.
        expected: u64,
        /// Version of the session.
        actual: u64,
    },
    /// A loop with this id was committed before, with different content.
    #[error("loop {0} was stored already, with other content")]
    CommitMismatch(LoopId),
    /// The cursor was not issued by this store, or not for this session.
    #[error("{0:?} is not a cursor from here; start again without one")]
    BadCursor(String),
    /// Any other failure: the database is damaged, full, locked, or of a newer version, the store cannot keep
    /// up, or the call is invalid. The message says what failed; for a database it has the path and what to
    /// do.
    #[error("{0}")]
    Broken(String),
}
