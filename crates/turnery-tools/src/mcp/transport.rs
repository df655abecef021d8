//! Connects to a server as a process or over HTTP; tests add a third transport.

use super::{client_handler::Told, errors, stdio::Process};
use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    service::{RunningService, serve_client},
    transport::IntoTransport,
};

/// A connection after its handshake.
pub(super) struct Reached {
    pub(super) service: RunningService<RoleClient, Told>,
    /// The server's process, if it runs as one.
    pub(super) process: Option<Process>,
}

/// Connects to one server, any number of times. Dropping the future undoes everything it started.
pub(super) trait Reach: Send + Sync + 'static {
    fn reach(&self, told: Told) -> BoxFuture<'_, Result<Reached, String>>;
}

/// Performs the handshake.
pub(super) async fn shake_hands<T, E, A>(
    told: Told,
    transport: T,
) -> Result<RunningService<RoleClient, Told>, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    // Boxed because the future is large and there is one for each server.
    let served = Box::pin(serve_client(told, transport)).await;
    served.map_err(|error| errors::describe_handshake_error(&error))
}
