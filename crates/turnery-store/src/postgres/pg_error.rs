//! Defines the errors of database work, and the messages shown to users.

use super::address::PostgresAddress;
use crate::{StoreError, encoding::row_error::RowError};
use std::{error::Error as _, io, time::Duration};
use tokio_postgres::error::SqlState;

/// Error of work in the database. Its message lacks the address, which [`PgError::into_store_error`] adds.
#[derive(Debug, thiserror::Error)]
pub(super) enum PgError {
    /// Error that is passed to the caller unchanged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Malformed row.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Error of the server or the connection.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// No connection could be made.
    #[error("no connection: {0}")]
    Connect(tokio_postgres::Error),
    /// Format or setting of the database that this version cannot use.
    #[error("{0}")]
    Unusable(String),
    /// Another client changed the same rows at the same time; the same work may succeed now.
    #[error("other clients keep changing the same session")]
    Raced,
    /// The work did not finish within this time.
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl PgError {
    /// Returns true if the same work may succeed on a new connection.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::Connect(error) => is_transient(error),
            Self::Raced | Self::TimedOut(_) => true,
            Self::Store(_) | Self::Row(_) | Self::Unusable(_) => false,
        }
    }

    /// Returns true if tables or the schema do not exist.
    pub(super) fn is_missing_table(&self) -> bool {
        let codes = [
            &SqlState::UNDEFINED_TABLE,
            &SqlState::INVALID_SCHEMA_NAME,
            &SqlState::UNDEFINED_SCHEMA,
        ];
        matches!(self, Self::Database(error) if error.code().is_some_and(|code| codes.contains(&code)))
    }

    /// Returns true if a row with the same key exists.
    pub(super) fn is_duplicate(&self) -> bool {
        matches!(self, Self::Database(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Returns the reason in place of an error that reports a malformed row.
    pub(super) fn into_store_error(self, address: &PostgresAddress) -> StoreError {
        let text = match self {
            Self::Store(error) => return error,
            Self::Row(error) => format!("{address}: a value does not fit its column: {error}"),
            Self::Unusable(text) => format!("{address}: {text}"),
            Self::Raced => format!("{address}: {self}; try again"),
            Self::TimedOut(patience) => format!(
                "{address} did not respond within {} seconds; check the server and the network, then try again",
                patience.as_secs()
            ),
            Self::Connect(error) => format!(
                "{address} cannot be reached: {}; check that the server runs, and the address",
                describe(&error)
            ),
            Self::Database(error) => match error.code() {
                Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => format!(
                    "{address}: {}; grant this right to the user of the address, or use another one",
                    describe(&error)
                ),
                Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => format!(
                    "{address}: another client keeps this session locked; end it and try again"
                ),
                Some(code) if *code == SqlState::DISK_FULL => {
                    format!("the disk of {address} is full; free some space and try again")
                }
                Some(_) => format!("{address}: {}", describe(&error)),
                None => format!(
                    "the connection to {address} broke: {}; check the server and the network, then try again",
                    describe(&error)
                ),
            },
        };
        StoreError::Broken(text)
    }
}

/// Returns the message of the server, or of the innermost cause.
fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}

fn is_transient(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        let is_io = error.source().is_some_and(|it| it.is::<io::Error>());
        return error.is_closed() || is_io;
    };
    // Classes: connection exceptions, rolled back transactions, resources, server stopping or starting.
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "40" | "53") && *code != SqlState::DISK_FULL
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ]
        .contains(code)
}
