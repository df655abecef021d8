//! Reads the rows of a session back as loop records.

use super::{
    checksum::ChecksumVerdict,
    columns::{optional_text_column, text},
    job_error::{JobError, none_if_damaged},
    long_texts::expand_references,
    sessions,
    stored_loop::{
        LOG_COLUMN, ON_CHAIN_COLUMN, PARENT_COLUMN, SELECT_LOOP, is_set_aside, read_record, verify,
    },
    survey::Survey,
};
use crate::{
    History,
    encoding::{
        event_log::{self, logged_parent},
        loop_columns::is_foreign,
    },
};
use rusqlite::{Connection, Row};
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{LoopId, LoopRecord, SessionId};

const SELECT_KEYS: &str = "SELECT loop FROM loops WHERE session_id = ?1";

/// Returns the readable loops committed after head version `after`, oldest first.
pub(super) fn read_loops(
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
    let survey = Survey::of_session(&db, id)?;
    survey.log_damage();
    Ok(survey.into_loops(after))
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
    for key in loop_keys(db, id)? {
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
        let record = read_record(&db, row, id, &mut whole)?;
        Ok(record.is_in_conversation().then(|| Arc::new(record)))
    })?;
    if let Some(chain) = chain {
        return Ok(History {
            loops: chain.values,
            damage: Vec::new(),
            has_all_loops: chain.has_all_loops,
        });
    }
    let survey = Survey::of_session(&db, id)?;
    survey.log_damage();
    Ok(survey.into_history())
}

/// Returns the keys of the loops in [`history`], without loops that were rerun. `None` if the chain is
/// damaged.
pub(super) fn chain(db: &Connection, id: &SessionId) -> Result<Option<Chain<i64>>, JobError> {
    let mut whole = String::new();
    let mut is_run_again = false;
    collect_chain(db, id, |key, row| {
        let stays = !std::mem::replace(&mut is_run_again, text(row, 3)? == "rerun");
        let stands = stays
            && (row.get(ON_CHAIN_COLUMN)?
                || read_record(db, row, id, &mut whole)?.is_in_conversation());
        Ok(stands.then_some(key))
    })
}

/// Values collected from a chain of loops, oldest first.
pub(super) struct Chain<T> {
    pub(super) values: Vec<T>,
    /// True if every loop of the session has a value here. Loops that were set aside are counted: their rows would have
    /// to be read.
    pub(super) has_all_loops: bool,
}

/// Collects the results of `take` for the loops from the tip back to the first. `None` as soon as one is damaged, or if
/// the chain does not reach the first loop.
fn collect_chain<T>(
    db: &Connection,
    id: &SessionId,
    take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, JobError>,
) -> Result<Option<Chain<T>>, JobError> {
    let tip = sessions::get(db, id)?.tip_loop_id;
    Ok(none_if_damaged(walk_back(db, id, tip, take))?.flatten())
}

fn walk_back<T>(
    db: &Connection,
    id: &SessionId,
    tip: Option<LoopId>,
    mut take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, JobError>,
) -> Result<Option<Chain<T>>, JobError> {
    let mut next = tip;
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let mut values = Vec::new();
    // Newest version with a loop on the chain, until the tip is met; it must be that of the tip.
    let mut newest = next.is_none().then_some(0);
    let mut met_tip = false;
    let keys = loop_keys(db, id)?;
    // Parents are committed before their children, so one backward pass collects the whole chain.
    for &key in keys.iter().rev() {
        if met_tip && next.is_none() {
            break;
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
        values.extend(take(key, row)?);
        next = optional_text_column(row, PARENT_COLUMN)?.map(LoopId::from);
    }
    // Without a tip no loop is on the chain. The first loop of a child session follows a loop of its parent.
    let is_whole = match &next {
        None => met_tip || newest == Some(0),
        Some(wanted) => met_tip && is_foreign(id, wanted.as_str()),
    };
    values.reverse();
    Ok(is_whole.then(|| Chain {
        has_all_loops: values.len() == keys.len(),
        values,
    }))
}

/// Returns true if a row differs from its checksum, or has none and its first event names another parent.
pub(super) fn is_suspect(row: &Row<'_>, id: &SessionId) -> Result<bool, JobError> {
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
fn loop_keys(db: &Connection, id: &SessionId) -> Result<Vec<i64>, JobError> {
    let mut select = db.prepare_cached(SELECT_KEYS)?;
    let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
    let mut keys = keys.collect::<Result<Vec<i64>, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

pub(super) fn read_record_with_events(
    db: &Connection,
    row: &Row<'_>,
    id: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, JobError> {
    let mut record = read_record(db, row, id, whole)?;
    let (log, mut at) = (expand_references(db, id, text(row, LOG_COLUMN)?)?, 0);
    let mut events = Vec::new();
    while let Some(event) = event_log::next_event(&log, &mut at, &record, &[])? {
        events.push(event);
    }
    record.events = events;
    Ok(record)
}
