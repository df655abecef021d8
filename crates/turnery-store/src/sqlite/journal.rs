//! Journal: the events of loops that are not committed yet. Evidence, not history.

use super::{commit, db::Db, fault::Fault, lanes, loops::text};
use crate::{Lane, cursor::time_text};
use rusqlite::{Connection, TransactionBehavior, params};
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
    let db = db
        .sql
        .transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut insert = db.prepare_cached(
        "INSERT INTO journal (session_id, loop_id, seq, at, body) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT DO NOTHING",
    )?;
    for append in appends {
        let (session, loop_id) = (append.lane.session_id.as_str(), append.loop_id.as_str());
        let late = commit::is_stored(&db, &append.lane.session_id, &append.loop_id)?;
        if late || !lanes::holds(&db, &append.lane)? {
            continue;
        }
        if append.events.first().is_some_and(|event| event.seq == 0) {
            // A loop that begins anew under an id whose commit failed.
            drop_loop(&db, &append.lane.session_id, &append.loop_id)?;
        }
        for event in &append.events {
            let body = serde_json::to_string(event)?;
            insert.execute(params![
                session,
                loop_id,
                event.seq,
                time_text(event.at),
                body
            ])?;
        }
    }
    drop(insert);
    db.commit()?;
    Ok(())
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
        let event = match serde_json::from_str(text(row, 1)?) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%session, %loop_id, %error, "failed to read the journal");
                continue;
            }
        };
        match loops.last_mut() {
            Some((last, events)) if *last == loop_id => events.push(event),
            Some(_) | None => loops.push((loop_id, vec![event])),
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
