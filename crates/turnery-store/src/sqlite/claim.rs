//! Claims lanes, and turns the journals of dead holders into loops (S5, UP-27).

use super::{
    commit,
    db::Db,
    job_error::JobError,
    journal,
    lane_columns::{no_holder, note_lost_number},
    lanes::{LaneRow, read_lane_row},
    loop_numbers::LoopNumbers,
    stored_loop,
    transaction::write,
};
use crate::{
    ClaimOutcome, ClaimedLane, Damage, Lane, LoopBeginning, Owner, SessionInfo, StoreError,
    clock::ClockReading, lease::LeaseEnd, list_cursor::format_time, owner::describe_holder,
    recovery,
};
use rusqlite::{Connection, params};
use turnery_engine::SessionId;

/// Claims the lane, and journals the first events of a loop if its number is the next one of the session.
pub(super) fn claim(
    db: &mut Db,
    id: &SessionId,
    owner: &Owner,
    beginning: Option<&LoopBeginning>,
    now: ClockReading,
) -> Result<ClaimOutcome, JobError> {
    let known = db.loop_numbers.remove(id);
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
        take_lane(work, id, owner, now, fence, beginning.as_ref())?;
        Ok((found, fence, numbers, beginning.is_some()))
    })?;
    db.empty_journals.insert(id.clone(), fence);
    db.loop_numbers.insert(id.clone(), numbers);
    Ok(ClaimOutcome {
        claimed_lane: ClaimedLane {
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
            .holder
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
        if !stored_loop::is_stored(work, &info.id, &record.loop_id)? {
            version += 1;
            commit::store_recovered(work, version, record)?;
        }
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
    if let Some(held) = found.holder.take().filter(|held| held.blocks(owner, now)) {
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
    let numbers =
        match known.filter(|known| known.is_current(found.info.created_at, found.loop_count)) {
            Some(known) => known,
            None => LoopNumbers::read(work, &found.info, found.loop_count)?,
        };
    Ok((found, numbers))
}

/// Gives the lane to `owner`.
fn take_lane(
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

#[cfg(test)]
pub(super) mod tests {
    use super::{super::sessions, *};
    use crate::{Commit, Durability, NewSession, clock::Clock};
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };
    use turnery_engine::{LoopId, LoopRecord, Timestamp};

    pub(in super::super) fn open_with_sessions(
        path: &std::path::Path,
        count: usize,
    ) -> (Db, Vec<SessionId>) {
        let db = Db::open(path, Durability::Process, false).unwrap();
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
            sessions::create(&db.sql, new).unwrap();
        }
        (db, ids)
    }

    pub(in super::super) fn claim_and_commit(db: &mut Db, id: &SessionId, number: u64) -> u64 {
        let now = Clock::system().reading();
        let claimed = claim(db, id, &Owner::for_this_process(), None, now).unwrap();
        let opened = claimed.claimed_lane;
        let loop_id = LoopId::from(format!("{id}.cfg.{number}"));
        let record = LoopRecord::new_running(id.clone(), loop_id, "turnery".into(), now.wall);
        let commit = Commit {
            lane: opened.lane,
            expected_head: opened.info.head_version,
            records: vec![Arc::new(record)],
            tip: 0,
            title: None,
            release: true,
            effects: Vec::new(),
        };
        commit::commit(db, &commit).unwrap();
        opened.last_number
    }

    /// Returns the result of some work, and the number of SQLite instructions that it took.
    pub(in super::super) fn count_steps<T>(
        db: &mut Db,
        work: impl FnOnce(&mut Db) -> T,
    ) -> (T, u64) {
        let steps = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        db.sql.progress_handler(1, Some(count)).unwrap();
        let done = work(db);
        (done, steps.load(Ordering::Relaxed))
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
        let now = Clock::system().reading();
        let owner = Owner::for_this_process();
        let (claimed, steps) =
            count_steps(&mut db, |db| claim(db, &ids[0], &owner, None, now).unwrap());
        assert_eq!(claimed.claimed_lane.last_number, rounds);
        steps
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
        let mut there = Db::open(&path, Durability::Process, false).unwrap();
        claim_and_commit(&mut here, &ids[0], 1);
        assert_eq!(claim_and_commit(&mut there, &ids[0], 4), 1);
        assert_eq!(claim_and_commit(&mut here, &ids[0], 5), 4);
        assert_eq!(claim_and_commit(&mut here, &ids[0], 6), 5);
        assert_eq!(claim_and_commit(&mut there, &ids[0], 7), 6);
    }
}
