//! Makes the space of deleted sessions reusable at once, instead of when the server's autovacuum does it.

use super::{
    connection::{Connection, SET_TIMEOUT, quote_name},
    description::size_on_disk,
    pg_error::PgError,
    rows::Columns,
};
use crate::SpaceReport;

const TABLES: &str = "SELECT relname::text FROM pg_class \
     WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname";

/// Vacuums all tables, without keeping others from using them. The server gives back what is free at their ends.
pub(super) async fn vacuum(connection: &Connection) -> Result<SpaceReport, PgError> {
    let bytes_before = size_on_disk(connection).await?;
    let tables = connection.query(TABLES, &[]).await?;
    connection.run_script("SET statement_timeout = 0").await?;
    let mut done = Ok(None);
    for table in &tables {
        let name = quote_name(Columns(table).text(0)?);
        done = connection
            .run_script(&format!("VACUUM (ANALYZE) {name}"))
            .await;
        if done.is_err() {
            break;
        }
    }
    connection.run_script(SET_TIMEOUT).await?;
    done?;
    Ok(SpaceReport {
        bytes_before,
        bytes_after: size_on_disk(connection).await?,
        is_incomplete: false,
    })
}
