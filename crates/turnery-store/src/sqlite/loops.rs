//! Loops: the rows of a session, read back as the records that were committed.

use super::{fault::Fault, rows::from_word, sessions};
use chrono::DateTime;
use rusqlite::{CachedStatement, Connection, Row, types::ValueRef};
use serde::{Deserialize, de::DeserializeOwned};
use std::sync::Arc;
use turnery_engine::{
    Event, EventKind, LlmMessage, LoopId, LoopRecord, SessionId, Timestamp, Turn, TurnId, Usage,
};

const LOOPS: &str = "SELECT loop, loop_id, agent_id, prompt_id, status, outcome, detail, \
     continuation_kind, parent_loop_id, started_at, ended_at, rejection, config, usage, on_chain, log \
     FROM loops WHERE session_id = ?1 AND version > ?2 ORDER BY loop";

const TURNS: &str = "SELECT turn, triggered_by, input_messages, output_message, tool_results, \
     started_at, ended_at, input, output, reasoning, cache_read, cache_write \
     FROM turns WHERE loop = ?1 ORDER BY turn";

const MESSAGES: &str =
    "SELECT message_id, turn, turn_of, body FROM messages WHERE loop = ?1 ORDER BY place";

/// All loops committed after head version `after`, oldest first.
pub(super) fn read(
    db: &mut Connection,
    id: &SessionId,
    after: u64,
) -> Result<Vec<Arc<LoopRecord>>, Fault> {
    // One snapshot: readers see whole versions only (S3).
    let db = db.transaction()?;
    sessions::get(&db, id)?;
    let mut turns = db.prepare_cached(TURNS)?;
    let mut messages = db.prepare_cached(MESSAGES)?;
    let mut loops = db.prepare_cached(LOOPS)?;
    let mut found = Vec::new();
    let mut rows = loops.query((id.as_str(), i64::try_from(after).unwrap_or(i64::MAX)))?;
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        let mut record = record(row, id)?;
        record.turns = all(&mut turns, key, |row| turn(row, &record.loop_id))?;
        record.messages = all(&mut messages, key, |row| message(row, &record.loop_id))?;
        record.events = log(text(row, 15)?, &record)?;
        found.push(Arc::new(record));
    }
    Ok(found)
}

fn all<T>(
    statement: &mut CachedStatement<'_>,
    key: i64,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    let mut rows = statement.query((key,))?;
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn record(row: &Row<'_>, session: &SessionId) -> Result<LoopRecord, Fault> {
    Ok(LoopRecord {
        prompt_id: maybe(row, 3)?.map(Into::into),
        status: from_word(text(row, 4)?)?,
        outcome: json_maybe(row, 5)?,
        detail: json_maybe(row, 6)?,
        continuation_kind: from_word(text(row, 7)?)?,
        parent_loop_id: maybe(row, 8)?.map(Into::into),
        ended_at: maybe(row, 10)?.map(time).transpose()?,
        rejection: row.get(11)?,
        config: json_maybe(row, 12)?,
        usage: serde_json::from_str(text(row, 13)?)?,
        on_chain: row.get(14)?,
        ..LoopRecord::begun(
            session.clone(),
            text(row, 1)?.into(),
            row.get(2)?,
            time(text(row, 9)?)?,
        )
    })
}

fn turn(row: &Row<'_>, loop_id: &LoopId) -> Result<Turn, Fault> {
    let usage = match row.get::<_, Option<u64>>(7)? {
        None => None,
        Some(input) => Some(Usage {
            input,
            output: row.get(8)?,
            reasoning: row.get(9)?,
            cache_read: row.get(10)?,
            cache_write: row.get(11)?,
        }),
    };
    Ok(Turn {
        turn_id: TurnId {
            loop_id: loop_id.clone(),
            turn_index: row.get(0)?,
        },
        triggered_by: from_word(text(row, 1)?)?,
        usage,
        input_messages: serde_json::from_str(text(row, 2)?)?,
        output_message: maybe(row, 3)?.map(Into::into),
        tool_results: serde_json::from_str(text(row, 4)?)?,
        started_at: time(text(row, 5)?)?,
        ended_at: maybe(row, 6)?.map(time).transpose()?,
    })
}

fn message(row: &Row<'_>, loop_id: &LoopId) -> Result<Arc<LlmMessage>, Fault> {
    let turn_index: Option<u32> = row.get(1)?;
    let elsewhere = maybe(row, 2)?;
    Ok(Arc::new(LlmMessage {
        message_id: text(row, 0)?.into(),
        turn_id: turn_index.map(|turn_index| TurnId {
            loop_id: elsewhere.map_or_else(|| loop_id.clone(), Into::into),
            turn_index,
        }),
        message: serde_json::from_str(text(row, 3)?)?,
    }))
}

/// An event as it is stored; see `rows`.
#[derive(Deserialize)]
struct Entry<'a> {
    seq: u64,
    turn: Option<u32>,
    at: &'a str,
    message: Option<usize>,
    body: Option<EventKind>,
}

fn log(text: &str, record: &LoopRecord) -> Result<Vec<Event>, Fault> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(text)?;
    let events = entries.into_iter().map(|entry| {
        let settled = entry
            .message
            .and_then(|place| record.messages.get(place).cloned());
        let kind = match (entry.body, settled) {
            (Some(body), _) => body,
            (None, Some(message)) => EventKind::MessageEnd { message },
            (None, None) => {
                let lack = format!(
                    "loop {} lacks the message of event {}",
                    record.loop_id, entry.seq
                );
                return Err(Fault::Row(lack));
            }
        };
        Ok(Event {
            session_id: record.session_id.clone(),
            loop_id: record.loop_id.clone(),
            seq: entry.seq,
            turn_index: entry.turn,
            at: time(entry.at)?,
            kind,
        })
    });
    events.collect()
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

fn json_maybe<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>, Fault> {
    let value = maybe(row, column)?.map(serde_json::from_str);
    Ok(value.transpose()?)
}

pub(super) fn time(text: &str) -> Result<Timestamp, Fault> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|error| Fault::Row(format!("{text:?} is not a time: {error}")))
}
