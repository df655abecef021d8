//! Runs write transactions.

use super::job_error::JobError;
use rusqlite::Connection;

/// Runs a write transaction: other writers wait, and an error rolls everything back.
pub(super) fn write<T>(
    sql: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, JobError>,
) -> Result<T, JobError> {
    let undo = RollbackOnDrop(sql);
    sql.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = work(undo.0)?;
    sql.prepare_cached("COMMIT")?.execute([])?;
    Ok(done)
}

/// Like rusqlite's transaction, but without re-parsing its statements each time.
struct RollbackOnDrop<'a>(&'a Connection);

impl Drop for RollbackOnDrop<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "failed to roll back");
        }
    }
}
