//! Defines the pages in which a conversation is replayed. A long loop spans several pages, so that the first
//! events are shown early and memory use stays bounded.

use crate::{Damage, StoreError};
use std::{any::Any, fmt, sync::Arc};
use turnery_engine::{Event, LoopRecord};

/// Maximum number of events in a page. A store may end a page earlier if events are large.
pub const REPLAY_PAGE_EVENTS: usize = 256;

/// One page of a replayed conversation, as returned by [`Store::replay_page`](crate::Store::replay_page).
#[derive(Debug, Default)]
pub struct ReplayPage {
    /// Events in order, without transient ones.
    pub events: Vec<Event>,
    /// Loops whose last event is in this page, without their events.
    pub loops: Vec<Arc<LoopRecord>>,
    /// Damage found while reading this page; the first page reports everything known to be missing.
    pub damage: Vec<Damage>,
    /// True if the pages have all loops of the session. Set in the first page only.
    pub has_all_loops: bool,
    /// Cursor of the next page; `None` at the end.
    pub next_cursor: Option<ReplayCursor>,
}

/// Position in a replayed conversation. Opaque except to the store that created it.
pub struct ReplayCursor(Box<dyn Any + Send>);

impl ReplayCursor {
    /// Wraps the position of a store.
    #[must_use]
    pub fn new<T: Any + Send>(position: T) -> Self {
        Self(Box::new(position))
    }

    /// Returns the wrapped position. Fails if the cursor comes from another kind of store.
    pub fn into_position<T: Any>(self) -> Result<T, StoreError> {
        let position = self.0.downcast().map(|position| *position);
        position.map_err(|_| StoreError::Broken("a page of another store was asked for".to_owned()))
    }
}

impl fmt::Debug for ReplayCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayCursor").finish_non_exhaustive()
    }
}
