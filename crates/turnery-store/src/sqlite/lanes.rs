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
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, SessionId, Timestamp};

pub(super) fn claim(
    db: &mut Db,
    id: &SessionId,
    owner: &Owner,
    now: Moment,
) -> Result<Opened, Fault> {
    let known = db.numbers.remove(id);
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
    known: Option<Numbers>,
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
    let numbers = match known.filter(|known| known.are_of(&found)) {
        Some(known) => known,
        None => Numbers::read(work, &found)?,
    };
    Ok((found, fence, numbers))
}

/// Numbers of a session's loops. They may have gaps, so that counting the loops does not tell the last
/// one; kept from claim to claim, because a long session must not be read at each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Tells a session from an earlier one of the same id.
    created_at: Timestamp,
    /// The session's count of loops when these were read. It rises with each commit, whoever makes it.
    count: u64,
    /// Greatest number of a stored loop.
    last: u64,
}

impl Numbers {
    /// Whether no loop has been stored in this session since the numbers were read.
    fn are_of(&self, found: &Found) -> bool {
        self.count == found.loop_count && self.created_at == found.info.created_at
    }

    /// Reads the ids of all loops from their index. An id that is not text has no number.
    fn read(db: &Connection, found: &Found) -> Result<Self, Fault> {
        let mut last = 0;
        let mut select = db.prepare_cached("SELECT loop_id FROM loops WHERE session_id = ?1")?;
        let mut rows = select.query((found.info.id.as_str(),))?;
        while let Some(row) = rows.next()? {
            let number = LoopId::from(text(row, 0)?).number();
            last = last.max(number.unwrap_or_default());
        }
        Ok(Self {
            created_at: found.info.created_at,
            count: found.loop_count,
            last,
        })
    }

    /// Adds loops that a commit has stored.
    pub(super) fn add(&mut self, records: &[Arc<LoopRecord>]) {
        self.count += records.len() as u64;
        let numbers = records.iter().filter_map(|record| record.loop_id.number());
        self.last = numbers.fold(self.last, u64::max);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Commit, NewSession, clock::Clock, sqlite::rows};
    use std::sync::atomic::{AtomicU64, Ordering};

    fn open_with_sessions(path: &std::path::Path, count: usize) -> (Db, Vec<SessionId>) {
        let mut db = Db::open(path).unwrap();
        let ids: Vec<SessionId> = (0..count).map(|n| format!("s{n}").into()).collect();
        for id in &ids {
            let new = NewSession {
                id: id.clone(),
                cwd: "/".into(),
                folder: None,
                roots: Vec::new(),
                model: "offline/echo".into(),
                mode: "ask".into(),
                at: Timestamp::UNIX_EPOCH,
                spawned_by: None,
            };
            sessions::create(&mut db.sql, new).unwrap();
        }
        (db, ids)
    }

    fn claim_and_commit(db: &mut Db, id: &SessionId, number: u64) -> u64 {
        let now = Clock::system().moment();
        let opened = claim(db, id, &Owner::this_process(), now).unwrap();
        let loop_id = LoopId::from(format!("{id}.cfg.{number}"));
        let record = LoopRecord::begun(id.clone(), loop_id, "turnery".into(), now.wall);
        let row = rows::Row::of(&record).unwrap();
        let commit = Commit {
            lane: opened.lane,
            expected_head: opened.info.head_version,
            records: vec![Arc::new(record)],
            tip: 0,
            title: None,
            release: true,
        };
        commit::commit(db, &commit, &[row]).unwrap();
        opened.last_number
    }

    /// Instructions of SQLite that the last claim takes after some rounds in which each session stores
    /// a loop.
    fn steps_of_a_claim(session_count: usize, rounds: u64) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let (mut db, ids) = open_with_sessions(&folder.path().join("sessions.db"), session_count);
        for number in 1..=rounds {
            for id in &ids {
                assert_eq!(claim_and_commit(&mut db, id, number), number - 1);
            }
        }
        let steps = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        db.sql.progress_handler(1, Some(count)).unwrap();
        let now = Clock::system().moment();
        let opened = claim(&mut db, &ids[0], &Owner::this_process(), now).unwrap();
        assert_eq!(opened.last_number, rounds);
        steps.load(Ordering::Relaxed)
    }

    #[test]
    fn claim_steps_do_not_grow_with_other_sessions() {
        let few = steps_of_a_claim(2, 3);
        assert!(few > 0);
        assert_eq!(steps_of_a_claim(40, 3), few);
        assert_eq!(steps_of_a_claim(2, 40), few);
    }

    #[test]
    fn loops_of_another_process_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let (mut here, ids) = open_with_sessions(&path, 1);
        let mut there = Db::open(&path).unwrap();
        claim_and_commit(&mut here, &ids[0], 1);
        assert_eq!(claim_and_commit(&mut there, &ids[0], 4), 1);
        assert_eq!(claim_and_commit(&mut here, &ids[0], 5), 4);
        assert_eq!(claim_and_commit(&mut here, &ids[0], 6), 5);
        assert_eq!(claim_and_commit(&mut there, &ids[0], 7), 6);
    }
}
