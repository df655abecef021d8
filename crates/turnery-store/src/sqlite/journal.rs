//! Journals the events of uncommitted loops, for recovery after a crash.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::text,
    db::Db,
    job_error::{JobError, reason_if_damaged},
    lane_columns,
    long_texts::{self, SessionTexts},
    transaction::write,
};
use crate::{
    Damage, DamagedPart, Lane, LoopBeginning, Owner, encoding::journal_events,
    journal_append::JournalAppend, list_cursor::format_time,
};
use rusqlite::{Connection, Row, params, types::Value};
use turnery_engine::{Event, LoopId, SessionId};

/// A loop, and events of it.
type LoopEvents = (LoopId, Vec<Event>);

/// Events of a loop, or the reason why they are unreadable.
type ReadEvents = Result<LoopEvents, String>;

/// Writes all appends in one transaction. Drops events of owners that lost the lane, since the next claim has
/// turned the journal into a loop (C-12), and events that arrive after their loop's commit. Returns true if the lane of
/// the last append is held.
pub(super) fn write_appends(db: &mut Db, appends: &[JournalAppend]) -> Result<bool, JobError> {
    for append in appends {
        db.empty_journals.remove(&append.lane.session_id);
    }
    write(&db.sql, |work| {
        let mut is_held = true;
        for append in appends {
            let (session, loop_id) = (&append.lane.session_id, &append.loop_id);
            let state = find_loop_of_holder(work, &append.lane, loop_id)?;
            is_held = state.is_some();
            let Some(state) = state.filter(|it| !it.is_stored) else {
                continue;
            };
            if append.starts_loop() && state.has_journal {
                // A loop whose journal is written again from its first event.
                drop_loop(work, session, loop_id)?;
            }
            insert_events(work, session, loop_id, &append.events)?;
        }
        Ok(is_held)
    })
}

/// State of a loop in the store.
struct LoopState {
    /// True if the loop was committed.
    is_stored: bool,
    /// True if the loop has journalled events.
    has_journal: bool,
}

/// Returns the state of a loop, or `None` if `lane` is not the last one claimed in its session, or was released. An
/// expired lease does not matter until another owner claims the session.
fn find_loop_of_holder(
    db: &Connection,
    lane: &Lane,
    loop_id: &LoopId,
) -> Result<Option<LoopState>, JobError> {
    let mut select = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM loops WHERE session_id = ?1 AND loop_id = ?4), \
             begun_loop_id IS ?4 OR EXISTS (SELECT 1 FROM journal WHERE session_id = ?1 AND loop_id = ?4) \
         FROM sessions WHERE session_id = ?1 AND owner_id = ?2 AND fence = ?3",
    )?;
    let mut rows = select.query(params![
        lane.session_id.as_str(),
        lane.owner_id,
        lane.fence,
        loop_id.as_str()
    ])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(LoopState {
        is_stored: row.get(0)?,
        has_journal: row.get(1)?,
    }))
}

/// Adds events to the journal of a loop as one row.
fn insert_events(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
    events: &[Event],
) -> Result<(), JobError> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let body = encode_events(db, session, events)?;
    let at = format_time(first.at);
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

/// Condition on a row of `sessions`: it has a beginning, or damaged remains of one.
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

/// First events of a loop, stored in the row of its session; they precede its rows in the journal.
pub(super) struct StoredBeginning {
    pub(super) loop_id: LoopId,
    /// Fence of the claim that wrote the events.
    pub(super) fence: u64,
    pub(super) body: String,
    pub(super) checksum: i64,
}

/// Beginning of a loop as read from its session.
struct FoundBeginning {
    /// Id of the loop, or [`UNREADABLE`].
    loop_id: LoopId,
    events: ReadEvents,
    /// True if the session's fence is greater than that of the claim that wrote the beginning.
    has_older_fence: bool,
}

impl FoundBeginning {
    /// Returns true if a process of version 5 or earlier has claimed the session since. It ignored the
    /// beginning, and may have used the loop's number for another loop. False for a damaged beginning, which
    /// is reported as damage.
    fn is_stale(&self) -> bool {
        self.has_older_fence && self.events.is_ok()
    }
}

impl StoredBeginning {
    pub(super) fn encode(
        db: &Connection,
        session: &SessionId,
        fence: u64,
        beginning: &LoopBeginning,
    ) -> Result<Self, JobError> {
        let loop_id = beginning.loop_id.clone();
        let body = encode_events(db, session, &beginning.events)?;
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

    /// Returns `None` if the session has no beginning.
    fn read(db: &Connection, session: &SessionId) -> Result<Option<FoundBeginning>, JobError> {
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
            events: reason_if_damaged(Self::parse(db, session, row))?,
            has_older_fence: row.get(4)?,
        }))
    }

    fn parse(db: &Connection, session: &SessionId, row: &Row<'_>) -> Result<LoopEvents, JobError> {
        let (loop_id, fence, body) = (text(row, 0)?, row.get(1)?, text(row, 2)?);
        let sum = Self::checksum(session, loop_id, fence, body);
        if sum.verify(row.get_ref(3)?) != ChecksumVerdict::Matches {
            return Err(JobError::InvalidRow(
                "its checksum does not match".to_owned(),
            ));
        }
        parse_events(db, session, loop_id, body)
    }
}

fn encode_events(
    db: &Connection,
    session: &SessionId,
    events: &[Event],
) -> Result<String, JobError> {
    journal_events::encode_events(&mut SessionTexts { db, session }, events)
}

/// Parses the events of a row.
fn parse_events(
    db: &Connection,
    session: &SessionId,
    loop_id: &str,
    body: &str,
) -> Result<LoopEvents, JobError> {
    let body = long_texts::expand_references(db, session, body)?;
    let loop_id = LoopId::from(loop_id);
    let events = journal_events::parse_events(session, &loop_id, &body)?;
    Ok((loop_id, events))
}

/// Drops the journal of a loop if `owner` holds the lane of its session.
pub(super) fn discard_loop(
    db: &Connection,
    session: &SessionId,
    owner: &Owner,
    loop_id: &LoopId,
) -> Result<(), JobError> {
    write(db, |work| {
        let mut select =
            work.prepare_cached("SELECT 1 FROM sessions WHERE session_id = ?1 AND owner_id = ?2")?;
        match select.exists((session.as_str(), &owner.id))? {
            true => drop_loop(work, session, loop_id),
            false => Ok(()),
        }
    })
}

/// Condition on a row of `sessions` whose id is the first parameter: the session has journalled events.
pub(super) const HAS_JOURNAL: &str = concat!(
    has_beginning!(),
    " OR EXISTS (SELECT 1 FROM journal WHERE journal.session_id = ?1)"
);

/// Returns the loops with journalled events, other than a beginning, by their ids. Reads one row of each.
pub(super) fn journalled_loops(
    db: &Connection,
    session: &SessionId,
) -> Result<Vec<LoopId>, JobError> {
    let mut select = db.prepare_cached(
        "SELECT loop_id FROM journal WHERE session_id = ?1 AND loop_id > ?2 ORDER BY loop_id LIMIT 1",
    )?;
    let mut loops: Vec<LoopId> = Vec::new();
    loop {
        let last = loops.last().map_or("", LoopId::as_str);
        let mut rows = select.query((session.as_str(), last))?;
        let Some(row) = rows.next()? else {
            return Ok(loops);
        };
        loops.push(text(row, 0)?.into());
    }
}

/// Reads the journalled events of a loop from its row with this first sequence number on, row by row. A beginning is the
/// first row. Damaged rows are left out.
pub(super) fn read_from(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
    first: u64,
) -> Result<Vec<Vec<Event>>, JobError> {
    let mut found = Vec::new();
    let mut add = |read: ReadEvents| {
        if let Ok((_, events)) = read
            && !events.is_empty()
        {
            found.push(events);
        }
    };
    if first == 0
        && let Some(beginning) = StoredBeginning::read(db, session)?
        && beginning.loop_id == *loop_id
        && !beginning.is_stale()
    {
        add(beginning.events);
    }
    let mut select = db.prepare_cached(&format!(
        "{SELECT_EVENTS} AND loop_id = ?2 AND seq >= ?3 ORDER BY seq"
    ))?;
    let mut rows = select.query(params![session.as_str(), loop_id.as_str(), first])?;
    while let Some(row) = rows.next()? {
        add(reason_if_damaged(read_row(db, session, row))?);
    }
    Ok(found)
}

/// Returns the loop whose beginning is stored in the row of its session.
pub(super) fn begun_loop(db: &Connection, session: &SessionId) -> Result<Option<LoopId>, JobError> {
    let found = StoredBeginning::read(db, session)?;
    Ok(found
        .filter(|it| !it.is_stale() && it.events.is_ok())
        .map(|it| it.loop_id))
}

/// Returns true if a session has journalled events.
pub(super) fn has_journal(db: &Connection, session: &SessionId) -> Result<bool, JobError> {
    let mut select = db.prepare_cached(&format!(
        "SELECT 1 FROM sessions WHERE session_id = ?1 AND ({HAS_JOURNAL})"
    ))?;
    Ok(select.exists((session.as_str(),))?)
}

/// Columns of journalled events, in the order of their checksum.
const SELECT_EVENTS: &str =
    "SELECT loop_id, seq, at, body, checksum FROM journal WHERE session_id = ?1";

/// Empties the journal of a session. Returns the readable events of each loop, oldest loop first; what is unreadable
/// is copied to `repairs`.
pub(super) fn take_all(db: &Connection, session: &SessionId) -> Result<Vec<Vec<Event>>, JobError> {
    let mut loops: Vec<(LoopId, Vec<Event>)> = Vec::new();
    let mut has_lost = false;
    let beginning = match StoredBeginning::read(db, session)? {
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
        // Unreadable journals are dropped, so that the session can still be opened.
        Err(error) => {
            tracing::warn!(%session, error, "failed to read the journal");
            has_lost = true;
        }
    };
    if let Some(found) = beginning {
        add(found.events);
    }
    let mut select = db.prepare_cached(&format!(
        "{SELECT_EVENTS} ORDER BY min(at) OVER (PARTITION BY loop_id), loop_id, seq"
    ))?;
    let mut rows = select.query((session.as_str(),))?;
    while let Some(row) = rows.next()? {
        add(reason_if_damaged(read_row(db, session, row))?);
    }
    drop(rows);
    if has_lost {
        back_up(db, session)?;
        note_lost_numbers(db, session)?;
    }
    let mut delete = db.prepare_cached("DELETE FROM journal WHERE session_id = ?1")?;
    delete.execute((session.as_str(),))?;
    drop_beginning(db, session)?;
    Ok(loops.into_iter().map(|(_, events)| events).collect())
}

/// Returns the events of a row, after comparing its checksum.
fn read_row(db: &Connection, session: &SessionId, row: &Row<'_>) -> Result<LoopEvents, JobError> {
    let sum = Checksum::default().text(session.as_str());
    if sum.columns(row, 0..4)?.verify(row.get_ref(4)?) == ChecksumVerdict::Differs {
        return Err(JobError::InvalidRow(
            "its checksum does not match".to_owned(),
        ));
    }
    parse_events(db, session, text(row, 0)?, text(row, 3)?)
}

/// Copies the journal of a session to `repairs`.
fn back_up(db: &Connection, session: &SessionId) -> Result<(), JobError> {
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

/// Records the greatest loop number in the journal of a session as lost, before damaged rows are removed, so that
/// it is never reused.
fn note_lost_numbers(db: &Connection, session: &SessionId) -> Result<(), JobError> {
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
    lane_columns::note_lost_number(db, session, last)
}

/// Returns the damage in the journal of a session: one entry per loop.
pub(super) fn check(db: &Connection, session: &SessionId) -> Result<Vec<Damage>, JobError> {
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
    if let Some(found) = StoredBeginning::read(db, session)?
        && let Err(reason) = found.events
    {
        add(found.loop_id.as_str(), reason);
    }
    let mut select = db.prepare_cached(SELECT_EVENTS)?;
    let mut rows = select.query((session.as_str(),))?;
    while let Some(row) = rows.next()? {
        if let Err(reason) = reason_if_damaged(read_row(db, session, row))? {
            add(text(row, 0).unwrap_or(UNREADABLE), reason);
        }
    }
    Ok(damage)
}

const UNREADABLE: &str = "(unreadable)";

/// Removes unreadable rows and keeps a copy of them. Returns their number, which includes a beginning.
pub(super) fn repair(db: &Connection, session: &SessionId) -> Result<usize, JobError> {
    if check(db, session)?.is_empty() {
        return Ok(0);
    }
    back_up(db, session)?;
    note_lost_numbers(db, session)?;
    let mut count = 0;
    if StoredBeginning::read(db, session)?.is_some_and(|found| found.events.is_err()) {
        drop_beginning(db, session)?;
        count += 1;
    }
    let mut select = db.prepare_cached(SELECT_EVENTS)?;
    let mut delete = db.prepare_cached(
        "DELETE FROM journal WHERE session_id = ?1 AND loop_id = ?2 AND seq = ?3",
    )?;
    let mut rows = select.query((session.as_str(),))?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        if reason_if_damaged(read_row(db, session, row))?.is_err() {
            damaged.push((row.get::<_, Value>(0)?, row.get::<_, Value>(1)?));
        }
    }
    for (loop_id, seq) in &damaged {
        delete.execute(params![session.as_str(), loop_id, seq])?;
    }
    Ok(count + damaged.len())
}

/// Drops the journal of a loop.
fn drop_loop(db: &Connection, session: &SessionId, loop_id: &LoopId) -> Result<(), JobError> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_beginning!(),
        " WHERE session_id = ?1 AND begun_loop_id = ?2"
    ))?;
    update.execute((session.as_str(), loop_id.as_str()))?;
    drop_rows(db, session, loop_id)
}

/// Drops the journal of a loop except its beginning.
pub(super) fn drop_rows(
    db: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<(), JobError> {
    let mut delete =
        db.prepare_cached("DELETE FROM journal WHERE session_id = ?1 AND loop_id = ?2")?;
    delete.execute((session.as_str(), loop_id.as_str()))?;
    Ok(())
}

/// Drops the beginning of any loop in a session.
pub(super) fn drop_beginning(db: &Connection, session: &SessionId) -> Result<(), JobError> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE sessions SET ",
        no_beginning!(),
        " WHERE session_id = ?1 AND ",
        has_beginning!()
    ))?;
    update.execute((session.as_str(),))?;
    Ok(())
}
