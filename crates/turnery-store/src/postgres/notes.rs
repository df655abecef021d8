//! Stores the notes of the transcript.

use super::{connection::Connection, pg_error::PgError, rows::Columns};
use crate::{
    Damage, DamagedPart, StoreError, TranscriptNote,
    encoding::{
        checksum::{Checksum, ChecksumVerdict},
        row_error::RowError,
    },
};
use turnery_engine::SessionId;

/// Adds notes; those whose keys are stored were added by an attempt whose answer was lost.
const INSERT: &str = "WITH s AS (SELECT session_id FROM sessions WHERE session_id = $1 FOR KEY SHARE), \
     added AS ( \
         INSERT INTO notes (session_id, key, body, checksum) SELECT s.session_id, t.key, t.body, t.checksum \
         FROM s, unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS t (key, body, checksum, place) \
         ORDER BY t.place ON CONFLICT DO NOTHING) \
     SELECT 1 FROM s";

const SELECT: &str = "SELECT n.note, n.body, n.checksum FROM sessions s \
     LEFT JOIN notes n ON n.session_id = s.session_id AND n.set_aside IS NULL WHERE s.session_id = $1 ORDER BY n.note";

const SET_ASIDE: &str = "UPDATE notes SET set_aside = $3 WHERE session_id = $1 AND note = $2";

const SET_CHECKSUM: &str = "UPDATE notes SET checksum = $3 WHERE session_id = $1 AND note = $2";

/// Note that is to be stored.
pub(super) struct NewNote {
    key: String,
    body: String,
    checksum: i64,
}

impl NewNote {
    pub(super) fn encode(session: &SessionId, note: &TranscriptNote) -> Result<Self, RowError> {
        let body = serde_json::to_string(note)?;
        Ok(Self {
            key: crate::new_uuid().to_string(),
            checksum: checksum(session, &body).finish(),
            body,
        })
    }
}

fn checksum(session: &SessionId, body: &str) -> Checksum {
    Checksum::default().text(session.as_str()).text(body)
}

pub(super) async fn add(
    connection: &Connection,
    session: &SessionId,
    notes: &[NewNote],
) -> Result<(), PgError> {
    let keys: Vec<&str> = notes.iter().map(|note| note.key.as_str()).collect();
    let bodies: Vec<&str> = notes.iter().map(|note| note.body.as_str()).collect();
    let checksums: Vec<i64> = notes.iter().map(|note| note.checksum).collect();
    let found = connection
        .query_optional(INSERT, &[&session.as_str(), &keys, &bodies, &checksums])
        .await?;
    match found {
        Some(_) => Ok(()),
        None => Err(StoreError::NotFound(session.clone()).into()),
    }
}

/// Returns the readable notes.
pub(super) async fn read_all(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<TranscriptNote>, PgError> {
    let mut notes = Vec::new();
    for stored in read_rows(connection, session).await? {
        if let Some(reason) = stored.complaint {
            tracing::warn!(%session, reason, "a note of the transcript is damaged");
        }
        notes.extend(stored.note);
    }
    Ok(notes)
}

/// Returns the damage in the notes of a session.
pub(super) async fn check(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<Damage>, PgError> {
    let rows = read_rows(connection, session).await?.into_iter();
    let damage = rows.filter_map(|stored| {
        let part = DamagedPart::Note { note: stored.key };
        Some(Damage::new(session, part, stored.complaint?))
    });
    Ok(damage.collect())
}

/// Sets unreadable notes aside, and updates the checksums of the others. Returns the changes.
pub(super) async fn repair(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<String>, PgError> {
    let mut changes = Vec::new();
    for stored in read_rows(connection, session).await? {
        let (id, key) = (session.as_str(), stored.key);
        let Some(reason) = stored.complaint else {
            continue;
        };
        if stored.note.is_some() {
            let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
                &[&id, &key, &stored.checksum];
            connection.execute(SET_CHECKSUM, parameters).await?;
            changes.push(format!("note {key} is kept as it reads; it {reason}"));
        } else {
            let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] = &[&id, &key, &reason];
            connection.execute(SET_ASIDE, parameters).await?;
            changes.push(format!("note {key} is set aside; it {reason}"));
        }
    }
    Ok(changes)
}

/// Note as stored.
struct StoredNote {
    key: i64,
    /// `None` if it is unreadable.
    note: Option<TranscriptNote>,
    /// Checksum of the content.
    checksum: i64,
    complaint: Option<String>,
}

async fn read_rows(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<StoredNote>, PgError> {
    let rows = connection.query(SELECT, &[&session.as_str()]).await?;
    if rows.is_empty() {
        return Err(StoreError::NotFound(session.clone()).into());
    }
    let mut notes = Vec::new();
    for row in rows.iter().map(Columns) {
        // A session without notes has one row.
        let Some(key) = row.optional_integer(0)? else {
            continue;
        };
        let body = row.text(1)?;
        let sum = checksum(session, body);
        let verdict = sum.clone().verify_integer(Some(row.integer(2)?));
        let (note, complaint) = match serde_json::from_str(body).map_err(RowError::from) {
            Err(error) => (None, Some(format!("cannot be read: {error}"))),
            Ok(note) => {
                let differs = "differs from what was written: its checksum does not match";
                let is_damaged = verdict != ChecksumVerdict::Matches;
                (Some(note), is_damaged.then(|| differs.to_owned()))
            }
        };
        notes.push(StoredNote {
            key,
            note,
            checksum: sum.finish(),
            complaint,
        });
    }
    Ok(notes)
}
