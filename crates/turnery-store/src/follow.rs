//! Follows a session that may run in another process: stored loops first, then what is journalled of the running ones.
//!
//! A store reads what is new after a cursor; `merge` turns it into updates, each with the cursor after
//! it. A follower sees whole messages and tool calls, as they are journalled, but no fragments of them.

mod cursor;
mod merge;

pub use cursor::{FollowCursor, FollowCursorError};
#[cfg(feature = "postgres")]
pub(crate) use merge::is_journal_continued;
pub(crate) use merge::{FollowRead, JournalledEvents, StoredLoop, merge};

use crate::{Damage, StoreError};
use serde::Serialize;
use std::time::Duration;
use tokio::{sync::watch, time::timeout};
use turnery_engine::{Event, LoopId, LoopStatus};

/// Longest time that [`Store::wait_for_change`](crate::Store::wait_for_change) waits.
pub const MAX_CHANGE_WAIT: Duration = Duration::from_secs(5);

/// Number of events after which a page ends with the next stored loop.
pub(crate) const FOLLOW_PAGE_EVENTS: usize = 256;

/// Size of stored events after which a page ends with the next stored loop. Unit: bytes.
pub(crate) const FOLLOW_PAGE_BYTES: usize = 1 << 20;

/// Place from which a session is followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FollowFrom {
    /// First loop.
    #[default]
    Start,
    /// First loop that is not stored yet: the running one, if there is one.
    Now,
    /// Place after an update that was seen before.
    After(FollowCursor),
}

/// News of a followed session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "update", rename_all = "snake_case")]
pub enum FollowUpdate {
    /// Next event of a loop. [`LoopEnd`](turnery_engine::EventKind::LoopEnd) and
    /// [`ParallelEnd`](turnery_engine::EventKind::ParallelEnd) follow once the loop is stored;
    /// [`Delta`](turnery_engine::EventKind::Delta) is omitted.
    Event(Box<Event>),
    /// All events of a loop were sent, and the loop is stored.
    LoopStored {
        /// The loop.
        loop_id: LoopId,
        /// Head version of the session that stored the loop.
        version: u64,
        /// Status; [`Aborted`](LoopStatus::Aborted) if the process that ran the loop has ended.
        status: LoopStatus,
        /// False if the next prompt does not follow the loop.
        on_chain: bool,
    },
    /// The events of a loop that were sent are void: it was given up, or has begun differently. If it was begun
    /// again, all its events follow.
    Withdrawn {
        /// The loop.
        loop_id: LoopId,
    },
    /// A stored loop is unreadable and left out.
    Damaged(Damage),
}

/// Update with the cursor after it.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowItem {
    /// The update.
    pub update: FollowUpdate,
    /// Place after the update.
    pub cursor: FollowCursor,
}

/// Updates of a session, as returned by [`Store::follow_page`](crate::Store::follow_page).
#[derive(Clone, Debug, PartialEq)]
pub struct FollowPage {
    /// Updates in order.
    pub items: Vec<FollowItem>,
    /// Place after the page.
    pub cursor: FollowCursor,
    /// True if more can be read at once.
    pub has_more: bool,
}

/// State of the changes of a session, to be compared with a later one of the same store value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeMark(u64);

impl ChangeMark {
    /// Wraps the state that a store counts.
    #[must_use]
    pub fn new(state: u64) -> Self {
        Self(state)
    }

    /// Returns the wrapped state.
    #[must_use]
    pub fn state(self) -> u64 {
        self.0
    }
}

/// Waits until the count of changes differs from `since`.
pub(crate) async fn wait_for_change(
    mut changes: watch::Receiver<u64>,
    since: Option<ChangeMark>,
) -> Result<ChangeMark, StoreError> {
    if let Some(since) = since {
        let changed = changes.wait_for(|count| *count != since.state());
        // An error says that the store has ended, which the next call of it reports.
        let _ = timeout(MAX_CHANGE_WAIT, changed).await;
    }
    let count = *changes.borrow();
    Ok(ChangeMark::new(count))
}
