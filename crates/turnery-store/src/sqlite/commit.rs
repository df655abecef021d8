//! Commit: a loop and all that belongs to it, or nothing (S1 to S4).

use super::{fault::Fault, journal, lanes, rows::Rows, sessions};
use crate::{Commit, SessionInfo, StoreError, cursor::time_text};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params, types::Value};
use turnery_engine::{LoopId, LoopRecord, SessionId};

const LOOP: &str = "INSERT INTO loops (session_id, version, hash, loop_id, agent_id, prompt_id, \
     status, outcome, detail, continuation_kind, parent_loop_id, started_at, ended_at, rejection, \
     config, usage, on_chain, log) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

const TURN: &str = "INSERT INTO turns (loop, turn, triggered_by, input_messages, output_message, \
     tool_results, started_at, ended_at, input, output, reasoning, cache_read, cache_write) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

const MESSAGE: &str = "INSERT INTO messages (loop, place, message_id, turn, turn_of, body) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const ADVANCE: &str = "UPDATE sessions SET head_version = ?2, tip_loop_id = ?3, updated_at = ?4, \
     title = ?5 WHERE session_id = ?1";

const ADVANCE_AND_RELEASE: &str = "UPDATE sessions SET head_version = ?2, tip_loop_id = ?3, \
     updated_at = ?4, title = ?5, owner_id = NULL, process = NULL, expires_at = NULL \
     WHERE session_id = ?1";

pub(super) fn commit(db: &mut Connection, commit: &Commit, rows: &Rows) -> Result<u64, Fault> {
    let Commit { lane, record, .. } = commit;
    if record.session_id != lane.session_id {
        return Err(Fault::Row(format!(
            "loop {} belongs to another session than its lane",
            record.loop_id
        )));
    }
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut info = sessions::get(&db, &lane.session_id)?;
    let earlier = stored(&db, &lane.session_id, &record.loop_id)?;
    let version = match earlier {
        // The answer to the first try got lost (S2).
        Some((version, hash)) if hash == rows.hash => version,
        Some(_) | None => {
            if !lanes::holds(&db, lane)? {
                return Err(StoreError::LaneLost(lane.session_id.clone()).into());
            }
            if earlier.is_some() {
                return Err(StoreError::CommitMismatch(record.loop_id.clone()).into());
            }
            // Whatever comes of it, what the loop has journalled is settled (C-12).
            journal::drop_loop(&db, &lane.session_id, &record.loop_id)?;
            if info.head_version != commit.expected_head {
                db.commit()?;
                return Err(StoreError::HeadConflict {
                    expected: commit.expected_head,
                    actual: info.head_version,
                }
                .into());
            }
            if info.title.is_none() {
                info.title.clone_from(&commit.title);
            }
            let version = insert(&db, &mut info, record, rows, commit.release)?;
            db.commit()?;
            return Ok(version);
        }
    };
    if commit.release {
        lanes::release(&db, lane)?;
    }
    db.commit()?;
    Ok(version)
}

fn stored(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<Option<(u64, [u8; 32])>, Fault> {
    let mut select = db
        .prepare_cached("SELECT version, hash FROM loops WHERE session_id = ?1 AND loop_id = ?2")?;
    let found = select.query_row((session.as_str(), loop_id.as_str()), |row| {
        Ok((row.get(0)?, row.get(1)?))
    });
    Ok(found.optional()?)
}

/// Write the rows as the next version of the session, and keep `info` in step. `release` gives the
/// lane back with the same stroke.
pub(super) fn insert(
    db: &Connection,
    info: &mut SessionInfo,
    record: &LoopRecord,
    rows: &Rows,
    release: bool,
) -> Result<u64, Fault> {
    info.advance(record);
    let mut put = db.prepare_cached(LOOP)?;
    put.raw_bind_parameter(1, info.id.as_str())?;
    put.raw_bind_parameter(2, info.head_version)?;
    put.raw_bind_parameter(3, rows.hash)?;
    for (place, value) in (4..).zip(&rows.record) {
        put.raw_bind_parameter(place, value)?;
    }
    put.raw_execute()?;
    let key = db.last_insert_rowid();
    fill(db, TURN, key, &rows.turns)?;
    fill(db, MESSAGE, key, &rows.messages)?;
    let mut update = db.prepare_cached(if release {
        ADVANCE_AND_RELEASE
    } else {
        ADVANCE
    })?;
    update.execute(params![
        info.id.as_str(),
        info.head_version,
        info.tip_loop_id.as_ref().map(LoopId::as_str),
        time_text(info.updated_at),
        info.title
    ])?;
    Ok(info.head_version)
}

fn fill<const N: usize>(
    db: &Connection,
    sql: &str,
    key: i64,
    rows: &[[Value; N]],
) -> Result<(), Fault> {
    let mut put = db.prepare_cached(sql)?;
    for row in rows {
        put.raw_bind_parameter(1, key)?;
        for (place, value) in (2..).zip(row) {
            put.raw_bind_parameter(place, value)?;
        }
        put.raw_execute()?;
    }
    Ok(())
}

impl SessionInfo {
    /// What a committed record changes: one version more (S3), and the tip if it is on the chain.
    pub(crate) fn advance(&mut self, record: &LoopRecord) {
        self.head_version += 1;
        if record.on_chain {
            self.tip_loop_id = Some(record.loop_id.clone());
        }
        let at = record.ended_at.unwrap_or(record.started_at);
        self.updated_at = self.updated_at.max(at);
    }
}
