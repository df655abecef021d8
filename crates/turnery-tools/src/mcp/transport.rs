//! Connects to a server as a process or over HTTP; tests add a third transport.

use super::{client_handler::McpClientHandler, errors, stdio::ServerProcess};
use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    service::{RunningService, serve_client},
    transport::IntoTransport,
};

/// A connection after its handshake.
pub(super) struct ConnectedClient {
    pub(super) service: RunningService<RoleClient, McpClientHandler>,
    /// The server's process, if it runs as one.
    pub(super) process: Option<ServerProcess>,
}

/// Connects to one server, any number of times. Dropping the future undoes everything it started.
pub(super) trait Transport: Send + Sync + 'static {
    fn connect(&self, handler: McpClientHandler) -> BoxFuture<'_, Result<ConnectedClient, String>>;
}

/// Performs the handshake.
pub(super) async fn initialize<T, E, A>(
    handler: McpClientHandler,
    transport: T,
) -> Result<RunningService<RoleClient, McpClientHandler>, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    // Boxed because the future is large and there is one for each server.
    let served = Box::pin(serve_client(handler, transport)).await;
    served.map_err(|error| errors::describe_handshake_error(&error))
}
