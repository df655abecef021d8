//! Deletes sessions with their descendants.

use super::{
    connection::Connection,
    lanes::{PgLaneRow, lane_columns},
    pg_error::PgError,
    rows::Columns,
    sessions::session_columns,
};
use turnery_engine::{SessionId, Timestamp};

/// Locks a session and its descendants.
const LOCK_FAMILY: &str = concat!(
    "WITH RECURSIVE family (id) AS (VALUES ($1::text COLLATE \"C\") UNION \
         SELECT c.session_id FROM sessions c JOIN family f ON c.parent_session_id = f.id) \
     SELECT ",
    session_columns!(),
    lane_columns!(),
    " FROM sessions s LEFT JOIN hosts h ON h.host = s.host WHERE s.session_id IN (SELECT id FROM family) \
     ORDER BY s.session_id FOR UPDATE OF s"
);

/// Deletes sessions, and the rows with filters of their chunks. The other chunks of such a row get new filters.
const DELETE: &str = "WITH filters AS (DELETE FROM search_filters f WHERE f.sessions && $1) \
     DELETE FROM sessions WHERE session_id = ANY ($1)";

/// Deletes a session with its descendants. Unless `is_forced`, fails while one of them may be in use. Returns the
/// holders of the revoked lanes; `None` if there was no such session. `found` keeps them for another attempt, in case
/// the answer to this one is lost.
pub(super) async fn delete(
    connection: &Connection,
    id: &SessionId,
    is_forced: bool,
    now: Option<Timestamp>,
    found: &mut Option<Vec<String>>,
) -> Result<Option<Vec<String>>, PgError> {
    let rows = connection
        .begin("BEGIN", LOCK_FAMILY, &[&id.as_str(), &now])
        .await?;
    let family = rows.iter().map(|row| PgLaneRow::read(Columns(row)));
    let family: Vec<PgLaneRow> = family.collect::<Result<_, PgError>>()?;
    let mut holders = Vec::new();
    for member in &family {
        let Some(busy) = member.active_refusal() else {
            continue;
        };
        if !is_forced {
            connection.commit().await?;
            return Err(busy.into());
        }
        holders.extend(member.hold.as_ref().map(|hold| hold.describe()));
    }
    let ids: Vec<&str> = family.iter().map(|it| it.info.id.as_str()).collect();
    if !ids.is_empty() {
        connection.execute(DELETE, &[&ids]).await?;
    }
    if ids.contains(&id.as_str()) {
        *found = Some(holders);
    }
    connection.commit().await?;
    Ok(found.take())
}
