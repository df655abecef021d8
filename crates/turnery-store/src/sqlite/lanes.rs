//! Manages lanes: who may commit to a session, and for how long (UP-27).

use super::{
    commit,
    db::{Db, write},
    job_error::JobError,
    journal,
    loops::{text, time},
    sessions::{self, UnreadableColumn},
};
use crate::{
    ClaimOutcome, ClaimedLane, Damage, Lane, LoopBeginning, Owner, SessionInfo, StoreError,
    clock::ClockReading,
    lease::{LeaseEnd, is_held, may_be_active},
    list_cursor::format_time,
    owner::describe_holder,
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

/// Claims the lane, and journals the first events of a loop if its number is the next one of the session.
pub(super) fn claim(
    db: &mut Db,
    id: &SessionId,
    owner: &Owner,
    beginning: Option<&LoopBeginning>,
    now: ClockReading,
) -> Result<ClaimOutcome, JobError> {
    let known = db.numbers.remove(id);
    let (found, fence, numbers, is_journalled) = write(&db.sql, |work| {
        let (found, numbers) = find_claimable(work, id, owner, now, known)?;
        let fence = found.fence + 1;
        let next = found.next_number(&numbers);
        let fits = |it: &&LoopBeginning| {
            it.expected_head == found.info.head_version && it.loop_id.number() == next
        };
        let beginning = beginning.filter(fits);
        let beginning = beginning.map(|it| journal::StoredBeginning::encode(work, id, fence, it));
        let beginning = beginning.transpose()?;
        take(work, id, owner, now, fence, beginning.as_ref())?;
        Ok((found, fence, numbers, beginning.is_some()))
    })?;
    db.clean.insert(id.clone(), fence);
    db.numbers.insert(id.clone(), numbers);
    Ok(ClaimOutcome {
        opened: ClaimedLane {
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

/// Turns the journal of a dead holder into loops and leaves the lane free. Returns the damage in the journal.
pub(super) fn recover(
    db: &mut Db,
    id: &SessionId,
    now: ClockReading,
) -> Result<Vec<Damage>, JobError> {
    write(&db.sql, |work| {
        let found = read_lane_row(work, id)?;
        let is_held = found
            .held
            .as_ref()
            .is_some_and(|held| held.may_be_active(now));
        if is_held || !found.has_journal {
            return Ok(Vec::new());
        }
        let damage = journal::check(work, id)?;
        recover_journal(work, &found.info)?;
        let mut free = work.prepare_cached(concat!(
            "UPDATE sessions SET fence = ?2, ",
            no_holder!(),
            " WHERE session_id = ?1"
        ))?;
        free.execute(params![id.as_str(), found.fence + 1])?;
        Ok(damage)
    })
}

/// Turns the journal into loops.
fn recover_journal(work: &Connection, info: &SessionInfo) -> Result<(), JobError> {
    let mut version = info.head_version;
    let (records, lost_number) = recovery::recover_loops(&journal::take_all(work, &info.id)?);
    note_lost_number(work, &info.id, lost_number)?;
    for record in records {
        if !commit::is_stored(work, &info.id, &record.loop_id)? {
            version += 1;
            commit::store_recovered(work, version, record)?;
        }
    }
    Ok(())
}

/// Records the number of a loop that was shown but is neither stored nor journalled any more, so that it is
/// never reused (LOOP-10).
pub(super) fn note_lost_number(
    db: &Connection,
    id: &SessionId,
    number: u64,
) -> Result<(), JobError> {
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

/// Reads the row of a session and its loop numbers, after turning a journal left by an earlier holder into loops.
/// Fails with [`StoreError::Busy`] while another owner holds the lane.
fn find_claimable(
    work: &Connection,
    id: &SessionId,
    owner: &Owner,
    now: ClockReading,
    known: Option<LoopNumbers>,
) -> Result<(LaneRow, LoopNumbers), JobError> {
    let mut found = read_lane_row(work, id)?;
    if let Some(held) = found.held.take().filter(|held| held.blocks(owner, now)) {
        return Err(StoreError::Busy {
            session: id.clone(),
            holder: describe_holder(&held.process),
        }
        .into());
    }
    if found.has_journal {
        recover_journal(work, &found.info)?;
        found = read_lane_row(work, id)?;
    }
    let numbers = match known.filter(|known| known.is_current(&found)) {
        Some(known) => known,
        None => LoopNumbers::read(work, &found)?,
    };
    Ok((found, numbers))
}

/// Gives the lane to `owner`.
fn take(
    work: &Connection,
    id: &SessionId,
    owner: &Owner,
    now: ClockReading,
    fence: u64,
    beginning: Option<&journal::StoredBeginning>,
) -> Result<(), JobError> {
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
        end.stamp_process(&owner.process),
        format_time(end.wall),
        beginning.map(|it| it.loop_id.as_str()),
        beginning.map(|it| it.fence),
        beginning.map(|it| it.checksum),
        beginning.map(|it| &it.body)
    ])?;
    Ok(())
}

/// Loop numbers of a session. Numbers may have gaps, so the last one cannot be derived from the count; cached
/// between claims, to avoid reading a long session at each.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopNumbers {
    /// Distinguishes a session from an earlier one with the same id.
    created_at: Timestamp,
    /// Loop count of the session when the numbers were read, which rises with each commit of any process.
    /// `None` if unreadable.
    count: Option<i64>,
    /// Greatest number of a stored loop.
    last: u64,
}

impl LoopNumbers {
    /// Returns true if no loop was stored in the session since the numbers were read.
    fn is_current(&self, found: &LaneRow) -> bool {
        self.count.is_some()
            && self.count == found.loop_count
            && self.created_at == found.info.created_at
    }

    /// Reads the ids of all loops from their index. An id that is not text has no number.
    fn read(db: &Connection, found: &LaneRow) -> Result<Self, JobError> {
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
    pub(super) fn add_loops(&mut self, records: &[Arc<LoopRecord>]) {
        let added = i64::try_from(records.len()).ok();
        self.count = self
            .count
            .zip(added)
            .and_then(|(count, added)| count.checked_add(added));
        self.last = self.last.max(recovery::last_loop_number(records));
    }
}

/// Row of a session with its lane.
struct LaneRow {
    info: SessionInfo,
    /// Number of loops; `None` if unreadable.
    loop_count: Option<i64>,
    /// Greatest number of a loop that was shown but not stored; 0 if unreadable.
    lost_number: u64,
    fence: u64,
    held: Option<LaneHolder>,
    has_journal: bool,
}

impl LaneRow {
    /// Returns the greatest number of a loop that was ever stored or shown.
    fn last_number(&self, numbers: &LoopNumbers) -> u64 {
        numbers.last.max(self.lost_number)
    }

    /// Returns the number of the next loop; `None` on overflow.
    fn next_number(&self, numbers: &LoopNumbers) -> Option<u64> {
        self.last_number(numbers).checked_add(1)
    }
}

struct LaneHolder {
    owner_id: String,
    process: String,
    expires_at: Timestamp,
}

impl LaneHolder {
    fn may_be_active(&self, now: ClockReading) -> bool {
        may_be_active(&self.process, self.expires_at, now)
    }

    /// Returns true if a live holder other than `owner` has the lane.
    fn blocks(&self, owner: &Owner, now: ClockReading) -> bool {
        self.owner_id != owner.id && is_held(&self.process, self.expires_at, now)
    }
}

/// Index of the loop count in [`select_lane`], after the columns of the session.
const LOOP_COUNT_COLUMN: usize = sessions::COLUMN_COUNT;
const FENCE_COLUMN: usize = sessions::COLUMN_COUNT + 1;
const OWNER_COLUMN: usize = sessions::COLUMN_COUNT + 2;
const PROCESS_COLUMN: usize = sessions::COLUMN_COUNT + 3;
const EXPIRES_AT_COLUMN: usize = sessions::COLUMN_COUNT + 4;
const LOST_NUMBER_COLUMN: usize = sessions::COLUMN_COUNT + 5;
const HAS_JOURNAL_COLUMN: usize = sessions::COLUMN_COUNT + 6;

/// Selects a session's row with its lane, and whether it has journalled events.
fn select_lane(db: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    db.prepare_cached(&format!(
        "SELECT {}, loop_count, fence, owner_id, process, expires_at, lost_number, \
         {} FROM sessions WHERE session_id = ?1",
        sessions::COLUMNS,
        journal::HAS_JOURNAL
    ))
}

fn read_lane_row(db: &Connection, id: &SessionId) -> Result<LaneRow, JobError> {
    let mut select = select_lane(db)?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    Ok(LaneRow {
        info: sessions::session(row),
        loop_count: row.get(LOOP_COUNT_COLUMN).ok(),
        lost_number: row.get(LOST_NUMBER_COLUMN).unwrap_or_default(),
        fence: fence(row).unwrap_or_default(),
        held: held(row)?,
        has_journal: row.get(HAS_JOURNAL_COLUMN)?,
    })
}

/// Returns the fence, if it can still rise.
fn fence(row: &Row<'_>) -> Result<u64, JobError> {
    let fence: i64 = row.get(FENCE_COLUMN)?;
    match u64::try_from(fence) {
        Ok(known) if fence < i64::MAX => Ok(known),
        Ok(_) | Err(_) => Err(JobError::Row(format!("{fence} is out of range"))),
    }
}

/// Returns the holder; `None` if the lane is free. An unreadable process is empty and an unreadable end of the
/// lease has passed, since the session could otherwise never be claimed.
fn held(row: &Row<'_>) -> Result<Option<LaneHolder>, JobError> {
    if row.get_ref(OWNER_COLUMN)? == ValueRef::Null {
        return Ok(None);
    }
    let text = |column| text(row, column).unwrap_or_default();
    Ok(Some(LaneHolder {
        owner_id: text(OWNER_COLUMN).to_owned(),
        process: text(PROCESS_COLUMN).to_owned(),
        expires_at: time(text(EXPIRES_AT_COLUMN)).unwrap_or_default(),
    }))
}

/// Returns the unreadable columns of the lane and of the loop count.
pub(super) fn unreadable_lane_columns(
    db: &Connection,
    id: &SessionId,
) -> Result<Vec<UnreadableColumn>, JobError> {
    let mut select = select_lane(db)?;
    let mut rows = select.query((id.as_str(),))?;
    let row = rows.next()?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    let is_held = row.get_ref(OWNER_COLUMN)? != ValueRef::Null;
    let holder = |read: Result<(), JobError>| if is_held { read } else { Ok(()) };
    let columns = [
        (
            "loop_count",
            row.get(LOOP_COUNT_COLUMN)
                .map_err(JobError::from)
                .and_then(require_non_negative),
        ),
        (
            "lost_number",
            row.get(LOST_NUMBER_COLUMN)
                .map_err(JobError::from)
                .and_then(require_non_negative),
        ),
        ("fence", fence(row).map(drop)),
        ("owner_id", holder(text(row, OWNER_COLUMN).map(drop))),
        ("process", holder(text(row, PROCESS_COLUMN).map(drop))),
        (
            "expires_at",
            holder(text(row, EXPIRES_AT_COLUMN).and_then(time).map(drop)),
        ),
    ];
    let unread = columns.into_iter().filter_map(|(column, read)| {
        let reason = read.err()?.message();
        Some(UnreadableColumn { column, reason })
    });
    Ok(unread.collect())
}

fn require_non_negative(count: i64) -> Result<(), JobError> {
    match count {
        0.. => Ok(()),
        _ => Err(JobError::Row(format!("{count} is out of range"))),
    }
}

/// Removes a holder whose columns are unreadable.
pub(super) fn free(db: &Connection, id: &SessionId) -> Result<(), JobError> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_holder!(),
        " WHERE session_id = ?1"
    ))?;
    update.execute((id.as_str(),))?;
    Ok(())
}

/// Returns those of `sessions` whose holder may be active, even after its lease expired, with the holder described
/// for the user.
pub(super) fn holders(
    db: &Connection,
    sessions: &[SessionId],
    now: ClockReading,
) -> Result<Vec<(SessionId, String)>, JobError> {
    let mut holders = Vec::new();
    for id in sessions {
        let held = read_lane_row(db, id)?
            .held
            .filter(|held| held.may_be_active(now));
        holders.extend(held.map(|held| (id.clone(), describe_holder(&held.process))));
    }
    Ok(holders)
}

/// Returns true if `lane` is the last one claimed in its session and was not released. An expired lease does not
/// matter until another owner claims the session.
pub(super) fn is_lane_held(db: &Connection, lane: &Lane) -> Result<bool, JobError> {
    let mut select = db.prepare_cached(
        "SELECT 1 FROM sessions WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    Ok(select.exists(params![lane.session_id.as_str(), lane.owner_id, lane.fence])?)
}

pub(super) fn renew(db: &mut Connection, lane: &Lane, now: ClockReading) -> Result<(), JobError> {
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
        format_time(end.wall),
        end.steady
    ])?;
    if held == 0 {
        return Err(StoreError::LaneLost(lane.session_id.clone()).into());
    }
    Ok(())
}

/// Releases the lane. The fence stays, so that the next holder gets a higher one.
pub(super) fn release(db: &Connection, lane: &Lane) -> Result<(), JobError> {
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
        let now = Clock::system().reading();
        let claimed = claim(db, id, &Owner::this_process(), None, now).unwrap();
        let opened = claimed.opened;
        let loop_id = LoopId::from(format!("{id}.cfg.{number}"));
        let record = LoopRecord::new_running(id.clone(), loop_id, "turnery".into(), now.wall);
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

    /// Counts the SQLite instructions of the last claim, after rounds in which each session stores a loop.
    fn count_claim_steps(session_count: usize, rounds: u64) -> u64 {
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
        let now = Clock::system().reading();
        let claimed = claim(&mut db, &ids[0], &Owner::this_process(), None, now).unwrap();
        let opened = claimed.opened;
        assert_eq!(opened.last_number, rounds);
        steps.load(Ordering::Relaxed)
    }

    #[test]
    fn claim_steps_do_not_grow_with_other_sessions() {
        let few = count_claim_steps(2, 3);
        assert!(few > 0);
        assert_eq!(count_claim_steps(40, 3), few);
        assert_eq!(count_claim_steps(2, 40), few);
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
