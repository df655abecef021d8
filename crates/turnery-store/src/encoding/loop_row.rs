//! Encodes a loop record as a row of the table `loops`.

use super::{
    checksum::Checksum,
    event_log::EventEntry,
    long_texts::{TextSink, encode_large, encode_small, utf8_text},
    omit_fields::OmitFields,
};
use crate::{StoreError, list_cursor::format_time};
use serde::{Serialize, Serializer};
use std::sync::Arc;
use turnery_engine::{Event, EventKind, LlmMessage, LoopId, LoopRecord, SessionId, Timestamp};

/// Fields of the record that have a column of their own, or are stored in `messages` or `log`.
pub(crate) const SEPARATE_FIELDS: &[&str] = &[
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

/// Texts that a commit writes for a loop in addition to its ids, one after the other in one buffer.
pub(crate) struct LoopRow {
    text: String,
    column_ends: [usize; 7],
}

impl LoopRow {
    /// Rejects a record that a row cannot hold. Takes constant time per event and turn.
    pub(crate) fn validate(record: &LoopRecord) -> Result<(), StoreError> {
        check_consistency(record).map_err(|what| rejection_error(record, &what))
    }

    /// Encodes a record accepted by [`validate`](Self::validate) with all its texts. `None` if the row would
    /// be too large.
    pub(crate) fn encode_inline(record: &LoopRecord) -> Result<Option<Self>, StoreError> {
        Self::encode(record, |out, value| {
            encode_small(out, value).map_err(|error| rejection_error(record, &error))
        })
    }

    /// Encodes a record accepted by [`validate`](Self::validate), storing its long texts apart from a large
    /// row. Takes time proportional to the size of the record.
    pub(crate) fn encode_with_stored_texts<S: TextSink>(
        sink: &mut S,
        record: &LoopRecord,
    ) -> Result<Self, S::Error>
    where
        S::Error: From<StoreError>,
    {
        let row =
            Self::encode::<S::Error>(record, |out, value| match encode_large(sink, out, value)? {
                Ok(()) => Ok(true),
                Err(error) => Err(rejection_error(record, &error).into()),
            })?;
        row.ok_or_else(|| rejection_error(record, &"it cannot be encoded").into())
    }

    /// Encodes a record. `append` adds the JSON of a column, and returns false if the row is too large to hold its
    /// texts.
    fn encode<E: From<StoreError>>(
        record: &LoopRecord,
        mut append: impl FnMut(&mut Vec<u8>, &LoopColumn<'_>) -> Result<bool, E>,
    ) -> Result<Option<Self>, E> {
        let mut text = Vec::with_capacity(4096);
        push_enum(&mut text, record, &record.continuation_kind)?;
        let kind = text.len();
        push_enum(&mut text, record, &record.status)?;
        let status = text.len();
        text.extend_from_slice(format_time(record.started_at).as_bytes());
        let started = text.len();
        if let Some(ended_at) = record.ended_at {
            text.extend_from_slice(format_time(ended_at).as_bytes());
        }
        let ended = text.len();
        if !append(&mut text, &LoopColumn::Record(record))? {
            return Ok(None);
        }
        let head = text.len();
        if !append(&mut text, &LoopColumn::Messages(record))? {
            return Ok(None);
        }
        let messages = text.len();
        if !append(&mut text, &LoopColumn::Log(record))? {
            return Ok(None);
        }
        let text = utf8_text(text).map_err(|error| rejection_error(record, &error))?;
        let ends = [kind, status, started, ended, head, messages, text.len()];
        Ok(Some(Self {
            text,
            column_ends: ends,
        }))
    }

    /// Returns `continuation_kind`, `status`, `started_at`, `ended_at`, `record`, `messages` and `log`.
    pub(crate) fn columns(&self) -> [Option<&str>; 7] {
        let mut start = 0;
        let mut columns = self.column_ends.map(|end| {
            let part = &self.text[start..end];
            start = end;
            Some(part)
        });
        // Only an absent time is empty.
        columns[3] = columns[3].filter(|text| !text.is_empty());
        columns
    }

    /// Returns the checksum of the row written by a commit with this version.
    pub(crate) fn checksum(&self, version: i64, record: &LoopRecord) -> i64 {
        self.checksum_of(&self.columns(), version, record)
    }

    /// Like [`checksum`](Self::checksum), for a database that has a checksum of its own for the events.
    #[cfg(feature = "postgres")]
    pub(crate) fn checksum_without_log(&self, version: i64, record: &LoopRecord) -> i64 {
        let [columns @ .., _] = self.columns();
        self.checksum_of(&columns, version, record)
    }

    fn checksum_of(&self, columns: &[Option<&str>], version: i64, record: &LoopRecord) -> i64 {
        let parent = record.parent_loop_id.as_ref().map(LoopId::as_str);
        let ids = (&record.session_id, record.loop_id.as_str(), parent);
        loop_checksum(ids, version, record.on_chain, columns).finish()
    }
}

/// Returns the checksum of a loop with these ids of its session, itself and its parent. `columns` are those of
/// [`LoopRow::columns`].
pub(crate) fn loop_checksum(
    (session, loop_id, parent): (&SessionId, &str, Option<&str>),
    version: i64,
    on_chain: bool,
    columns: &[Option<&str>],
) -> Checksum {
    let head = Checksum::default()
        .text(session.as_str())
        .integer(version)
        .text(loop_id)
        .optional(parent);
    let (kind_and_status, rest) = columns.split_at(columns.len().min(2));
    let add = |sum: Checksum, column: &Option<&str>| sum.optional(*column);
    let head = kind_and_status.iter().fold(head, add);
    rest.iter().fold(head.integer(on_chain.into()), add)
}

/// JSON column of a row.
enum LoopColumn<'a> {
    Record(&'a LoopRecord),
    Messages(&'a LoopRecord),
    Log(&'a LoopRecord),
}

impl Serialize for LoopColumn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Record(record) => OmitFields(SEPARATE_FIELDS, *record).serialize(serializer),
            Self::Messages(record) => record.messages.serialize(serializer),
            Self::Log(record) => EventLog(record).serialize(serializer),
        }
    }
}

fn rejection_error(record: &LoopRecord, what: &dyn std::fmt::Display) -> StoreError {
    StoreError::Broken(format!("loop {} cannot be stored: {what}", record.loop_id))
}

/// Appends a unit variant as its bare name, any other value as JSON.
fn push_enum(
    out: &mut Vec<u8>,
    record: &LoopRecord,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    let start = out.len();
    serde_json::to_writer(&mut *out, value).map_err(|error| rejection_error(record, &error))?;
    if out.get(start) == Some(&b'"') {
        out.pop();
        out.remove(start);
    }
    Ok(())
}

/// Checks the invariants by which the row omits data.
fn check_consistency(record: &LoopRecord) -> Result<(), String> {
    let mut next = 0;
    for event in &record.events {
        if event.loop_id != record.loop_id || event.session_id != record.session_id {
            return Err(format!("event {} belongs to another loop", event.seq));
        }
        if event.seq < next {
            return Err(format!("event {} is out of order", event.seq));
        }
        if nanos_after(event.at, record.started_at).is_none() {
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

/// Returns the time since `start`. Unit: nanoseconds.
fn nanos_after(at: Timestamp, start: Timestamp) -> Option<i64> {
    at.signed_duration_since(start).num_nanoseconds()
}

/// Events of a record in stored form.
struct EventLog<'a>(&'a LoopRecord);

impl Serialize for EventLog<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.0;
        let mut settled = 0;
        serializer.collect_seq(record.events.iter().map(|event| {
            let message = message_index(event, &record.messages, settled);
            settled = message.map_or(settled, |place| place + 1);
            event_entry(record, event, message)
        }))
    }
}

fn event_entry<'a>(
    record: &LoopRecord,
    event: &'a Event,
    message: Option<usize>,
) -> EventEntry<OmitFields<'a, EventKind>, &'a EventKind> {
    let kind = &event.kind;
    let start = matches!(kind, EventKind::LoopStart { config, .. }
        if config.is_some() && config.as_deref() == record.config.as_ref());
    let end = matches!(kind, EventKind::LoopEnd { outcome, .. }
        if Some(outcome) == record.outcome.as_ref());
    EventEntry {
        seq: event.seq,
        turn: event.turn_index,
        at: nanos_after(event.at, record.started_at).unwrap_or_default(),
        message,
        start: start.then_some(OmitFields(&["config"], kind)),
        end: end.then_some(OmitFields(&["outcome"], kind)),
        body: (message.is_none() && !start && !end).then_some(kind),
    }
}

/// Returns the index of the message that an event settles, trying `next` first.
fn message_index(event: &Event, messages: &[Arc<LlmMessage>], next: usize) -> Option<usize> {
    let EventKind::MessageEnd { message } = &event.kind else {
        return None;
    };
    let same = |kept: &Arc<LlmMessage>| Arc::ptr_eq(kept, message) || kept == message;
    match messages.get(next).is_some_and(same) {
        true => Some(next),
        false => messages.iter().position(same),
    }
}
