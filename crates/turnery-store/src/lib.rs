//! Stores sessions on disk. A lane allows one writer per session at a time; commits are atomic.

pub mod clock;
pub mod damage;
pub mod export;
mod lease;
pub mod lineage;
mod list_cursor;
pub mod memory;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod owner;
mod recovery;
pub mod replay;
pub mod sqlite;
pub mod store;

pub use clock::{Clock, new_uuid, now};
pub use damage::{Damage, DamagedPart, History, RepairReport};
pub use export::{ImportError, SessionDocument};
pub use memory::MemoryStore;
pub use replay::{REPLAY_PAGE_EVENTS, ReplayCursor, ReplayPage};
pub use sqlite::{InlineRuntime, SqliteStore};
pub use store::{
    ArchivedFilter, ClaimOutcome, ClaimedLane, Commit, Lane, ListPage, ListQuery, LoopBeginning,
    NewSession, Owner, RememberedApproval, SessionInfo, SessionPatch, SpawnRef, Store, StoreError,
    TranscriptNote,
};

/// Period after which a lane expires unless it is renewed.
pub const LEASE_DURATION: std::time::Duration = std::time::Duration::from_secs(30);

/// Longest time a commit waits for another program's lock. Generous, because the model's response has been
/// paid for.
pub(crate) const COMMIT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Number of sessions in a page of [`Store::list`] if the query sets no limit.
pub const PAGE_SIZE: usize = 100;
