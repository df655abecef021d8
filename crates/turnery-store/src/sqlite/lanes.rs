//! Lanes: who may commit to a session, and for how long (UP-27).

use super::{commit, fault::Fault, journal, loops::text, loops::time, rows::Rows, sessions};
use crate::{
    LANE_TIME, Lane, Opened, Owner, StoreError,
    cursor::time_text,
    owner::{Life, describe, life},
    recovery,
};
use rusqlite::{Connection, TransactionBehavior, params};
use turnery_engine::{SessionId, Timestamp};

struct Held {
    owner_id: String,
    process: String,
    expires_at: Timestamp,
}

pub(super) fn claim(
    db: &mut Connection,
    id: &SessionId,
    owner: &Owner,
    now: Timestamp,
) -> Result<Opened, Fault> {
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut info = sessions::get(&db, id)?;
    let (fence, held) = read(&db, id)?;
    if let Some(held) = held.filter(|held| held.stops(owner, now)) {
        return Err(StoreError::Busy {
            session: id.clone(),
            holder: describe(&held.process),
        }
        .into());
    }
    let fence = fence + 1;
    let mut take = db.prepare_cached(
        "UPDATE sessions SET fence = ?2, owner_id = ?3, process = ?4, expires_at = ?5 \
         WHERE session_id = ?1",
    )?;
    let expires_at = time_text(now + LANE_TIME);
    take.execute(params![
        id.as_str(),
        fence,
        owner.id,
        owner.process,
        expires_at
    ])?;
    drop(take);
    for events in journal::take(&db, id)? {
        if let Some(record) = recovery::aborted(events) {
            let rows = Rows::of(&record)?;
            commit::insert(&db, &mut info, &record, &rows, false)?;
        }
    }
    db.commit()?;
    Ok(Opened {
        lane: Lane {
            session_id: id.clone(),
            owner_id: owner.id.clone(),
            fence,
        },
        // Every version is one loop (S3).
        loop_count: info.head_version,
        info,
    })
}

impl Held {
    /// A holder does not stand in its own way; a dead one stands in nobody's.
    fn stops(&self, owner: &Owner, now: Timestamp) -> bool {
        self.owner_id != owner.id && now < self.expires_at && life(&self.process) == Life::Possible
    }
}

fn read(db: &Connection, id: &SessionId) -> Result<(u64, Option<Held>), Fault> {
    let mut select = db.prepare_cached(
        "SELECT fence, owner_id, process, expires_at FROM sessions WHERE session_id = ?1",
    )?;
    let mut rows = select.query((id.as_str(),))?;
    let Some(row) = rows.next()? else {
        return Ok((0, None));
    };
    let owner_id: Option<String> = row.get(1)?;
    let held = match owner_id {
        None => None,
        Some(owner_id) => Some(Held {
            owner_id,
            process: row.get(2)?,
            expires_at: time(text(row, 3)?)?,
        }),
    };
    Ok((row.get(0)?, held))
}

/// Whether the lane is still the caller's. A late holder that nobody has replaced keeps its right.
pub(super) fn holds(db: &Connection, lane: &Lane) -> Result<bool, Fault> {
    let mut select = db.prepare_cached(
        "SELECT 1 FROM sessions WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    Ok(select.exists(params![lane.session_id.as_str(), lane.owner_id, lane.fence])?)
}

pub(super) fn renew(db: &mut Connection, lane: &Lane, now: Timestamp) -> Result<(), Fault> {
    let mut update = db.prepare_cached(
        "UPDATE sessions SET expires_at = ?4 WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    let until = time_text(now + LANE_TIME);
    let held = update.execute(params![
        lane.session_id.as_str(),
        lane.owner_id,
        lane.fence,
        until
    ])?;
    if held == 0 {
        return Err(StoreError::LaneLost(lane.session_id.clone()).into());
    }
    Ok(())
}

/// The fence stays, so that the next holder gets a higher one.
pub(super) fn release(db: &Connection, lane: &Lane) -> Result<(), Fault> {
    let mut update = db.prepare_cached(
        "UPDATE sessions SET owner_id = NULL, process = NULL, expires_at = NULL \
         WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    update.execute(params![lane.session_id.as_str(), lane.owner_id, lane.fence])?;
    Ok(())
}
