//! Page: a part of a conversation that is shown again. A loop of any length is shown in pages too, so
//! that nobody waits for its end, and nobody holds all that happened in it.

use crate::{Damage, StoreError};
use std::{any::Any, fmt, sync::Arc};
use turnery_engine::{Event, LoopRecord};

/// Events in a page, at most. A store may end one sooner, where they are large.
pub const PAGE_EVENTS: usize = 256;

/// A part of a conversation, as [`Store::shown`](crate::Store::shown) reads it.
#[derive(Debug, Default)]
pub struct Page {
    /// What happened, in order, but for the passing events.
    pub events: Vec<Event>,
    /// The loops of which this page has the last event, without their events.
    pub loops: Vec<Arc<LoopRecord>>,
    /// Damage met on the way to this page; the first page names all that is known to be missing.
    pub damage: Vec<Damage>,
    /// Asks for what follows; none at the end.
    pub rest: Option<Rest>,
}

/// What is left of a conversation that is being shown. Means something to its store only.
pub struct Rest(Box<dyn Any + Send>);

impl Rest {
    /// For a store: where it was.
    #[must_use]
    pub fn new<T: Any + Send>(left: T) -> Self {
        Self(Box::new(left))
    }

    /// For a store: where it was. Fails if another sort of store made this.
    pub fn left<T: Any>(self) -> Result<T, StoreError> {
        let left = self.0.downcast().map(|left| *left);
        left.map_err(|_| StoreError::Broken("a page of another store was asked for".to_owned()))
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").finish_non_exhaustive()
    }
}
