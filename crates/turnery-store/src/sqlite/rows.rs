//! Rows: a loop record as the row that is stored.

use super::{
    checksum::Checksum,
    fault::Fault,
    fields::Without,
    texts::{encode_large, encode_small, into_text},
};
use crate::{StoreError, cursor::time_text};
use rusqlite::Connection;
use serde::{Serialize, Serializer};
use std::sync::Arc;
use turnery_engine::{Event, EventKind, LlmMessage, LoopId, LoopRecord, Timestamp};

/// What the record has in a column of its own, or in `messages` or `log`.
pub(super) const APART: &[&str] = &[
    "loop_id",
    "session_id",
    "parent_loop_id",
    "continuation_kind",
    "status",
    "on_chain",
    "started_at",
    "ended_at",
    "messages",
    "events",
];

/// What one commit writes of a loop, beside its ids: texts, one after the other in one buffer.
pub(super) struct Row {
    text: String,
    ends: [usize; 7],
}

impl Row {
    /// Refuses a record that a row cannot hold. Quick, however large the record is.
    pub(super) fn check(record: &LoopRecord) -> Result<(), StoreError> {
        fit(record).map_err(|what| refused(record, &what))
    }

    /// Encodes a record that [`check`](Self::check) has accepted, with all its texts. `None` if the row is
    /// too large for that.
    pub(super) fn small(record: &LoopRecord) -> Result<Option<Self>, Fault> {
        Self::encode(record, None)
    }

    /// Encodes a record that [`check`](Self::check) has accepted, and stores its long texts, which a large
    /// row only refers to. Takes time in proportion to the record.
    pub(super) fn large(db: &Connection, record: &LoopRecord) -> Result<Self, Fault> {
        let row = Self::encode(record, Some(db))?;
        row.ok_or_else(|| refused(record, &"it cannot be encoded").into())
    }

    fn encode(record: &LoopRecord, db: Option<&Connection>) -> Result<Option<Self>, Fault> {
        let mut text = Vec::with_capacity(4096);
        word(&mut text, &record.continuation_kind)?;
        let kind = text.len();
        word(&mut text, &record.status)?;
        let status = text.len();
        text.extend_from_slice(time_text(record.started_at).as_bytes());
        let started = text.len();
        if let Some(ended_at) = record.ended_at {
            text.extend_from_slice(time_text(ended_at).as_bytes());
        }
        let ended = text.len();
        let mut column = Column { record, db, text };
        if !column.append(&Without(APART, record))? {
            return Ok(None);
        }
        let head = column.text.len();
        if !column.append(&record.messages)? {
            return Ok(None);
        }
        let messages = column.text.len();
        if !column.append(&Log(record))? {
            return Ok(None);
        }
        let text = into_text(column.text)?;
        let ends = [kind, status, started, ended, head, messages, text.len()];
        Ok(Some(Self { text, ends }))
    }

    /// `continuation_kind`, `status`, `started_at`, `ended_at`, `record`, `messages` and `log`.
    pub(super) fn columns(&self) -> [Option<&str>; 7] {
        let mut start = 0;
        let mut columns = self.ends.map(|end| {
            let part = &self.text[start..end];
            start = end;
            Some(part)
        });
        // Only a time that is not there is empty.
        columns[3] = columns[3].filter(|text| !text.is_empty());
        columns
    }

    /// Checksum of the row that a commit with this version writes: see [`super::loops::LOOP`].
    pub(super) fn checksum(&self, version: i64, record: &LoopRecord) -> i64 {
        let [kind, status, rest @ ..] = self.columns();
        let head = Checksum::default()
            .text(record.session_id.as_str())
            .integer(version)
            .text(record.loop_id.as_str())
            .optional(record.parent_loop_id.as_ref().map(LoopId::as_str))
            .optional(kind)
            .optional(status)
            .integer(record.on_chain.into());
        rest.into_iter().fold(head, Checksum::optional).finish()
    }
}

/// Where the JSON columns of a row are written.
struct Column<'a> {
    record: &'a LoopRecord,
    /// Where long texts go; `None` if they go into the row.
    db: Option<&'a Connection>,
    text: Vec<u8>,
}

impl Column<'_> {
    /// False if the row is too large to hold its texts.
    fn append(&mut self, value: &impl Serialize) -> Result<bool, Fault> {
        let refused = |error: &serde_json::Error| refused(self.record, error);
        match self.db {
            None => encode_small(&mut self.text, value).map_err(|error| refused(&error).into()),
            Some(db) => match encode_large(db, &self.record.session_id, &mut self.text, value) {
                Ok(()) => Ok(true),
                Err(Fault::Json(error)) => Err(refused(&error).into()),
                Err(fault) => Err(fault),
            },
        }
    }
}

fn refused(record: &LoopRecord, what: &dyn std::fmt::Display) -> StoreError {
    StoreError::Broken(format!("loop {} cannot be stored: {what}", record.loop_id))
}

/// An enum without fields as its bare word, any other value as JSON.
fn word(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    let start = out.len();
    serde_json::to_writer(&mut *out, value)?;
    if out.get(start) == Some(&b'"') {
        out.pop();
        out.remove(start);
    }
    Ok(())
}

/// What the row leaves out because it goes without saying must really be so.
fn fit(record: &LoopRecord) -> Result<(), String> {
    let mut next = 0;
    for event in &record.events {
        if event.loop_id != record.loop_id || event.session_id != record.session_id {
            return Err(format!("event {} belongs to another loop", event.seq));
        }
        if event.seq < next {
            return Err(format!("event {} is out of order", event.seq));
        }
        if after(event.at, record.started_at).is_none() {
            return Err(format!(
                "event {} is centuries away from its start",
                event.seq
            ));
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

/// Unit: nanoseconds.
fn after(at: Timestamp, start: Timestamp) -> Option<i64> {
    at.signed_duration_since(start).num_nanoseconds()
}

/// The events of a record as they are stored.
struct Log<'a>(&'a LoopRecord);

/// An event as it is stored. What the record says is stored once, there.
#[derive(Serialize)]
struct Entry<'a> {
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    /// Nanoseconds since the loop began.
    at: i64,
    /// A settled message: its place among those of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<usize>,
    /// A `loop_start` without the configuration, which is the record's.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Without<'a, EventKind>>,
    /// A `loop_end` without the outcome, which is the record's.
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Without<'a, EventKind>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a EventKind>,
}

impl Serialize for Log<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.0;
        let mut settled = 0;
        serializer.collect_seq(record.events.iter().map(|event| {
            let message = place(event, &record.messages, settled);
            settled = message.map_or(settled, |place| place + 1);
            entry(record, event, message)
        }))
    }
}

fn entry<'a>(record: &LoopRecord, event: &'a Event, message: Option<usize>) -> Entry<'a> {
    let kind = &event.kind;
    let start = matches!(kind, EventKind::LoopStart { config, .. }
        if config.is_some() && config.as_deref() == record.config.as_ref());
    let end = matches!(kind, EventKind::LoopEnd { outcome, .. }
        if Some(outcome) == record.outcome.as_ref());
    Entry {
        seq: event.seq,
        turn: event.turn_index,
        at: after(event.at, record.started_at).unwrap_or_default(),
        message,
        start: start.then_some(Without(&["config"], kind)),
        end: end.then_some(Without(&["outcome"], kind)),
        body: (message.is_none() && !start && !end).then_some(kind),
    }
}

/// Where the message that an event settles is kept; most likely it is the `next` one.
fn place(event: &Event, messages: &[Arc<LlmMessage>], next: usize) -> Option<usize> {
    let EventKind::MessageEnd { message } = &event.kind else {
        return None;
    };
    let same = |kept: &Arc<LlmMessage>| Arc::ptr_eq(kept, message) || kept == message;
    match messages.get(next).is_some_and(same) {
        true => Some(next),
        false => messages.iter().position(same),
    }
}
