//! Log: the events of a stored loop, read back one after the other.

use super::fault::Fault;
use chrono::TimeDelta;
use serde::Deserialize;
use serde_json::{Deserializer, value::RawValue};
use turnery_engine::{Event, EventKind, LoopRecord};

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
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

impl Entry<'_> {
    /// The name comes first, as `EventKind` is written.
    fn is_one_of(&self, names: &[&str]) -> bool {
        let body = self.body.map_or("", RawValue::get);
        let named = body.strip_prefix("{\"event\":\"").unwrap_or_default();
        names.contains(&named.split('"').next().unwrap_or_default())
    }
}

/// The next event in the log that begins `at` there, but for those of the names in `without`; none at
/// the end. What is left out is not read, only found.
pub(super) fn next(
    log: &str,
    at: &mut usize,
    record: &LoopRecord,
    without: &[&str],
) -> Result<Option<Event>, Fault> {
    loop {
        let rest = log.get(*at..).unwrap_or_default();
        if matches!((*at, rest), (0, "[]") | (1.., "]")) {
            return Ok(None);
        }
        let mark = if *at == 0 { '[' } else { ',' };
        let damaged = || Fault::Row(format!("the events of loop {} are damaged", record.loop_id));
        let entries = rest.strip_prefix(mark).ok_or_else(damaged)?;
        let mut entries = Deserializer::from_str(entries).into_iter::<Entry<'_>>();
        let entry = entries.next().ok_or_else(damaged)??;
        *at += 1 + entries.byte_offset();
        if !entry.is_one_of(without) {
            return event(&entry, record).map(Some);
        }
    }
}

/// All events that can be read, and why others cannot. If the log breaks off it holds none: what was
/// said is in the messages of the record.
pub(super) fn all(log: &str, record: &LoopRecord) -> (Vec<Event>, Option<String>) {
    let (mut events, mut failure) = (Vec::new(), None);
    let mut at = 0;
    loop {
        let from = at;
        match next(log, &mut at, record, &[]) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, failure),
            Err(fault) => {
                failure.get_or_insert_with(|| fault.in_words());
                if at == from {
                    return (Vec::new(), failure);
                }
            }
        }
    }
}

fn event(entry: &Entry<'_>, record: &LoopRecord) -> Result<Event, Fault> {
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
}

fn kind(entry: &Entry<'_>, record: &LoopRecord) -> Result<EventKind, Fault> {
    if let Some(body) = entry.body {
        return Ok(serde_json::from_str(body.get())?);
    }
    if let Some(place) = entry.message {
        let message = record.messages.get(place).cloned();
        let message = message.ok_or_else(|| lack(record, entry.seq, "message"))?;
        return Ok(EventKind::MessageEnd { message });
    }
    if let Some(end) = entry.end {
        // The record's outcome replaces this one, so that both share the text of the answer.
        let rest = end.get().strip_prefix('{').unwrap_or_default();
        let whole = format!("{{\"outcome\":{{\"stopped\":\"incomplete\"}},{rest}");
        let mut kind = serde_json::from_str(&whole)?;
        if let EventKind::LoopEnd { outcome, .. } = &mut kind {
            let stored = record.outcome.clone();
            *outcome = stored.ok_or_else(|| lack(record, entry.seq, "outcome"))?;
        }
        return Ok(kind);
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
