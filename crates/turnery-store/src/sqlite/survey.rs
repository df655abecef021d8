//! Reads all loops of a session one by one, as far as they are readable.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::text,
    job_error::{JobError, none_if_damaged, reason_if_damaged},
    long_texts::expand_references,
    sessions,
    stored_loop::{self, CHECKSUM_COLUMN, LOG_COLUMN, ON_CHAIN_COLUMN, PARENT_COLUMN, SELECT_LOOP},
};
pub(super) use crate::encoding::survey::{DamagedColumn, RowCorrection, Survey, SurveyedLoop};
use crate::encoding::{event_log::logged_parent, row_error::RowError};
use rusqlite::{Connection, Row, types::ValueRef};
use std::collections::HashMap;
use turnery_engine::{LoopId, SessionId};

/// Selects the keys of a session's loops, oldest first. Reads the table without its index, which may be
/// damaged.
const SELECT_KEYS: &str = "SELECT loop FROM loops NOT INDEXED WHERE session_id = ?1 ORDER BY loop";

/// Like [`SELECT_KEYS`], for all sessions.
const SELECT_ALL_KEYS: &str = "SELECT session_id, loop FROM loops NOT INDEXED ORDER BY loop";

/// Columns before the long ones, for a row whose end is unreadable.
const SELECT_HEAD: &str = "SELECT version, loop_id, parent_loop_id FROM loops WHERE loop = ?1";

/// Loop keys of all sessions, found in one pass over the table.
pub(super) struct LoopKeys(HashMap<SessionId, Vec<i64>>);

impl LoopKeys {
    pub(super) fn read(db: &Connection) -> Result<Self, JobError> {
        let mut keys: HashMap<SessionId, Vec<i64>> = HashMap::new();
        let mut select = db.prepare_cached(SELECT_ALL_KEYS)?;
        let mut rows = select.query(())?;
        while let Some(row) = rows.next()? {
            // A session id that is not text matches no session.
            if let Ok(id) = text(row, 0) {
                keys.entry(id.into()).or_default().push(row.get(1)?);
            }
        }
        Ok(Self(keys))
    }

    pub(super) fn of_session(&self, id: &SessionId) -> &[i64] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

impl Survey {
    pub(super) fn of_session(db: &Connection, id: &SessionId) -> Result<Self, JobError> {
        let mut select = db.prepare_cached(SELECT_KEYS)?;
        let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
        let keys: Vec<i64> = keys.collect::<Result<_, _>>()?;
        Self::of_loops(db, id, &keys)
    }

    /// Surveys a session whose loops have these keys.
    pub(super) fn of_loops(
        db: &Connection,
        id: &SessionId,
        keys: &[i64],
    ) -> Result<Self, JobError> {
        let tip = sessions::get(db, id)?.tip_loop_id;
        let rows = keys.iter().map(|key| read(db, id, *key));
        let rows: Vec<_> = rows.collect::<Result<_, JobError>>()?;
        Ok(Self::new(id, tip, rows))
    }
}

/// Reads a row, and describes the damage of its content.
fn read(
    db: &Connection,
    id: &SessionId,
    key: i64,
) -> Result<(SurveyedLoop, Option<String>), JobError> {
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let mut rows = select.query((key,))?;
    let read = match rows.next() {
        Ok(Some(row)) => read_whole(db, id, key, row),
        Ok(None) => Err(JobError::InvalidRow(
            "it is not where its index says".to_owned(),
        )),
        Err(error) => Err(error.into()),
    };
    match read {
        Err(error) if error.is_damage() => {
            let reason = format!("cannot be read: {error}");
            Ok((read_head(db, key)?, Some(reason)))
        }
        read => read,
    }
}

/// Reads the first columns of a row whose end is unreadable.
fn read_head(db: &Connection, key: i64) -> Result<SurveyedLoop, JobError> {
    let mut select = db.prepare_cached(SELECT_HEAD)?;
    let mut rows = select.query((key,))?;
    let row = none_if_damaged(rows.next().map_err(JobError::from))?;
    Ok(SurveyedLoop::from_head(key, row.flatten()))
}

/// Reads a complete row, and describes the damage of its content.
fn read_whole(
    db: &Connection,
    id: &SessionId,
    key: i64,
    row: &Row<'_>,
) -> Result<(SurveyedLoop, Option<String>), JobError> {
    let verdict = stored_loop::verify(row, id)?;
    let log = text(row, LOG_COLUMN).ok();
    let surveyed = SurveyedLoop {
        logged_parent: log.and_then(logged_parent),
        verdict,
        is_set_aside: stored_loop::is_set_aside(row)?,
        ..SurveyedLoop::from_head(key, Some(row))
    };
    if surveyed.is_set_aside {
        return Ok((surveyed, None));
    }
    let record = match stored_loop::read_record(db, row, id, &mut String::new()) {
        Ok(record) => Ok(record),
        Err(JobError::Json(error)) => Err(RowError::Json(error)),
        Err(error) if error.is_damage() => Err(RowError::Invalid(error.to_string())),
        Err(error) => return Err(error),
    };
    let log = match log {
        Some(log) => reason_if_damaged(expand_references(db, id, log))?,
        None => Err("they are not text".to_owned()),
    };
    surveyed.judge(record, log, |logged| find_culprit(id, row, logged))
}

/// Returns the column whose correction makes the checksum match.
fn find_culprit(
    id: &SessionId,
    row: &Row<'_>,
    logged: Option<&Option<LoopId>>,
) -> Result<Option<DamagedColumn>, JobError> {
    let stored = row.get_ref(CHECKSUM_COLUMN)?;
    let on_chain: bool = row.get(ON_CHAIN_COLUMN)?;
    let matches = |culprit: DamagedColumn| {
        let start = Ok(Checksum::default().text(id.as_str()));
        let sum = (0..=LOG_COLUMN).fold(start, |sum: Result<Checksum, JobError>, column| {
            Ok(match (culprit, column, logged) {
                (DamagedColumn::Parent, PARENT_COLUMN, Some(parent)) => {
                    sum?.optional(parent.as_ref().map(LoopId::as_str))
                }
                (DamagedColumn::OnChain, ON_CHAIN_COLUMN, _) => sum?.integer(i64::from(!on_chain)),
                (DamagedColumn::Parent | DamagedColumn::OnChain, _, _) => {
                    sum?.value(row.get_ref(column)?)
                }
            })
        });
        Ok::<bool, JobError>(sum?.verify(stored) == ChecksumVerdict::Matches)
    };
    for culprit in [DamagedColumn::Parent, DamagedColumn::OnChain] {
        if matches(culprit)? {
            return Ok(Some(culprit));
        }
    }
    Ok(None)
}

/// Returns the text of a value with replacement characters for invalid UTF-8; `None` for NULL.
fn lossy_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

impl SurveyedLoop {
    /// Reads the columns before the long ones, as far as they are readable.
    fn from_head(key: i64, row: Option<&Row<'_>>) -> Self {
        let value = |column| row.and_then(|row| row.get_ref(column).ok());
        let text = |column| value(column).and_then(lossy_text);
        Self {
            key,
            version: value(0).and_then(|value| u64::try_from(value.as_i64().ok()?).ok()),
            loop_id: text(1).unwrap_or_else(|| format!("in row {key}")).into(),
            parent: text(PARENT_COLUMN).map(LoopId::from),
            logged_parent: None,
            verdict: ChecksumVerdict::Unknown,
            damaged_column: None,
            is_set_aside: false,
            is_log_broken: false,
            is_from_newer_version: false,
            record: None,
            previous: None,
            is_relinked: false,
        }
    }
}
