//! Loops: the rows of a session, read back as the records that were committed.

use super::{fault::Fault, log, sessions};
use chrono::DateTime;
use rusqlite::{Connection, Row, types::ValueRef};
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, SessionId, Timestamp};

const KEYS: &str = "SELECT loop FROM loops WHERE session_id = ?1";

pub(super) const LOOP: &str = "SELECT version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
     started_at, ended_at, record, messages, log FROM loops WHERE loop = ?1";

/// All loops committed after head version `after`, oldest first.
pub(super) fn read(
    db: &mut Connection,
    id: &SessionId,
    after: u64,
) -> Result<Vec<Arc<LoopRecord>>, Fault> {
    // One snapshot: readers see whole versions only (S3).
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    let mut select = db.prepare_cached(LOOP)?;
    let mut found = Vec::new();
    let mut whole = String::new();
    for key in keys(&db, id)? {
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if row.get::<_, u64>(0)? > after {
            let record = with_events(row, id, &mut whole);
            found.push(Arc::new(
                record.map_err(|fault| unreadable(text(row, 1), fault))?,
            ));
        }
    }
    Ok(found)
}

/// The loops on the chain that leads to the tip, oldest first, without their events.
pub(super) fn history(db: &mut Connection, id: &SessionId) -> Result<Vec<Arc<LoopRecord>>, Fault> {
    let db = db.transaction()?;
    let mut whole = String::new();
    way_back(&db, id, |_, row| {
        let record = record(row, id, &mut whole)?;
        Ok(record.stands().then(|| Arc::new(record)))
    })
}

/// The keys of those, without the ones that were run again.
pub(super) fn chain(db: &Connection, id: &SessionId) -> Result<Vec<i64>, Fault> {
    let mut whole = String::new();
    let mut is_run_again = false;
    way_back(db, id, |key, row| {
        let stays = !std::mem::replace(&mut is_run_again, text(row, 3)? == "rerun");
        let stands = stays && (row.get(5)? || record(row, id, &mut whole)?.stands());
        Ok(stands.then_some(key))
    })
}

/// What `take` makes of the loops on the way from the tip back to the first, oldest first.
fn way_back<T>(
    db: &Connection,
    id: &SessionId,
    mut take: impl FnMut(i64, &Row<'_>) -> Result<Option<T>, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut next = sessions::get(db, id)?.tip_loop_id;
    let mut select = db.prepare_cached(LOOP)?;
    let mut taken = Vec::new();
    // A parent is committed before its children, so that one way back meets the whole chain.
    for key in keys(db, id)?.into_iter().rev() {
        let Some(wanted) = &next else { break };
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if text(row, 1)? != wanted.as_str() {
            continue;
        }
        taken.extend(take(key, row).map_err(|fault| unreadable(text(row, 1), fault))?);
        next = maybe(row, 2)?.map(LoopId::from);
    }
    taken.reverse();
    Ok(taken)
}

/// In the order of commits. Sorted here, since with their rows the rows would be copied.
fn keys(db: &Connection, id: &SessionId) -> Result<Vec<i64>, Fault> {
    let mut select = db.prepare_cached(KEYS)?;
    let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
    let mut keys = keys.collect::<Result<Vec<i64>, _>>()?;
    keys.sort_unstable();
    Ok(keys)
}

/// A word that is not known is most likely that of a later version.
pub(super) fn unreadable(loop_id: Result<&str, Fault>, fault: Fault) -> Fault {
    match (fault, loop_id) {
        (Fault::Json(error), Ok(loop_id)) => Fault::Row(format!(
            "loop {loop_id} cannot be read ({error}); if a newer turnery has written it, use that one"
        )),
        (
            fault @ (Fault::Json(_)
            | Fault::Told(_)
            | Fault::Sql(_)
            | Fault::Disk(_)
            | Fault::Moved(_)
            | Fault::Stuck(_)
            | Fault::Row(_)),
            _,
        ) => fault,
    }
}

fn with_events(row: &Row<'_>, id: &SessionId, whole: &mut String) -> Result<LoopRecord, Fault> {
    let mut record = record(row, id, whole)?;
    let (log, mut at) = (text(row, 10)?, 0);
    let mut events = Vec::new();
    while let Some(event) = log::next(log, &mut at, &record, &[])? {
        events.push(event);
    }
    record.events = events;
    Ok(record)
}

/// The record without its events. Its columns are put together to one text, which `whole` holds.
pub(super) fn record(
    row: &Row<'_>,
    session: &SessionId,
    whole: &mut String,
) -> Result<LoopRecord, Fault> {
    whole.clear();
    whole.push('{');
    quoted(whole, "session_id", session.as_str())?;
    quoted(whole, "loop_id", text(row, 1)?)?;
    if let Some(parent) = maybe(row, 2)? {
        quoted(whole, "parent_loop_id", parent)?;
    }
    word(whole, "continuation_kind", text(row, 3)?)?;
    word(whole, "status", text(row, 4)?)?;
    bare(
        whole,
        "on_chain",
        if row.get(5)? { "true" } else { "false" },
    );
    quoted(whole, "started_at", text(row, 6)?)?;
    if let Some(ended_at) = maybe(row, 7)? {
        quoted(whole, "ended_at", ended_at)?;
    }
    bare(whole, "messages", "[]");
    let rest = text(row, 8)?.strip_prefix('{').unwrap_or_default();
    if rest == "}" {
        whole.pop();
    }
    whole.push_str(rest);
    let mut record: LoopRecord = serde_json::from_str(whole)?;
    // The greater part; it is not put together with the others.
    record.messages = serde_json::from_str(text(row, 9)?)?;
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
