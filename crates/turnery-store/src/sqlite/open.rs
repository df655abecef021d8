//! Open: the file, its rights, its shape and its version.

use super::{
    fault::{Fault, PATIENCE},
    identity::OpenFiles,
};
use crate::StoreError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};
use std::{fs, io, path::Path, time::Instant};

/// Tells our files from other SQLite databases: `turn` in ASCII.
const APPLICATION_ID: i64 = 0x7475_726e;

/// The tables, and their version. Version 1 was never released.
const SCHEMA: &str = include_str!("schema.sql");
const VERSION: i64 = 6;

/// Steps from each earlier version to the next.
const STEPS: [(i64, &str); 4] = [
    (2, include_str!("from_2.sql")),
    (3, include_str!("from_3.sql")),
    (4, include_str!("from_4.sql")),
    (5, include_str!("from_5.sql")),
];

/// So large that most loops fit in one: a commit then writes few of them. Unit: bytes.
const PAGE: u32 = 8192;

/// Pages in the log before a commit copies them back itself, which takes it ten times as long; an idle
/// writer does it sooner.
const LOG_PAGES: u32 = 500;

/// Open the database, and make it if need be.
pub(super) fn open(path: &Path) -> Result<(Connection, OpenFiles), StoreError> {
    make_file(path).map_err(|error| cannot_make(path, &error))?;
    let files = OpenFiles::before_open(path).map_err(|error| cannot_make(path, &error));
    let (mut files, db) = (files?, connect(path));
    let db = db.and_then(|db| files.check().map(|()| db));
    Ok((db.map_err(|fault| fault.at(path))?, files))
}

fn cannot_make(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Broken(format!(
        "sessions cannot be stored in {}: {error}; choose a file in a folder of yours",
        path.display()
    ))
}

/// A new file is its owner's alone from the start. An existing one is not even opened here: closing
/// it again would drop the locks that SQLite holds on it in this process.
fn make_file(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok() {
        return Ok(());
    }
    let mut folder = fs::DirBuilder::new();
    let mut file = fs::OpenOptions::new();
    file.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        folder.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        folder.recursive(true).create(parent)?;
    }
    match file.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Err(_) | Ok(_) => Ok(()),
    }
}

fn connect(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    db.set_prepared_statement_cache_capacity(64);
    // Else a statement may be made anew whenever its parameters change.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if version(&db)? != VERSION {
        db.pragma_update(None, "page_size", PAGE)?;
        // Holds for a new database only.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        make(&mut db)?;
    }
    let mode = switch_to_log(&db)?;
    if mode != "wal" {
        return Err(Fault::Row(format!(
            "write-ahead logging does not work here (it is in mode {mode}); choose a file on a local disk"
        )));
    }
    db.pragma_update(None, "foreign_keys", true)?;
    db.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    // Text that was deleted is overwritten, not only forgotten.
    db.pragma_update(None, "secure_delete", true)?;
    // The log is flushed by whoever promises that; SQLite flushes what it copies back from it.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(db)
}

/// The switch does not wait for another process that is making it too; a lock does.
fn switch_to_log(db: &Connection) -> Result<String, Fault> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mode = db.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
        match mode.map_err(Fault::from) {
            Err(fault) if fault.is_busy() && Instant::now() < deadline => {
                let waited = db.execute_batch("BEGIN IMMEDIATE; COMMIT");
                if let Err(error) = waited {
                    tracing::debug!(%error, "failed to wait for another process");
                }
            }
            mode => return mode,
        }
    }
}

fn version(db: &Connection) -> Result<i64, Fault> {
    Ok(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

fn make(db: &mut Connection) -> Result<(), Fault> {
    // Whoever comes second waits here, and finds the work done.
    let work = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&work)?;
    let owner: i64 = work.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = work.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if owner != APPLICATION_ID && (tables > 0 || owner != 0) {
        return Err(Fault::Row(
            "this is a database of another program; choose another file".to_owned(),
        ));
    }
    match found {
        // Somebody else was quicker.
        VERSION => return Ok(()),
        0 => work.execute_batch(SCHEMA)?,
        2..VERSION => {
            for (_, step) in STEPS.iter().filter(|(from, _)| *from >= found) {
                work.execute_batch(step)?;
            }
        }
        older if (1..VERSION).contains(&older) => {
            return Err(Fault::Row(format!(
                "this was written by a turnery from before its first release (version {older} of \
                 the database, this one knows {VERSION}); move it elsewhere, or choose another file"
            )));
        }
        newer => {
            return Err(Fault::Row(format!(
                "this was written by a newer turnery (version {newer} of the database, this one \
                 knows {VERSION}); update turnery, or choose another file"
            )));
        }
    }
    work.pragma_update(None, "application_id", APPLICATION_ID)?;
    work.pragma_update(None, "user_version", VERSION)?;
    work.commit()?;
    Ok(())
}
