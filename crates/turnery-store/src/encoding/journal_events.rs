//! Encodes and decodes the events of a row of the journal.

use super::{
    long_texts::{self, TextSink},
    row_error::RowError,
};
use serde::{Deserialize, Serialize};
use turnery_engine::{Event, EventKind, LoopId, SessionId, Timestamp};

/// Event as stored, without the ids that its row has. `K` is an [`EventKind`] or a reference to one.
#[derive(Serialize, Deserialize)]
struct EventBody<K> {
    seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn_index: Option<u32>,
    at: Timestamp,
    #[serde(flatten)]
    kind: K,
}

/// Returns the JSON of events that are written together.
pub(crate) fn encode_events<S: TextSink>(sink: &mut S, events: &[Event]) -> Result<String, S::Error>
where
    S::Error: From<RowError>,
{
    let written = events.iter().map(|event| EventBody {
        seq: event.seq,
        turn_index: event.turn_index,
        at: event.at,
        kind: &event.kind,
    });
    long_texts::encode(sink, &written.collect::<Vec<_>>())
}

/// Parses the events of a row, whose references are replaced. Earlier versions stored one event per row, or its ids
/// too.
pub(crate) fn parse_events(
    session: &SessionId,
    loop_id: &LoopId,
    body: &str,
) -> Result<Vec<Event>, RowError> {
    let bodies: Vec<EventBody<EventKind>> = match body.starts_with('[') {
        true => serde_json::from_str(body)?,
        false => vec![serde_json::from_str(body)?],
    };
    let events = bodies.into_iter().map(|body| Event {
        session_id: session.clone(),
        loop_id: loop_id.clone(),
        seq: body.seq,
        turn_index: body.turn_index,
        at: body.at,
        kind: body.kind,
    });
    Ok(events.collect())
}
