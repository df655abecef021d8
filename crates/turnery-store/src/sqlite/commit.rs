//! Commit: loops and all that belongs to them, or nothing (S1 to S4, S6).

use super::{
    db::{Db, write},
    fault::Fault,
    journal::{self, no_beginning},
    lanes::{self, no_holder},
    loops::maybe,
    rows::Row,
    sessions,
};
use crate::{
    Commit, Lane, StoreError,
    cursor::{last_active, time_text},
    recovery::last_number,
};
use rusqlite::{Connection, params};
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// How the session stands, whether the lane is the caller's, and the loop if it is there already.
const CHECK: &str = "SELECT head_version, owner_id IS ?3 AND fence = ?4, version, parent_loop_id, \
     on_chain, continuation_kind, status, started_at, ended_at, record, messages, log \
     FROM sessions \
     LEFT JOIN loops ON loops.session_id = sessions.session_id AND loops.loop_id = ?2 \
     WHERE sessions.session_id = ?1";

const LOOP: &str = "INSERT INTO loops (session_id, version, loop_id, parent_loop_id, on_chain, \
     continuation_kind, status, started_at, ended_at, record, messages, log, checksum) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// Advances a session, and sets these columns too.
macro_rules! advance_and {
    ($set:expr) => {
        concat!(
            "UPDATE sessions SET head_version = ?2, loop_count = loop_count + ?3, \
             updated_at = max(updated_at, ?4), tip_loop_id = coalesce(?5, tip_loop_id), \
             title = coalesce(title, ?6), ",
            $set,
            " WHERE session_id = ?1"
        )
    };
}

const ADVANCE: &str = advance_and!(no_beginning!());
const ADVANCE_AND_RELEASE: &str = advance_and!(concat!(no_beginning!(), ", ", no_holder!()));

pub(super) fn commit(db: &mut Db, commit: &Commit) -> Result<u64, Fault> {
    let Commit { lane, records, .. } = commit;
    let clean = db.clean.get(&lane.session_id) == Some(&lane.fence);
    // Before the transaction if they are small: nobody else can write during it.
    let small = records.iter().map(|record| Row::small(record));
    let small: Vec<Option<Row>> = small.collect::<Result<_, Fault>>()?;
    let stored = write(&db.sql, |work| {
        if small.iter().any(Option::is_none) {
            // Texts can only be stored for a session that is there.
            sessions::get(work, &lane.session_id)?;
        }
        let rows = small
            .into_iter()
            .zip(records)
            .map(|(row, record)| match row {
                Some(row) => Ok(row),
                None => Row::large(work, record),
            });
        let rows: Vec<Row> = rows.collect::<Result<_, Fault>>()?;
        advance_by(work, commit, &rows, clean)
    })??;
    if stored.is_new
        && let Some(numbers) = db.numbers.get_mut(&lane.session_id)
    {
        numbers.add(&commit.records);
    }
    if commit.release {
        db.clean.remove(&lane.session_id);
    }
    Ok(stored.version)
}

/// Result of a commit.
struct CommitOutcome {
    /// Head version that the commit made.
    version: u64,
    /// False if an earlier try had stored the loops already.
    is_new: bool,
}

/// Stores the loops. The inner error is an answer for which something has been written all the
/// same.
fn advance_by(
    work: &Connection,
    commit: &Commit,
    rows: &[Row],
    clean: bool,
) -> Result<Result<CommitOutcome, StoreError>, Fault> {
    let Commit { lane, records, .. } = commit;
    let checks = records
        .iter()
        .zip(rows)
        .map(|(record, row)| check_loop(work, lane, record, row));
    let checks = checks.collect::<Result<Vec<LoopCheck>, Fault>>()?;
    let [first, ..] = &checks[..] else {
        return Err(Fault::Row("a commit without a loop".to_owned()));
    };
    // The answer to the first try got lost (S2).
    if let Some(version) = first.version
        && checks
            .iter()
            .all(|check| check.same && check.version == first.version)
    {
        if commit.release {
            lanes::release(work, lane)?;
        }
        return Ok(Ok(CommitOutcome {
            version,
            is_new: false,
        }));
    }
    if !first.holds {
        return Err(StoreError::LaneLost(lane.session_id.clone()).into());
    }
    let there = checks.iter().position(|check| check.version.is_some());
    if let Some(place) = there {
        let loop_id = records[place].loop_id.clone();
        return Err(StoreError::CommitMismatch(loop_id).into());
    }
    // Whatever comes of it, what the loops have journalled is settled (C-12).
    if !clean {
        for record in records {
            journal::drop_rows(work, &lane.session_id, &record.loop_id)?;
        }
    }
    if first.head_version != commit.expected_head {
        journal::drop_beginning(work, &lane.session_id)?;
        lanes::note_lost(work, &lane.session_id, last_number(records))?;
        return Ok(Err(StoreError::HeadConflict {
            expected: commit.expected_head,
            actual: first.head_version,
        }));
    }
    let version = first.head_version + 1;
    for (record, row) in records.iter().zip(rows) {
        insert(work, version, record, row)?;
    }
    let tip = records.get(commit.tip).filter(|record| record.on_chain);
    let step = Step {
        version,
        records,
        tip: tip.map(|record| &record.loop_id),
        title: commit.title.as_deref(),
    };
    let update = match commit.release {
        true => ADVANCE_AND_RELEASE,
        false => ADVANCE,
    };
    advance(work, update, &lane.session_id, &step)?;
    Ok(Ok(CommitOutcome {
        version,
        is_new: true,
    }))
}

/// State of the session and of one loop before its commit.
struct LoopCheck {
    head_version: u64,
    /// The lane is still the caller's. A late holder that nobody has replaced keeps its right.
    holds: bool,
    /// That the loop was committed with.
    version: Option<u64>,
    /// And with the same content.
    same: bool,
}

fn check_loop(
    db: &Connection,
    lane: &Lane,
    record: &LoopRecord,
    row: &Row,
) -> Result<LoopCheck, Fault> {
    let mut select = db.prepare_cached(CHECK)?;
    let (session, loop_id) = (lane.session_id.as_str(), record.loop_id.as_str());
    let mut rows = select.query(params![session, loop_id, lane.owner_id, lane.fence])?;
    let found = rows.next()?;
    let found = found.ok_or_else(|| StoreError::NotFound(lane.session_id.clone()))?;
    let version: Option<u64> = found.get(2)?;
    let same = version.is_some()
        && maybe(found, 3)? == record.parent_loop_id.as_ref().map(LoopId::as_str)
        && found.get::<_, bool>(4)? == record.on_chain
        && row
            .columns()
            .into_iter()
            .zip(5..)
            .all(|(part, column)| maybe(found, column).is_ok_and(|stored| stored == part));
    Ok(LoopCheck {
        head_version: found.get(0)?,
        holds: found.get(1)?,
        version,
        same,
    })
}

pub(super) fn is_stored(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<bool, Fault> {
    let mut select =
        db.prepare_cached("SELECT 1 FROM loops WHERE session_id = ?1 AND loop_id = ?2")?;
    Ok(select.exists((session.as_str(), loop_id.as_str()))?)
}

/// Write a loop as part of this version.
fn insert(db: &Connection, version: u64, record: &LoopRecord, row: &Row) -> Result<(), Fault> {
    let mut put = db.prepare_cached(LOOP)?;
    put.raw_bind_parameter(1, record.session_id.as_str())?;
    put.raw_bind_parameter(2, version)?;
    put.raw_bind_parameter(3, record.loop_id.as_str())?;
    put.raw_bind_parameter(4, record.parent_loop_id.as_ref().map(LoopId::as_str))?;
    put.raw_bind_parameter(5, record.on_chain)?;
    for (place, part) in (6..).zip(row.columns()) {
        put.raw_bind_parameter(place, part)?;
    }
    let checksum = row.checksum(i64::try_from(version).unwrap_or(i64::MAX), record);
    put.raw_bind_parameter(13, checksum)?;
    put.raw_execute()?;
    Ok(())
}

/// What a commit changes of its session.
struct Step<'a> {
    version: u64,
    records: &'a [Arc<LoopRecord>],
    tip: Option<&'a LoopId>,
    title: Option<&'a str>,
}

fn advance(db: &Connection, sql: &str, id: &SessionId, step: &Step<'_>) -> Result<(), Fault> {
    let last = step.records.iter().map(|record| last_active(record)).max();
    let mut update = db.prepare_cached(sql)?;
    update.execute(params![
        id.as_str(),
        step.version,
        step.records.len(),
        last.map(time_text),
        step.tip.map(LoopId::as_str),
        step.title
    ])?;
    Ok(())
}

/// A loop that its process left behind, as the next version of its session (S5).
pub(super) fn recover(db: &Connection, version: u64, record: LoopRecord) -> Result<(), Fault> {
    Row::check(&record)?;
    let row = match Row::small(&record)? {
        Some(row) => row,
        None => Row::large(db, &record)?,
    };
    insert(db, version, &record, &row)?;
    let title = record.on_chain.then(|| record.title()).flatten();
    let records = [Arc::new(record)];
    let step = Step {
        version,
        records: &records,
        tip: records[0].on_chain.then_some(&records[0].loop_id),
        title: title.as_deref(),
    };
    advance(db, ADVANCE, &records[0].session_id, &step)
}
