//! Stores sessions on disk. A lane allows one writer per session at a time; commits are atomic.

// Samples of tests name this crate.
#[cfg(test)]
extern crate self as turnery_store;

pub mod clock;
pub mod damage;
mod durability;
mod effect_hold;
mod encoding;
pub mod export;
pub mod follow;
mod journal_append;
mod lease;
pub mod lineage;
mod list_cursor;
pub mod memory;
pub mod migrate;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod owner;
pub mod pending_effect;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod queued_prompt;
mod recovery;
pub mod replay;
#[cfg(test)]
#[path = "../tests/battery/samples.rs"]
#[expect(dead_code, reason = "some samples are for other tests")]
mod samples;
pub mod search;
pub mod session_follower;
#[cfg(test)]
mod simulation;
pub mod sqlite;
pub mod store;
pub mod store_error;
mod store_walk;
pub mod upkeep;

pub use clock::{Clock, new_uuid, now};
pub use damage::{Damage, DamagedPart, History, RepairReport};
pub use durability::Durability;
pub use export::{ImportError, SessionDocument};
pub use follow::{
    ChangeMark, FollowCursor, FollowCursorError, FollowFrom, FollowItem, FollowPage, FollowUpdate,
    MAX_CHANGE_WAIT,
};
pub use lease::LEASE_DURATION;
pub use list_cursor::PAGE_SIZE;
pub use memory::MemoryStore;
pub use pending_effect::{MAX_EFFECT_DELAY, NextEffect, PendingEffect, TakenEffect};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresAddress, PostgresAddressError, PostgresStore};
pub use queued_prompt::{PromptRemoval, QueuedPrompt};
pub use replay::{REPLAY_PAGE_EVENTS, ReplayCursor, ReplayPage};
pub use search::{SEARCH_PAGE_SIZE, SearchHit, SearchPage, SearchQuery};
pub use session_follower::{FollowUpdates, SessionFollower};
pub use sqlite::{InlineRuntime, SqliteStore, yield_to_ready_tasks};
pub use store::{
    ArchivedFilter, ClaimOutcome, ClaimedLane, Commit, Lane, ListPage, ListQuery, LoopBeginning,
    NewSession, Owner, RememberedApproval, SessionInfo, SessionPatch, SpawnRef, Store, StoreFuture,
    TranscriptNote,
};
pub use store_error::StoreError;
pub use upkeep::{DailyUsage, SpaceReport, StoreDescription};
