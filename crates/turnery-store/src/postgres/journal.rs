//! Journals the events of uncommitted loops, for recovery after a crash.

use super::{
    commit,
    connection::Connection,
    engine::{CALL_TIMEOUT, Shared},
    listener::tell_followers,
    pg_error::PgError,
    rows::{Columns, to_integer},
    session_queue::{SessionQueue, WaitingAppend},
    texts::{EncodeError, FetchedTexts, NewTexts, store_texts},
};
use crate::{
    Damage, DamagedPart, Lane, StoreError,
    encoding::{
        checksum::{Checksum, ChecksumVerdict},
        journal_events::{encode_events, parse_events},
        row_error::RowError,
    },
    follow::JournalledEvents,
    list_cursor::format_time,
};
use tokio_postgres::Row;
use turnery_engine::{Event, LoopId, SessionId};

/// Journals events under a lane, except those of loops that are stored. The lock keeps the next claim from overlooking
/// them.
const APPEND: &str = concat!(
    "WITH lane AS ( \
         SELECT session_id FROM sessions WHERE session_id = $1 AND owner_id = $2 AND fence = $3 FOR SHARE)",
    store_texts!("$9", "$10", "$11"),
    ", added AS ( \
         INSERT INTO journal (session_id, loop_id, seq, at, body, checksum) \
         SELECT lane.session_id, t.loop_id, t.seq, t.at, t.body, t.checksum \
         FROM lane, unnest($4::text[], $5::bigint[], $6::text[], $7::text[], $8::bigint[]) \
             WITH ORDINALITY AS t (loop_id, seq, at, body, checksum, place) \
         WHERE NOT EXISTS (SELECT 1 FROM loops l WHERE l.session_id = $1 AND l.loop_id = t.loop_id) \
         ORDER BY t.place), \
     told AS (",
    tell_followers!("lane"),
    ") SELECT (SELECT count(*) FROM told) FROM lane"
);

const EXISTS: &str = "SELECT 1 FROM journal WHERE session_id = $1 LIMIT 1";

const SELECT: &str = "SELECT loop_id, seq, at, body, checksum, entry FROM journal WHERE session_id = $1 ORDER BY entry";

const DELETE_ALL: &str = "DELETE FROM journal WHERE session_id = $1";

/// Drops the journal of a loop if the owner has the lane.
const FORGET: &str = "DELETE FROM journal USING sessions s WHERE journal.session_id = $1 AND loop_id = $2 \
     AND s.session_id = $1 AND s.owner_id = $3";

const BACK_UP: &str = "INSERT INTO repairs (session_id, at, place, field, before) \
     SELECT session_id, clock_timestamp(), 'journal', loop_id || ' ' || seq, body FROM journal WHERE session_id = $1";

const MOVE: &str = "WITH gone AS ( \
         DELETE FROM journal WHERE session_id = $1 AND entry = ANY ($2) RETURNING session_id, loop_id, seq, body) \
     INSERT INTO repairs (session_id, at, place, field, before) \
     SELECT session_id, clock_timestamp(), 'journal', loop_id || ' ' || seq, body FROM gone";

/// Events that are written together.
#[derive(Debug)]
pub(super) struct JournalRow {
    pub(super) loop_id: String,
    pub(super) seq: i64,
    pub(super) at: String,
    pub(super) body: String,
    pub(super) checksum: i64,
}

impl JournalRow {
    /// Encodes events of a loop; `None` without events.
    pub(super) fn encode(
        texts: &mut NewTexts,
        session: &SessionId,
        loop_id: &LoopId,
        events: &[Event],
    ) -> Result<Option<Self>, EncodeError> {
        let Some(first) = events.first() else {
            return Ok(None);
        };
        let body = encode_events(texts, events)?;
        let (seq, at) = (to_integer(first.seq), format_time(first.at));
        let checksum = Self::checksum(session, loop_id.as_str(), seq, &at, &body).finish();
        Ok(Some(Self {
            loop_id: loop_id.to_string(),
            seq,
            at,
            body,
            checksum,
        }))
    }

    fn checksum(session: &SessionId, loop_id: &str, seq: i64, at: &str, body: &str) -> Checksum {
        let head = Checksum::default().text(session.as_str()).text(loop_id);
        head.integer(seq).text(at).text(body)
    }
}

/// Writes events that wait in the queue of a session. Drops events of owners that lost the lane, since the next claim
/// has turned the journal into a loop (C-12), and events that arrive after their loop's commit. Returns the lanes that
/// are not held.
pub(super) async fn write(
    shared: &Shared,
    queue: &SessionQueue,
    batch: &[WaitingAppend],
) -> Result<Vec<Lane>, StoreError> {
    let mut lost = Vec::new();
    for part in batch.chunk_by(|one, next| one.append.lane == next.append.lane) {
        let Some(lane) = part.first().map(|it| &it.append.lane) else {
            continue;
        };
        let mut texts = NewTexts::unknown_to(queue, lane.fence);
        let rows = part.iter().map(|it| {
            let append = &it.append;
            JournalRow::encode(
                &mut texts,
                &lane.session_id,
                &append.loop_id,
                &append.events,
            )
        });
        let rows = rows.collect::<Result<Vec<_>, EncodeError>>();
        let rows =
            rows.map_err(|error| PgError::from(error).into_store_error(&shared.pool.address))?;
        let rows: Vec<JournalRow> = rows.into_iter().flatten().collect();
        let is_held = shared
            .run(CALL_TIMEOUT, async |connection| {
                append(connection, lane, &rows, &texts).await
            })
            .await?;
        if is_held {
            texts.note_stored(queue, lane.fence);
        } else {
            lost.push(lane.clone());
        }
    }
    Ok(lost)
}

/// Returns true if the lane is held; the events are dropped otherwise.
async fn append(
    connection: &Connection,
    lane: &Lane,
    rows: &[JournalRow],
    texts: &NewTexts,
) -> Result<bool, PgError> {
    let loop_ids: Vec<&str> = rows.iter().map(|row| row.loop_id.as_str()).collect();
    let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let times: Vec<&str> = rows.iter().map(|row| row.at.as_str()).collect();
    let bodies: Vec<&str> = rows.iter().map(|row| row.body.as_str()).collect();
    let checksums: Vec<i64> = rows.iter().map(|row| row.checksum).collect();
    let held = connection
        .query_optional(
            APPEND,
            &[
                &lane.session_id.as_str(),
                &lane.owner_id,
                &to_integer(lane.fence),
                &loop_ids,
                &seqs,
                &times,
                &bodies,
                &checksums,
                &texts.names,
                &texts.pieces,
                &texts.bodies,
            ],
        )
        .await?;
    Ok(held.is_some())
}

/// Returns true if a session has journalled events.
pub(super) async fn exists(connection: &Connection, session: &SessionId) -> Result<bool, PgError> {
    let row = connection
        .query_optional(EXISTS, &[&session.as_str()])
        .await?;
    Ok(row.is_some())
}

/// Drops the journal of a loop if the owner of this id has the lane.
pub(super) async fn forget(
    connection: &Connection,
    session: &SessionId,
    owner_id: &str,
    loop_id: &LoopId,
) -> Result<(), PgError> {
    connection
        .execute(FORGET, &[&session.as_str(), &loop_id.as_str(), &owner_id])
        .await?;
    Ok(())
}

/// Content of a journal.
#[derive(Default)]
pub(super) struct ReadJournal {
    /// Readable events of each loop, oldest loop first.
    pub(super) loops: Vec<Vec<Event>>,
    /// One entry for each loop with unreadable events.
    pub(super) damage: Vec<Damage>,
    /// Greatest number of a loop with unreadable events.
    pub(super) last_lost_number: u64,
    /// Keys of unreadable rows.
    damaged_entries: Vec<i64>,
}

/// Reads the journal of a session.
pub(super) async fn read(
    connection: &Connection,
    session: &SessionId,
) -> Result<ReadJournal, PgError> {
    let rows = connection.query(SELECT, &[&session.as_str()]).await?;
    let bodies = rows.iter().map(|row| Columns(row).text(3));
    let bodies: Vec<&str> = bodies.collect::<Result<_, _>>()?;
    let texts = FetchedTexts::fetch(connection, session, bodies).await?;
    let mut journal = ReadJournal::default();
    let mut loops: Vec<(LoopId, Vec<Event>)> = Vec::new();
    for row in &rows {
        let loop_id = LoopId::from(Columns(row).text(0)?);
        let events = match read_row(session, row, &loop_id, &texts)? {
            Ok(events) => events,
            Err(error) => {
                let number = loop_id.number().unwrap_or_default();
                journal.last_lost_number = journal.last_lost_number.max(number);
                journal.damaged_entries.push(Columns(row).integer(5)?);
                let part = DamagedPart::Journal { loop_id };
                if journal.damage.last().is_none_or(|last| last.part != part) {
                    let reason = format!("has an event that cannot be read: {error}");
                    journal.damage.push(Damage::new(session, part, reason));
                }
                continue;
            }
        };
        match loops.iter_mut().find(|(id, _)| *id == loop_id) {
            Some((_, known)) => extend(known, events),
            None => loops.push((loop_id, events)),
        }
    }
    loops.sort_by_key(|(_, events)| events.iter().map(|event| event.at).min());
    journal.loops = loops.into_iter().map(|(_, events)| events).collect();
    Ok(journal)
}

/// Rows of a journal that followers read.
const SELECT_FOR_FOLLOWER: &str = "SELECT loop_id, seq, at, body, checksum, entry FROM journal \
     WHERE session_id = $1 AND (entry >= $2 OR entry = ANY ($3)) ORDER BY entry";

/// Reads the rows with these keys, and those from `from` on, in the order in which they were written. Damaged rows are
/// left out.
pub(super) async fn read_for_follower(
    connection: &Connection,
    session: &SessionId,
    from: i64,
    entries: &[i64],
) -> Result<Vec<JournalledEvents>, PgError> {
    let rows = connection
        .query(SELECT_FOR_FOLLOWER, &[&session.as_str(), &from, &entries])
        .await?;
    let bodies = rows.iter().map(|row| Columns(row).text(3));
    let bodies: Vec<&str> = bodies.collect::<Result<_, _>>()?;
    let texts = FetchedTexts::fetch(connection, session, bodies).await?;
    let mut journal: Vec<JournalledEvents> = Vec::new();
    for row in &rows {
        let loop_id = LoopId::from(Columns(row).text(0)?);
        let Ok(events) = read_row(session, row, &loop_id, &texts)? else {
            continue;
        };
        let is_repeated = |earlier: &JournalledEvents| {
            earlier.loop_id == loop_id && earlier.events.starts_with(&events)
        };
        if events.first().is_some_and(|event| event.seq == 0) && !journal.iter().any(is_repeated) {
            journal.retain(|earlier| earlier.loop_id != loop_id);
        }
        journal.push(JournalledEvents {
            loop_id,
            entry: Columns(row).integer(5)?,
            events,
        });
    }
    Ok(journal)
}

/// Adds the events of a row to those before it. A row that begins with the first event starts the loop again, unless it
/// repeats what is known. Other events that are known were written twice, because the answer to the first attempt was
/// lost.
pub(super) fn extend(known: &mut Vec<Event>, events: Vec<Event>) {
    let first = events.first().map(|event| event.seq);
    if first == Some(0) && !known.starts_with(&events) {
        known.clear();
    }
    let last = known.last().map(|event| event.seq);
    if last.is_none() || last < first {
        known.extend(events);
    }
}

fn read_row(
    session: &SessionId,
    row: &Row,
    loop_id: &LoopId,
    texts: &FetchedTexts,
) -> Result<Result<Vec<Event>, RowError>, PgError> {
    let row = Columns(row);
    let (seq, at, body) = (row.integer(1)?, row.text(2)?, row.text(3)?);
    let sum = JournalRow::checksum(session, loop_id.as_str(), seq, at, body);
    Ok(match sum.verify_integer(Some(row.integer(4)?)) {
        ChecksumVerdict::Matches => {
            let body = texts.expand(body);
            body.and_then(|body| parse_events(session, loop_id, &body))
        }
        ChecksumVerdict::Differs | ChecksumVerdict::Unknown => {
            Err(RowError::Invalid("its checksum does not match".to_owned()))
        }
    })
}

/// Empties the journal of a locked session and returns its content. Unreadable rows are copied to `repairs`, with the
/// others.
pub(super) async fn take_all(
    connection: &Connection,
    session: &SessionId,
) -> Result<ReadJournal, PgError> {
    let journal = read(connection, session).await?;
    for damage in &journal.damage {
        tracing::warn!(%session, "damage in the store: {damage}");
    }
    if !journal.damage.is_empty() {
        connection.execute(BACK_UP, &[&session.as_str()]).await?;
    }
    connection.execute(DELETE_ALL, &[&session.as_str()]).await?;
    Ok(journal)
}

/// Moves unreadable rows to `repairs`, and returns their number.
pub(super) async fn move_damaged(
    connection: &Connection,
    session: &SessionId,
) -> Result<u64, PgError> {
    let journal = read(connection, session).await?;
    if journal.damaged_entries.is_empty() {
        return Ok(0);
    }
    commit::note_lost_number(connection, session, journal.last_lost_number).await?;
    let (id, entries) = (session.as_str(), &journal.damaged_entries);
    connection.execute(MOVE, &[&id, entries]).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_engine::{EventKind, Timestamp, TurnTrigger};

    fn events(seqs: std::ops::Range<u64>, seconds: i64) -> Vec<Event> {
        let event = |seq| Event {
            session_id: "s1".into(),
            loop_id: "s1.cfg.1".into(),
            seq,
            turn_index: Some(0),
            at: Timestamp::from_timestamp(seconds, 0).unwrap(),
            kind: EventKind::TurnStart {
                trigger: TurnTrigger::User,
            },
        };
        seqs.map(event).collect()
    }

    #[test]
    fn late_repetition_of_a_row_drops_no_event() {
        let mut known = Vec::new();
        for row in [events(0..2, 0), events(2..5, 0)] {
            extend(&mut known, row.clone());
            extend(&mut known, row);
        }
        extend(&mut known, events(0..2, 0));
        extend(&mut known, events(2..5, 0));
        assert_eq!(known, events(0..5, 0));
    }

    #[test]
    fn first_event_with_other_content_starts_the_loop_again() {
        let mut known = events(0..5, 0);
        extend(&mut known, events(0..2, 1));
        assert_eq!(known, events(0..2, 1));
        extend(&mut known, events(0..4, 1));
        assert_eq!(known, events(0..4, 1));
    }
}
