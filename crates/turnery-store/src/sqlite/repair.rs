//! Repairs damaged sessions. Nothing is deleted: the whole database is copied first, unreadable loops stay in
//! their rows, marked as set aside, and overwritten values are kept in `repairs`.

use super::{
    check,
    checksum::{Checksum, ChecksumVerdict},
    job_error::JobError,
    journal, lane_columns, lanes, long_texts, notes, pending_effects, sessions,
    stored_loop::{CHECKSUM_COLUMN, LOG_COLUMN, SELECT_LOOP},
    survey::{DamagedColumn, Survey, SurveyedLoop},
    transaction::write,
};
use crate::{
    RepairReport, clock::ClockReading, encoding::version_counts::VersionCounts,
    list_cursor::format_time,
};
use rusqlite::{
    Connection, Row,
    backup::{Backup, StepResult},
    params,
    types::{Value, ValueRef},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use turnery_engine::{LoopId, SessionId, Timestamp};

pub(super) fn repair(
    db: &mut Connection,
    id: &SessionId,
    now: ClockReading,
) -> Result<RepairReport, JobError> {
    sessions::get(db, id)?;
    let is_database_damaged = !check::check_database(db)?.is_empty();
    if check::check_session(db, id)?.is_empty() && !is_database_damaged {
        return Ok(RepairReport::default());
    }
    lanes::require_free(db, std::slice::from_ref(id), now)?;
    let backup = back_up(db, now.wall)?;
    let changes = write(db, |db| {
        // The session may have been claimed meanwhile.
        lanes::require_free(db, std::slice::from_ref(id), now)?;
        let mut work = SessionRepair {
            db,
            id,
            at: format_time(now.wall),
            changes: Vec::new(),
        };
        if is_database_damaged {
            work.rebuild_indexes()?;
        }
        work.repair_columns()?;
        work.repair_loops()?;
        work.changes.extend(notes::repair(db, id)?);
        work.changes.extend(pending_effects::repair(db, id)?);
        match journal::repair(db, id)? {
            0 => {}
            count => work.changes.push(format!(
                "rows of the journal that cannot be read and are set aside: {count}"
            )),
        }
        match long_texts::move_damaged(db, id, &work.at)? {
            0 => {}
            count => work.changes.push(format!(
                "{count} long texts that differ from what was written are set aside"
            )),
        }
        if !work.changes.is_empty() {
            work.raise_head()?;
        }
        Ok(work.changes)
    })?;
    let mut left = check::check_database(db)?;
    left.append(&mut check::check_session(db, id)?);
    Ok(RepairReport {
        backup: Some(backup),
        changes,
        left,
    })
}

/// Infix of the name of a copy, between the name of the database and the time of the repair.
const BACKUP_INFIX: &str = ".backup-";

/// Returns the copies beside the database, oldest first.
pub(super) fn list_backups(db: &Connection) -> io::Result<Vec<PathBuf>> {
    let path = Path::new(db.path().unwrap_or_default());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let start = format!("{}{BACKUP_INFIX}", name.to_string_lossy());
    let mut copies = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        // A copy ends with its time, unlike the log that SQLite keeps for it.
        let name = file.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&start) && name.ends_with('Z') {
            copies.push(file.path());
        }
    }
    copies.sort();
    Ok(copies)
}

/// Copies the database page by page, including damage, to a new file beside it.
fn back_up(db: &Connection, now: Timestamp) -> Result<PathBuf, JobError> {
    let path = db.path().unwrap_or_default();
    let name = format!("{path}{BACKUP_INFIX}{}", now.format("%Y%m%dT%H%M%S%.3fZ"));
    let path = PathBuf::from(name);
    create_private_file(&path)?;
    let copied = copy_to(db, &path);
    if copied.is_err()
        && let Err(error) = fs::remove_file(&path)
    {
        let path = path.display().to_string();
        tracing::warn!(path, %error, "failed to remove a copy that is not whole");
    }
    copied.map(|()| path)
}

/// Copies in one step: with several steps, each write of another process would restart the copy.
fn copy_to(db: &Connection, path: &Path) -> Result<(), JobError> {
    const ALL_PAGES: i32 = -1;
    let mut copy = Connection::open(path)?;
    let end = Backup::new(db, &mut copy)?.step(ALL_PAGES)?;
    copy.close().map_err(|(_, error)| error)?;
    match end {
        StepResult::Done => Ok(fs::File::open(path)?.sync_all()?),
        StepResult::More | StepResult::Busy | StepResult::Locked => {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            Err(rusqlite::Error::SqliteFailure(busy, None).into())
        }
        other => Err(JobError::InvalidRow(format!(
            "the copy ended with {other:?}"
        ))),
    }
}

/// Creates a file with access for its owner only, like the database.
fn create_private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Reads a value unchanged; text that is not UTF-8 as a blob.
fn raw_value(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(bytes.to_vec()),
        },
    })
}

/// Returns the corrected version of a damaged row whose version is out of order among its neighbours.
fn corrected_version(rows: &[SurveyedLoop], place: usize) -> Option<u64> {
    let row = &rows[place];
    if row.verdict != ChecksumVerdict::Differs || row.record.is_none() {
        return None;
    }
    let trusted = |row: &SurveyedLoop| {
        row.version
            .filter(|_| row.verdict != ChecksumVerdict::Differs)
    };
    let before = rows[..place].iter().rev().find_map(trusted).unwrap_or(0);
    let after = rows[place + 1..].iter().find_map(trusted);
    let after = after.unwrap_or(u64::MAX);
    let is_in_order = row
        .version
        .is_some_and(|version| (before..=after).contains(&version));
    (!is_in_order).then_some((before + 1).min(after))
}

struct SessionRepair<'a> {
    db: &'a Connection,
    id: &'a SessionId,
    at: String,
    changes: Vec<String>,
}

impl SessionRepair<'_> {
    /// Stores the value of a column in `repairs` before it is overwritten.
    fn keep_previous(&self, place: &str, field: &str, before: &Value) -> Result<(), JobError> {
        let mut insert = self.db.prepare_cached(
            "INSERT INTO repairs (session_id, at, place, field, before) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        insert.execute(params![self.id.as_str(), self.at, place, field, before])?;
        Ok(())
    }

    /// Rebuilds the indexes from their tables.
    fn rebuild_indexes(&mut self) -> Result<(), JobError> {
        match self.db.execute_batch("REINDEX").map_err(JobError::from) {
            Ok(()) => self.changes.push("the indexes are made again".to_owned()),
            Err(error) if error.is_damage() => {
                let reason = error.to_string();
                self.changes
                    .push(format!("the indexes cannot be made again: {reason}"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Overwrites unreadable columns of the session's row with the values that readers substitute.
    fn repair_columns(&mut self) -> Result<(), JobError> {
        let info = sessions::get(self.db, self.id)?;
        for complaint in lanes::unreadable_columns(self.db, self.id)? {
            let column = complaint.column;
            let value = match column {
                "roots" | "always" => Value::Text("[]".to_owned()),
                "created_at" => Value::Text(format_time(info.created_at)),
                "updated_at" => Value::Text(format_time(info.updated_at)),
                "cwd" | "folder" | "model" | "mode" => Value::Text(String::new()),
                "head_version" | "archived" | "loop_count" | "fence" | "lost_number" => {
                    Value::Integer(0)
                }
                "title" | "tip_loop_id" | "spawned_by" | "thinking" | "protocol" => Value::Null,
                "owner_id" | "process" | "expires_at" => Value::Null,
                _ => continue,
            };
            let before = self.db.query_row(
                &format!("SELECT {column} FROM sessions WHERE session_id = ?1"),
                (self.id.as_str(),),
                |row| raw_value(row, 0),
            )?;
            self.keep_previous("session", column, &before)?;
            self.db.execute(
                &format!("UPDATE sessions SET {column} = ?2 WHERE session_id = ?1"),
                (self.id.as_str(), value),
            )?;
            if matches!(column, "owner_id" | "process" | "expires_at") {
                lane_columns::free(self.db, self.id)?;
            }
            self.changes.push(format!(
                "{column} of the session is emptied: it could not be read"
            ));
        }
        Ok(())
    }

    fn repair_loops(&mut self) -> Result<(), JobError> {
        let survey = Survey::of_session(self.db, self.id)?;
        let counts = check::read_counts(self.db, self.id, &survey)?;
        // References before a loop that only a newer version can read are left for that version to repair.
        let has_newer = survey.rows.iter().any(|row| row.is_from_newer_version);
        let is_left = |row: &SurveyedLoop| has_newer && row.is_relinked && row.record.is_some();
        for (place, row) in survey.rows.iter().enumerate() {
            if row.is_set_aside || is_left(row) {
                continue;
            }
            if let Some(version) = corrected_version(&survey.rows, place) {
                self.set_column(row, "version", Some(&version.to_string()))?;
            }
            match &row.record {
                None if row.is_from_newer_version => {}
                None => self.set_aside(row, &survey)?,
                Some(record) => {
                    if row.is_relinked {
                        self.set_column(
                            row,
                            "parent_loop_id",
                            record.parent_loop_id.as_ref().map(LoopId::as_str),
                        )?;
                        let kind = serde_json::to_value(record.continuation_kind)?;
                        self.set_column(row, "continuation_kind", kind.as_str())?;
                        self.changes.push(match &record.parent_loop_id {
                            Some(parent) => {
                                format!("loop {} follows loop {parent} now", row.loop_id)
                            }
                            None => format!("loop {} begins the conversation now", row.loop_id),
                        });
                    }
                    if row.is_log_broken {
                        self.set_column(row, "log", Some("[]"))?;
                        self.changes.push(format!(
                            "loop {} is kept without its events, which cannot be read",
                            row.loop_id
                        ));
                    }
                    self.update_checksum(row, record.on_chain)?;
                }
            }
        }
        if has_newer {
            let is_any_left = survey.rows.iter().any(is_left);
            if is_any_left || survey.readable_tip() != survey.tip {
                self.changes.push(
                    "the order of the loops is left as it is: a newer turnery has written some of \
                     them; repair the session with that version"
                        .to_owned(),
                );
            }
        } else {
            self.repair_tip(&survey)?;
        }
        self.repair_counts(&counts)
    }

    /// Corrects the reference to the loop that the next prompt follows.
    fn repair_tip(&mut self, survey: &Survey) -> Result<(), JobError> {
        let tip = survey
            .readable_tip()
            .map(|tip| survey.rows[tip].loop_id.clone());
        let info = sessions::get(self.db, self.id)?;
        if info.tip_loop_id != tip {
            let before = info
                .tip_loop_id
                .map_or(Value::Null, |tip| Value::Text(tip.to_string()));
            self.keep_previous("session", "tip_loop_id", &before)?;
            self.db.execute(
                "UPDATE sessions SET tip_loop_id = ?2 WHERE session_id = ?1",
                (self.id.as_str(), tip.as_ref().map(LoopId::as_str)),
            )?;
            self.changes.push(match tip {
                Some(tip) => format!("the next prompt follows loop {tip} now"),
                None => "the next prompt begins the conversation anew".to_owned(),
            });
        }
        Ok(())
    }

    fn set_aside(&mut self, row: &SurveyedLoop, survey: &Survey) -> Result<(), JobError> {
        let of = |damage: &&crate::Damage| matches!(&damage.part, crate::DamagedPart::Loop { loop_id } if *loop_id == row.loop_id);
        let damage = survey.damage.iter().find(of);
        let reason = damage.map_or("cannot be read", |damage| &damage.reason);
        self.db.execute(
            "UPDATE loops SET set_aside = ?2 WHERE loop = ?1",
            (row.key, reason),
        )?;
        self.changes
            .push(format!("loop {} is set aside; it {reason}", row.loop_id));
        Ok(())
    }

    fn set_column(
        &self,
        row: &SurveyedLoop,
        column: &str,
        value: Option<&str>,
    ) -> Result<(), JobError> {
        let before = self.db.query_row(
            &format!("SELECT {column} FROM loops WHERE loop = ?1"),
            (row.key,),
            |row| raw_value(row, 0),
        )?;
        if before == value.map_or(Value::Null, |value| Value::Text(value.to_owned())) {
            return Ok(());
        }
        self.keep_previous(row.loop_id.as_str(), column, &before)?;
        self.db.execute(
            &format!("UPDATE loops SET {column} = ?2 WHERE loop = ?1"),
            (row.key, value),
        )?;
        Ok(())
    }

    /// Writes the corrected `on_chain` of a readable loop, and the checksum of its current content. Does
    /// nothing if the row is intact.
    fn update_checksum(&mut self, row: &SurveyedLoop, on_chain: bool) -> Result<(), JobError> {
        if row.verdict != ChecksumVerdict::Differs && !row.is_relinked {
            return Ok(());
        }
        let mut update = self
            .db
            .prepare_cached("UPDATE loops SET on_chain = ?2 WHERE loop = ?1")?;
        update.execute((row.key, on_chain))?;
        drop(update);
        if row.damaged_column == Some(DamagedColumn::OnChain) {
            self.changes.push(format!(
                "loop {} is marked rightly as part of the conversation or not",
                row.loop_id
            ));
        }
        let (now, before) = {
            let mut select = self.db.prepare_cached(SELECT_LOOP)?;
            select.query_row((row.key,), |found| {
                let sum = Checksum::default().text(self.id.as_str());
                let sum = sum.columns(found, 0..=LOG_COLUMN).map(Checksum::finish);
                Ok((sum, raw_value(found, CHECKSUM_COLUMN)?))
            })?
        };
        let now = Value::Integer(now?);
        // A loop without a checksum stays without one, unless its parent was corrected: the correction would
        // be reported as damage again.
        if before == now || (before == Value::Null && !row.is_relinked) {
            return Ok(());
        }
        if row.verdict == ChecksumVerdict::Differs
            && row.damaged_column.is_none()
            && !row.is_log_broken
        {
            self.changes.push(format!(
                "loop {} is kept as it reads; its checksum did not match",
                row.loop_id
            ));
        }
        self.keep_previous(row.loop_id.as_str(), "checksum", &before)?;
        self.db.execute(
            "UPDATE loops SET checksum = ?2 WHERE loop = ?1",
            (row.key, now),
        )?;
        Ok(())
    }

    /// Adds a version without a loop, so that clients with the session open reload it at the next claim.
    fn raise_head(&self) -> Result<(), JobError> {
        let head = self.db.query_row(
            "UPDATE sessions SET head_version = min(head_version, 9223372036854775806) + 1 \
             WHERE session_id = ?1 RETURNING head_version",
            (self.id.as_str(),),
            |row| row.get(0),
        )?;
        self.note_lost_version(head)
    }

    /// Records that no loop is stored for a version.
    fn note_lost_version(&self, version: i64) -> Result<(), JobError> {
        self.keep_previous("version", "version", &Value::Integer(version))
    }

    fn repair_counts(&mut self, counts: &VersionCounts) -> Result<(), JobError> {
        if counts.is_head_wrong() || counts.is_count_wrong() {
            self.db.execute(
                "UPDATE sessions SET head_version = max(head_version, ?2), \
                 loop_count = max(loop_count, ?3) WHERE session_id = ?1",
                params![self.id.as_str(), counts.newest_version, counts.stored_loops],
            )?;
            self.changes
                .push("the session's version and count of loops are put right".to_owned());
        }
        for version in &counts.lost_versions {
            let version = i64::try_from(*version).unwrap_or(i64::MAX);
            self.note_lost_version(version)?;
        }
        if !counts.lost_versions.is_empty() {
            self.changes.push(format!(
                "{} lost versions are noted: no loop is stored for them",
                counts.lost_versions.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, sqlite::db::Db};

    #[test]
    fn failed_backup_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(
            &folder.path().join("sessions.db"),
            Durability::Process,
            false,
        )
        .unwrap()
        .sql;
        // A database with an open write transaction cannot be copied.
        db.execute_batch("BEGIN IMMEDIATE; DELETE FROM sessions")
            .unwrap();
        let failed = back_up(&db, Timestamp::UNIX_EPOCH).unwrap_err();
        assert!(failed.is_busy(), "{failed:?}");
        db.execute_batch("COMMIT").unwrap();
        let copies = || {
            let names = fs::read_dir(folder.path()).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.contains("backup")).count()
        };
        assert_eq!(copies(), 0);
        back_up(&db, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(copies(), 1);
    }
}
