//! Reach: how a server is connected to: as a process or over HTTP; tests have a third way.

use super::{child::Process, fault, told::Told};
use futures_util::future::BoxFuture;
use rmcp::{
    RoleClient,
    service::{RunningService, serve_client},
    transport::IntoTransport,
};

/// A connection whose handshake is done.
pub(super) struct Reached {
    pub(super) service: RunningService<RoleClient, Told>,
    /// The process, if it is ours.
    pub(super) process: Option<Process>,
}

/// Connects to one server, as often as it is asked. Dropping the future takes back all that it began.
pub(super) trait Reach: Send + Sync + 'static {
    fn reach(&self, told: Told) -> BoxFuture<'_, Result<Reached, String>>;
}

/// The handshake.
pub(super) async fn shake_hands<T, E, A>(
    told: Told,
    transport: T,
) -> Result<RunningService<RoleClient, Told>, String>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    // The future is large, and there is one for each server.
    let served = Box::pin(serve_client(told, transport)).await;
    served.map_err(|error| fault::of_start(&error))
}
