//! Sends one request to a server for a tool call: reports its progress, adds the prompt's trace context, and
//! cancels the request when the caller stops waiting.

use super::{client_handler::ProgressListeners, connection::ServerConnection, errors};
use crate::{ToolCx, TraceContext};
use rmcp::{
    RoleClient,
    model::{
        CancelledNotificationParam, ClientRequest, ProgressToken, RequestId, RequestMetaObject,
        ServerResult,
    },
    service::{Peer, PeerRequestOptions},
};
use turnery_engine::{ToolError, ToolErrorKind};

/// Sends a request to the server of `connection`, which is restarted if it has died, and waits for the response or
/// the call's cancel.
pub(super) async fn request_for_call(
    connection: &ServerConnection,
    request: ClientRequest,
    cx: &ToolCx,
) -> Result<ServerResult, ToolError> {
    let cancelled = || {
        let message = format!(
            "the call of the MCP server {} was cancelled",
            connection.name
        );
        ToolError::new(ToolErrorKind::Cancelled, message)
    };
    tokio::select! {
        biased;
        // Dropping the other future cancels the request.
        () = cx.cancel.cancelled() => Err(cancelled()),
        answer = await_response(connection, request, cx) => answer,
    }
}

async fn await_response(
    connection: &ServerConnection,
    request: ClientRequest,
    cx: &ToolCx,
) -> Result<ServerResult, ToolError> {
    let fault = |(kind, why): (ToolErrorKind, String)| {
        let why = connection.secrets.redact(&why);
        ToolError::new(kind, format!("the MCP server {}: {why}", connection.name))
    };
    let peer = connection.peer().await;
    let peer = peer.map_err(|why| fault((ToolErrorKind::ExecutionError, why)))?;
    let sent = send_request(&peer, request, &cx.trace).await;
    let mut handle = sent.map_err(|error| fault(errors::describe_request_error(&error)))?;
    connection
        .listeners
        .add(handle.progress_token.clone(), cx.progress.clone());
    let mut pending = PendingRequest {
        peer,
        id: handle.id.clone(),
        progress_token: handle.progress_token.clone(),
        listeners: connection.listeners.clone(),
        is_answered: false,
    };
    let answer = (&mut handle.rx).await;
    pending.is_answered = true;
    let answer = answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
    answer.map_err(|error| fault(errors::describe_request_error(&error)))
}

/// Sends a request, with the trace context in its `_meta` (EXT-6).
pub(super) async fn send_request(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    trace: &TraceContext,
) -> Result<rmcp::service::RequestHandle<RoleClient>, rmcp::ServiceError> {
    let mut meta = RequestMetaObject::default();
    for (key, value) in trace.entries() {
        meta.0.0.insert(key.clone(), value.clone());
    }
    let options = PeerRequestOptions::no_options().with_meta(meta);
    peer.send_cancellable_request(request, options).await
}

/// A pending request. Dropping it before the response has arrived cancels it at the server.
struct PendingRequest {
    peer: Peer<RoleClient>,
    id: RequestId,
    progress_token: ProgressToken,
    listeners: ProgressListeners,
    is_answered: bool,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.listeners.remove(&self.progress_token);
        if self.is_answered {
            return;
        }
        let cancelled = CancelledNotificationParam::new(
            Some(self.id.clone()),
            Some("the caller no longer waits".to_owned()),
        );
        let peer = self.peer.clone();
        // Without a runtime the server ends anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.notify_cancelled(cancelled).await });
        }
    }
}
