//! Lanes: who may commit to a session, and for how long (UP-27).

use super::{
    commit,
    db::{Db, write},
    fault::Fault,
    journal,
    loops::{text, time},
    sessions::{self, Complaint},
};
use crate::{
    ClaimOutcome, Damage, Lane, LoopBeginning, Opened, Owner, SessionInfo, StoreError,
    clock::Moment,
    cursor::time_text,
    lease::{LeaseEnd, is_held, may_be_at_work},
    owner::describe,
    recovery,
};
use rusqlite::{CachedStatement, Connection, Row, params, types::ValueRef};
use std::sync::Arc;
use turnery_engine::{LoopId, LoopRecord, SessionId, Timestamp};

/// Assignments that leave a row of `sessions` without a holder.
macro_rules! no_holder {
    () => {
        "owner_id = NULL, process = NULL, expires_at = NULL"
    };
}
pub(super) use no_holder;

/// Claims, and journals a loop's first events if it is the one that the session expects next.
pub(super) fn claim(
    db: &mut Db,
    id: &SessionId,
    owner: &Owner,
    beginning: Option<&LoopBeginning>,
    now: Moment,
) -> Result<ClaimOutcome, Fault> {
    let known = db.numbers.remove(id);
    let (found, fence, numbers, is_journalled) = write(&db.sql, |work| {
        let (found, numbers) = find(work, id, owner, now, known)?;
        let fence = found.fence + 1;
        let next = found.next_number(&numbers);
        let fits = |it: &&LoopBeginning| {
            it.expected_head == found.info.head_version && it.loop_id.number() == next
        };
        let beginning = beginning.filter(fits);
        let beginning = beginning.map(|it| journal::Beginning::encode(work, id, fence, it));
        let beginning = beginning.transpose()?;
        take(work, id, owner, now, fence, beginning.as_ref())?;
        Ok((found, fence, numbers, beginning.is_some()))
    })?;
    db.clean.insert(id.clone(), fence);
    db.numbers.insert(id.clone(), numbers);
    Ok(ClaimOutcome {
        opened: Opened {
            lane: Lane {
                session_id: id.clone(),
                owner_id: owner.id.clone(),
                fence,
            },
            last_number: found.last_number(&numbers),
            info: found.info,
        },
        is_journalled,
    })
}

/// Turns what a dead holder journalled into loops; nobody holds the lane then. Returns what could not be
/// read of it.
pub(super) fn recover(db: &mut Db, id: &SessionId, now: Moment) -> Result<Vec<Damage>, Fault> {
    write(&db.sql, |work| {
        let found = look(work, id)?;
        let is_held = found
            .held
            .as_ref()
            .is_some_and(|held| held.may_be_at_work(now));
        if is_held || !found.journalled {
            return Ok(Vec::new());
        }
        let damage = journal::check(work, id)?;
        settle_journal(work, &found.info)?;
        let mut free = work.prepare_cached(concat!(
            "UPDATE sessions SET fence = ?2, ",
            no_holder!(),
            " WHERE session_id = ?1"
        ))?;
        free.execute(params![id.as_str(), found.fence + 1])?;
        Ok(damage)
    })
}

/// What is journalled becomes loops.
fn settle_journal(work: &Connection, info: &SessionInfo) -> Result<(), Fault> {
    let mut version = info.head_version;
    let (records, lost_number) = recovery::recover(&journal::take(work, &info.id)?);
    note_lost(work, &info.id, lost_number)?;
    for record in records {
        if !commit::is_stored(work, &info.id, &record.loop_id)? {
            version += 1;
            commit::recover(work, version, record)?;
        }
    }
    Ok(())
}

/// Keeps the number of a loop that was shown and is neither stored nor journalled any more: it is never
/// used again (LOOP-10).
pub(super) fn note_lost(db: &Connection, id: &SessionId, number: u64) -> Result<(), Fault> {
    if number > 0 {
        let mut update = db.prepare_cached(
            "UPDATE sessions SET lost_number = ?2 WHERE session_id = ?1 AND lost_number < ?2",
        )?;
        update.execute(params![
            id.as_str(),
            i64::try_from(number).unwrap_or(i64::MAX)
        ])?;
    }
    Ok(())
}

/// A session that nobody else holds, with what was left behind in it.
fn find(
    work: &Connection,
    id: &SessionId,
    owner: &Owner,
    now: Moment,
    known: Option<Numbers>,
) -> Result<(Found, Numbers), Fault> {
    let mut found = look(work, id)?;
    if let Some(held) = found.held.take().filter(|held| held.stops(owner, now)) {
        return Err(StoreError::Busy {
            session: id.clone(),
            holder: describe(&held.process),
        }
        .into());
    }
    if found.journalled {
        settle_journal(work, &found.info)?;
        found = look(work, id)?;
    }
    let numbers = match known.filter(|known| known.are_of(&found)) {
        Some(known) => known,
        None => Numbers::read(work, &found)?,
    };
    Ok((found, numbers))
}

/// Gives the lane to `owner`.
fn take(
    work: &Connection,
    id: &SessionId,
    owner: &Owner,
    now: Moment,
    fence: u64,
    beginning: Option<&journal::Beginning>,
) -> Result<(), Fault> {
    let mut take = work.prepare_cached(
        "UPDATE sessions SET fence = ?2, owner_id = ?3, process = ?4, expires_at = ?5, \
         begun_loop_id = ?6, begun_fence = ?7, begun_checksum = ?8, begun_events = ?9 \
         WHERE session_id = ?1",
    )?;
    let end = LeaseEnd::after(now);
    take.execute(params![
        id.as_str(),
        fence,
        owner.id,
        end.stamp(&owner.process),
        time_text(end.wall),
        beginning.map(|it| it.loop_id.as_str()),
        beginning.map(|it| it.fence),
        beginning.map(|it| it.checksum),
        beginning.map(|it| &it.body)
    ])?;
    Ok(())
}

/// Numbers of a session's loops. They may have gaps, so that counting the loops does not tell the last
/// one; kept from claim to claim, because a long session must not be read at each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    /// Tells a session from an earlier one of the same id.
    created_at: Timestamp,
    /// The session's count of loops when these were read. It rises with each commit, whoever makes it.
    /// `None` if it cannot be read.
    count: Option<i64>,
    /// Greatest number of a stored loop.
    last: u64,
}

impl Numbers {
    /// Whether no loop has been stored in this session since the numbers were read.
    fn are_of(&self, found: &Found) -> bool {
        self.count.is_some()
            && self.count == found.loop_count
            && self.created_at == found.info.created_at
    }

    /// Reads the ids of all loops from their index. An id that is not text has no number.
    fn read(db: &Connection, found: &Found) -> Result<Self, Fault> {
        let mut last = 0;
        let mut select = db.prepare_cached("SELECT loop_id FROM loops WHERE session_id = ?1")?;
        let mut rows = select.query((found.info.id.as_str(),))?;
        while let Some(row) = rows.next()? {
            let number = text(row, 0).ok().and_then(|id| LoopId::from(id).number());
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
        let added = i64::try_from(records.len()).ok();
        self.count = self
            .count
            .zip(added)
            .and_then(|(count, added)| count.checked_add(added));
        self.last = self.last.max(recovery::last_number(records));
    }
}

/// A session as a claim finds it.
struct Found {
    info: SessionInfo,
    /// `None` if it cannot be read.
    loop_count: Option<i64>,
    /// The greatest number of a loop that was shown and not stored; 0 if it cannot be read.
    lost_number: u64,
    fence: u64,
    held: Option<Held>,
    journalled: bool,
}

impl Found {
    /// Greatest number of a loop that was ever stored or shown.
    fn last_number(&self, numbers: &Numbers) -> u64 {
        numbers.last.max(self.lost_number)
    }

    /// Number of the next loop, if there can be one.
    fn next_number(&self, numbers: &Numbers) -> Option<u64> {
        self.last_number(numbers).checked_add(1)
    }
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

/// Places in [`select_lane`], behind the columns of the session.
const LOOP_COUNT: usize = sessions::WIDTH;
const FENCE: usize = sessions::WIDTH + 1;
const OWNER: usize = sessions::WIDTH + 2;
const PROCESS: usize = sessions::WIDTH + 3;
const EXPIRES_AT: usize = sessions::WIDTH + 4;
const LOST_NUMBER: usize = sessions::WIDTH + 5;
const JOURNALLED: usize = sessions::WIDTH + 6;

/// A session's row with its lane, and whether anything of it is in the journal.
fn select_lane(db: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    db.prepare_cached(&format!(
        "SELECT {}, loop_count, fence, owner_id, process, expires_at, lost_number, \
         {} FROM sessions WHERE session_id = ?1",
        sessions::COLUMNS,
        journal::IS_THERE
    ))
}

fn look(db: &Connection, id: &SessionId) -> Result<Found, Fault> {
    let mut select = select_lane(db)?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    Ok(Found {
        info: sessions::session(row),
        loop_count: row.get(LOOP_COUNT).ok(),
        lost_number: row.get(LOST_NUMBER).unwrap_or_default(),
        fence: fence(row).unwrap_or_default(),
        held: held(row)?,
        journalled: row.get(JOURNALLED)?,
    })
}

/// The fence, if there can be a greater one.
fn fence(row: &Row<'_>) -> Result<u64, Fault> {
    let fence: i64 = row.get(FENCE)?;
    match u64::try_from(fence) {
        Ok(known) if fence < i64::MAX => Ok(known),
        Ok(_) | Err(_) => Err(Fault::Row(format!("{fence} is out of range"))),
    }
}

/// The holder. Where its process or the end of its lease cannot be read, it does not stand in the way:
/// nobody could ever claim the session otherwise.
fn held(row: &Row<'_>) -> Result<Option<Held>, Fault> {
    if row.get_ref(OWNER)? == ValueRef::Null {
        return Ok(None);
    }
    let text = |column| text(row, column).unwrap_or_default();
    Ok(Some(Held {
        owner_id: text(OWNER).to_owned(),
        process: text(PROCESS).to_owned(),
        expires_at: time(text(EXPIRES_AT)).unwrap_or_default(),
    }))
}

/// Columns of the lane, and the count of loops, as far as they cannot be read.
pub(super) fn complaints(db: &Connection, id: &SessionId) -> Result<Vec<Complaint>, Fault> {
    let mut select = select_lane(db)?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    let is_held = row.get_ref(OWNER)? != ValueRef::Null;
    let holder = |read: Result<(), Fault>| if is_held { read } else { Ok(()) };
    let columns = [
        (
            "loop_count",
            row.get(LOOP_COUNT)
                .map_err(Fault::from)
                .and_then(not_negative),
        ),
        (
            "lost_number",
            row.get(LOST_NUMBER)
                .map_err(Fault::from)
                .and_then(not_negative),
        ),
        ("fence", fence(row).map(drop)),
        ("owner_id", holder(text(row, OWNER).map(drop))),
        ("process", holder(text(row, PROCESS).map(drop))),
        (
            "expires_at",
            holder(text(row, EXPIRES_AT).and_then(time).map(drop)),
        ),
    ];
    let unread = columns.into_iter().filter_map(|(column, read)| {
        let reason = read.err()?.in_words();
        Some(Complaint { column, reason })
    });
    Ok(unread.collect())
}

fn not_negative(count: i64) -> Result<(), Fault> {
    match count {
        0.. => Ok(()),
        _ => Err(Fault::Row(format!("{count} is out of range"))),
    }
}

/// Takes the lane from a holder whose columns cannot be read.
pub(super) fn free(db: &Connection, id: &SessionId) -> Result<(), Fault> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_holder!(),
        " WHERE session_id = ?1"
    ))?;
    update.execute((id.as_str(),))?;
    Ok(())
}

/// Sessions among these whose lane is held, with the holder described for a person.
pub(super) fn holders(
    db: &Connection,
    sessions: &[SessionId],
    now: Moment,
) -> Result<Vec<(SessionId, String)>, Fault> {
    let mut holders = Vec::new();
    for id in sessions {
        let held = look(db, id)?.held.filter(|held| held.may_be_at_work(now));
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
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_holder!(),
        " WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3"
    ))?;
    update.execute(params![lane.session_id.as_str(), lane.owner_id, lane.fence])?;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{Commit, NewSession, clock::Clock};
    use std::sync::atomic::{AtomicU64, Ordering};

    pub(in super::super) fn open_with_sessions(
        path: &std::path::Path,
        count: usize,
    ) -> (Db, Vec<SessionId>) {
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

    pub(in super::super) fn claim_and_commit(db: &mut Db, id: &SessionId, number: u64) -> u64 {
        let now = Clock::system().moment();
        let claimed = claim(db, id, &Owner::this_process(), None, now).unwrap();
        let opened = claimed.opened;
        let loop_id = LoopId::from(format!("{id}.cfg.{number}"));
        let record = LoopRecord::begun(id.clone(), loop_id, "turnery".into(), now.wall);
        let commit = Commit {
            lane: opened.lane,
            expected_head: opened.info.head_version,
            records: vec![Arc::new(record)],
            tip: 0,
            title: None,
            release: true,
        };
        commit::commit(db, &commit).unwrap();
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
        let claimed = claim(&mut db, &ids[0], &Owner::this_process(), None, now).unwrap();
        let opened = claimed.opened;
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
