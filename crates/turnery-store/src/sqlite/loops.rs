//! Loops: the rows of a session, read back as the records that were committed.

use super::{
    checksum::{Checksum, Verdict},
    fault::Fault,
    log, sessions,
    survey::{Survey, logged_parent},
    texts::expand,
};
use crate::History;
use chrono::DateTime;
use rusqlite::{Connection, Row, types::ValueRef};
use std::{collections::HashSet, sync::Arc};
use turnery_engine::{LoopId, LoopRecord, SessionId, Timestamp};

const KEYS: &str = "SELECT loop FROM loops WHERE session_id = ?1";

/// The columns of a loop, in the order in which they go into its checksum.
pub(super) const LOOP: &str = "SELECT version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
     started_at, ended_at, record, messages, log, checksum, set_aside FROM loops WHERE loop = ?1";

/// Places of these columns in [`LOOP`].
pub(super) const PARENT: usize = 2;
pub(super) const ON_CHAIN: usize = 5;
pub(super) const LOG: usize = 10;
pub(super) const CHECKSUM: usize = 11;
pub(super) const SET_ASIDE: usize = 12;

/// All loops committed after head version `after` that can be read, oldest first.
pub(super) fn read(
    db: &mut Connection,
    id: &SessionId,
    after: u64,
) -> Result<Vec<Arc<LoopRecord>>, Fault> {
    // One snapshot: readers see whole versions only (S3).
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    if let Some(found) = undamaged(read_all(&db, id, after))?.flatten() {
        return Ok(found);
    }
    let survey = Survey::of(&db, id)?;
    survey.warn();
    Ok(survey.loops(after))
}

/// The loops, or `None` as soon as one is damaged or follows a loop that is not there.
fn read_all(
    db: &Connection,
    id: &SessionId,
    after: u64,
) -> Result<Option<Vec<Arc<LoopRecord>>>, Fault> {
    let mut select = db.prepare_cached(LOOP)?;
    let mut found = Vec::new();
    let mut known = HashSet::new();
    let mut whole = String::new();
    for key in keys(db, id)? {
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if is_set_aside(row)? {
            continue;
        }
        if is_doubtful(row, id)? {
            return Ok(None);
        }
        let parent = maybe(row, PARENT)?;
        if parent.is_some_and(|parent| {
            !(known.contains(parent) || (known.is_empty() && is_foreign(id, parent)))
        }) {
            return Ok(None);
        }
        known.insert(text(row, 1)?.to_owned());
        if row.get::<_, u64>(0)? > after {
            found.push(Arc::new(with_events(db, row, id, &mut whole)?));
        }
    }
    Ok(Some(found))
}

/// The loops on the chain that leads to the tip, oldest first, without their events.
pub(super) fn history(db: &mut Connection, id: &SessionId) -> Result<History, Fault> {
    let db = db.transaction()?;
    let mut whole = String::new();
    let chain = way_back(&db, id, |_, row| {
        let record = record(&db, row, id, &mut whole)?;
        Ok(record.stands().then(|| Arc::new(record)))
    })?;
    if let Some(loops) = chain {
        return Ok(History {
            loops,
            damage: Vec::new(),
        });
    }
    let survey = Survey::of(&db, id)?;
    survey.warn();
    Ok(survey.history())
}

/// The keys of the same loops, without those that were run again. `None` if the chain is damaged.
pub(super) fn chain(db: &Connection, id: &SessionId) -> Result<Option<Vec<i64>>, Fault> {
    let mut whole = String::new();
    let mut is_run_again = false;
    way_back(db, id, |key, row| {
        let stays = !std::mem::replace(&mut is_run_again, text(row, 3)? == "rerun");
        let stands = stays && (row.get(ON_CHAIN)? || record(db, row, id, &mut whole)?.stands());
        Ok(stands.then_some(key))
    })
}

/// What `take` makes of the loops on the way from the tip back to the first, oldest first. `None` as
/// soon as one is damaged, or if the way does not reach the beginning.
fn way_back<T>(
    db: &Connection,
    id: &SessionId,
    take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, Fault>,
) -> Result<Option<Vec<T>>, Fault> {
    let tip = sessions::get(db, id)?.tip_loop_id;
    Ok(undamaged(walk(db, id, tip, take))?.flatten())
}

fn walk<T>(
    db: &Connection,
    id: &SessionId,
    tip: Option<LoopId>,
    mut take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, Fault>,
) -> Result<Option<Vec<T>>, Fault> {
    let mut next = tip;
    let mut select = db.prepare_cached(LOOP)?;
    let mut taken = Vec::new();
    // The newest version with a loop on the chain, until the tip is met: it must be the tip's.
    let mut newest = next.is_none().then_some(0);
    let mut met_tip = false;
    let mut keys = keys(db, id)?.into_iter().rev();
    // A parent is committed before its children, so that one way back meets the whole chain.
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
            if !met_tip && row.get(ON_CHAIN)? && !is_set_aside(row)? {
                newest = newest.max(Some(row.get::<_, u64>(0)?));
            }
            continue;
        }
        let version = Some(row.get::<_, u64>(0)?);
        let is_behind = !std::mem::replace(&mut met_tip, true) && newest > version;
        if is_behind || is_set_aside(row)? || is_doubtful(row, id)? {
            return Ok(None);
        }
        taken.extend(take(key, row)?);
        next = maybe(row, PARENT)?.map(LoopId::from);
    }
    // Without a tip no loop is on the chain. The first loop of a child session follows its parent's.
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

/// `None` in place of an error that says that a row is damaged.
pub(super) fn undamaged<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(fault) if fault.is_damage() => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// In place of an error that says that a row is damaged, its reason.
pub(super) fn undamaged_or<T>(read: Result<T, Fault>) -> Result<Result<T, String>, Fault> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(fault) if fault.is_damage() => Ok(Err(fault.in_words())),
        Err(fault) => Err(fault),
    }
}

/// Whether the id cannot be that of a loop of this session.
pub(super) fn is_foreign(id: &SessionId, loop_id: &str) -> bool {
    let own = loop_id.strip_prefix(id.as_str());
    !own.is_some_and(|rest| rest.starts_with('.'))
}

pub(super) fn is_set_aside(row: &Row<'_>) -> Result<bool, Fault> {
    Ok(!matches!(row.get_ref(SET_ASIDE)?, ValueRef::Null))
}

/// Compares a row with its checksum.
pub(super) fn verify(row: &Row<'_>, id: &SessionId) -> Result<Verdict, Fault> {
    let stored = row.get_ref(CHECKSUM)?;
    if stored == ValueRef::Null {
        return Ok(Verdict::Unknown);
    }
    let sum = Checksum::default().text(id.as_str());
    Ok(sum.columns(row, 0..=LOG)?.verify(stored))
}

/// Whether a row is not what was written. One without a checksum is doubtful if its first event names
/// another parent.
fn is_doubtful(row: &Row<'_>, id: &SessionId) -> Result<bool, Fault> {
    Ok(match verify(row, id)? {
        Verdict::Matches => false,
        Verdict::Differs => true,
        Verdict::Unknown => {
            let logged = logged_parent(text(row, LOG)?);
            let parent = maybe(row, PARENT)?;
            logged.is_some_and(|logged| logged.as_ref().map(LoopId::as_str) != parent)
        }
    })
}

/// In the order of commits. Sorted here, since with their rows the rows would be copied.
fn keys(db: &Connection, id: &SessionId) -> Result<Vec<i64>, Fault> {
    let mut select = db.prepare_cached(KEYS)?;
    let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
    let mut keys = keys.collect::<Result<Vec<i64>, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

fn with_events(
    db: &Connection,
    row: &Row<'_>,
    id: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, Fault> {
    let mut record = record(db, row, id, whole)?;
    let (log, mut at) = (expand(db, id, text(row, LOG)?)?, 0);
    let mut events = Vec::new();
    while let Some(event) = log::next(&log, &mut at, &record, &[])? {
        events.push(event);
    }
    record.events = events;
    Ok(record)
}

/// The record without its events. Its columns are put together to one text, which `whole` holds.
pub(super) fn record(
    db: &Connection,
    row: &Row<'_>,
    session: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, Fault> {
    whole.clear();
    whole.push('{');
    quoted(whole, "session_id", session.as_str())?;
    quoted(whole, "loop_id", text(row, 1)?)?;
    if let Some(parent) = maybe(row, PARENT)? {
        quoted(whole, "parent_loop_id", parent)?;
    }
    word(whole, "continuation_kind", text(row, 3)?)?;
    word(whole, "status", text(row, 4)?)?;
    bare(
        whole,
        "on_chain",
        if row.get(ON_CHAIN)? { "true" } else { "false" },
    );
    quoted(whole, "started_at", text(row, 6)?)?;
    if let Some(ended_at) = maybe(row, 7)? {
        quoted(whole, "ended_at", ended_at)?;
    }
    bare(whole, "messages", "[]");
    let rest = expand(db, session, text(row, 8)?)?;
    let rest = rest.strip_prefix('{').unwrap_or_default();
    if rest == "}" {
        whole.pop();
    }
    whole.push_str(rest);
    let mut record: LoopRecord = serde_json::from_str(whole)?;
    // The greater part; it is not put together with the others.
    record.messages = serde_json::from_str(&expand(db, session, text(row, 9)?)?)?;
    Ok(record)
}

/// A field of a JSON object that has more fields to come.
fn bare(whole: &mut String, name: &str, json: &str) {
    for part in ["\"", name, "\":", json, ","] {
        whole.push_str(part);
    }
}

fn quoted(whole: &mut String, name: &str, text: &str) -> Result<(), Fault> {
    bare(whole, name, &serde_json::to_string(text)?);
    Ok(())
}

/// Read back what `rows` wrote of an enum.
fn word(whole: &mut String, name: &str, word: &str) -> Result<(), Fault> {
    if word.starts_with('{') {
        bare(whole, name, word);
        return Ok(());
    }
    quoted(whole, name, word)
}

pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Fault> {
    let value = row.get_ref(column)?.as_str();
    value.map_err(|error| Fault::Row(format!("column {column} is not text: {error}")))
}

pub(super) fn maybe<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, Fault> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
            text(row, column).map(Some)
        }
    }
}

pub(super) fn time(text: &str) -> Result<Timestamp, Fault> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|error| Fault::Row(format!("{text:?} is not a time: {error}")))
}
