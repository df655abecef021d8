//! Claims lanes, and turns the journals of dead holders into loops (S5, UP-27).

use super::{
    commit::{self, NewLoops},
    connection::Connection,
    engine::{CALL_TIMEOUT, Shared},
    journal::{self, JournalRow},
    lanes::{self, LANE_ROW_COLUMNS, PgLaneRow, lane_columns},
    listener::tell_followers,
    pg_error::PgError,
    rows::{Columns, to_integer},
    sessions::session_columns,
    texts::NewTexts,
};
use crate::{ClaimOutcome, ClaimedLane, Damage, Lane, LoopBeginning, Owner, StoreError, recovery};
use std::sync::Arc;
use turnery_engine::{SessionId, Timestamp};

/// Locks a session against journalling, so that the next statement sees everything that was journalled.
const WAIT: &str = "SELECT 1 FROM sessions WHERE session_id = $1 FOR NO KEY UPDATE";

/// Claims a lane that is free, that the owner has already, or whose fence and heartbeat are those of a holder that was
/// found to be gone (`$5`, `$6`); not if a journal is left. Writes the heartbeat of the host, and journals the first
/// events of a loop if the head and the number are as expected.
const CLAIM: &str = concat!(
    "WITH seen AS (SELECT ",
    session_columns!(),
    lane_columns!(),
    " AS has_journal FROM sessions s LEFT JOIN hosts h ON h.host = s.host WHERE s.session_id = $1), \
     taken AS ( \
         UPDATE sessions s SET fence = s.fence + 1, owner_id = $3, host = $4 FROM seen \
         WHERE s.session_id = seen.session_id AND NOT seen.has_journal \
         AND EXISTS (SELECT 1 FROM hosts WHERE host = $4) \
         AND (seen.owner_id IS NULL OR seen.owner_id = $3 \
              OR (seen.fence = $5 AND seen.heartbeat_at IS NOT DISTINCT FROM $6)) \
         RETURNING s.session_id, s.fence, s.head_version, s.last_number), \
     beat AS ( \
         UPDATE hosts SET heartbeat_at = coalesce($2::timestamptz, clock_timestamp()) FROM taken WHERE host = $4 \
         AND heartbeat_at < coalesce($2::timestamptz, clock_timestamp()) - interval '5 seconds'), \
     begun AS ( \
         INSERT INTO journal (session_id, loop_id, seq, at, body, checksum) \
         SELECT session_id, $7, $8, $9, $10, $11 FROM taken \
         WHERE $7::text IS NOT NULL AND head_version = $12 AND last_number + 1 = $13 RETURNING session_id), \
     told AS (",
    tell_followers!("begun"),
    ") SELECT seen.*, (SELECT fence FROM taken), EXISTS (SELECT 1 FROM begun), \
     EXISTS (SELECT 1 FROM hosts WHERE host = $4), (SELECT count(*) FROM told) FROM seen"
);

const FREE: &str =
    "UPDATE sessions SET fence = fence + 1, owner_id = NULL, host = NULL WHERE session_id = $1";

const RELEASE: &str = "UPDATE sessions SET owner_id = NULL, host = NULL WHERE session_id = $1";

/// Number of times that a claim is tried while other owners claim the same lane.
const MAX_TRIES: usize = 5;

/// Claims the lane, and journals the first events of a loop if its number is the next one of the session.
pub(super) async fn claim(
    shared: &Shared,
    id: &SessionId,
    owner: &Owner,
    beginning: Option<&LoopBeginning>,
) -> Result<ClaimOutcome, StoreError> {
    let beginning = beginning.and_then(|it| {
        let mut texts = NewTexts::default();
        let row = JournalRow::encode(&mut texts, id, &it.loop_id, &it.events).ok()??;
        // Long texts are written with the first append.
        texts.names.is_empty().then_some((it, row))
    });
    let mut has_tried = false;
    shared
        .run(CALL_TIMEOUT, async |connection| {
            if std::mem::replace(&mut has_tried, true)
                && let Some((it, _)) = &beginning
            {
                // An attempt whose answer was lost may have journalled the events. They would become an aborted loop.
                journal::forget(connection, id, &owner.id, &it.loop_id).await?;
            }
            let mut dead = None;
            for _ in 0..MAX_TRIES {
                let claim = Claim {
                    id,
                    owner,
                    beginning: beginning.as_ref(),
                    now: shared.now(),
                };
                let attempt = claim.take(shared, connection, dead.as_ref()).await?;
                let seen = match attempt {
                    ClaimAttempt::Taken(outcome) => return Ok(outcome),
                    ClaimAttempt::NoHost => continue,
                    ClaimAttempt::Refused(seen) => seen,
                };
                if let Some(busy) = seen.refusal(&owner.id) {
                    return Err(busy.into());
                }
                if seen.has_journal {
                    return claim.recover_and_take(shared, connection).await;
                }
                dead = Some(seen);
            }
            Err(PgError::Raced)
        })
        .await
}

struct Claim<'a> {
    id: &'a SessionId,
    owner: &'a Owner,
    beginning: Option<&'a (&'a LoopBeginning, JournalRow)>,
    now: Option<Timestamp>,
}

enum ClaimAttempt {
    Taken(ClaimOutcome),
    /// Somebody has the lane, or a journal is left.
    Refused(PgLaneRow),
    /// The row of this process is gone.
    NoHost,
}

impl Claim<'_> {
    /// Claims the lane unless another owner than that of `dead` has it.
    async fn take(
        &self,
        shared: &Shared,
        connection: &Connection,
        dead: Option<&PgLaneRow>,
    ) -> Result<ClaimAttempt, PgError> {
        let host = shared
            .hosts
            .register(connection, self.owner, self.now)
            .await?;
        let row = self.beginning.map(|(_, row)| row);
        let (loop_id, seq) = (row.map(|it| &it.loop_id), row.map(|it| it.seq));
        let (at, body) = (row.map(|it| &it.at), row.map(|it| &it.body));
        let (checksum, head) = (
            row.map(|it| it.checksum),
            self.beginning.map(|(it, _)| to_integer(it.expected_head)),
        );
        let number = self
            .beginning
            .and_then(|(it, _)| it.loop_id.number())
            .map(to_integer);
        let dead_fence = dead.map(|it| to_integer(it.fence));
        let dead_heartbeat = dead.and_then(|it| it.heartbeat_at);
        let id = self.id.as_str();
        let rows = connection
            .query_after(
                (WAIT, &[&id]),
                (
                    CLAIM,
                    &[
                        &id,
                        &self.now,
                        &self.owner.id,
                        &host,
                        &dead_fence,
                        &dead_heartbeat,
                        &loop_id,
                        &seq,
                        &at,
                        &body,
                        &checksum,
                        &head,
                        &number,
                    ],
                ),
            )
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| StoreError::NotFound(self.id.clone()))?;
        let row = Columns(row);
        let seen = PgLaneRow::read(row)?;
        if !row.boolean(LANE_ROW_COLUMNS + 2)? {
            shared.hosts.forget(self.owner);
            return Ok(ClaimAttempt::NoHost);
        }
        if row.optional_integer(LANE_ROW_COLUMNS)?.is_none() {
            return Ok(ClaimAttempt::Refused(seen));
        }
        Ok(ClaimAttempt::Taken(ClaimOutcome {
            claimed_lane: ClaimedLane {
                lane: Lane {
                    session_id: self.id.clone(),
                    owner_id: self.owner.id.clone(),
                    fence: row.count(LANE_ROW_COLUMNS)?,
                },
                last_number: seen.last_number,
                info: seen.info,
            },
            is_journalled: row.boolean(LANE_ROW_COLUMNS + 1)?,
        }))
    }

    /// Turns the journal into loops, and claims the lane, which nobody may have meanwhile.
    async fn recover_and_take(
        &self,
        shared: &Shared,
        connection: &Connection,
    ) -> Result<ClaimOutcome, PgError> {
        let seen = lanes::lock(connection, self.id, self.now).await?;
        if let Some(busy) = seen.refusal(&self.owner.id) {
            connection.commit().await?;
            return Err(busy.into());
        }
        recover_journal(connection, &seen).await?;
        connection.execute(RELEASE, &[&self.id.as_str()]).await?;
        connection.commit().await?;
        match self.take(shared, connection, None).await? {
            ClaimAttempt::Taken(outcome) => Ok(outcome),
            ClaimAttempt::Refused(_) | ClaimAttempt::NoHost => Err(PgError::Raced),
        }
    }
}

/// Turns the journal of a dead holder into loops and leaves the lane free. Returns the damage in the journal.
pub(super) async fn recover(
    connection: &Connection,
    id: &SessionId,
    now: Option<Timestamp>,
) -> Result<Vec<Damage>, PgError> {
    if !journal::exists(connection, id).await? {
        return Ok(Vec::new());
    }
    let seen = lanes::lock(connection, id, now).await?;
    if seen.active_refusal().is_some() || !seen.has_journal {
        connection.commit().await?;
        return Ok(Vec::new());
    }
    let damage = recover_journal(connection, &seen).await?;
    connection.execute(FREE, &[&id.as_str()]).await?;
    connection.commit().await?;
    Ok(damage)
}

/// Turns the journal of a locked session into loops. Returns the damage in it.
async fn recover_journal(
    connection: &Connection,
    seen: &PgLaneRow,
) -> Result<Vec<Damage>, PgError> {
    let id = &seen.info.id;
    let taken = journal::take_all(connection, id).await?;
    let (records, lost_number) = recovery::recover_loops(&taken.loops);
    let mut version = seen.info.head_version;
    for record in records {
        if commit::is_stored(connection, id, &record.loop_id).await? {
            continue;
        }
        version += 1;
        let title = record.on_chain.then(|| record.title()).flatten();
        let loops = NewLoops {
            session: id,
            version,
            records: &[Arc::new(record)],
            tip: Some(0),
            title: title.as_deref(),
        };
        loops.store_recovered(connection).await?;
    }
    let last = lost_number.max(taken.last_lost_number);
    commit::note_lost_number(connection, id, last).await?;
    Ok(taken.damage)
}
