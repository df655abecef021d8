//! Runs statements on one connection.

use super::{address::PostgresAddress, pg_error::PgError, tls::Tls};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    time::Instant,
};
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement, types::ToSql};

/// Parameters of a statement.
pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Longest time of a statement.
pub(super) const SET_TIMEOUT: &str = "SET statement_timeout = '60s'";

/// Further settings of every connection. A client that is suspended within a transaction loses its locks. LZ4, which
/// servers before 14 do not have, takes a fraction of the time of the default compression, at about the same size.
const SETTINGS: &str = "SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = '30s'; SET client_min_messages = warning; \
     SELECT set_config(name, 'lz4', false) FROM pg_settings \
     WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals);";

/// A connection with its prepared statements.
pub(super) struct Connection {
    client: Client,
    statements: RefCell<HashMap<&'static str, Statement>>,
    is_in_transaction: Cell<bool>,
    /// Time of the last use.
    pub(super) used_at: Cell<Instant>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects, and selects the schema of the address.
    pub(super) async fn open(address: &PostgresAddress, tls: &Tls) -> Result<Self, PgError> {
        let connected = address.config.connect(tls.clone()).await;
        let (client, connection) = connected.map_err(PgError::Connect)?;
        let task = tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        });
        let opened = Self {
            client,
            statements: RefCell::default(),
            is_in_transaction: Cell::new(false),
            used_at: Cell::new(Instant::now()),
            task: task.abort_handle(),
        };
        let path = quote_name(&address.schema);
        let settings = format!("{SET_TIMEOUT}; {SETTINGS} SET search_path = {path}");
        opened.client.batch_execute(&settings).await?;
        Ok(opened)
    }

    /// Returns false if the connection is closed, or in a transaction that did not end.
    pub(super) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.is_in_transaction.get()
    }

    async fn prepare(&self, sql: &'static str) -> Result<Statement, PgError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    /// Runs a statement, which is prepared on first use.
    pub(super) async fn query(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query(&statement, parameters).await?)
    }

    /// Like [`query`](Self::query), for a statement that returns at most one row.
    pub(super) async fn query_optional(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, PgError> {
        Ok(self.query(sql, parameters).await?.into_iter().next())
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(super) async fn execute(
        &self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<u64, PgError> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.execute(&statement, parameters).await?)
    }

    /// Runs statements without parameters. Returns the first column of their first row.
    pub(super) async fn run_script(&self, sql: &str) -> Result<Option<String>, PgError> {
        let messages = self.client.simple_query(sql).await?;
        let mut texts = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
            _ => None,
        });
        Ok(texts.next())
    }

    /// Begins a transaction with its first statement, in one round trip. Until [`commit`](Self::commit) returns, the
    /// connection is not reused if an error or a dropped future ends the work.
    pub(super) async fn begin(
        &self,
        begin: &'static str,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let statement = self.prepare(sql).await?;
        self.is_in_transaction.set(true);
        let (begun, rows) = tokio::join!(
            self.client.batch_execute(begin),
            self.client.query(&statement, parameters)
        );
        begun?;
        Ok(rows?)
    }

    /// Commits the transaction.
    pub(super) async fn commit(&self) -> Result<(), PgError> {
        self.client.batch_execute("COMMIT").await?;
        self.is_in_transaction.set(false);
        Ok(())
    }

    /// Runs two statements as one transaction, in one round trip. Returns the rows of the second one.
    pub(super) async fn query_after(
        &self,
        (first, first_parameters): (&'static str, Parameters<'_>),
        (second, second_parameters): (&'static str, Parameters<'_>),
    ) -> Result<Vec<Row>, PgError> {
        let (first, second) = (self.prepare(first).await?, self.prepare(second).await?);
        self.is_in_transaction.set(true);
        let (begun, locked, rows, ended) = tokio::join!(
            self.client.batch_execute("BEGIN"),
            self.client.query(&first, first_parameters),
            self.client.query(&second, second_parameters),
            self.client.batch_execute("COMMIT")
        );
        begun?;
        // The transaction has ended, whether or not its statements succeeded.
        if ended.is_ok() {
            self.is_in_transaction.set(false);
        }
        locked?;
        let rows = rows?;
        ended?;
        Ok(rows)
    }
}

/// Quotes the name of a schema.
pub(super) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
