//! Keeps connections for reuse: as many as are used at the same time, up to a limit.

use super::{
    address::PostgresAddress, connection::Connection, migration, pg_error::PgError, tls::Tls,
};
use std::{
    cell::{Cell, OnceCell, RefCell},
    ops::Deref,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most connections of a process.
const MAX_CONNECTIONS: usize = 8;

/// Time after which an unused connection is closed.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Connections to one database.
pub(super) struct Pool {
    pub(super) address: PostgresAddress,
    tls: OnceCell<Tls>,
    idle: RefCell<Vec<Connection>>,
    permits: Arc<Semaphore>,
    /// True once a connection was made and the format of the tables was found to be known.
    pub(super) has_connected: Cell<bool>,
}

/// A connection in use. Dropping it closes it, since a statement may still run.
pub(super) struct PooledConnection {
    connection: Connection,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(address: PostgresAddress) -> Self {
        Self {
            address,
            tls: OnceCell::new(),
            idle: RefCell::default(),
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            has_connected: Cell::new(false),
        }
    }

    /// Returns the settings of TLS, read on first use.
    pub(super) fn tls(&self) -> Result<&Tls, PgError> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls);
        }
        let tls = Tls::new(&self.address).map_err(PgError::Unusable)?;
        Ok(self.tls.get_or_init(|| tls))
    }

    /// Returns a connection, after waiting for one if the limit is reached.
    pub(super) async fn take(&self) -> Result<PooledConnection, PgError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| PgError::Unusable(error.to_string()))?;
        let idle = loop {
            let next = self.idle.borrow_mut().pop();
            match next {
                Some(connection) if !connection.is_usable() => {}
                next => break next,
            }
        };
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(PooledConnection {
            connection,
            _permit: permit,
        })
    }

    async fn connect(&self) -> Result<Connection, PgError> {
        let connection = Connection::open(&self.address, self.tls()?).await?;
        migration::prepare_schema(&connection, &self.address).await?;
        self.has_connected.set(true);
        Ok(connection)
    }

    /// Takes a connection back whose work has ended.
    pub(super) fn put_back(&self, used: PooledConnection) {
        let connection = used.connection;
        if connection.is_usable() {
            connection.used_at.set(Instant::now());
            self.idle.borrow_mut().push(connection);
        }
    }

    /// Closes connections that were not used for [`IDLE_TIMEOUT`].
    pub(super) fn close_idle(&self) {
        let mut idle = self.idle.borrow_mut();
        idle.retain(|it| it.is_usable() && it.used_at.get().elapsed() < IDLE_TIMEOUT);
    }

    /// Closes all unused connections: one has broken, and the others probably have too.
    pub(super) fn close_all(&self) {
        self.idle.borrow_mut().clear();
    }
}

impl Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
