//! Answers questions about a whole store by reading its sessions one by one.

use crate::{ArchivedFilter, DailyUsage, ListQuery, Store, StoreError, upkeep::UsageByDay};
use turnery_engine::{SessionId, Timestamp};

/// Number of sessions read at a time.
const PAGE: usize = 1000;

/// Returns the ids of all sessions.
pub(crate) async fn all_sessions<S: Store + ?Sized>(
    store: &S,
) -> Result<Vec<SessionId>, StoreError> {
    let mut query = ListQuery {
        spawned: true,
        archived: ArchivedFilter::Include,
        limit: PAGE,
        ..ListQuery::default()
    };
    let mut ids = Vec::new();
    loop {
        let page = store.list(query.clone()).await?;
        ids.extend(page.sessions.into_iter().map(|session| session.id));
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(ids),
        }
    }
}

/// Adds up the usage of all sessions by reading their loops: for stores without a faster way.
pub(crate) async fn daily_usage<S: Store + ?Sized>(
    store: &S,
    since: Option<Timestamp>,
) -> Result<Vec<DailyUsage>, StoreError> {
    let mut rows = Vec::new();
    for id in all_sessions(store).await? {
        let loops = match store.loops(&id, 0).await {
            // Deleted meanwhile.
            Err(StoreError::NotFound(_)) => continue,
            loops => loops?,
        };
        let mut usage = UsageByDay::default();
        for record in &loops {
            usage.add(record, since);
        }
        rows.extend(usage.into_rows(&id));
    }
    rows.sort_by(|a, b| (&a.session_id, &a.day, &a.model).cmp(&(&b.session_id, &b.day, &b.model)));
    Ok(rows)
}

/// Returns the size of a session's loops in JSON: for stores that do not know what they use.
pub(crate) async fn json_size<S: Store + ?Sized>(
    store: &S,
    id: &SessionId,
) -> Result<u64, StoreError> {
    let loops = store.loops(id, 0).await?;
    let bytes = loops.iter().map(|record| {
        let json = serde_json::to_vec(&**record);
        json.map_or(0, |json| json.len() as u64)
    });
    Ok(bytes.sum())
}
