//! Opens the database file: permissions, settings, schema and migrations.

use super::{
    disk,
    flush::WriteAheadLog,
    job_error::{JOB_TIMEOUT, JobError},
    open_files::OpenFiles,
    transaction::write,
};
use crate::{Durability, StoreError};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig, hooks::Wal};
use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// SQLite application id of turnery's databases: `turn` in ASCII.
const APPLICATION_ID: i64 = 0x7475_726e;

/// Schema of the current version. Version 1 was never released.
const SCHEMA: &str = include_str!("schema.sql");
pub(super) const SCHEMA_VERSION: i64 = 7;

/// Migrations from each earlier version to the next.
const MIGRATIONS: [(i64, &str); 5] = [
    (2, include_str!("from_2.sql")),
    (3, include_str!("from_3.sql")),
    (4, include_str!("from_4.sql")),
    (5, include_str!("from_5.sql")),
    (6, include_str!("from_6.sql")),
];

/// Page size, large enough for most loops, so that a commit writes few pages. Unit: bytes.
const PAGE_BYTES: u32 = 8192;

/// Opens the database, and creates it if it does not exist. With `begins_log`, an empty log is begun.
pub(super) fn open(
    path: &Path,
    wal: &Arc<WriteAheadLog>,
    begins_log: bool,
) -> Result<(Connection, OpenFiles), StoreError> {
    create_file(path).map_err(|error| create_error(path, &error))?;
    let files = OpenFiles::before_open(path).map_err(|error| create_error(path, &error));
    let (mut files, db) = (files?, connect(path, wal, begins_log));
    let db = db.and_then(|db| files.check().map(|()| db));
    Ok((db.map_err(|error| error.into_store_error(path))?, files))
}

fn create_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Broken(format!(
        "sessions cannot be stored in {}: {error}; choose a file in a folder of yours",
        path.display()
    ))
}

/// Creates a new file with access for its owner only. Does not open an existing file: closing it would drop
/// the locks that SQLite holds on it in this process.
pub(super) fn create_file(path: &Path) -> io::Result<()> {
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
        let missing = parent.ancestors().take_while(|it| !it.exists()).count();
        folder.recursive(true).create(parent)?;
        // SQLite flushes the folder of the database, but not the folders above, in which that has its name.
        for above in parent.ancestors().skip(1).take(missing) {
            if let Err(error) = disk::sync_folder(above) {
                // Not every file system can.
                tracing::debug!(%error, "failed to flush a folder");
            }
        }
    }
    match file.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Err(_) | Ok(_) => Ok(()),
    }
}

fn connect(
    path: &Path,
    wal: &Arc<WriteAheadLog>,
    begins_log: bool,
) -> Result<Connection, JobError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(JOB_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(64);
    // Without this, a statement may be re-prepared whenever its parameters change.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if schema_version(&db)? != SCHEMA_VERSION {
        db.pragma_update(None, "page_size", PAGE_BYTES)?;
        // Affects only new databases.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        create_or_migrate(&mut db)?;
    }
    let mode = switch_to_wal(&db)?;
    if mode != "wal" {
        return Err(JobError::InvalidRow(format!(
            "write-ahead logging does not work here (it is in mode {mode}); choose a file on a local disk"
        )));
    }
    db.pragma_update(None, "foreign_keys", true)?;
    // Replaces SQLite's own checkpoints, whose errors nobody sees.
    let log = Arc::clone(wal);
    db.wal_hook(Some(move |_: &mut Wal, pages: std::ffi::c_int| {
        log.note_pages(u32::try_from(pages).unwrap_or_default());
        Ok(())
    }))?;
    // Overwrites deleted text instead of only unlinking it.
    db.pragma_update(None, "secure_delete", true)?;
    if begins_log && wal.durability() == Durability::Process && wal.is_empty() {
        db.pragma_update(None, "synchronous", "OFF")?;
        if let Err(error) = begin_empty_log(&db, wal) {
            tracing::debug!(%error, "failed to begin the log");
        }
        db.busy_timeout(JOB_TIMEOUT)?;
    }
    db.pragma_update(None, "synchronous", wal.synchronous_mode())?;
    Ok(db)
}

/// Writes the first page of an empty log, so that the next job that writes need not. Fails at once if another process is
/// writing.
///
/// SQLite flushes the header of a log before the first commit, and the folder. Only in a log that is used again could a
/// power cut leave a new header before old commits; in an empty one, both are flushed with the first commit that must be. With
/// [`Durability::Power`], a commit whose flush fails would have to write the header again.
pub(super) fn begin_empty_log(db: &Connection, wal: &WriteAheadLog) -> Result<(), JobError> {
    db.busy_timeout(Duration::ZERO)?;
    write(db, |db| {
        // Nobody else writes now.
        match wal.is_empty() {
            true => write_version_again(db),
            false => Ok(()),
        }
    })
}

/// Writes the first page of the log, within a transaction. Changes nothing, also if a newer version has migrated the tables.
pub(super) fn write_version_again(db: &Connection) -> Result<(), JobError> {
    let version = schema_version(db)?;
    Ok(db.pragma_update(None, "user_version", version)?)
}

/// Switches to write-ahead logging and returns the journal mode that is then in use. Retries while another
/// process is switching, since SQLite does not wait for that.
fn switch_to_wal(db: &Connection) -> Result<String, JobError> {
    let deadline = Instant::now() + JOB_TIMEOUT;
    loop {
        match set_wal_mode(db) {
            Err(error) if error.is_busy() && Instant::now() < deadline => {
                let waited = db.execute_batch("BEGIN IMMEDIATE; COMMIT");
                if let Err(error) = waited {
                    tracing::debug!(%error, "failed to wait for another process");
                }
            }
            mode => return mode,
        }
    }
}

/// Runs the statement to its end: the row with the mode comes before the commit, which may fail.
fn set_wal_mode(db: &Connection) -> Result<String, JobError> {
    let mut set = db.prepare("PRAGMA journal_mode = wal")?;
    let modes = set.query_map([], |row| row.get(0))?;
    let modes = modes.collect::<Result<Vec<String>, _>>()?;
    Ok(modes.concat())
}

fn schema_version(db: &Connection) -> Result<i64, JobError> {
    Ok(db.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

fn create_or_migrate(db: &mut Connection) -> Result<(), JobError> {
    // A second process waits here and finds the migration done.
    let work = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = schema_version(&work)?;
    let owner: i64 = work.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = work.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if owner != APPLICATION_ID && (tables > 0 || owner != 0) {
        return Err(JobError::InvalidRow(
            "this is a database of another program; choose another file".to_owned(),
        ));
    }
    match found {
        // Another process was faster.
        SCHEMA_VERSION => return Ok(()),
        0 => work.execute_batch(SCHEMA)?,
        2..SCHEMA_VERSION => {
            for (_, step) in MIGRATIONS.iter().filter(|(from, _)| *from >= found) {
                work.execute_batch(step)?;
            }
        }
        older if (1..SCHEMA_VERSION).contains(&older) => {
            return Err(JobError::InvalidRow(format!(
                "this was written by a turnery from before its first release (version {older} of \
                 the database, this one knows {SCHEMA_VERSION}); move it elsewhere, or choose another file"
            )));
        }
        newer => {
            return Err(JobError::InvalidRow(format!(
                "this was written by a newer turnery (version {newer} of the database, this one \
                 knows {SCHEMA_VERSION}); update turnery, or choose another file"
            )));
        }
    }
    work.pragma_update(None, "application_id", APPLICATION_ID)?;
    work.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    work.commit()?;
    Ok(())
}
