//! Commits loops atomically with everything that belongs to them (S1 to S4, S6).

use super::{
    columns::optional_text_column,
    db::Db,
    job_error::JobError,
    journal::{self, no_beginning},
    lane_columns::{self, no_holder},
    long_texts::SessionTexts,
    pending_effects, sessions,
    transaction::write,
};
use crate::{
    Commit, Lane, StoreError,
    encoding::loop_row::LoopRow,
    list_cursor::{format_time, last_active_at},
    recovery::last_loop_number,
};
use rusqlite::{Connection, params};
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Reads the state of the session, whether the caller holds the lane, and the loop if it is already stored.
const SELECT_STATE: &str = "SELECT head_version, owner_id IS ?3 AND fence = ?4, version, parent_loop_id, \
     on_chain, continuation_kind, status, started_at, ended_at, record, messages, log \
     FROM sessions \
     LEFT JOIN loops ON loops.session_id = sessions.session_id AND loops.loop_id = ?2 \
     WHERE sessions.session_id = ?1";

const INSERT_LOOP: &str = "INSERT INTO loops (session_id, version, loop_id, parent_loop_id, on_chain, \
     continuation_kind, status, started_at, ended_at, record, messages, log, checksum) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// Statement that advances a session, and sets these columns too.
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

pub(super) fn commit(db: &mut Db, commit: &Commit) -> Result<u64, JobError> {
    let Commit { lane, records, .. } = commit;
    let clean = db.empty_journals.get(&lane.session_id) == Some(&lane.fence);
    // Encoded before the transaction if small, since a transaction blocks all other writers.
    let small = records.iter().map(|record| LoopRow::encode_inline(record));
    let small: Vec<Option<LoopRow>> = small.collect::<Result<_, StoreError>>()?;
    let stored = write(&db.sql, |work| {
        if small.iter().any(Option::is_none) {
            // Texts can only be stored for an existing session.
            sessions::get(work, &lane.session_id)?;
        }
        let rows = small
            .into_iter()
            .zip(records)
            .map(|(row, record)| match row {
                Some(row) => Ok(row),
                None => encode_with_stored_texts(work, record),
            });
        let rows: Vec<LoopRow> = rows.collect::<Result<_, JobError>>()?;
        commit_rows(work, commit, &rows, clean)
    })??;
    if stored.is_new
        && let Some(numbers) = db.loop_numbers.get_mut(&lane.session_id)
    {
        numbers.add_loops(&commit.records);
    }
    if commit.release {
        db.empty_journals.remove(&lane.session_id);
    }
    Ok(stored.version)
}

fn encode_with_stored_texts(db: &Connection, record: &LoopRecord) -> Result<LoopRow, JobError> {
    let session = &record.session_id;
    LoopRow::encode_with_stored_texts(&mut SessionTexts { db, session }, record)
}

/// Result of a commit.
struct CommitOutcome {
    /// Head version after the commit.
    version: u64,
    /// False if an earlier attempt had already stored the loops.
    is_new: bool,
}

/// Stores the loops. The inner error is returned after a partial write that must be kept.
fn commit_rows(
    work: &Connection,
    commit: &Commit,
    rows: &[LoopRow],
    is_journal_empty: bool,
) -> Result<Result<CommitOutcome, StoreError>, JobError> {
    let Commit { lane, records, .. } = commit;
    let checks = records
        .iter()
        .zip(rows)
        .map(|(record, row)| check_loop(work, lane, record, row));
    let checks = checks.collect::<Result<Vec<LoopCheck>, JobError>>()?;
    let [first, ..] = &checks[..] else {
        return Err(JobError::InvalidRow("a commit without a loop".to_owned()));
    };
    // The response to the first attempt was lost (S2).
    if let Some(version) = first.version
        && checks
            .iter()
            .all(|check| check.is_same_content && check.version == first.version)
    {
        if commit.release {
            lane_columns::release(work, lane)?;
        }
        return Ok(Ok(CommitOutcome {
            version,
            is_new: false,
        }));
    }
    if !first.is_lane_held {
        return Err(StoreError::LaneLost(lane.session_id.clone()).into());
    }
    let there = checks.iter().position(|check| check.version.is_some());
    if let Some(place) = there {
        let loop_id = records[place].loop_id.clone();
        return Err(StoreError::CommitMismatch(loop_id).into());
    }
    // The loops' journals are settled, whatever the outcome (C-12).
    if !is_journal_empty {
        for record in records {
            journal::drop_rows(work, &lane.session_id, &record.loop_id)?;
        }
    }
    if first.head_version != commit.expected_head {
        journal::drop_beginning(work, &lane.session_id)?;
        lane_columns::note_lost_number(work, &lane.session_id, last_loop_number(records))?;
        return Ok(Err(StoreError::HeadConflict {
            expected: commit.expected_head,
            actual: first.head_version,
        }));
    }
    let version = first.head_version + 1;
    for (record, row) in records.iter().zip(rows) {
        insert_loop(work, version, record, row)?;
    }
    pending_effects::add(work, &commit.effects)?;
    let tip = records.get(commit.tip).filter(|record| record.on_chain);
    let step = SessionAdvance {
        version,
        records,
        tip: tip.map(|record| &record.loop_id),
        title: commit.title.as_deref(),
    };
    let update = match commit.release {
        true => ADVANCE_AND_RELEASE,
        false => ADVANCE,
    };
    advance_session(work, update, &lane.session_id, &step)?;
    Ok(Ok(CommitOutcome {
        version,
        is_new: true,
    }))
}

/// State of the session and of one loop before its commit.
struct LoopCheck {
    head_version: u64,
    /// True if the caller holds the lane. A holder whose lease expired keeps it until another owner claims it.
    is_lane_held: bool,
    /// Version under which the loop is already stored.
    version: Option<u64>,
    /// True if the stored loop has the same content.
    is_same_content: bool,
}

fn check_loop(
    db: &Connection,
    lane: &Lane,
    record: &LoopRecord,
    row: &LoopRow,
) -> Result<LoopCheck, JobError> {
    let mut select = db.prepare_cached(SELECT_STATE)?;
    let (session, loop_id) = (lane.session_id.as_str(), record.loop_id.as_str());
    let mut rows = select.query(params![session, loop_id, lane.owner_id, lane.fence])?;
    let found = rows.next()?;
    let found = found.ok_or_else(|| StoreError::NotFound(lane.session_id.clone()))?;
    let version: Option<u64> = found.get(2)?;
    let is_same_content = version.is_some()
        && optional_text_column(found, 3)? == record.parent_loop_id.as_ref().map(LoopId::as_str)
        && found.get::<_, bool>(4)? == record.on_chain
        && row.columns().into_iter().zip(5..).all(|(part, column)| {
            optional_text_column(found, column).is_ok_and(|stored| stored == part)
        });
    Ok(LoopCheck {
        head_version: found.get(0)?,
        is_lane_held: found.get(1)?,
        version,
        is_same_content,
    })
}

/// Inserts a loop as part of this version.
fn insert_loop(
    db: &Connection,
    version: u64,
    record: &LoopRecord,
    row: &LoopRow,
) -> Result<(), JobError> {
    let mut put = db.prepare_cached(INSERT_LOOP)?;
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

/// Changes of a commit to its session.
struct SessionAdvance<'a> {
    version: u64,
    records: &'a [Arc<LoopRecord>],
    tip: Option<&'a LoopId>,
    title: Option<&'a str>,
}

fn advance_session(
    db: &Connection,
    sql: &str,
    id: &SessionId,
    step: &SessionAdvance<'_>,
) -> Result<(), JobError> {
    let last = step
        .records
        .iter()
        .map(|record| last_active_at(record))
        .max();
    let mut update = db.prepare_cached(sql)?;
    update.execute(params![
        id.as_str(),
        step.version,
        step.records.len(),
        last.map(format_time),
        step.tip.map(LoopId::as_str),
        step.title
    ])?;
    Ok(())
}

/// Stores a recovered loop as the next version of its session (S5).
pub(super) fn store_recovered(
    db: &Connection,
    version: u64,
    record: LoopRecord,
) -> Result<(), JobError> {
    LoopRow::validate(&record)?;
    let row = match LoopRow::encode_inline(&record)? {
        Some(row) => row,
        None => encode_with_stored_texts(db, &record)?,
    };
    insert_loop(db, version, &record, &row)?;
    let title = record.on_chain.then(|| record.title()).flatten();
    let records = [Arc::new(record)];
    let step = SessionAdvance {
        version,
        records: &records,
        tip: records[0].on_chain.then_some(&records[0].loop_id),
        title: title.as_deref(),
    };
    advance_session(db, ADVANCE, &records[0].session_id, &step)
}
