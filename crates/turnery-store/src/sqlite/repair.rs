//! Repair: mends what is damaged in a session. Nothing is deleted: the whole database is copied first, a
//! loop that cannot be read stays in its row, marked, and what is overwritten is kept in `repairs`.

use super::{
    check::{self, Counts},
    checksum::{Checksum, Verdict},
    db::write,
    fault::Fault,
    journal, lanes,
    loops::{CHECKSUM, LOG, LOOP},
    remarks, sessions,
    survey::{Culprit, Survey, Surveyed},
    texts,
};
use crate::{Repair, StoreError, clock::Moment, cursor::time_text};
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

pub(super) fn repair(db: &mut Connection, id: &SessionId, now: Moment) -> Result<Repair, Fault> {
    sessions::get(db, id)?;
    let is_index_damaged = !check::database(db)?.is_empty();
    if check::session(db, id)?.is_empty() && !is_index_damaged {
        return Ok(Repair::default());
    }
    let holders = lanes::holders(db, std::slice::from_ref(id), now)?;
    if let Some((session, holder)) = holders.into_iter().next() {
        return Err(StoreError::Busy { session, holder }.into());
    }
    let backup = back_up(db, now.wall)?;
    let changes = write(db, |db| {
        // It may have been claimed meanwhile.
        if let Some((session, holder)) = lanes::holders(db, std::slice::from_ref(id), now)?
            .into_iter()
            .next()
        {
            return Err(StoreError::Busy { session, holder }.into());
        }
        let mut work = Work {
            db,
            id,
            at: time_text(now.wall),
            changes: Vec::new(),
        };
        if is_index_damaged {
            work.indexes()?;
        }
        work.columns()?;
        work.loops()?;
        work.changes.extend(remarks::repair(db, id)?);
        match journal::repair(db, id)? {
            0 => {}
            count => work.changes.push(format!(
                "rows of the journal that cannot be read and are set aside: {count}"
            )),
        }
        match texts::repair(db, id, &work.at)? {
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
    let mut left = check::database(db)?;
    left.append(&mut check::session(db, id)?);
    Ok(Repair {
        backup: Some(backup),
        changes,
        left,
    })
}

/// What the name of a copy has behind that of the database; the time of the repair follows.
const COPY: &str = ".backup-";

/// The copies beside the database, oldest first.
pub(super) fn copies(db: &Connection) -> io::Result<Vec<PathBuf>> {
    let path = Path::new(db.path().unwrap_or_default());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let start = format!("{}{COPY}", name.to_string_lossy());
    let mut copies = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        // Each ends with its time, and not like a log that SQLite keeps for it.
        let name = file.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&start) && name.ends_with('Z') {
            copies.push(file.path());
        }
    }
    copies.sort();
    Ok(copies)
}

/// Copies the database page by page, damage and all, to a new file beside it.
fn back_up(db: &Connection, now: Timestamp) -> Result<PathBuf, Fault> {
    let path = db.path().unwrap_or_default();
    let name = format!("{path}{COPY}{}", now.format("%Y%m%dT%H%M%S%.3fZ"));
    let path = PathBuf::from(name);
    create(&path)?;
    let copied = copy_to(db, &path);
    if copied.is_err()
        && let Err(error) = fs::remove_file(&path)
    {
        let path = path.display().to_string();
        tracing::warn!(path, %error, "failed to remove a copy that is not whole");
    }
    copied.map(|()| path)
}

/// Copies in one step: between several, each write of another process would begin the copy again.
fn copy_to(db: &Connection, path: &Path) -> Result<(), Fault> {
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
        other => Err(Fault::Row(format!("the copy ended with {other:?}"))),
    }
}

/// The owner's alone, as the database is.
fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A value as it is; text that is not UTF-8 as its bytes.
fn raw(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
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

/// Version of a damaged row whose own is out of order among those of its neighbours.
fn right_version(rows: &[Surveyed], place: usize) -> Option<u64> {
    let row = &rows[place];
    if row.verdict != Verdict::Differs || row.record.is_none() {
        return None;
    }
    let trusted = |row: &Surveyed| row.version.filter(|_| row.verdict != Verdict::Differs);
    let before = rows[..place].iter().rev().find_map(trusted).unwrap_or(0);
    let after = rows[place + 1..].iter().find_map(trusted);
    let after = after.unwrap_or(u64::MAX);
    let is_in_order = row
        .version
        .is_some_and(|version| (before..=after).contains(&version));
    (!is_in_order).then_some((before + 1).min(after))
}

struct Work<'a> {
    db: &'a Connection,
    id: &'a SessionId,
    at: String,
    changes: Vec<String>,
}

impl Work<'_> {
    /// Keeps what a column holds before it is overwritten.
    fn keep(&self, place: &str, field: &str, before: &Value) -> Result<(), Fault> {
        let mut insert = self.db.prepare_cached(
            "INSERT INTO repairs (session_id, at, place, field, before) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        insert.execute(params![self.id.as_str(), self.at, place, field, before])?;
        Ok(())
    }

    /// Damage of an index is mended by making it again from its table.
    fn indexes(&mut self) -> Result<(), Fault> {
        match self.db.execute_batch("REINDEX").map_err(Fault::from) {
            Ok(()) => self.changes.push("the indexes are made again".to_owned()),
            Err(fault) if fault.is_damage() => {
                let reason = fault.in_words();
                self.changes
                    .push(format!("the indexes cannot be made again: {reason}"));
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Writes what the columns of the session's row are read as.
    fn columns(&mut self) -> Result<(), Fault> {
        let info = sessions::get(self.db, self.id)?;
        for complaint in check::columns(self.db, self.id)? {
            let column = complaint.column;
            let value = match column {
                "roots" | "always" => Value::Text("[]".to_owned()),
                "created_at" => Value::Text(time_text(info.created_at)),
                "updated_at" => Value::Text(time_text(info.updated_at)),
                "cwd" | "folder" | "model" | "mode" => Value::Text(String::new()),
                "head_version" | "archived" | "loop_count" | "fence" | "lost_number" => {
                    Value::Integer(0)
                }
                "title" | "tip_loop_id" | "spawned_by" | "thinking" => Value::Null,
                "owner_id" | "process" | "expires_at" => Value::Null,
                _ => continue,
            };
            let before = self.db.query_row(
                &format!("SELECT {column} FROM sessions WHERE session_id = ?1"),
                (self.id.as_str(),),
                |row| raw(row, 0),
            )?;
            self.keep("session", column, &before)?;
            self.db.execute(
                &format!("UPDATE sessions SET {column} = ?2 WHERE session_id = ?1"),
                (self.id.as_str(), value),
            )?;
            if matches!(column, "owner_id" | "process" | "expires_at") {
                lanes::free(self.db, self.id)?;
            }
            self.changes.push(format!(
                "{column} of the session is emptied: it could not be read"
            ));
        }
        Ok(())
    }

    fn loops(&mut self) -> Result<(), Fault> {
        let survey = Survey::of(self.db, self.id)?;
        let counts = Counts::of(self.db, self.id, &survey)?;
        // What comes before a loop that only a later version can read is for that version to say.
        let has_newer = survey.rows.iter().any(|row| row.is_newer);
        let is_left = |row: &Surveyed| has_newer && row.is_retied && row.record.is_some();
        for (place, row) in survey.rows.iter().enumerate() {
            if row.is_set_aside || is_left(row) {
                continue;
            }
            if let Some(version) = right_version(&survey.rows, place) {
                self.set(row, "version", Some(&version.to_string()))?;
            }
            match &row.record {
                None if row.is_newer => {}
                None => self.set_aside(row, &survey)?,
                Some(record) => {
                    if row.is_retied {
                        self.set(
                            row,
                            "parent_loop_id",
                            record.parent_loop_id.as_ref().map(LoopId::as_str),
                        )?;
                        let kind = serde_json::to_value(record.continuation_kind)?;
                        self.set(row, "continuation_kind", kind.as_str())?;
                        self.changes.push(match &record.parent_loop_id {
                            Some(parent) => {
                                format!("loop {} follows loop {parent} now", row.loop_id)
                            }
                            None => format!("loop {} begins the conversation now", row.loop_id),
                        });
                    }
                    if row.is_log_broken {
                        self.set(row, "log", Some("[]"))?;
                        self.changes.push(format!(
                            "loop {} is kept without its events, which cannot be read",
                            row.loop_id
                        ));
                    }
                    self.settle(row, record.on_chain)?;
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
            self.tip(&survey)?;
        }
        self.counts(&counts)
    }

    /// Writes which loop the next prompt follows.
    fn tip(&mut self, survey: &Survey) -> Result<(), Fault> {
        let tip = survey
            .readable_tip()
            .map(|tip| survey.rows[tip].loop_id.clone());
        let info = sessions::get(self.db, self.id)?;
        if info.tip_loop_id != tip {
            let before = info
                .tip_loop_id
                .map_or(Value::Null, |tip| Value::Text(tip.to_string()));
            self.keep("session", "tip_loop_id", &before)?;
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

    fn set_aside(&mut self, row: &Surveyed, survey: &Survey) -> Result<(), Fault> {
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

    fn set(&self, row: &Surveyed, column: &str, value: Option<&str>) -> Result<(), Fault> {
        let before = self.db.query_row(
            &format!("SELECT {column} FROM loops WHERE loop = ?1"),
            (row.key,),
            |row| raw(row, 0),
        )?;
        if before == value.map_or(Value::Null, |value| Value::Text(value.to_owned())) {
            return Ok(());
        }
        self.keep(row.loop_id.as_str(), column, &before)?;
        self.db.execute(
            &format!("UPDATE loops SET {column} = ?2 WHERE loop = ?1"),
            (row.key, value),
        )?;
        Ok(())
    }

    /// Gives a loop that can be read the checksum of what it is now.
    fn settle(&mut self, row: &Surveyed, on_chain: bool) -> Result<(), Fault> {
        if row.verdict != Verdict::Differs && !row.is_retied {
            return Ok(());
        }
        let mut update = self
            .db
            .prepare_cached("UPDATE loops SET on_chain = ?2 WHERE loop = ?1")?;
        update.execute((row.key, on_chain))?;
        drop(update);
        if row.culprit == Some(Culprit::OnChain) {
            self.changes.push(format!(
                "loop {} is marked rightly as part of the conversation or not",
                row.loop_id
            ));
        }
        let (now, before) = {
            let mut select = self.db.prepare_cached(LOOP)?;
            select.query_row((row.key,), |found| {
                let sum = Checksum::default().text(self.id.as_str());
                let sum = sum.columns(found, 0..=LOG).map(Checksum::finish);
                Ok((sum, raw(found, CHECKSUM)?))
            })?
        };
        let now = Value::Integer(now?);
        // A loop without a checksum stays without one, unless what it follows has been put right: that
        // would be doubted again.
        if before == now || (before == Value::Null && !row.is_retied) {
            return Ok(());
        }
        if row.verdict == Verdict::Differs && row.culprit.is_none() && !row.is_log_broken {
            self.changes.push(format!(
                "loop {} is kept as it reads; its checksum did not match",
                row.loop_id
            ));
        }
        self.keep(row.loop_id.as_str(), "checksum", &before)?;
        self.db.execute(
            "UPDATE loops SET checksum = ?2 WHERE loop = ?1",
            (row.key, now),
        )?;
        Ok(())
    }

    /// Makes a version that has no loop, so that whoever has the session open reads it again at the next
    /// claim.
    fn raise_head(&self) -> Result<(), Fault> {
        let head = self.db.query_row(
            "UPDATE sessions SET head_version = min(head_version, 9223372036854775806) + 1 \
             WHERE session_id = ?1 RETURNING head_version",
            (self.id.as_str(),),
            |row| row.get(0),
        )?;
        self.keep_version(head)
    }

    /// Notes that no loop is stored for a version.
    fn keep_version(&self, version: i64) -> Result<(), Fault> {
        self.keep("version", "version", &Value::Integer(version))
    }

    fn counts(&mut self, counts: &Counts) -> Result<(), Fault> {
        if counts.is_head_wrong() || counts.is_count_wrong() {
            self.db.execute(
                "UPDATE sessions SET head_version = max(head_version, ?2), \
                 loop_count = max(loop_count, ?3) WHERE session_id = ?1",
                params![self.id.as_str(), counts.newest, counts.stored],
            )?;
            self.changes
                .push("the session's version and count of loops are put right".to_owned());
        }
        for version in &counts.lost {
            let version = i64::try_from(*version).unwrap_or(i64::MAX);
            self.keep_version(version)?;
        }
        if !counts.lost.is_empty() {
            self.changes.push(format!(
                "{} lost versions are noted: no loop is stored for them",
                counts.lost.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::db::Db;

    #[test]
    fn backup_that_fails_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("sessions.db")).unwrap().sql;
        // What is being written cannot be copied.
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
