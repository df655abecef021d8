//! Checks sessions for damage, without changing anything.

use super::{
    job_error::{JobError, none_if_damaged, reason_if_damaged},
    journal, lanes, notes, pending_effects,
    sessions::UnreadableColumn,
    survey::{LoopKeys, Survey},
};
use crate::{Damage, DamagedPart, StoreError, encoding::version_counts::VersionCounts};
use rusqlite::Connection;
use turnery_engine::SessionId;

/// SQLite's check of pages and indexes; reports at most 20 problems.
const INTEGRITY_CHECK: &str = "PRAGMA integrity_check(20)";

/// Tables that other tables refer to and that do not exist: SQLite itself notices only when a row is written.
const MISSING_PARENTS: &str = r#"
    SELECT reference."table" FROM sqlite_schema AS child, pragma_foreign_key_list(child.name) AS reference
    WHERE child.type = 'table'
    AND lower(reference."table") NOT IN (SELECT lower(name) FROM sqlite_schema WHERE type = 'table')
"#;

pub(super) fn check(db: &mut Connection, id: Option<&SessionId>) -> Result<Vec<Damage>, JobError> {
    // One snapshot: a concurrent commit would look like damage.
    let db = db.transaction()?;
    if let Some(id) = id {
        return check_session(&db, id);
    }
    let mut damage = check_database(&db)?;
    // `None` if the pass does not reach the end of the table: each session is then searched separately.
    let keys = none_if_damaged(LoopKeys::read(&db))?;
    for id in &session_ids(&db)? {
        let keys = keys.as_ref().map(|keys| keys.of_session(id));
        damage.append(&mut check_session_loops(&db, id, keys)?);
    }
    Ok(damage)
}

/// Returns all session ids, including those that are not text, as far as they are readable.
fn session_ids(db: &Connection) -> Result<Vec<SessionId>, JobError> {
    let mut select =
        db.prepare("SELECT CAST(session_id AS TEXT) FROM sessions ORDER BY session_id")?;
    let mut rows = select.query([])?;
    let mut ids = Vec::new();
    // If the rest of the table is unreadable, the damage of the database reports that.
    while let Some(Some(row)) = none_if_damaged(rows.next().map_err(JobError::from))? {
        ids.extend(row.get::<_, String>(0).map(SessionId::from));
    }
    Ok(ids)
}

/// Returns the damage of the file as a whole: pages, indexes, and rows of sessions that do not exist.
pub(super) fn check_database(db: &Connection) -> Result<Vec<Damage>, JobError> {
    let mut damage = Vec::new();
    match reason_if_damaged(query_texts(db, INTEGRITY_CHECK))? {
        Ok(complaints) => {
            let complaints = complaints.into_iter().filter(|text| text != "ok");
            damage
                .extend(complaints.map(|text| Damage::in_database(format!("is damaged: {text}"))));
        }
        Err(reason) => damage.push(Damage::in_database(format!("is damaged: {reason}"))),
    }
    // Damage met from here on is already reported above.
    for table in none_if_damaged(query_texts(db, MISSING_PARENTS))?.unwrap_or_default() {
        let reason = format!("refers to the table {table}, which does not exist");
        damage.push(Damage::in_database(reason));
    }
    for table in ["loops", "texts", "remarks", "journal", "outbox", "repairs"] {
        let sql = format!(
            "SELECT coalesce(CAST(session_id AS TEXT), '') || ' (' || count(*) || ')' FROM {table} \
             WHERE session_id NOT IN (SELECT session_id FROM sessions) GROUP BY session_id"
        );
        for orphan in none_if_damaged(query_texts(db, &sql))?.unwrap_or_default() {
            let reason = format!("has rows in {table} of a session that is gone: {orphan}");
            damage.push(Damage::in_database(reason));
        }
    }
    Ok(damage)
}

fn query_texts(db: &Connection, sql: &str) -> Result<Vec<String>, JobError> {
    let mut select = db.prepare(sql)?;
    let texts = select.query_map([], |row| {
        let bytes = row.get_ref(0)?.as_bytes().unwrap_or_default().to_vec();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })?;
    Ok(texts.collect::<Result<_, _>>()?)
}

/// Returns the damage of one session.
pub(super) fn check_session(db: &Connection, id: &SessionId) -> Result<Vec<Damage>, JobError> {
    check_session_loops(db, id, None)
}

/// Returns the damage of a session whose loops have these keys; `None` looks them up.
fn check_session_loops(
    db: &Connection,
    id: &SessionId,
    keys: Option<&[i64]>,
) -> Result<Vec<Damage>, JobError> {
    let of_session = |reason: String| Damage::new(id, DamagedPart::Session, reason);
    let mut damage = Vec::new();
    let found = (|| {
        for UnreadableColumn { column, reason } in lanes::unreadable_columns(db, id)? {
            damage.push(of_session(format!(
                "has {column} that cannot be read: {reason}"
            )));
        }
        let survey = match keys {
            Some(keys) => Survey::of_loops(db, id, keys)?,
            None => Survey::of_session(db, id)?,
        };
        let counts = read_counts(db, id, &survey)?;
        damage.extend(counts.problems().map(of_session));
        damage.extend(survey.damage);
        damage.append(&mut notes::check(db, id)?);
        damage.append(&mut journal::check(db, id)?);
        damage.append(&mut pending_effects::check(db, id)?);
        Ok(())
    })();
    match found {
        Err(error @ JobError::Store(StoreError::NotFound(_))) => Err(error),
        Err(error) if error.is_damage() => {
            let reason = format!("cannot be read to its end: {error}");
            damage.push(of_session(reason));
            Ok(damage)
        }
        found => found.map(|()| damage),
    }
}

/// Compares the row of a session with its loops.
pub(super) fn read_counts(
    db: &Connection,
    id: &SessionId,
    survey: &Survey,
) -> Result<VersionCounts, JobError> {
    let (head_version, loop_count): (u64, u64) = db.query_row(
        "SELECT head_version, loop_count FROM sessions WHERE session_id = ?1",
        (id.as_str(),),
        |row| {
            Ok((
                row.get(0).unwrap_or_default(),
                row.get(1).unwrap_or_default(),
            ))
        },
    )?;
    let mut select = db
        .prepare_cached("SELECT before FROM repairs WHERE session_id = ?1 AND place = 'version'")?;
    let noted = select.query_map((id.as_str(),), |row| row.get::<_, u64>(0))?;
    let noted = noted.filter_map(Result::ok);
    Ok(VersionCounts::new(head_version, loop_count, noted, survey))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::claim::tests::{claim_and_commit, count_steps, open_with_sessions};

    /// Counts the SQLite instructions of a check of all sessions with one loop each.
    fn count_check_steps(session_count: usize) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let (mut db, ids) = open_with_sessions(&folder.path().join("sessions.db"), session_count);
        for id in &ids {
            claim_and_commit(&mut db, id, 1);
        }
        let (found, steps) = count_steps(&mut db, |db| check(&mut db.sql, None).unwrap());
        assert_eq!(found, []);
        steps
    }

    #[test]
    fn check_steps_grow_with_sessions_only() {
        let (few, many, more) = (
            count_check_steps(20),
            count_check_steps(100),
            count_check_steps(180),
        );
        let (first, second) = (many - few, more - many);
        assert!(second < first + first / 10, "{first} steps, then {second}");
    }
}
