//! Describes the store.

use super::{connection::Connection, migration, pg_error::PgError, rows::Columns};
use crate::StoreDescription;

const DESCRIBE: &str = "SELECT (SELECT count(*) FROM sessions), \
     (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
      WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r')";

pub(super) async fn describe(
    connection: &Connection,
    location: String,
) -> Result<StoreDescription, PgError> {
    let row = connection.query_optional(DESCRIBE, &[]).await?;
    let count = |column| row.as_ref().map_or(Ok(0), |row| Columns(row).count(column));
    Ok(StoreDescription {
        kind: "PostgreSQL",
        location,
        bytes: Some(count(1)?),
        // The server reuses the space by itself.
        free_bytes: 0,
        sessions: count(0)?,
        format: u64::try_from(migration::VERSION).ok(),
    })
}
