//! Journal: the events of loops that are not committed yet. Evidence, not history.

use super::{
    commit,
    db::{Db, write as in_one},
    fault::Fault,
    lanes,
    loops::text,
};
use crate::{Lane, cursor::time_text};
use rusqlite::{Connection, params};
use turnery_engine::{Event, EventKind, LoopId, SessionId};

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

    pub(super) fn loop_id(&self) -> &LoopId {
        &self.loop_id
    }

    /// True if these are the first events of the loop.
    pub(super) fn begins(&self) -> bool {
        self.events.first().is_some_and(|event| event.seq == 0)
    }

    pub(super) fn is_of(&self, lane: &Lane, loop_id: &LoopId) -> bool {
        self.lane == *lane && self.loop_id == *loop_id
    }
}

/// All in one transaction. What comes from somebody who lost the lane is dropped (C-12), and so is
/// what comes after the commit.
pub(super) fn write(db: &mut Db, appends: &[Append]) -> Result<(), Fault> {
    for append in appends {
        db.clean.remove(&append.lane.session_id);
    }
    in_one(&db.sql, |work| {
        let mut insert = work.prepare_cached(
            "INSERT INTO journal (session_id, loop_id, seq, at, body) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT DO NOTHING",
        )?;
        for append in appends {
            let Some(first) = append.events.first() else {
                continue;
            };
            let (session, loop_id) = (&append.lane.session_id, &append.loop_id);
            let late = commit::is_stored(work, session, loop_id)?;
            if late || !lanes::holds(work, &append.lane)? {
                continue;
            }
            if append.begins() {
                // A loop whose journal is written again from its beginning.
                drop_loop(work, session, loop_id)?;
            }
            let body = serde_json::to_string(&append.events)?;
            insert.execute(params![
                session.as_str(),
                loop_id.as_str(),
                first.seq,
                time_text(first.at),
                body
            ])?;
        }
        Ok(())
    })
}

/// The events of a row; earlier versions wrote one in each.
fn read(body: &str) -> Result<Vec<Event>, serde_json::Error> {
    match body.starts_with('[') {
        true => serde_json::from_str(body),
        false => Ok(vec![serde_json::from_str(body)?]),
    }
}

/// Whether a session has anything journalled.
pub(super) fn is_there(db: &Connection, session: &SessionId) -> Result<bool, Fault> {
    let mut select = db.prepare_cached("SELECT 1 FROM journal WHERE session_id = ?1")?;
    Ok(select.exists((session.as_str(),))?)
}

/// Empty the journal of a session: the events of each loop, the oldest loop first.
pub(super) fn take(db: &Connection, session: &SessionId) -> Result<Vec<Vec<Event>>, Fault> {
    let mut select = db.prepare_cached(
        "SELECT loop_id, body FROM journal WHERE session_id = ?1 \
         ORDER BY min(at) OVER (PARTITION BY loop_id), loop_id, seq",
    )?;
    let mut loops: Vec<(LoopId, Vec<Event>)> = Vec::new();
    let mut rows = select.query((session.as_str(),))?;
    while let Some(row) = rows.next()? {
        let loop_id = LoopId::from(text(row, 0)?);
        // Evidence that does not read is worth no more than none; the session must still open.
        let read = match read(text(row, 1)?) {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(%session, %loop_id, %error, "failed to read the journal");
                continue;
            }
        };
        match loops.last_mut() {
            Some((last, events)) if *last == loop_id => events.extend(read),
            Some(_) | None => loops.push((loop_id, read)),
        }
    }
    drop(rows);
    let mut delete = db.prepare_cached("DELETE FROM journal WHERE session_id = ?1")?;
    delete.execute((session.as_str(),))?;
    Ok(loops.into_iter().map(|(_, events)| events).collect())
}

pub(super) fn drop_loop(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<(), Fault> {
    let mut delete =
        db.prepare_cached("DELETE FROM journal WHERE session_id = ?1 AND loop_id = ?2")?;
    delete.execute((session.as_str(), loop_id.as_str()))?;
    Ok(())
}
