//! Reads what is new to a follower.

use super::{
    connection::Connection,
    journal,
    loop_rows::{LoopRows, Selection},
    pg_error::PgError,
    rows::Columns,
};
use crate::{
    FollowCursor, FollowFrom, FollowPage, StoreError,
    encoding::row_error::RowError,
    follow::{
        FOLLOW_PAGE_BYTES, FollowRead, JournalledEvents, StoredLoop, is_journal_continued, merge,
    },
};
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Selects when a session was created, the key of the loop `$2`, and that of the newest loop with its id.
const SELECT_PLACE: &str = "SELECT s.created_at, \
     (SELECT l.loop FROM loops l WHERE l.session_id = $1 AND l.loop_id = $2), newest.loop, newest.loop_id \
     FROM sessions s LEFT JOIN LATERAL ( \
         SELECT l.loop, l.loop_id FROM loops l WHERE l.session_id = $1 ORDER BY l.loop DESC LIMIT 1) newest ON TRUE \
     WHERE s.session_id = $1";

/// Selects loops after a key, with the size of their events.
const SELECT_KEYS: &str = "SELECT loop, octet_length(log)::bigint FROM loops \
     WHERE session_id = $1 AND loop > $2 AND set_aside IS NULL ORDER BY loop LIMIT 64";

/// Limit in [`SELECT_KEYS`].
const MAX_LOOPS: usize = 64;

/// Place of a cursor in a session.
struct FollowPlace {
    created_at: String,
    /// Key of the last loop that was sent.
    after: Option<i64>,
    /// Newest loop: its key and id.
    newest: Option<(i64, LoopId)>,
}

impl FollowPlace {
    async fn read(
        connection: &Connection,
        id: &SessionId,
        after: Option<&LoopId>,
    ) -> Result<Self, PgError> {
        let after = after.map(LoopId::as_str);
        let row = connection
            .query_optional(SELECT_PLACE, &[&id.as_str(), &after])
            .await?;
        let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
        let row = Columns(&row);
        let newest = row.optional_integer(2)?;
        let newest = newest.zip(row.optional_text(3)?.map(LoopId::from));
        Ok(Self {
            created_at: row.text(0)?.to_owned(),
            after: row.optional_integer(1)?,
            newest,
        })
    }
}

pub(super) async fn read_page(
    connection: &Connection,
    id: &SessionId,
    from: &FollowFrom,
) -> Result<FollowPage, PgError> {
    let cursor = match from {
        FollowFrom::After(cursor) => cursor.clone(),
        FollowFrom::Start | FollowFrom::Now => {
            let place = FollowPlace::read(connection, id, None).await?;
            let newest = place.newest.map(|(_, loop_id)| loop_id);
            let after = newest.filter(|_| *from == FollowFrom::Now);
            FollowCursor::new(&place.created_at, after)
        }
    };
    // Before the loops: a loop that is stored meanwhile is found there.
    let journal = read_journal(connection, id, &cursor).await?;
    let place = FollowPlace::read(connection, id, cursor.after()).await?;
    cursor.check_session(&place.created_at)?;
    let after = match (cursor.after(), place.after) {
        (Some(_), None) => return Err(cursor.error().into()),
        (_, after) => after.unwrap_or(0),
    };
    let mut read = FollowRead {
        journal,
        ..FollowRead::default()
    };
    if place.newest.is_some_and(|(newest, _)| newest > after) {
        read_loops(connection, id, after, &mut read).await?;
    }
    Ok(merge(cursor, read))
}

/// Reads the rows of running loops that are new: those after the last one of the open loops, and, to compare it, the
/// last one of each open loop. If one of these has changed, all rows.
async fn read_journal(
    connection: &Connection,
    id: &SessionId,
    cursor: &FollowCursor,
) -> Result<Vec<JournalledEvents>, PgError> {
    let entries: Vec<i64> = cursor.open_entries().collect();
    let from = entries.iter().copied().max().unwrap_or(0);
    let journal = journal::read_for_follower(connection, id, from, &entries).await?;
    let is_continued = cursor
        .open_loops()
        .all(|loop_id| is_journal_continued(cursor, loop_id, &journal));
    match is_continued || from == 0 {
        true => Ok(journal),
        false => journal::read_for_follower(connection, id, 0, &[]).await,
    }
}

/// Reads stored loops until the page is full.
async fn read_loops(
    connection: &Connection,
    id: &SessionId,
    after: i64,
    read: &mut FollowRead,
) -> Result<(), PgError> {
    let rows = connection
        .query(SELECT_KEYS, &[&id.as_str(), &after])
        .await?;
    let (mut keys, mut bytes) = (Vec::new(), 0);
    for row in rows.iter().map(Columns) {
        if bytes >= FOLLOW_PAGE_BYTES {
            break;
        }
        keys.push(row.integer(0)?);
        bytes += usize::try_from(row.integer(1)?).unwrap_or(FOLLOW_PAGE_BYTES);
    }
    if keys.is_empty() {
        return Ok(());
    }
    read.has_more = rows.len() > keys.len() || rows.len() == MAX_LOOPS;
    let loops = LoopRows::read(connection, id, Selection::Keys(&keys)).await?;
    for row in loops.iter() {
        let record: Result<LoopRecord, RowError> =
            match row.is_head_intact()? && row.is_log_intact()? {
                true => row.read_record_with_events()?,
                false => Err(RowError::Invalid("its checksum does not match".to_owned())),
            };
        let found = match record {
            Ok(record) => Ok(StoredLoop {
                version: row.version()?,
                record: Arc::new(record),
            }),
            Err(reason) => Err(reason),
        };
        read.add_loop(id, row.loop_id()?.into(), found);
    }
    Ok(())
}
