//! Follows a session until the caller stops, over changes and lost connections.

use crate::{ChangeMark, FollowCursor, FollowFrom, FollowItem, Store, StoreError};
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use std::{collections::VecDeque, sync::Arc};
use turnery_engine::SessionId;

/// Stream of the updates of a session.
pub type FollowUpdates = BoxStream<'static, Result<FollowItem, StoreError>>;

/// Follower of one session, which any process may run. Reads the store only.
///
/// Each update comes with the cursor after it: a follower that begins there, in any process, goes on with the next
/// update.
pub struct SessionFollower {
    store: Arc<dyn Store>,
    id: SessionId,
    /// Place from which the store is read next.
    next: FollowFrom,
    /// Updates that were read and not returned.
    read: VecDeque<FollowItem>,
    has_more: bool,
    /// Changes known before the last read.
    mark: Option<ChangeMark>,
}

impl SessionFollower {
    /// Creates a follower. Nothing is read before the first call.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, id: SessionId, from: FollowFrom) -> Self {
        Self {
            store,
            id,
            next: from,
            read: VecDeque::new(),
            has_more: true,
            mark: None,
        }
    }

    /// Returns the next update, and waits for it. Cancel safe. An error loses nothing: the next call tries again from
    /// the same place.
    ///
    /// Fails with [`StoreError::NotFound`] once the session is deleted, and with [`StoreError::BadCursor`] if the
    /// cursor to begin with is not of this session.
    pub async fn next(&mut self) -> Result<FollowItem, StoreError> {
        loop {
            match self.next_ready().await? {
                Some(item) => return Ok(item),
                None => self.wait().await?,
            }
        }
    }

    /// Returns the next update; `None` if there is none now. Cancel safe. Fails like [`next`](Self::next).
    pub async fn next_ready(&mut self) -> Result<Option<FollowItem>, StoreError> {
        loop {
            if let Some(item) = self.read.pop_front() {
                return Ok(Some(item));
            }
            if !self.has_more {
                return Ok(None);
            }
            if self.mark.is_none() {
                self.mark = Some(self.store.wait_for_change(&self.id, None).await?);
            }
            let page = self.store.follow_page(&self.id, self.next.clone()).await?;
            self.next = FollowFrom::After(page.cursor);
            self.has_more = page.has_more;
            self.read = page.items.into();
        }
    }

    /// Waits until there may be more updates. Cancel safe. Fails like [`next`](Self::next).
    pub async fn wait(&mut self) -> Result<(), StoreError> {
        let mark = self.store.wait_for_change(&self.id, self.mark).await?;
        let is_changed = self.mark.replace(mark) != Some(mark);
        if !is_changed && self.has_open_loops() {
            // The process that runs the loop may have ended. A store that cannot be written is followed all the same.
            if let Err(error) = self.store.recover(&self.id).await {
                tracing::debug!(%error, "a followed session was not recovered");
            }
        }
        self.has_more = true;
        Ok(())
    }

    /// Returns true if a loop was running when the store was read last.
    #[must_use]
    pub fn has_open_loops(&self) -> bool {
        match &self.next {
            FollowFrom::After(cursor) => cursor.has_open_loops(),
            FollowFrom::Start | FollowFrom::Now => false,
        }
    }

    /// Returns the place up to which the store was read; `None` before the first read.
    #[must_use]
    pub fn read_cursor(&self) -> Option<&FollowCursor> {
        match &self.next {
            FollowFrom::After(cursor) => Some(cursor),
            FollowFrom::Start | FollowFrom::Now => None,
        }
    }

    /// Returns a stream of [`next`](Self::next). It ends only after [`StoreError::NotFound`] and
    /// [`StoreError::BadCursor`]; after other errors, whose cause may pass, it goes on when it is polled again.
    #[must_use]
    pub fn into_stream(self) -> FollowUpdates {
        unfold(Some(self), async |follower| {
            let mut follower = follower?;
            let next = follower.next().await;
            let is_over = matches!(
                next,
                Err(StoreError::NotFound(_) | StoreError::BadCursor(_))
            );
            Some((next, (!is_over).then_some(follower)))
        })
        .boxed()
    }
}
