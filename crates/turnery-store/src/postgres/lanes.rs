//! Reads, renews and releases lanes (UP-27).

use super::{
    connection::Connection,
    hosts::HostHold,
    pg_error::PgError,
    rows::{Columns, to_integer},
    sessions::{self, COLUMN_COUNT, session_columns},
};
use crate::{Lane, SessionInfo, StoreError};
use turnery_engine::{SessionId, Timestamp};

/// Columns of a lane after those of its session `s`, whose host is `h`. `$2` is the time to use instead of the
/// server's clock.
macro_rules! lane_columns {
    () => {
        ", s.fence, s.owner_id, h.machine, h.process, h.heartbeat_at, \
         coalesce($2::timestamptz, clock_timestamp()), s.last_number, s.loop_count, \
         EXISTS (SELECT 1 FROM journal j WHERE j.session_id = s.session_id)"
    };
}
pub(super) use lane_columns;

/// Locks a session until the end of the transaction, against claims, journalling and commits.
const LOCK: &str = concat!(
    "SELECT ",
    session_columns!(),
    lane_columns!(),
    " FROM sessions s LEFT JOIN hosts h ON h.host = s.host WHERE s.session_id = $1 FOR NO KEY UPDATE OF s"
);

/// Writes the heartbeat of the lane's host, at most once in five seconds for all lanes of the host.
const RENEW: &str = "WITH lane AS ( \
         SELECT host FROM sessions WHERE session_id = $1 AND owner_id = $2 AND fence = $3), \
     beat AS ( \
         UPDATE hosts h SET heartbeat_at = coalesce($4::timestamptz, clock_timestamp()) FROM lane \
         WHERE h.host = lane.host \
         AND h.heartbeat_at < coalesce($4::timestamptz, clock_timestamp()) - interval '5 seconds') \
     SELECT 1 FROM lane";

const RELEASE: &str = "UPDATE sessions SET owner_id = NULL, host = NULL \
     WHERE session_id = $1 AND owner_id = $2 AND fence = $3";

/// A session with its lane.
pub(super) struct PgLaneRow {
    pub(super) info: SessionInfo,
    pub(super) fence: u64,
    pub(super) owner_id: Option<String>,
    /// Process of the owner; `None` if the lane is free, or if the process was silent for so long that it is forgotten.
    pub(super) hold: Option<HostHold>,
    pub(super) heartbeat_at: Option<Timestamp>,
    /// Time of the server.
    pub(super) now: Timestamp,
    /// Greatest number of a loop that was stored, or shown and lost.
    pub(super) last_number: u64,
    pub(super) loop_count: u64,
    pub(super) has_journal: bool,
}

/// Number of columns of a session with its lane.
pub(super) const LANE_ROW_COLUMNS: usize = COLUMN_COUNT + 9;

impl PgLaneRow {
    /// Reads the columns of a session and its lane.
    pub(super) fn read(row: Columns<'_>) -> Result<Self, PgError> {
        let owner_id = row.optional_text(COLUMN_COUNT + 1)?;
        let machine = row.optional_text(COLUMN_COUNT + 2)?;
        let process = row.optional_text(COLUMN_COUNT + 3)?;
        let heartbeat_at = row.optional_time(COLUMN_COUNT + 4)?;
        let hold = match (owner_id, machine, process, heartbeat_at) {
            (Some(_), Some(machine), Some(process), Some(at)) => {
                Some(HostHold::since(machine.to_owned(), process.to_owned(), at))
            }
            _ => None,
        };
        Ok(Self {
            info: sessions::session_from_row(row)?,
            fence: row.count(COLUMN_COUNT)?,
            owner_id: owner_id.map(str::to_owned),
            hold,
            heartbeat_at,
            now: row.time(COLUMN_COUNT + 5)?,
            last_number: row.count(COLUMN_COUNT + 6)?,
            loop_count: row.count(COLUMN_COUNT + 7)?,
            has_journal: row.boolean(COLUMN_COUNT + 8)?,
        })
    }

    /// Returns the error of a claim by another owner than the one of this id, if the lane is held.
    pub(super) fn refusal(&self, owner_id: &str) -> Option<StoreError> {
        let hold = self.hold.as_ref()?;
        let is_other = self.owner_id.as_deref() != Some(owner_id);
        (is_other && hold.is_held(self.now)).then(|| self.busy(hold))
    }

    /// Returns the error of work that must not disturb a process that may be active.
    pub(super) fn active_refusal(&self) -> Option<StoreError> {
        let hold = self.hold.as_ref()?;
        hold.may_be_active(self.now).then(|| self.busy(hold))
    }

    fn busy(&self, hold: &HostHold) -> StoreError {
        StoreError::Busy {
            session: self.info.id.clone(),
            holder: hold.describe(),
        }
    }
}

/// Begins a transaction, and locks a session in it.
pub(super) async fn lock(
    connection: &Connection,
    id: &SessionId,
    now: Option<Timestamp>,
) -> Result<PgLaneRow, PgError> {
    let rows = connection
        .begin("BEGIN", LOCK, &[&id.as_str(), &now])
        .await?;
    match rows.first() {
        Some(row) => PgLaneRow::read(Columns(row)),
        None => {
            connection.commit().await?;
            Err(StoreError::NotFound(id.clone()).into())
        }
    }
}

pub(super) async fn renew(
    connection: &Connection,
    lane: &Lane,
    now: Option<Timestamp>,
) -> Result<(), PgError> {
    let held = connection
        .query_optional(
            RENEW,
            &[
                &lane.session_id.as_str(),
                &lane.owner_id,
                &to_integer(lane.fence),
                &now,
            ],
        )
        .await?;
    match held {
        Some(_) => Ok(()),
        None => Err(StoreError::LaneLost(lane.session_id.clone()).into()),
    }
}

/// Releases the lane. The fence stays, so that the next holder gets a higher one.
pub(super) async fn release(connection: &Connection, lane: &Lane) -> Result<(), PgError> {
    let fence = to_integer(lane.fence);
    let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
        &[&lane.session_id.as_str(), &lane.owner_id, &fence];
    connection.execute(RELEASE, parameters).await?;
    Ok(())
}
