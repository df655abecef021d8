//! Journal: the events of loops that are not committed yet. Evidence, not history.

use super::{
    checksum::{Checksum, Verdict},
    commit,
    db::{Db, write as in_one},
    fault::Fault,
    lanes,
    loops::{text, undamaged_or},
    texts,
};
use crate::{Damage, DamagedPart, Lane, LoopBeginning, Owner, cursor::time_text};
use rusqlite::{Connection, Row, params, types::Value};
use serde::{Deserialize, Serialize};
use turnery_engine::{Event, EventKind, LoopId, SessionId, Timestamp};

/// Events to be journalled.
pub(super) struct Append {
    lane: Lane,
    loop_id: LoopId,
    events: Vec<Event>,
}

impl Append {
    /// `None` if nothing of it would be kept: fragments of the model's text leave no trace.
    pub(super) fn new(lane: &Lane, loop_id: &LoopId, mut events: Vec<Event>) -> Option<Self> {
        events.retain(|event| !matches!(event.kind, EventKind::Delta { .. }));
        (!events.is_empty()).then(|| Self {
            lane: lane.clone(),
            loop_id: loop_id.clone(),
            events,
        })
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    pub(super) fn loop_id(&self) -> &LoopId {
        &self.loop_id
    }

    /// True if these are the first events of the loop.
    pub(super) fn begins(&self) -> bool {
        self.events.first().is_some_and(|event| event.seq == 0)
    }

    pub(super) fn is_in(&self, session: &SessionId) -> bool {
        self.lane.session_id == *session
    }

    pub(super) fn is_of(&self, lane: &Lane, loop_id: &LoopId) -> bool {
        self.lane == *lane && self.loop_id == *loop_id
    }
}

/// A loop, and events of it.
type LoopEvents = (LoopId, Vec<Event>);

/// Events of a loop, or the reason why they cannot be read.
type ReadEvents = Result<LoopEvents, String>;

/// All in one transaction. What comes from somebody who lost the lane is dropped: the claim of the next holder
/// has made a loop of the journal as it was (C-12). What comes after the commit is dropped too.
pub(super) fn write(db: &mut Db, appends: &[Append]) -> Result<(), Fault> {
    for append in appends {
        db.clean.remove(&append.lane.session_id);
    }
    in_one(&db.sql, |work| {
        for append in appends {
            let (session, loop_id) = (&append.lane.session_id, &append.loop_id);
            let late = commit::is_stored(work, session, loop_id)?;
            if late || !lanes::holds(work, &append.lane)? {
                continue;
            }
            if append.begins() {
                // A loop whose journal is written again from its beginning.
                drop_loop(work, session, loop_id)?;
            }
            insert(work, session, loop_id, &append.events)?;
        }
        Ok(())
    })
}

/// Adds events to the journal of a loop as one row.
fn insert(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
    events: &[Event],
) -> Result<(), Fault> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let body = encode(db, session, events)?;
    let at = time_text(first.at);
    let checksum = Checksum::default()
        .text(session.as_str())
        .text(loop_id.as_str())
        .integer(i64::try_from(first.seq).unwrap_or(i64::MAX))
        .text(&at)
        .text(&body)
        .finish();
    let mut insert = db.prepare_cached(
        "INSERT INTO journal (session_id, loop_id, seq, at, body, checksum) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT DO NOTHING",
    )?;
    insert.execute(params![
        session.as_str(),
        loop_id.as_str(),
        first.seq,
        at,
        body,
        checksum
    ])?;
    Ok(())
}

/// Condition on a row of `sessions`: it has a beginning, or what damage has left of one.
macro_rules! has_beginning {
    () => {
        "coalesce(begun_loop_id, begun_events) IS NOT NULL"
    };
}

/// Assignments that leave a row of `sessions` without a beginning.
macro_rules! no_beginning {
    () => {
        "begun_loop_id = NULL, begun_fence = NULL, begun_checksum = NULL, begun_events = NULL"
    };
}
pub(super) use no_beginning;

/// The first events of a loop, as its session's row has them: the oldest in its journal.
pub(super) struct Beginning {
    pub(super) loop_id: LoopId,
    /// Fence of the claim that wrote them.
    pub(super) fence: u64,
    pub(super) body: String,
    pub(super) checksum: i64,
}

/// A session's beginning as it was read.
struct FoundBeginning {
    /// Id of the loop, or [`UNREADABLE`].
    loop_id: LoopId,
    events: ReadEvents,
    /// The fence of the session is greater than that of the claim that wrote the beginning.
    has_older_fence: bool,
}

impl FoundBeginning {
    /// Returns true if a process of version 5 or before has claimed the session since. It did not see the beginning,
    /// and may have used the loop's number for another loop. Where the beginning itself is damaged, that comes first.
    fn is_stale(&self) -> bool {
        self.has_older_fence && self.events.is_ok()
    }
}

impl Beginning {
    pub(super) fn encode(
        db: &Connection,
        session: &SessionId,
        fence: u64,
        beginning: &LoopBeginning,
    ) -> Result<Self, Fault> {
        let loop_id = beginning.loop_id.clone();
        let body = encode(db, session, &beginning.events)?;
        let integer = i64::try_from(fence).unwrap_or(i64::MAX);
        let checksum = Self::checksum(session, loop_id.as_str(), integer, &body).finish();
        Ok(Self {
            loop_id,
            fence,
            body,
            checksum,
        })
    }

    fn checksum(session: &SessionId, loop_id: &str, fence: i64, body: &str) -> Checksum {
        let session = Checksum::default().text(session.as_str());
        session.text(loop_id).integer(fence).text(body)
    }

    /// `None` if the session has no beginning.
    fn read(db: &Connection, session: &SessionId) -> Result<Option<FoundBeginning>, Fault> {
        let mut select = db.prepare_cached(concat!(
            "SELECT begun_loop_id, begun_fence, begun_events, begun_checksum, \
             coalesce(begun_fence < fence, 0) FROM sessions WHERE session_id = ?1 AND ",
            has_beginning!()
        ))?;
        let mut rows = select.query((session.as_str(),))?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        Ok(Some(FoundBeginning {
            loop_id: LoopId::from(text(row, 0).unwrap_or(UNREADABLE)),
            events: undamaged_or(Self::parse(db, session, row))?,
            has_older_fence: row.get(4)?,
        }))
    }

    fn parse(db: &Connection, session: &SessionId, row: &Row<'_>) -> Result<LoopEvents, Fault> {
        let (loop_id, fence, body) = (text(row, 0)?, row.get(1)?, text(row, 2)?);
        let sum = Self::checksum(session, loop_id, fence, body);
        if sum.verify(row.get_ref(3)?) != Verdict::Matches {
            return Err(Fault::Row("its checksum does not match".to_owned()));
        }
        parse(db, session, loop_id, body)
    }
}

/// An event as it is written: without the ids, which its row has.
#[derive(Serialize)]
struct EventBodyRef<'a> {
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_index: Option<u32>,
    at: Timestamp,
    #[serde(flatten)]
    kind: &'a EventKind,
}

#[derive(Deserialize)]
struct EventBody {
    seq: u64,
    #[serde(default)]
    turn_index: Option<u32>,
    at: Timestamp,
    #[serde(flatten)]
    kind: EventKind,
}

fn encode(db: &Connection, session: &SessionId, events: &[Event]) -> Result<String, Fault> {
    let written = events.iter().map(|event| EventBodyRef {
        seq: event.seq,
        turn_index: event.turn_index,
        at: event.at,
        kind: &event.kind,
    });
    texts::encode(db, session, &written.collect::<Vec<_>>())
}

/// Parses the events of a row. Earlier versions wrote one in each, or its ids too.
fn parse(
    db: &Connection,
    session: &SessionId,
    loop_id: &str,
    body: &str,
) -> Result<LoopEvents, Fault> {
    let body = texts::expand(db, session, body)?;
    let bodies: Vec<EventBody> = match body.starts_with('[') {
        true => serde_json::from_str(&body)?,
        false => vec![serde_json::from_str(&body)?],
    };
    let loop_id = LoopId::from(loop_id);
    let events = bodies.into_iter().map(|body| Event {
        session_id: session.clone(),
        loop_id: loop_id.clone(),
        seq: body.seq,
        turn_index: body.turn_index,
        at: body.at,
        kind: body.kind,
    });
    let events = events.collect();
    Ok((loop_id, events))
}

/// Drops the journal of a loop while the lane of its session is `owner`'s.
pub(super) fn forget(
    db: &Connection,
    session: &SessionId,
    owner: &Owner,
    loop_id: &LoopId,
) -> Result<(), Fault> {
    in_one(db, |work| {
        let mut select =
            work.prepare_cached("SELECT 1 FROM sessions WHERE session_id = ?1 AND owner_id = ?2")?;
        match select.exists((session.as_str(), &owner.id))? {
            true => drop_loop(work, session, loop_id),
            false => Ok(()),
        }
    })
}

/// Condition on a row of `sessions` whose id is the first parameter: something of it is journalled.
pub(super) const IS_THERE: &str = concat!(
    has_beginning!(),
    " OR EXISTS (SELECT 1 FROM journal WHERE journal.session_id = ?1)"
);

/// Returns true if a session has anything journalled.
pub(super) fn is_there(db: &Connection, session: &SessionId) -> Result<bool, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT 1 FROM sessions WHERE session_id = ?1 AND ({IS_THERE})"
    ))?;
    Ok(select.exists((session.as_str(),))?)
}

/// The columns of journalled events, in the order in which they go into its checksum.
const EVENTS: &str = "SELECT loop_id, seq, at, body, checksum FROM journal WHERE session_id = ?1";

/// Empty the journal of a session: the events of each loop, the oldest loop first.
pub(super) fn take(db: &Connection, session: &SessionId) -> Result<Vec<Vec<Event>>, Fault> {
    let mut loops: Vec<(LoopId, Vec<Event>)> = Vec::new();
    let mut has_lost = false;
    let beginning = match Beginning::read(db, session)? {
        Some(found) if found.is_stale() => {
            let loop_id = found.loop_id;
            tracing::warn!(%session, %loop_id, "an earlier version has claimed the session since this loop began");
            has_lost = true;
            None
        }
        found => found,
    };
    let mut add = |read: ReadEvents| match read {
        Ok((loop_id, read)) => match loops.iter_mut().find(|(id, _)| *id == loop_id) {
            Some((_, events)) => events.extend(read),
            None => loops.push((loop_id, read)),
        },
        // Evidence that does not read is worth no more than none; the session must still open.
        Err(error) => {
            tracing::warn!(%session, error, "failed to read the journal");
            has_lost = true;
        }
    };
    if let Some(found) = beginning {
        add(found.events);
    }
    let mut select = db.prepare_cached(&format!(
        "{EVENTS} ORDER BY min(at) OVER (PARTITION BY loop_id), loop_id, seq"
    ))?;
    let mut rows = select.query((session.as_str(),))?;
    while let Some(row) = rows.next()? {
        add(undamaged_or(read(db, session, row))?);
    }
    drop(rows);
    if has_lost {
        keep(db, session)?;
        note_lost(db, session)?;
    }
    let mut delete = db.prepare_cached("DELETE FROM journal WHERE session_id = ?1")?;
    delete.execute((session.as_str(),))?;
    drop_beginning(db, session)?;
    Ok(loops.into_iter().map(|(_, events)| events).collect())
}

/// The events of a row that is what was written.
fn read(db: &Connection, session: &SessionId, row: &Row<'_>) -> Result<LoopEvents, Fault> {
    let sum = Checksum::default().text(session.as_str());
    if sum.columns(row, 0..4)?.verify(row.get_ref(4)?) == Verdict::Differs {
        return Err(Fault::Row("its checksum does not match".to_owned()));
    }
    parse(db, session, text(row, 0)?, text(row, 3)?)
}

/// Copies the journal of a session to where repairs keep what they remove.
fn keep(db: &Connection, session: &SessionId) -> Result<(), Fault> {
    db.execute(
        "INSERT INTO repairs (session_id, at, place, field, before) \
         SELECT session_id, updated_at, 'journal', coalesce(begun_loop_id, '') || ' 0', begun_events \
         FROM sessions WHERE session_id = ?1 AND begun_events IS NOT NULL \
         UNION ALL \
         SELECT session_id, at, 'journal', loop_id || ' ' || seq, body FROM journal \
         WHERE session_id = ?1",
        (session.as_str(),),
    )?;
    Ok(())
}

/// Keeps the numbers of the loops in the journal of a session before damaged rows of it are removed.
fn note_lost(db: &Connection, session: &SessionId) -> Result<(), Fault> {
    let mut select = db.prepare_cached(
        "SELECT loop_id FROM journal WHERE session_id = ?1 \
         UNION ALL SELECT begun_loop_id FROM sessions WHERE session_id = ?1",
    )?;
    let mut rows = select.query((session.as_str(),))?;
    let mut last = 0;
    while let Some(row) = rows.next()? {
        let number = text(row, 0).ok().and_then(|id| LoopId::from(id).number());
        last = last.max(number.unwrap_or_default());
    }
    lanes::note_lost(db, session, last)
}

/// What is wrong with the journal of a session: one entry for each loop.
pub(super) fn check(db: &Connection, session: &SessionId) -> Result<Vec<Damage>, Fault> {
    let mut damage: Vec<Damage> = Vec::new();
    let mut add = |loop_id: &str, reason: String| {
        let part = DamagedPart::Journal {
            loop_id: LoopId::from(loop_id),
        };
        let reason = format!("has an event that cannot be read: {reason}");
        if damage.last().is_none_or(|last| last.part != part) {
            damage.push(Damage::new(session, part, reason));
        }
    };
    if let Some(found) = Beginning::read(db, session)?
        && let Err(reason) = found.events
    {
        add(found.loop_id.as_str(), reason);
    }
    let mut select = db.prepare_cached(EVENTS)?;
    let mut rows = select.query((session.as_str(),))?;
    while let Some(row) = rows.next()? {
        if let Err(reason) = undamaged_or(read(db, session, row))? {
            add(text(row, 0).unwrap_or(UNREADABLE), reason);
        }
    }
    Ok(damage)
}

const UNREADABLE: &str = "(unreadable)";

/// Removes the rows that cannot be read, and keeps a copy of them. Returns how many there were; a beginning is
/// one too.
pub(super) fn repair(db: &Connection, session: &SessionId) -> Result<usize, Fault> {
    if check(db, session)?.is_empty() {
        return Ok(0);
    }
    keep(db, session)?;
    note_lost(db, session)?;
    let mut count = 0;
    if Beginning::read(db, session)?.is_some_and(|found| found.events.is_err()) {
        drop_beginning(db, session)?;
        count += 1;
    }
    let mut select = db.prepare_cached(EVENTS)?;
    let mut delete = db.prepare_cached(
        "DELETE FROM journal WHERE session_id = ?1 AND loop_id = ?2 AND seq = ?3",
    )?;
    let mut rows = select.query((session.as_str(),))?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        if undamaged_or(read(db, session, row))?.is_err() {
            damaged.push((row.get::<_, Value>(0)?, row.get::<_, Value>(1)?));
        }
    }
    for (loop_id, seq) in &damaged {
        delete.execute(params![session.as_str(), loop_id, seq])?;
    }
    Ok(count + damaged.len())
}

/// Drops the journal of a loop.
fn drop_loop(db: &Connection, session: &SessionId, loop_id: &LoopId) -> Result<(), Fault> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_beginning!(),
        " WHERE session_id = ?1 AND begun_loop_id = ?2"
    ))?;
    update.execute((session.as_str(), loop_id.as_str()))?;
    drop_rows(db, session, loop_id)
}

/// Drops the journal of a loop, but for its beginning.
pub(super) fn drop_rows(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<(), Fault> {
    let mut delete =
        db.prepare_cached("DELETE FROM journal WHERE session_id = ?1 AND loop_id = ?2")?;
    delete.execute((session.as_str(), loop_id.as_str()))?;
    Ok(())
}

/// Drops the beginning that a session has, of any loop.
pub(super) fn drop_beginning(db: &Connection, session: &SessionId) -> Result<(), Fault> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_beginning!(),
        " WHERE session_id = ?1 AND ",
        has_beginning!()
    ))?;
    update.execute((session.as_str(),))?;
    Ok(())
}
