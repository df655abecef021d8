//! Reads and writes the long texts of sessions.

use super::{columns::text, job_error::JobError};
use crate::encoding::long_texts::{self, TextSink, check_text};
use rusqlite::{Connection, params};
use std::borrow::Cow;
use turnery_engine::SessionId;

/// Long texts of a session.
pub(super) struct SessionTexts<'a> {
    pub(super) db: &'a Connection,
    pub(super) session: &'a SessionId,
}

impl TextSink for SessionTexts<'_> {
    type Error = JobError;

    fn contains(&mut self, name: &str) -> Result<bool, JobError> {
        let mut select = self.db.prepare_cached(
            "SELECT 1 FROM texts WHERE session_id = ?1 AND name = ?2 AND piece = 0",
        )?;
        Ok(select.exists((self.session.as_str(), name))?)
    }

    fn insert_piece(&mut self, name: &str, piece: u32, body: &str) -> Result<(), JobError> {
        let mut insert = self.db.prepare_cached(
            "INSERT INTO texts (session_id, name, piece, body) VALUES (?1, ?2, ?3, ?4)",
        )?;
        insert.execute(params![self.session.as_str(), name, piece, body])?;
        Ok(())
    }
}

/// Returns the JSON of a row with references replaced by their texts.
pub(super) fn expand_references<'t>(
    db: &Connection,
    session: &SessionId,
    json: &'t str,
) -> Result<Cow<'t, str>, JobError> {
    long_texts::expand_references(json, |name, out| append_text(db, session, name, out))
}

fn append_text(
    db: &Connection,
    session: &SessionId,
    name: &str,
    out: &mut String,
) -> Result<(), JobError> {
    let start = out.len();
    let mut select = db.prepare_cached(
        "SELECT body FROM texts WHERE session_id = ?1 AND name = ?2 ORDER BY piece",
    )?;
    let mut rows = select.query((session.as_str(), name))?;
    while let Some(row) = rows.next()? {
        out.push_str(text(row, 0)?);
    }
    Ok(check_text(name, &out[start..])?)
}

/// Moves damaged texts to `repairs`, so that later rows do not refer to them. Returns their number.
pub(super) fn move_damaged(
    db: &Connection,
    session: &SessionId,
    at: &str,
) -> Result<usize, JobError> {
    let mut names = db.prepare_cached("SELECT DISTINCT name FROM texts WHERE session_id = ?1")?;
    let mut rows = names.query((session.as_str(),))?;
    let mut damaged = Vec::new();
    while let Some(row) = rows.next()? {
        let name = text(row, 0)?;
        if append_text(db, session, name, &mut String::new()).is_err() {
            damaged.push(name.to_owned());
        }
    }
    for name in &damaged {
        db.execute(
            "INSERT INTO repairs (session_id, at, place, field, before) \
             SELECT session_id, ?3, 'texts', name || ' ' || piece, body FROM texts \
             WHERE session_id = ?1 AND name = ?2",
            params![session.as_str(), name, at],
        )?;
        db.execute(
            "DELETE FROM texts WHERE session_id = ?1 AND name = ?2",
            params![session.as_str(), name],
        )?;
    }
    Ok(damaged.len())
}
