//! Reads the rows of a session back as loop records.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    event_log,
    job_error::JobError,
    long_texts::expand_references,
    sessions,
    survey::{Survey, logged_parent},
};
use crate::History;
use chrono::DateTime;
use rusqlite::{Connection, Row, types::ValueRef};
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{LoopId, LoopRecord, SessionId, Timestamp};

const SELECT_KEYS: &str = "SELECT loop FROM loops WHERE session_id = ?1";

/// Columns of a loop, in the order of its checksum.
pub(super) const SELECT_LOOP: &str = "SELECT version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
     started_at, ended_at, record, messages, log, checksum, set_aside FROM loops WHERE loop = ?1";

/// Index of the parent in [`SELECT_LOOP`].
pub(super) const PARENT_COLUMN: usize = 2;
pub(super) const ON_CHAIN_COLUMN: usize = 5;
pub(super) const LOG_COLUMN: usize = 10;
pub(super) const CHECKSUM_COLUMN: usize = 11;
pub(super) const SET_ASIDE_COLUMN: usize = 12;

/// Returns the readable loops committed after head version `after`, oldest first.
pub(super) fn read(
    db: &mut Connection,
    id: &SessionId,
    after: u64,
) -> Result<Vec<Arc<LoopRecord>>, JobError> {
    // One snapshot: readers see only whole versions (S3).
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    if let Some(found) = none_if_damaged(read_all(&db, id, after))?.flatten() {
        return Ok(found);
    }
    let survey = Survey::of(&db, id)?;
    survey.warn();
    Ok(survey.loops(after))
}

/// Returns the loops, or `None` as soon as one is damaged or its parent is missing.
fn read_all(
    db: &Connection,
    id: &SessionId,
    after: u64,
) -> Result<Option<Vec<Arc<LoopRecord>>>, JobError> {
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let mut found = Vec::new();
    let mut known = HashSet::new();
    let mut whole = String::new();
    for key in keys(db, id)? {
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if is_set_aside(row)? {
            continue;
        }
        if is_suspect(row, id)? {
            return Ok(None);
        }
        let parent = optional_text_column(row, PARENT_COLUMN)?;
        if parent.is_some_and(|parent| {
            !(known.contains(parent) || (known.is_empty() && is_foreign(id, parent)))
        }) {
            return Ok(None);
        }
        known.insert(text(row, 1)?.to_owned());
        if row.get::<_, u64>(0)? > after {
            found.push(Arc::new(read_record_with_events(db, row, id, &mut whole)?));
        }
    }
    Ok(Some(found))
}

/// Returns the loops that the next prompt follows, without their events, and the damage found among them. Surveys
/// the whole session only if the chain to the tip is damaged.
pub(super) fn history(db: &mut Connection, id: &SessionId) -> Result<History, JobError> {
    let db = db.transaction()?;
    let mut whole = String::new();
    let chain = collect_chain(&db, id, |_, row| {
        let record = record(&db, row, id, &mut whole)?;
        Ok(record.is_in_conversation().then(|| Arc::new(record)))
    })?;
    if let Some(loops) = chain {
        return Ok(History {
            loops,
            damage: Vec::new(),
        });
    }
    let survey = Survey::of(&db, id)?;
    survey.warn();
    Ok(survey.into_history())
}

/// Returns the keys of the loops in [`history`], without loops that were rerun. `None` if the chain is
/// damaged.
pub(super) fn chain(db: &Connection, id: &SessionId) -> Result<Option<Vec<i64>>, JobError> {
    let mut whole = String::new();
    let mut is_run_again = false;
    collect_chain(db, id, |key, row| {
        let stays = !std::mem::replace(&mut is_run_again, text(row, 3)? == "rerun");
        let stands = stays
            && (row.get(ON_CHAIN_COLUMN)? || record(db, row, id, &mut whole)?.is_in_conversation());
        Ok(stands.then_some(key))
    })
}

/// Collects the results of `take` for the loops from the tip back to the first, oldest first. `None` as soon
/// as one is damaged, or if the chain does not reach the first loop.
fn collect_chain<T>(
    db: &Connection,
    id: &SessionId,
    take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, JobError>,
) -> Result<Option<Vec<T>>, JobError> {
    let tip = sessions::get(db, id)?.tip_loop_id;
    Ok(none_if_damaged(walk_back(db, id, tip, take))?.flatten())
}

fn walk_back<T>(
    db: &Connection,
    id: &SessionId,
    tip: Option<LoopId>,
    mut take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, JobError>,
) -> Result<Option<Vec<T>>, JobError> {
    let mut next = tip;
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let mut taken = Vec::new();
    // Newest version with a loop on the chain, until the tip is met; it must be that of the tip.
    let mut newest = next.is_none().then_some(0);
    let mut met_tip = false;
    let mut keys = keys(db, id)?.into_iter().rev();
    // Parents are committed before their children, so one backward pass collects the whole chain.
    for key in keys.by_ref() {
        if met_tip && next.is_none() {
            return Ok(Some(reversed(taken)));
        }
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if next.as_ref().is_none_or(|wanted| {
            row.get_ref(1)
                .is_ok_and(|id| id.as_bytes().ok() != Some(wanted.as_str().as_bytes()))
        }) {
            if !met_tip && row.get(ON_CHAIN_COLUMN)? && !is_set_aside(row)? {
                newest = newest.max(Some(row.get::<_, u64>(0)?));
            }
            continue;
        }
        let version = Some(row.get::<_, u64>(0)?);
        let is_behind = !std::mem::replace(&mut met_tip, true) && newest > version;
        if is_behind || is_set_aside(row)? || is_suspect(row, id)? {
            return Ok(None);
        }
        taken.extend(take(key, row)?);
        next = optional_text_column(row, PARENT_COLUMN)?.map(LoopId::from);
    }
    // Without a tip no loop is on the chain. The first loop of a child session follows a loop of its parent.
    let is_whole = match &next {
        None => met_tip || newest == Some(0),
        Some(wanted) => met_tip && is_foreign(id, wanted.as_str()),
    };
    Ok(is_whole.then(|| reversed(taken)))
}

fn reversed<T>(mut taken: Vec<T>) -> Vec<T> {
    taken.reverse();
    taken
}

/// Returns `None` in place of an error that reports a damaged row.
pub(super) fn none_if_damaged<T>(read: Result<T, JobError>) -> Result<Option<T>, JobError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the reason in place of an error that reports a damaged row.
pub(super) fn reason_if_damaged<T>(
    read: Result<T, JobError>,
) -> Result<Result<T, String>, JobError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(error) if error.is_damage() => Ok(Err(error.message())),
        Err(error) => Err(error),
    }
}

/// Returns true if the id cannot belong to a loop of this session.
pub(super) fn is_foreign(id: &SessionId, loop_id: &str) -> bool {
    let own = loop_id.strip_prefix(id.as_str());
    !own.is_some_and(|rest| rest.starts_with('.'))
}

pub(super) fn is_set_aside(row: &Row<'_>) -> Result<bool, JobError> {
    Ok(!matches!(row.get_ref(SET_ASIDE_COLUMN)?, ValueRef::Null))
}

/// Compares a row with its checksum.
pub(super) fn verify(row: &Row<'_>, id: &SessionId) -> Result<ChecksumVerdict, JobError> {
    let stored = row.get_ref(CHECKSUM_COLUMN)?;
    if stored == ValueRef::Null {
        return Ok(ChecksumVerdict::Unknown);
    }
    let sum = Checksum::default().text(id.as_str());
    Ok(sum.columns(row, 0..=LOG_COLUMN)?.verify(stored))
}

/// Returns true if a row differs from its checksum, or has none and its first event names another parent.
fn is_suspect(row: &Row<'_>, id: &SessionId) -> Result<bool, JobError> {
    Ok(match verify(row, id)? {
        ChecksumVerdict::Matches => false,
        ChecksumVerdict::Differs => true,
        ChecksumVerdict::Unknown => {
            let logged = logged_parent(text(row, LOG_COLUMN)?);
            let parent = optional_text_column(row, PARENT_COLUMN)?;
            logged.is_some_and(|logged| logged.as_ref().map(LoopId::as_str) != parent)
        }
    })
}

/// Returns keys in commit order. Sorted here, because SQLite's sort would copy the rows.
fn keys(db: &Connection, id: &SessionId) -> Result<Vec<i64>, JobError> {
    let mut select = db.prepare_cached(SELECT_KEYS)?;
    let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
    let mut keys = keys.collect::<Result<Vec<i64>, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

fn read_record_with_events(
    db: &Connection,
    row: &Row<'_>,
    id: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, JobError> {
    let mut record = record(db, row, id, whole)?;
    let (log, mut at) = (expand_references(db, id, text(row, LOG_COLUMN)?)?, 0);
    let mut events = Vec::new();
    while let Some(event) = event_log::next(&log, &mut at, &record, &[])? {
        events.push(event);
    }
    record.events = events;
    Ok(record)
}

/// Returns the record without its events. `whole` is a reusable buffer in which the columns are joined.
pub(super) fn record(
    db: &Connection,
    row: &Row<'_>,
    session: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, JobError> {
    whole.clear();
    whole.push('{');
    push_string_field(whole, "session_id", session.as_str())?;
    push_string_field(whole, "loop_id", text(row, 1)?)?;
    if let Some(parent) = optional_text_column(row, PARENT_COLUMN)? {
        push_string_field(whole, "parent_loop_id", parent)?;
    }
    word(whole, "continuation_kind", text(row, 3)?)?;
    word(whole, "status", text(row, 4)?)?;
    push_raw_field(
        whole,
        "on_chain",
        if row.get(ON_CHAIN_COLUMN)? {
            "true"
        } else {
            "false"
        },
    );
    push_string_field(whole, "started_at", text(row, 6)?)?;
    if let Some(ended_at) = optional_text_column(row, 7)? {
        push_string_field(whole, "ended_at", ended_at)?;
    }
    push_raw_field(whole, "messages", "[]");
    let rest = expand_references(db, session, text(row, 8)?)?;
    let rest = rest.strip_prefix('{').unwrap_or_default();
    if rest == "}" {
        whole.pop();
    }
    whole.push_str(rest);
    let mut record: LoopRecord = serde_json::from_str(whole)?;
    // Parsed separately, because messages are the largest part.
    record.messages = serde_json::from_str(&expand_references(db, session, text(row, 9)?)?)?;
    Ok(record)
}

/// Appends a field of a JSON object that has more fields to follow.
fn push_raw_field(whole: &mut String, name: &str, json: &str) {
    for part in ["\"", name, "\":", json, ","] {
        whole.push_str(part);
    }
}

fn push_string_field(whole: &mut String, name: &str, text: &str) -> Result<(), JobError> {
    push_raw_field(whole, name, &serde_json::to_string(text)?);
    Ok(())
}

/// Appends an enum stored by `loop_row`.
fn word(whole: &mut String, name: &str, word: &str) -> Result<(), JobError> {
    if word.starts_with('{') {
        push_raw_field(whole, name, word);
        return Ok(());
    }
    push_string_field(whole, name, word)
}

pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, JobError> {
    let value = row.get_ref(column)?.as_str();
    value.map_err(|error| JobError::Row(format!("column {column} is not text: {error}")))
}

pub(super) fn optional_text_column<'a>(
    row: &'a Row<'_>,
    column: usize,
) -> Result<Option<&'a str>, JobError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
            text(row, column).map(Some)
        }
    }
}

pub(super) fn time(text: &str) -> Result<Timestamp, JobError> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|error| JobError::Row(format!("{text:?} is not a time: {error}")))
}
