//! Looks for damage, without changing anything.

use super::{
    connection::Connection,
    effects, journal,
    lanes::{PgLaneRow, lane_columns},
    loop_rows::{LoopRows, Selection},
    notes,
    pg_error::PgError,
    rows::Columns,
    sessions::{self, session_columns},
};
use crate::{
    Damage, DamagedPart, StoreError,
    encoding::{survey::Survey, version_counts::VersionCounts},
};
use turnery_engine::{SessionId, Timestamp};

/// One snapshot: a concurrent commit would look like damage.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

const SELECT_SESSION: &str = concat!(
    "SELECT ",
    session_columns!(),
    lane_columns!(),
    " FROM sessions s LEFT JOIN hosts h ON h.host = s.host WHERE s.session_id = $1"
);

const SELECT_NOTED_VERSIONS: &str =
    "SELECT before::bigint FROM repairs WHERE session_id = $1 AND place = 'version'";

const SELECT_IDS: &str =
    "SELECT session_id FROM sessions WHERE session_id > $1 ORDER BY session_id LIMIT 1000";

/// Returns the ids of the sessions after this one, up to a thousand.
pub(super) async fn next_ids(
    connection: &Connection,
    after: &str,
) -> Result<Vec<SessionId>, PgError> {
    let rows = connection.query(SELECT_IDS, &[&after]).await?;
    let ids = rows.iter().map(|row| Ok(Columns(row).text(0)?.into()));
    ids.collect()
}

/// Returns the damage of one session.
pub(super) async fn check_session(
    connection: &Connection,
    id: &SessionId,
) -> Result<Vec<Damage>, PgError> {
    let rows = connection
        .begin(BEGIN, SELECT_SESSION, &[&id.as_str(), &None::<Timestamp>])
        .await?;
    let damage = match rows.first() {
        Some(row) => find_damage(connection, id, Columns(row)).await,
        None => Err(StoreError::NotFound(id.clone()).into()),
    };
    connection.commit().await?;
    damage
}

/// Returns the damage of a session with this row, within a transaction.
pub(super) async fn find_damage(
    connection: &Connection,
    id: &SessionId,
    row: Columns<'_>,
) -> Result<Vec<Damage>, PgError> {
    let of_session = |reason: String| Damage::new(id, DamagedPart::Session, reason);
    let mut damage = Vec::new();
    for (column, reason) in sessions::read_columns(row)?.1 {
        let reason = format!("has {column} that cannot be read: {reason}");
        damage.push(of_session(reason));
    }
    let survey = read_survey(connection, id).await?;
    let counts = read_counts(connection, &PgLaneRow::read(row)?, &survey).await?;
    damage.extend(counts.problems().map(of_session));
    damage.extend(survey.damage);
    damage.append(&mut notes::check(connection, id).await?);
    damage.append(&mut journal::read(connection, id).await?.damage);
    damage.append(&mut effects::check(connection, id).await?);
    Ok(damage)
}

/// Judges all loops of a session.
pub(super) async fn read_survey(
    connection: &Connection,
    id: &SessionId,
) -> Result<Survey, PgError> {
    LoopRows::read(connection, id, Selection::All)
        .await?
        .into_survey()
}

/// Compares the row of a session with its loops.
pub(super) async fn read_counts(
    connection: &Connection,
    lane: &PgLaneRow,
    survey: &Survey,
) -> Result<VersionCounts, PgError> {
    let info = &lane.info;
    let noted = connection
        .query(SELECT_NOTED_VERSIONS, &[&info.id.as_str()])
        .await?;
    let noted = noted.iter().filter_map(|row| Columns(row).count(0).ok());
    Ok(VersionCounts::new(
        info.head_version,
        lane.loop_count,
        noted,
        survey,
    ))
}
