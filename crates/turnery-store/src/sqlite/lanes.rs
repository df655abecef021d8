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
    Lane, Opened, Owner, SessionInfo, StoreError,
    clock::Moment,
    cursor::time_text,
    lease::{LeaseEnd, is_held, may_be_at_work},
    owner::describe,
    recovery,
};
use rusqlite::{Connection, Row, params};
use turnery_engine::{LoopId, SessionId, Timestamp};

pub(super) fn claim(
    db: &mut Db,
    id: &SessionId,
    owner: &Owner,
    now: Moment,
) -> Result<Opened, Fault> {
    let known = db.numbers.remove(id).unwrap_or_default();
    let (found, fence, numbers) = write(&db.sql, |work| take(work, id, owner, now, known))?;
    db.clean.insert(id.clone(), fence);
    db.numbers.insert(id.clone(), numbers);
    Ok(Opened {
        lane: Lane {
            session_id: id.clone(),
            owner_id: owner.id.clone(),
            fence,
        },
        last_number: numbers.last.max(found.last_journalled),
        info: found.info,
    })
}

/// Turns what a dead holder journalled into loops; nobody holds the lane then.
pub(super) fn recover(db: &mut Db, id: &SessionId, now: Moment) -> Result<(), Fault> {
    write(&db.sql, |work| {
        let found = look(work, id)?;
        let is_held = found
            .held
            .as_ref()
            .is_some_and(|held| held.may_be_at_work(now));
        if is_held || !found.journalled {
            return Ok(());
        }
        let mut free = work.prepare_cached(
            "UPDATE sessions SET fence = fence + 1, owner_id = NULL, process = NULL, \
             expires_at = NULL WHERE session_id = ?1",
        )?;
        free.execute((id.as_str(),))?;
        settle_journal(work, &found.info).map(drop)
    })
}

/// What is journalled becomes loops. Returns the greatest number of one.
fn settle_journal(work: &Connection, info: &SessionInfo) -> Result<u64, Fault> {
    let mut version = info.head_version;
    let (records, last_number) = recovery::recover(journal::take(work, &info.id)?);
    for record in records {
        if !commit::is_stored(work, &info.id, &record.loop_id)? {
            version += 1;
            commit::recover(work, version, record)?;
        }
    }
    Ok(last_number)
}

/// The next fence of a session that nobody else holds, and the session with what was left behind in it.
fn take(
    work: &Connection,
    id: &SessionId,
    owner: &Owner,
    now: Moment,
    known: Numbers,
) -> Result<(Found, u64, Numbers), Fault> {
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
    let end = LeaseEnd::after(now);
    take.execute(params![
        id.as_str(),
        fence,
        owner.id,
        end.stamp(&owner.process),
        time_text(end.wall)
    ])?;
    drop(take);
    if found.journalled {
        let last_journalled = settle_journal(work, &found.info)?;
        found = Found {
            last_journalled,
            ..look(work, id)?
        };
    }
    let numbers = known.update(work, id, found.loop_count)?;
    Ok((found, fence, numbers))
}

/// The numbers of a session's loops, as far as they were read: numbers may have gaps, so that they
/// cannot be counted, and a long session must not be read whole at each claim.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// How many loops that is.
    count: u64,
    /// The key of the newest.
    newest: i64,
    /// The greatest number.
    last: u64,
}

impl Numbers {
    /// Reads those of the loops that were stored since; all of them if that does not add up.
    fn update(self, db: &Connection, id: &SessionId, count: u64) -> Result<Self, Fault> {
        if self.count > 0 {
            // The plus keeps SQLite from going through all loops of the session.
            const NEWER: &str =
                "SELECT loop, loop_id FROM loops WHERE loop > ?2 AND +session_id = ?1";
            let newer = self.read(db, NEWER, id)?;
            if newer.count == count {
                return Ok(newer);
            }
        }
        const ALL: &str = "SELECT loop, loop_id FROM loops WHERE session_id = ?1 AND loop > ?2";
        Self::default().read(db, ALL, id)
    }

    fn read(mut self, db: &Connection, sql: &str, id: &SessionId) -> Result<Self, Fault> {
        let mut select = db.prepare_cached(sql)?;
        let mut rows = select.query(params![id.as_str(), self.newest])?;
        while let Some(row) = rows.next()? {
            self.count += 1;
            self.newest = self.newest.max(row.get(0)?);
            let number = LoopId::from(text(row, 1)?).number();
            self.last = self.last.max(number.unwrap_or_default());
        }
        Ok(self)
    }
}

/// A session as a claim finds it.
struct Found {
    info: SessionInfo,
    loop_count: u64,
    /// The greatest number of a loop that was in the journal.
    last_journalled: u64,
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
    fn may_be_at_work(&self, now: Moment) -> bool {
        may_be_at_work(&self.process, self.expires_at, now)
    }

    /// A holder does not stand in its own way; a dead one stands in nobody's.
    fn stops(&self, owner: &Owner, now: Moment) -> bool {
        self.owner_id != owner.id && is_held(&self.process, self.expires_at, now)
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
        info: sessions::session(row),
        loop_count: row.get(sessions::WIDTH)?,
        last_journalled: 0,
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

/// Sessions among these whose lane is held, with the holder described for a person.
pub(super) fn holders(
    db: &Connection,
    sessions: &[SessionId],
    now: Moment,
) -> Result<Vec<(SessionId, String)>, Fault> {
    let nobody = Owner {
        id: String::new(),
        process: String::new(),
    };
    let mut holders = Vec::new();
    for id in sessions {
        let held = look(db, id)?.held.filter(|held| held.stops(&nobody, now));
        holders.extend(held.map(|held| (id.clone(), describe(&held.process))));
    }
    Ok(holders)
}

/// Whether the lane is still the caller's. A late holder that nobody has replaced keeps its right.
pub(super) fn holds(db: &Connection, lane: &Lane) -> Result<bool, Fault> {
    let mut select = db.prepare_cached(
        "SELECT 1 FROM sessions WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    Ok(select.exists(params![lane.session_id.as_str(), lane.owner_id, lane.fence])?)
}

pub(super) fn renew(db: &mut Connection, lane: &Lane, now: Moment) -> Result<(), Fault> {
    let mut update = db.prepare_cached(
        "UPDATE sessions SET expires_at = ?4, \
         process = 'until=' || ?5 || substr(process, instr(process, ' ')) \
         WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    let end = LeaseEnd::after(now);
    let held = update.execute(params![
        lane.session_id.as_str(),
        lane.owner_id,
        lane.fence,
        time_text(end.wall),
        end.steady
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
