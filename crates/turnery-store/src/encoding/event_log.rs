//! Reads the events of a stored loop one by one.

use super::row_error::RowError;
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, value::RawValue};
use turnery_engine::{Event, EventKind, LoopId, LoopRecord};

/// Stored form of an event, without data that the record already has. `P` is the type of a kind without some of
/// its fields, `K` that of a whole kind.
#[derive(Serialize, Deserialize)]
pub(crate) struct EventEntry<P, K> {
    pub(crate) seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<u32>,
    /// Time since the start of the loop. Unit: nanoseconds.
    pub(crate) at: i64,
    /// Index of a settled message among the messages of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<usize>,
    /// `loop_start` without the configuration, which is in the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<P>,
    /// `loop_end` without the outcome, which is in the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<K>,
}

/// Entry as read: its kind is parsed only if needed.
type UnparsedEntry<'a> = EventEntry<&'a RawValue, &'a RawValue>;

impl UnparsedEntry<'_> {
    /// Returns true if the event has one of these names. Does not parse the body: `EventKind` is serialized
    /// with the name first.
    fn is_one_of(&self, names: &[&str]) -> bool {
        let body = self.body.map_or("", RawValue::get);
        let named = body.strip_prefix("{\"event\":\"").unwrap_or_default();
        names.contains(&named.split('"').next().unwrap_or_default())
    }
}

/// Returns the next event of the log from position `at`, skipping events named in `without`; `None` at the
/// end. Skipped events are not parsed.
pub(crate) fn next_event(
    log: &str,
    at: &mut usize,
    record: &LoopRecord,
    without: &[&str],
) -> Result<Option<Event>, RowError> {
    loop {
        let rest = log.get(*at..).unwrap_or_default();
        if matches!((*at, rest), (0, "[]") | (1.., "]")) {
            return Ok(None);
        }
        let mark = if *at == 0 { '[' } else { ',' };
        let damaged =
            || RowError::Invalid(format!("the events of loop {} are damaged", record.loop_id));
        let entries = rest.strip_prefix(mark).ok_or_else(damaged)?;
        let mut entries = Deserializer::from_str(entries).into_iter::<UnparsedEntry<'_>>();
        let entry = entries.next().ok_or_else(damaged)??;
        *at += 1 + entries.byte_offset();
        if !entry.is_one_of(without) {
            return decode_event(&entry, record).map(Some);
        }
    }
}

/// Returns all readable events, and the reason why others are not. A truncated log yields none: the messages
/// of the record hold the full conversation.
pub(crate) fn read_all(log: &str, record: &LoopRecord) -> (Vec<Event>, Option<String>) {
    let (mut events, mut failure) = (Vec::new(), None);
    let mut at = 0;
    loop {
        let from = at;
        match next_event(log, &mut at, record, &[]) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, failure),
            Err(error) => {
                failure.get_or_insert_with(|| error.to_string());
                if at == from {
                    return (Vec::new(), failure);
                }
            }
        }
    }
}

fn decode_event(entry: &UnparsedEntry<'_>, record: &LoopRecord) -> Result<Event, RowError> {
    Ok(Event {
        session_id: record.session_id.clone(),
        loop_id: record.loop_id.clone(),
        seq: entry.seq,
        turn_index: entry.turn,
        at: record
            .started_at
            .checked_add_signed(TimeDelta::nanoseconds(entry.at))
            .ok_or_else(|| missing_field(record, entry.seq, "time"))?,
        kind: decode_kind(entry, record)?,
    })
}

fn decode_kind(entry: &UnparsedEntry<'_>, record: &LoopRecord) -> Result<EventKind, RowError> {
    if let Some(body) = entry.body {
        return Ok(serde_json::from_str(body.get())?);
    }
    if let Some(place) = entry.message {
        let message = record.messages.get(place).cloned();
        let message = message.ok_or_else(|| missing_field(record, entry.seq, "message"))?;
        return Ok(EventKind::MessageEnd { message });
    }
    if let Some(end) = entry.end {
        // Replaced by the record's outcome, so that both share the text of the response.
        let rest = end.get().strip_prefix('{').unwrap_or_default();
        let whole = format!("{{\"outcome\":{{\"stopped\":\"incomplete\"}},{rest}");
        let mut kind = serde_json::from_str(&whole)?;
        if let EventKind::LoopEnd { outcome, .. } = &mut kind {
            let stored = record.outcome.clone();
            *outcome = stored.ok_or_else(|| missing_field(record, entry.seq, "outcome"))?;
        }
        return Ok(kind);
    }
    let start = entry
        .start
        .ok_or_else(|| missing_field(record, entry.seq, "content"))?;
    let mut kind = serde_json::from_str(start.get())?;
    if let EventKind::LoopStart { config, .. } = &mut kind {
        *config = record.config.clone().map(Box::new);
    }
    Ok(kind)
}

fn missing_field(record: &LoopRecord, seq: u64, what: &str) -> RowError {
    let loop_id = &record.loop_id;
    RowError::Invalid(format!("loop {loop_id} lacks the {what} of event {seq}"))
}

/// Returns the parent of a loop according to its start event.
pub(crate) fn logged_parent(log: &str) -> Option<Option<LoopId>> {
    #[derive(Deserialize)]
    struct StartEntry {
        start: Option<StartKind>,
        body: Option<StartKind>,
    }
    #[derive(Deserialize)]
    struct StartKind {
        event: String,
        parent_loop_id: Option<LoopId>,
    }
    let entries = log.strip_prefix('[')?;
    let mut at = 0;
    // The announcement of a group may precede the start event.
    for _ in 0..2 {
        let rest = entries.get(at..)?;
        let rest = rest.strip_prefix(',').unwrap_or(rest);
        let mut entry = Deserializer::from_str(rest).into_iter::<StartEntry>();
        let kind = entry.next()?.ok()?;
        at = entries.len() - rest.len() + entry.byte_offset();
        if let Some(kind) = kind
            .start
            .or(kind.body)
            .filter(|kind| kind.event == "loop_start")
        {
            return Some(kind.parent_loop_id);
        }
    }
    None
}
