//! Rows: a loop record as the rows that are stored, and their hash.

use super::fault::Fault;
use crate::{StoreError, cursor::time_text};
use rusqlite::types::Value;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use turnery_engine::{
    ConfigSnapshot, Event, EventKind, LlmMessage, LoopId, LoopRecord, MessageId, Turn,
};

/// What one commit writes, but for the keys that the database gives.
pub(super) struct Rows {
    /// Tells a retry of the same commit from another content under the same id (S2).
    pub(super) hash: [u8; 32],
    pub(super) record: [Value; 14],
    pub(super) turns: Vec<[Value; 7]>,
    pub(super) usage: Vec<[Value; 9]>,
    pub(super) messages: Vec<[Value; 5]>,
    pub(super) events: Vec<[Value; 5]>,
}

impl Rows {
    pub(super) fn of(record: &LoopRecord) -> Result<Self, StoreError> {
        fit(record).map_err(|what| refused(record, &what))?;
        Self::encode(record).map_err(|error| refused(record, &error.to_string()))
    }

    fn encode(record: &LoopRecord) -> Result<Self, serde_json::Error> {
        let turns = record.turns.iter().map(turn_row);
        let messages = record.messages.iter().enumerate();
        let settled = settled(record);
        let events = record.events.iter().map(|event| event_row(event, &settled));
        let mut rows = Self {
            hash: [0; 32],
            record: record_row(record)?,
            turns: turns.collect::<Result<_, _>>()?,
            usage: usage_rows(record),
            messages: messages
                .map(|(place, message)| message_row(&record.loop_id, place, message))
                .collect::<Result<_, _>>()?,
            events: events.collect::<Result<_, _>>()?,
        };
        rows.hash = rows.digest();
        Ok(rows)
    }

    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        add(&mut hash, std::slice::from_ref(&self.record));
        add(&mut hash, &self.turns);
        add(&mut hash, &self.usage);
        add(&mut hash, &self.messages);
        add(&mut hash, &self.events);
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

fn record_row(record: &LoopRecord) -> Result<[Value; 14], serde_json::Error> {
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
    ])
}

fn turn_row(turn: &Turn) -> Result<[Value; 7], serde_json::Error> {
    Ok([
        turn.turn_id.turn_index.into(),
        word(turn.triggered_by)?,
        json(&turn.input_messages)?,
        maybe(turn.output_message.as_ref()),
        json(&turn.tool_results)?,
        time_text(turn.started_at).into(),
        turn.ended_at.map(time_text).into(),
    ])
}

fn usage_rows(record: &LoopRecord) -> Vec<[Value; 9]> {
    let config = record.config.as_ref();
    let served = |of: fn(&ConfigSnapshot) -> &String| -> Value { config.map(of).cloned().into() };
    let rows = record.turns.iter().filter_map(|turn| {
        let usage = turn.usage?;
        Some([
            turn.turn_id.turn_index.into(),
            served(|config| &config.provider),
            served(|config| &config.model),
            time_text(turn.ended_at.unwrap_or(turn.started_at)).into(),
            count(usage.input),
            count(usage.output),
            count(usage.reasoning),
            count(usage.cache_read),
            count(usage.cache_write),
        ])
    });
    rows.collect()
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

/// A settled message is stored once, in `messages`; its event refers to it.
fn event_row(
    event: &Event,
    settled: &HashMap<&MessageId, (usize, &LlmMessage)>,
) -> Result<[Value; 5], serde_json::Error> {
    let place = if let EventKind::MessageEnd { message } = &event.kind {
        let kept = settled.get(&message.message_id);
        kept.filter(|(_, kept)| std::ptr::eq(*kept, &**message) || *kept == &**message)
    } else {
        None
    };
    let body = match place {
        Some(_) => Value::Null,
        None => json(&event.kind)?,
    };
    Ok([
        count(event.seq),
        event.turn_index.into(),
        time_text(event.at).into(),
        place.map_or(Value::Null, |(place, _)| count(*place as u64)),
        body,
    ])
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
