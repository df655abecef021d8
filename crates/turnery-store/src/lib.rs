//! Store: sessions on disk. Lanes keep two writers apart, a commit is all or nothing.

pub mod clock;
pub mod contract;
mod cursor;
pub mod damage;
pub mod export;
mod lease;
pub mod lineage;
pub mod memory;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod owner;
pub mod page;
mod recovery;
pub mod sqlite;

pub use clock::{Clock, new_uuid, now};
pub use contract::{
    Always, Archived, ClaimOutcome, Commit, Lane, ListPage, ListQuery, LoopBeginning, NewSession,
    Opened, Owner, Remark, SessionInfo, SessionPatch, SpawnRef, Store, StoreError,
};
pub use damage::{Damage, DamagedPart, History, Repair};
pub use export::{Document, ImportError};
pub use memory::MemoryStore;
pub use page::{PAGE_EVENTS, Page, Rest};
pub use sqlite::{Inline, SqliteStore};

/// How long a lane is held without being renewed. Renew well before.
pub const LANE_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// How long a commit may wait for the lock of another program: the model has been paid for its content.
pub(crate) const COMMIT_PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Sessions in a page of [`Store::list`] when the query does not say.
pub const PAGE_SIZE: usize = 100;
