//! Loops: the rows of a session, read back as the records that were committed.

use super::{fault::Fault, sessions};
use chrono::{DateTime, TimeDelta};
use rusqlite::{Connection, Row, types::ValueRef};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use turnery_engine::{Event, EventKind, LoopId, LoopRecord, SessionId, Timestamp};

const KEYS: &str = "SELECT loop FROM loops WHERE session_id = ?1";

const LOOP: &str = "SELECT version, loop_id, parent_loop_id, continuation_kind, status, on_chain, \
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
            found.push(Arc::new(record.map_err(|fault| unreadable(row, fault))?));
        }
    }
    Ok(found)
}

/// The loops on the chain that leads to the tip, oldest first, without their events.
pub(super) fn history(db: &mut Connection, id: &SessionId) -> Result<Vec<Arc<LoopRecord>>, Fault> {
    let db = db.transaction()?;
    let mut next = sessions::get(&db, id)?.tip_loop_id;
    let mut select = db.prepare_cached(LOOP)?;
    let mut chain = Vec::new();
    let mut whole = String::new();
    // A parent is committed before its children, so that one way back meets the whole chain.
    for key in keys(&db, id)?.into_iter().rev() {
        let Some(wanted) = &next else { break };
        let mut rows = select.query((key,))?;
        let Some(row) = rows.next()? else { continue };
        if text(row, 1)? != wanted.as_str() {
            continue;
        }
        let record = record(row, id, &mut whole).map_err(|fault| unreadable(row, fault))?;
        if record.stands() {
            chain.push(Arc::new(record));
        }
        next = maybe(row, 2)?.map(LoopId::from);
    }
    chain.reverse();
    Ok(chain)
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
fn unreadable(row: &Row<'_>, fault: Fault) -> Fault {
    match (fault, text(row, 1)) {
        (Fault::Json(error), Ok(loop_id)) => Fault::Row(format!(
            "loop {loop_id} cannot be read ({error}); if a newer turnery has written it, use that one"
        )),
        (
            fault @ (Fault::Json(_)
            | Fault::Told(_)
            | Fault::Sql(_)
            | Fault::Disk(_)
            | Fault::Row(_)),
            _,
        ) => fault,
    }
}

fn with_events(row: &Row<'_>, id: &SessionId, whole: &mut String) -> Result<LoopRecord, Fault> {
    let mut record = record(row, id, whole)?;
    record.events = log(text(row, 10)?, &record)?;
    Ok(record)
}

/// The record without its events. Its columns are put together to one text, which `whole` holds.
fn record(row: &Row<'_>, session: &SessionId, whole: &mut String) -> Result<LoopRecord, Fault> {
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
    bare(whole, "messages", text(row, 9)?);
    let rest = text(row, 8)?.strip_prefix('{').unwrap_or_default();
    if rest == "}" {
        whole.pop();
    }
    whole.push_str(rest);
    Ok(serde_json::from_str(whole)?)
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

/// An event as it is stored; see `rows`.
#[derive(Deserialize)]
struct Entry<'a> {
    seq: u64,
    turn: Option<u32>,
    at: i64,
    message: Option<usize>,
    #[serde(borrow)]
    start: Option<&'a RawValue>,
    #[serde(borrow)]
    end: Option<&'a RawValue>,
    body: Option<EventKind>,
}

fn log(text: &str, record: &LoopRecord) -> Result<Vec<Event>, Fault> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(text)?;
    let events = entries.into_iter().map(|entry| {
        Ok(Event {
            session_id: record.session_id.clone(),
            loop_id: record.loop_id.clone(),
            seq: entry.seq,
            turn_index: entry.turn,
            at: record
                .started_at
                .checked_add_signed(TimeDelta::nanoseconds(entry.at))
                .ok_or_else(|| lack(record, entry.seq, "time"))?,
            kind: kind(entry, record)?,
        })
    });
    events.collect()
}

fn kind(entry: Entry<'_>, record: &LoopRecord) -> Result<EventKind, Fault> {
    if let Some(body) = entry.body {
        return Ok(body);
    }
    if let Some(place) = entry.message {
        let message = record.messages.get(place).cloned();
        let message = message.ok_or_else(|| lack(record, entry.seq, "message"))?;
        return Ok(EventKind::MessageEnd { message });
    }
    if let Some(end) = entry.end {
        let outcome = serde_json::to_string(&record.outcome)?;
        let rest = end.get().strip_prefix('{').unwrap_or_default();
        let whole = format!("{{\"outcome\":{outcome},{rest}");
        return Ok(serde_json::from_str(&whole)?);
    }
    let start = entry
        .start
        .ok_or_else(|| lack(record, entry.seq, "content"))?;
    let mut kind = serde_json::from_str(start.get())?;
    if let EventKind::LoopStart { config, .. } = &mut kind {
        *config = record.config.clone().map(Box::new);
    }
    Ok(kind)
}

fn lack(record: &LoopRecord, seq: u64, what: &str) -> Fault {
    let loop_id = &record.loop_id;
    Fault::Row(format!("loop {loop_id} lacks the {what} of event {seq}"))
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
