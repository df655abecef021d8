//! Call: one request to a server on behalf of a tool call: its progress is shown, the prompt's trace
//! context goes with it, and whoever no longer waits for it says so.

use super::{fault, link::Link, told::Listeners};
use crate::{ToolCx, TraceContext, execute::failure};
use rmcp::{
    RoleClient,
    model::{
        CancelledNotificationParam, ClientRequest, ProgressToken, RequestId, RequestMetaObject,
        ServerResult,
    },
    service::{Peer, PeerRequestOptions},
};
use turnery_engine::{FailureKind, ToolFailure};

/// Send a request to the server of `link`, started again if it has died, and wait for the answer or
/// for the call's cancel.
pub(super) async fn ask(
    link: &Link,
    request: ClientRequest,
    cx: &ToolCx,
) -> Result<ServerResult, ToolFailure> {
    let cancelled = || {
        let message = format!("the call of the MCP server {} was cancelled", link.name);
        failure(FailureKind::Cancelled, message)
    };
    tokio::select! {
        biased;
        // What was sent is taken back when the other future is dropped.
        () = cx.cancel.cancelled() => Err(cancelled()),
        answer = answered(link, request, cx) => answer,
    }
}

async fn answered(
    link: &Link,
    request: ClientRequest,
    cx: &ToolCx,
) -> Result<ServerResult, ToolFailure> {
    let fault = |(kind, why): (FailureKind, String)| {
        let why = link.secrets.hide(&why);
        failure(kind, format!("the MCP server {}: {why}", link.name))
    };
    let peer = link.peer().await;
    let peer = peer.map_err(|why| fault((FailureKind::ExecutionError, why)))?;
    let sent = send(&peer, request, &cx.trace).await;
    let mut handle = sent.map_err(|error| fault(fault::of_request(&error)))?;
    link.listeners
        .add(handle.progress_token.clone(), cx.progress.clone());
    let mut pending = Pending {
        peer,
        id: handle.id.clone(),
        token: handle.progress_token.clone(),
        listeners: link.listeners.clone(),
        answered: false,
    };
    let answer = (&mut handle.rx).await;
    pending.answered = true;
    let answer = answer.unwrap_or(Err(rmcp::ServiceError::TransportClosed));
    answer.map_err(|error| fault(fault::of_request(&error)))
}

/// Send a request, with the trace context in its `_meta` (EXT-6).
pub(super) async fn send(
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

/// A request under way. Dropped before its answer is there, it tells the server that nobody waits.
struct Pending {
    peer: Peer<RoleClient>,
    id: RequestId,
    token: ProgressToken,
    listeners: Listeners,
    answered: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.listeners.remove(&self.token);
        if self.answered {
            return;
        }
        let cancelled = CancelledNotificationParam::new(
            Some(self.id.clone()),
            Some("the caller no longer waits".to_owned()),
        );
        let peer = self.peer.clone();
        // Without a runtime the server ends as well.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.notify_cancelled(cancelled).await });
        }
    }
}
