//! Reads what is new to a follower, and waits for it.

use super::{
    columns::text,
    job_error::{JobError, reason_if_damaged},
    journal, loops,
    stored_loop::{LOG_COLUMN, SELECT_LOOP, is_set_aside},
    worker::Worker,
};
use crate::{
    ChangeMark, FollowCursor, FollowFrom, FollowPage, MAX_CHANGE_WAIT, StoreError,
    follow::{
        FOLLOW_PAGE_BYTES, FOLLOW_PAGE_EVENTS, FollowRead, JournalledEvents, StoredLoop, merge,
    },
};
use rusqlite::{Connection, OptionalExtension as _};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use turnery_engine::{LoopId, SessionId};

/// Interval at which a follower looks for changes of the database.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of newer loops of all sessions up to which those of one session are found among them.
const FEW_LOOPS: i64 = 64;

const SELECT_NEWEST: &str =
    "SELECT loop, loop_id FROM loops WHERE session_id = ?1 ORDER BY loop DESC LIMIT 1";

/// Keys after a loop, found among the newest loops of all sessions.
const SELECT_KEYS_AMONG_NEWEST: &str =
    "SELECT loop FROM loops NOT INDEXED WHERE loop > ?2 AND session_id = ?1";

/// Keys after a loop, found in the index by session.
const SELECT_KEYS: &str = "SELECT loop FROM loops WHERE session_id = ?1 AND loop > ?2";

/// Waits until another connection has changed the database.
pub(super) async fn wait_for_change(
    reader: &Worker,
    since: Option<ChangeMark>,
) -> Result<ChangeMark, StoreError> {
    let end = Instant::now() + MAX_CHANGE_WAIT;
    loop {
        let version = reader
            .call(|db| {
                let version = db
                    .sql
                    .pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))?;
                Ok(version.unsigned_abs())
            })
            .await?;
        let mark = ChangeMark::new(version);
        if since != Some(mark) || Instant::now() >= end {
            return Ok(mark);
        }
        sleep(POLL_INTERVAL).await;
    }
}

pub(super) fn read_page(
    db: &mut Connection,
    id: &SessionId,
    from: FollowFrom,
) -> Result<FollowPage, JobError> {
    // One snapshot of journal and loops.
    let db = db.transaction()?;
    let mut select = db.prepare_cached("SELECT created_at FROM sessions WHERE session_id = ?1")?;
    let created_at: Option<String> = select
        .query_row((id.as_str(),), |row| row.get(0))
        .optional()?;
    let created_at = created_at.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    let cursor = match from {
        FollowFrom::Start => FollowCursor::new(&created_at, None),
        FollowFrom::Now => FollowCursor::new(&created_at, newest_loop(&db, id)?),
        FollowFrom::After(cursor) => {
            cursor.check_session(&created_at)?;
            cursor
        }
    };
    let mut read = FollowRead::default();
    read_loops(&db, id, &cursor, &mut read)?;
    if !read.has_more {
        read.journal = read_journal(&db, id, &cursor)?;
    }
    Ok(merge(cursor, read))
}

fn newest_loop(db: &Connection, id: &SessionId) -> Result<Option<LoopId>, JobError> {
    let mut select = db.prepare_cached(SELECT_NEWEST)?;
    let mut rows = select.query((id.as_str(),))?;
    Ok(match rows.next()? {
        Some(row) => Some(text(row, 1)?.into()),
        None => None,
    })
}

/// Returns the keys of the loops after the cursor, in commit order. Does not look at older loops if few loops of any
/// session are newer; otherwise reads the index by session.
fn keys_after(
    db: &Connection,
    id: &SessionId,
    cursor: &FollowCursor,
) -> Result<Vec<i64>, JobError> {
    let after = match cursor.after() {
        Some(loop_id) => {
            let mut select =
                db.prepare_cached("SELECT loop FROM loops WHERE session_id = ?1 AND loop_id = ?2")?;
            let key = select
                .query_row((id.as_str(), loop_id.as_str()), |row| row.get::<_, i64>(0))
                .optional()?;
            key.ok_or_else(|| cursor.error())?
        }
        None => 0,
    };
    let mut select = db.prepare_cached("SELECT coalesce(max(loop), 0) FROM loops")?;
    let newest: i64 = select.query_row([], |row| row.get(0))?;
    let sql = match newest - after {
        ..=0 => return Ok(Vec::new()),
        1..=FEW_LOOPS => SELECT_KEYS_AMONG_NEWEST,
        _ => SELECT_KEYS,
    };
    let mut select = db.prepare_cached(sql)?;
    let keys = select.query_map((id.as_str(), after), |row| row.get(0))?;
    let mut keys = keys.collect::<Result<Vec<i64>, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

/// Reads stored loops until the page is full.
fn read_loops(
    db: &Connection,
    id: &SessionId,
    cursor: &FollowCursor,
    read: &mut FollowRead,
) -> Result<(), JobError> {
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let (mut events, mut bytes) = (0, 0);
    for key in keys_after(db, id, cursor)? {
        if events >= FOLLOW_PAGE_EVENTS || bytes >= FOLLOW_PAGE_BYTES {
            read.has_more = true;
            break;
        }
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if is_set_aside(row)? {
            continue;
        }
        let record = match loops::is_suspect(row, id)? {
            false => reason_if_damaged(loops::read_record_with_events(
                db,
                row,
                id,
                &mut String::new(),
            ))?,
            true => Err("its checksum does not match".to_owned()),
        };
        // A row without a readable id is only found by a check.
        let Ok(loop_id) = text(row, 1) else { continue };
        bytes += text(row, LOG_COLUMN).map_or(0, str::len);
        let found = match record {
            Ok(record) => {
                events += record.events.len();
                Ok(StoredLoop {
                    version: row.get(0)?,
                    record: Arc::new(record),
                })
            }
            Err(reason) => Err(reason),
        };
        read.add_loop(id, loop_id.into(), found);
    }
    Ok(())
}

/// Reads the rows of the running loops: of an open loop those from its last one on, unless it was written again.
fn read_journal(
    db: &Connection,
    id: &SessionId,
    cursor: &FollowCursor,
) -> Result<Vec<JournalledEvents>, JobError> {
    let mut loops: BTreeSet<_> = journal::journalled_loops(db, id)?
        .into_iter()
        .map(|it| it.to_string())
        .collect();
    loops.extend(journal::begun_loop(db, id)?.map(|it| it.to_string()));
    let mut journal = Vec::new();
    for loop_id in loops {
        let loop_id = LoopId::from(loop_id);
        let start = cursor.row_start(&loop_id).unwrap_or(0);
        let mut rows = journal::read_from(db, id, &loop_id, start)?;
        if start > 0 && !cursor.is_continued(&loop_id, rows.iter().flatten()) {
            rows = journal::read_from(db, id, &loop_id, 0)?;
        }
        journal.extend(rows.into_iter().map(|events| JournalledEvents {
            loop_id: loop_id.clone(),
            entry: 0,
            events,
        }));
    }
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{claim::tests::*, db::Db},
        *,
    };

    /// Counts the SQLite instructions of the page after the newest loop of a session with this many loops.
    fn count_follow_steps(loop_count: u64) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let (mut db, ids) = open_with_sessions(&folder.path().join("sessions.db"), 2);
        for number in 1..=loop_count {
            claim_and_commit(&mut db, &ids[0], number);
        }
        let page = read_page(&mut db.sql, &ids[0], FollowFrom::Now).unwrap();
        claim_and_commit(&mut db, &ids[1], 1);
        claim_and_commit(&mut db, &ids[0], loop_count + 1);
        let read_new =
            |db: &mut Db| read_page(&mut db.sql, &ids[0], FollowFrom::After(page.cursor)).unwrap();
        let (page, steps) = count_steps(&mut db, read_new);
        assert_eq!(page.items.len(), 1);
        steps
    }

    #[test]
    fn follow_steps_do_not_grow_with_the_session() {
        let few = count_follow_steps(3);
        assert!(few > 0);
        assert_eq!(count_follow_steps(100), few);
    }
}
