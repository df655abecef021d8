//! Describes the store.

use super::{connection::Connection, migration, pg_error::PgError, rows::Columns};
use crate::StoreDescription;

const COUNT: &str = "SELECT count(*) FROM sessions";

const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'";

pub(super) async fn describe(
    connection: &Connection,
    location: String,
) -> Result<StoreDescription, PgError> {
    Ok(StoreDescription {
        kind: "PostgreSQL",
        location,
        bytes: Some(size_on_disk(connection).await?),
        // The server reuses the space by itself.
        free_bytes: 0,
        sessions: number(connection, COUNT).await?,
        format: u64::try_from(migration::VERSION).ok(),
    })
}

/// Returns the size of all tables with their indexes. Unit: bytes.
pub(super) async fn size_on_disk(connection: &Connection) -> Result<u64, PgError> {
    number(connection, SIZE).await
}

async fn number(connection: &Connection, sql: &'static str) -> Result<u64, PgError> {
    let row = connection.query_optional(sql, &[]).await?;
    row.map_or(Ok(0), |row| Columns(&row).count(0))
}
