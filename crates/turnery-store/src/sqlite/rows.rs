//! Rows: a loop record as the rows that are stored, and their hash.

use super::fault::Fault;
use crate::{StoreError, cursor::time_text};
use rusqlite::types::Value;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use turnery_engine::{Event, EventKind, LlmMessage, LoopId, LoopRecord, MessageId, Turn, Usage};

/// What one commit writes, but for the keys that the database gives.
pub(super) struct Rows {
    /// Tells a retry of the same commit from another content under the same id (S2).
    pub(super) hash: [u8; 32],
    pub(super) record: [Value; 15],
    pub(super) turns: Vec<[Value; 12]>,
    pub(super) messages: Vec<[Value; 5]>,
}

impl Rows {
    pub(super) fn of(record: &LoopRecord) -> Result<Self, StoreError> {
        fit(record).map_err(|what| refused(record, &what))?;
        Self::encode(record).map_err(|error| refused(record, &error.to_string()))
    }

    fn encode(record: &LoopRecord) -> Result<Self, serde_json::Error> {
        let turns = record.turns.iter().map(turn_row);
        let messages = record.messages.iter().enumerate();
        let mut rows = Self {
            hash: [0; 32],
            record: record_row(record)?,
            turns: turns.collect::<Result<_, _>>()?,
            messages: messages
                .map(|(place, message)| message_row(&record.loop_id, place, message))
                .collect::<Result<_, _>>()?,
        };
        rows.hash = rows.digest();
        Ok(rows)
    }

    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        add(&mut hash, std::slice::from_ref(&self.record));
        add(&mut hash, &self.turns);
        add(&mut hash, &self.messages);
        hash.finalize().into()
    }
}

/// Every value with its kind and length, so that no two contents run into the same bytes.
fn add<const N: usize>(hash: &mut Sha256, rows: &[[Value; N]]) {
    hash.update(rows.len().to_le_bytes());
    for value in rows.iter().flatten() {
        match value {
            Value::Null => hash.update([0]),
            Value::Integer(number) => {
                hash.update([1]);
                hash.update(number.to_le_bytes());
            }
            Value::Real(number) => {
                hash.update([2]);
                hash.update(number.to_le_bytes());
            }
            Value::Text(text) => {
                hash.update([3]);
                hash.update(text.len().to_le_bytes());
                hash.update(text);
            }
            Value::Blob(bytes) => {
                hash.update([4]);
                hash.update(bytes.len().to_le_bytes());
                hash.update(bytes);
            }
        }
    }
}

fn refused(record: &LoopRecord, what: &str) -> StoreError {
    StoreError::Broken(format!("loop {} cannot be stored: {what}", record.loop_id))
}

/// What the tables leave out because it goes without saying must really be so.
fn fit(record: &LoopRecord) -> Result<(), String> {
    let mut next = 0;
    for event in &record.events {
        if event.loop_id != record.loop_id || event.session_id != record.session_id {
            return Err(format!("event {} belongs to another loop", event.seq));
        }
        if event.seq < next {
            return Err(format!("event {} is out of order", event.seq));
        }
        next = event.seq + 1;
    }
    for (place, turn) in (0..).zip(&record.turns) {
        if turn.turn_id.loop_id != record.loop_id || turn.turn_id.turn_index != place {
            return Err(format!("turn {place} is not in its place"));
        }
    }
    Ok(())
}

fn record_row(record: &LoopRecord) -> Result<[Value; 15], serde_json::Error> {
    Ok([
        text(&record.loop_id),
        text(&record.agent_id),
        maybe(record.prompt_id.as_ref()),
        word(record.status)?,
        json_maybe(record.outcome.as_ref())?,
        json_maybe(record.detail.as_ref())?,
        word(record.continuation_kind)?,
        maybe(record.parent_loop_id.as_ref()),
        time_text(record.started_at).into(),
        record.ended_at.map(time_text).into(),
        record.rejection.clone().into(),
        json_maybe(record.config.as_ref())?,
        json(&record.usage)?,
        record.on_chain.into(),
        json(&log(record))?,
    ])
}

fn turn_row(turn: &Turn) -> Result<[Value; 12], serde_json::Error> {
    let spent = |of: fn(&Usage) -> u64| {
        turn.usage
            .as_ref()
            .map_or(Value::Null, |usage| count(of(usage)))
    };
    Ok([
        turn.turn_id.turn_index.into(),
        word(turn.triggered_by)?,
        json(&turn.input_messages)?,
        maybe(turn.output_message.as_ref()),
        json(&turn.tool_results)?,
        time_text(turn.started_at).into(),
        turn.ended_at.map(time_text).into(),
        spent(|usage| usage.input),
        spent(|usage| usage.output),
        spent(|usage| usage.reasoning),
        spent(|usage| usage.cache_read),
        spent(|usage| usage.cache_write),
    ])
}

fn message_row(
    loop_id: &LoopId,
    place: usize,
    message: &LlmMessage,
) -> Result<[Value; 5], serde_json::Error> {
    let turn = message.turn_id.as_ref();
    let elsewhere = turn.map(|turn| &turn.loop_id).filter(|id| *id != loop_id);
    Ok([
        count(place as u64),
        text(&message.message_id),
        turn.map(|turn| turn.turn_index).into(),
        maybe(elsewhere),
        json(&message.message)?,
    ])
}

/// Where each settled message is kept.
fn settled(record: &LoopRecord) -> HashMap<&MessageId, (usize, &LlmMessage)> {
    let messages = record.messages.iter().enumerate();
    messages
        .map(|(place, message)| (&message.message_id, (place, &**message)))
        .collect()
}

/// An event as it is stored. A settled message is stored once, in `messages`; its event refers to it.
#[derive(Serialize)]
struct Entry<'a> {
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a EventKind>,
}

fn log(record: &LoopRecord) -> Vec<Entry<'_>> {
    let settled = settled(record);
    let entry = |event: &'_ Event| -> Option<usize> {
        let EventKind::MessageEnd { message } = &event.kind else {
            return None;
        };
        let (place, kept) = settled.get(&message.message_id)?;
        (std::ptr::eq(*kept, &**message) || *kept == &**message).then_some(*place)
    };
    let events = record.events.iter().map(|event| {
        let message = entry(event);
        Entry {
            seq: event.seq,
            turn: event.turn_index,
            at: time_text(event.at),
            message,
            body: message.is_none().then_some(&event.kind),
        }
    });
    events.collect()
}

fn text(id: &impl ToString) -> Value {
    Value::Text(id.to_string())
}

fn maybe<T: ToString>(id: Option<&T>) -> Value {
    id.map(T::to_string).into()
}

/// SQLite counts to 2^63; a number above that is some provider's nonsense, and kept as the largest.
fn count(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn json(value: &impl Serialize) -> Result<Value, serde_json::Error> {
    Ok(Value::Text(serde_json::to_string(value)?))
}

fn json_maybe<T: Serialize>(value: Option<&T>) -> Result<Value, serde_json::Error> {
    value.map_or(Ok(Value::Null), json)
}

/// An enum without fields, as its bare word.
fn word(value: impl Serialize) -> Result<Value, serde_json::Error> {
    let quoted = serde_json::to_string(&value)?;
    Ok(Value::Text(quoted.trim_matches('"').to_owned()))
}

/// Read back what [`word`] wrote.
pub(super) fn from_word<T: serde::de::DeserializeOwned>(word: &str) -> Result<T, Fault> {
    let word: serde::de::value::StrDeserializer<'_, serde_json::Error> =
        serde::de::IntoDeserializer::into_deserializer(word);
    Ok(T::deserialize(word)?)
}
