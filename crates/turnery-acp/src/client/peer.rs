//! Sends requests to the client and matches its responses by id.

use crate::{
    limits::MAX_CLIENT_REQUESTS,
    server::rpc_error::REQUEST_CANCELLED,
    transport::writer::{WriteItem, WriteSender},
};
use agent_client_protocol_schema::v1::RequestId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Length to which a client's `data.details` is cut. Unit: bytes.
const DETAILS_LIMIT: usize = 600;

/// The client as the receiver of the agent's requests.
pub(crate) struct Peer {
    out: WriteSender,
    pending: Mutex<PendingRequests>,
    disconnected: CancellationToken,
}

#[derive(Default)]
struct PendingRequests {
    /// Id of the last request; ids are never reused (RPC-16).
    last_id: i64,
    reply_senders: HashMap<i64, oneshot::Sender<PeerResult>>,
    closed: bool,
}

impl PendingRequests {
    fn next_id(&mut self) -> i64 {
        self.last_id += 1;
        self.last_id
    }
}

type PeerResult = Result<Box<RawValue>, PeerError>;

/// Error of a request sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerError {
    /// Error response of the client, with any code (RPC-15).
    #[error("the client answered with error {code}: {message}")]
    ErrorResponse {
        /// Error code.
        code: i64,
        /// Error message, including the `details` of its data.
        message: String,
    },
    /// Response that does not follow the protocol.
    #[error("the client sent an invalid response: {0}")]
    InvalidResponse(String),
    /// The client has disconnected.
    #[error("the client has disconnected")]
    Disconnected,
    /// Too many requests are pending.
    #[error("{MAX_CLIENT_REQUESTS} requests to the client are already pending")]
    TooManyRequests,
}

impl PeerError {
    /// Returns true if the client does not know the method.
    pub(crate) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::ErrorResponse { code: -32601, .. })
    }

    /// Returns true if the client reports that the request was cancelled (CANCEL-6).
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self, Self::ErrorResponse { code, .. } if *code == i64::from(REQUEST_CANCELLED))
    }
}

#[derive(Serialize)]
struct OutgoingRequest<'a, P> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: &'a P,
}

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

impl ErrorBody {
    /// Returns the message with the details, since many clients put no more than "Internal error" in
    /// `message`.
    fn into_message(self) -> String {
        let details = self.data.get("details").and_then(Value::as_str);
        match details.map(str::trim).unwrap_or_default() {
            "" => self.message,
            details if self.message.contains(details) => self.message,
            details => {
                let end = details.floor_char_boundary(DETAILS_LIMIT);
                let cut = if end < details.len() { "\u{2026}" } else { "" };
                format!("{}: {}{cut}", self.message, &details[..end])
            }
        }
    }
}

impl Peer {
    pub(crate) fn new(out: WriteSender) -> Arc<Self> {
        Arc::new(Self {
            out,
            pending: Mutex::default(),
            disconnected: CancellationToken::new(),
        })
    }

    /// Returns the queue for lines to the client.
    pub(crate) fn out(&self) -> &WriteSender {
        &self.out
    }

    fn lock_pending(&self) -> MutexGuard<'_, PendingRequests> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its response without a time limit. Dropping the future cancels the
    /// request with `$/cancel_request` (CANCEL-7).
    pub(crate) async fn request<P: Serialize + Sync, R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
    ) -> Result<R, PeerError> {
        let answer = self.request_raw(method, params).await?;
        serde_json::from_str(answer.get())
            .map_err(|error| PeerError::InvalidResponse(error.to_string()))
    }

    /// Sends a request and ignores the result, which may be `{}`, `null` or anything else (FS-3).
    pub(crate) async fn request_unit<P: Serialize + Sync>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
    ) -> Result<(), PeerError> {
        self.request_raw(method, params).await.map(drop)
    }

    /// Sends a request without waiting for a response or for room in the queue. For cleanup; the response is
    /// ignored like one with an unknown id.
    pub(crate) fn request_detached<P: Serialize>(&self, method: &'static str, params: &P) {
        let id = self.lock_pending().next_id();
        let call = OutgoingRequest {
            jsonrpc: "2.0",
            id,
            method,
            params,
        };
        if let Ok(line) = encode_line(&call) {
            send_detached(&self.out, line);
        }
    }

    async fn request_raw<P: Serialize + Sync>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
    ) -> PeerResult {
        let room = self
            .out
            .reserve()
            .await
            .map_err(|_| PeerError::Disconnected)?;
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut open = self.lock_pending();
            if open.closed {
                return Err(PeerError::Disconnected);
            }
            if open.reply_senders.len() >= MAX_CLIENT_REQUESTS {
                return Err(PeerError::TooManyRequests);
            }
            let id = open.next_id();
            open.reply_senders.insert(id, sender);
            id
        };
        let mut cancel_on_drop = CancelOnDrop {
            peer: Arc::clone(self),
            id: Some(id),
        };
        let line = encode_line(&OutgoingRequest {
            jsonrpc: "2.0",
            id,
            method,
            params,
        })?;
        room.send(WriteItem::Lines(line));
        let reply = receiver.await.unwrap_or(Err(PeerError::Disconnected));
        cancel_on_drop.id = None;
        reply
    }

    /// Passes a response to its request. Unknown, late and repeated ones are ignored (RPC-17).
    pub(crate) fn handle_response(&self, id: &RequestId, reply: Result<&RawValue, &RawValue>) {
        let RequestId::Number(id) = id else { return };
        let Some(waiting) = self.lock_pending().reply_senders.remove(id) else {
            return;
        };
        let _ = waiting.send(match reply {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => {
                let body = serde_json::from_str(error.get()).unwrap_or(ErrorBody {
                    code: 0,
                    message: error.get().to_owned(),
                    data: Value::Null,
                });
                Err(PeerError::ErrorResponse {
                    code: body.code,
                    message: body.into_message(),
                })
            }
        });
    }

    /// Fails all pending and future requests: no more responses can arrive.
    pub(crate) fn close(&self) {
        let mut open = self.lock_pending();
        open.closed = true;
        open.reply_senders.clear();
        self.disconnected.cancel();
    }

    /// Waits until no more input can arrive from the client.
    pub(crate) async fn disconnected(&self) {
        self.disconnected.cancelled().await;
    }
}

/// Cancels a request when its future is dropped.
struct CancelOnDrop {
    peer: Arc<Peer>,
    id: Option<i64>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.peer.lock_pending().reply_senders.remove(&id).is_none() {
            return;
        }
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}}}\n"
        );
        send_detached(&self.peer.out, line.into_bytes());
    }
}

/// Queues a line without waiting: at once if there is room, else from a spawned task.
pub(crate) fn send_detached(out: &WriteSender, line: Vec<u8>) {
    if let Err(tokio::sync::mpsc::error::TrySendError::Full(line)) =
        out.try_send(WriteItem::Lines(line))
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let out = out.clone();
        runtime.spawn(async move {
            let _ = out.send(line).await;
        });
    }
}

/// Encodes a message as a line.
pub(crate) fn encode_line<T: Serialize>(message: &T) -> Result<Vec<u8>, PeerError> {
    let mut line = serde_json::to_vec(message)
        .map_err(|error| PeerError::InvalidResponse(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}
