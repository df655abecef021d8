//! Lanes: who may commit to a session, and for how long (UP-27).

use super::{
    commit,
    db::{Db, write},
    fault::Fault,
    journal,
    loops::{text, time},
    sessions,
};
use crate::{
    LANE_TIME, Lane, Opened, Owner, SessionInfo, StoreError,
    cursor::time_text,
    owner::{Life, describe, life},
    recovery,
};
use rusqlite::{Connection, Row, params};
use turnery_engine::{SessionId, Timestamp};

pub(super) fn claim(
    db: &mut Db,
    id: &SessionId,
    owner: &Owner,
    now: Timestamp,
) -> Result<Opened, Fault> {
    let (found, fence) = write(&db.sql, |work| take(work, id, owner, now))?;
    db.clean.insert(id.clone(), fence);
    Ok(Opened {
        lane: Lane {
            session_id: id.clone(),
            owner_id: owner.id.clone(),
            fence,
        },
        loop_count: found.loop_count,
        info: found.info,
    })
}

/// The next fence of a session that nobody else holds, and the session with what was left behind in it.
fn take(
    work: &Connection,
    id: &SessionId,
    owner: &Owner,
    now: Timestamp,
) -> Result<(Found, u64), Fault> {
    let mut found = look(work, id)?;
    if let Some(held) = found.held.take().filter(|held| held.stops(owner, now)) {
        return Err(StoreError::Busy {
            session: id.clone(),
            holder: describe(&held.process),
        }
        .into());
    }
    let fence = found.fence + 1;
    let mut take = work.prepare_cached(
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
    if found.journalled {
        let mut version = found.info.head_version;
        for record in journal::take(work, id)?
            .into_iter()
            .filter_map(recovery::aborted)
        {
            if !commit::is_stored(work, id, &record.loop_id)? {
                version += 1;
                commit::recover(work, version, record)?;
            }
        }
        found = look(work, id)?;
    }
    Ok((found, fence))
}

/// A session as a claim finds it.
struct Found {
    info: SessionInfo,
    loop_count: u64,
    fence: u64,
    held: Option<Held>,
    journalled: bool,
}

struct Held {
    owner_id: String,
    process: String,
    expires_at: Timestamp,
}

impl Held {
    /// A holder does not stand in its own way; a dead one stands in nobody's.
    fn stops(&self, owner: &Owner, now: Timestamp) -> bool {
        self.owner_id != owner.id && now < self.expires_at && life(&self.process) == Life::Possible
    }
}

fn look(db: &Connection, id: &SessionId) -> Result<Found, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {}, loop_count, fence, owner_id, process, expires_at, \
         EXISTS (SELECT 1 FROM journal WHERE journal.session_id = ?1) \
         FROM sessions WHERE session_id = ?1",
        sessions::COLUMNS
    ))?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    Ok(Found {
        info: sessions::session(row)?,
        loop_count: row.get(sessions::WIDTH)?,
        fence: row.get(sessions::WIDTH + 1)?,
        held: held(row)?,
        journalled: row.get(sessions::WIDTH + 5)?,
    })
}

fn held(row: &Row<'_>) -> Result<Option<Held>, Fault> {
    let Some(owner_id) = row.get(sessions::WIDTH + 2)? else {
        return Ok(None);
    };
    Ok(Some(Held {
        owner_id,
        process: row.get(sessions::WIDTH + 3)?,
        expires_at: time(text(row, sessions::WIDTH + 4)?)?,
    }))
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
