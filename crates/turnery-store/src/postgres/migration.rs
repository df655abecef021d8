//! Creates the tables, and brings those of an older version up to date.

use super::{
    address::PostgresAddress,
    connection::{Connection, quote_name},
    pg_error::PgError,
};

/// Tables of the current version.
const SCHEMA: &str = include_str!("schema.sql");

/// Version of the tables.
pub(super) const VERSION: i64 = 3;

/// Statements that turn the tables of each earlier version into those of the next.
const MIGRATIONS: [(i64, &str); 2] = [
    (1, include_str!("from_1.sql")),
    (2, include_str!("from_2.sql")),
];

/// First number of the advisory lock under which the tables of a schema are created and changed: `turn` in ASCII.
const LOCK: i32 = 0x7475_726e;

const READ_VERSION: &str = "SELECT version FROM format";

/// Creates or migrates the tables of the schema if necessary. Fails if a newer version has written them.
pub(super) async fn prepare_schema(
    connection: &Connection,
    address: &PostgresAddress,
) -> Result<(), PgError> {
    match read_version(connection).await? {
        Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => Err(newer_version(newer)),
        Some(_) | None => create_or_migrate(connection, address).await,
    }
}

fn newer_version(found: i64) -> PgError {
    PgError::Unusable(format!(
        "this was written by a newer turnery (version {found} of the tables, this one knows {VERSION}); update \
         turnery, or choose another schema"
    ))
}

/// Returns the version of the tables; `None` without tables.
async fn read_version(connection: &Connection) -> Result<Option<i64>, PgError> {
    match connection.run_script(READ_VERSION).await {
        Ok(version) => Ok(Some(
            version.and_then(|it| it.parse().ok()).unwrap_or_default(),
        )),
        Err(error) if error.is_missing_table() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn create_or_migrate(
    connection: &Connection,
    address: &PostgresAddress,
) -> Result<(), PgError> {
    let done = migrate_locked(connection, address).await;
    if done.is_err() {
        connection.run_script("ROLLBACK").await?;
    }
    done
}

async fn migrate_locked(connection: &Connection, address: &PostgresAddress) -> Result<(), PgError> {
    let encoding = connection.run_script("SHOW server_encoding").await?;
    if encoding.as_deref() != Some("UTF8") {
        return Err(PgError::Unusable(format!(
            "the database has the encoding {}; create one with the encoding UTF8",
            encoding.unwrap_or_default()
        )));
    }
    // A second process waits here and finds the migration done.
    let schema = quote_name(&address.schema);
    let literal = schema.replace('\'', "''");
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK}, hashtext('{literal}'))");
    connection.run_script(&lock).await?;
    let found = format!("SELECT to_regclass('{literal}.format') IS NOT NULL");
    let has_tables = connection.run_script(&found).await?.as_deref() == Some("t");
    if !has_tables {
        let exists = format!("SELECT to_regnamespace('{literal}') IS NOT NULL");
        // Creating a schema needs a right, even if the schema exists.
        if connection.run_script(&exists).await?.as_deref() != Some("t") {
            connection
                .run_script(&format!("CREATE SCHEMA {schema}"))
                .await?;
        }
        connection.run_script(SCHEMA).await?;
    }
    let version: i64 = match has_tables {
        true => {
            let version = connection.run_script(READ_VERSION).await?;
            version.and_then(|it| it.parse().ok()).unwrap_or_default()
        }
        false => VERSION,
    };
    if version > VERSION {
        return Err(newer_version(version));
    }
    for (_, step) in MIGRATIONS.iter().filter(|(from, _)| *from >= version) {
        connection.run_script(step).await?;
    }
    let finish = format!("DELETE FROM format; INSERT INTO format VALUES ({VERSION}); COMMIT");
    connection.run_script(&finish).await?;
    Ok(())
}
