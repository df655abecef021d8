//! Peer: our requests to the client. Own ids, one table of what is open, nothing that a reply can break.

use crate::{
    bounds::ASKS_OPEN, envelope::RequestId, fault::CANCELLED, writer::Out, writer::Sender,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How much of a client's `data.details` is repeated. Unit: bytes.
const LONGEST_DETAILS: usize = 600;

/// The other end of the connection, as something that can be asked.
pub(crate) struct Peer {
    out: Sender,
    open: Mutex<Open>,
    gone: CancellationToken,
}

#[derive(Default)]
struct Open {
    /// The id of the next request (RPC-16).
    next: i64,
    waiting: HashMap<i64, oneshot::Sender<Reply>>,
    closed: bool,
}

impl Open {
    fn next_id(&mut self) -> i64 {
        self.next += 1;
        self.next
    }
}

type Reply = Result<Box<RawValue>, PeerError>;

/// Why a request to the client came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerError {
    /// The client answered with an error (RPC-15: whatever its code).
    #[error("the client answered with error {code}: {message}")]
    Refused {
        /// Its code.
        code: i64,
        /// Its text, with the `details` of its data.
        message: String,
    },
    /// The client's answer is not what the protocol says.
    #[error("the client's answer makes no sense: {0}")]
    Nonsense(String),
    /// Nobody is there any more.
    #[error("the client is gone")]
    Gone,
    /// Too much is open already.
    #[error("{ASKS_OPEN} requests wait for the client's answer already")]
    Full,
}

impl PeerError {
    /// Whether the client does not know the method.
    pub(crate) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused { code: -32601, .. })
    }

    /// Whether the client says that the request was cancelled (CANCEL-6).
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == i64::from(CANCELLED))
    }
}

#[derive(Serialize)]
struct Call<'a, P> {
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
    /// What there is for a person: many clients say no more than "Internal error" in `message`.
    fn text(self) -> String {
        let details = self.data.get("details").and_then(Value::as_str);
        match details.map(str::trim).unwrap_or_default() {
            "" => self.message,
            details if self.message.contains(details) => self.message,
            details => {
                let end = details.floor_char_boundary(LONGEST_DETAILS);
                let cut = if end < details.len() { "\u{2026}" } else { "" };
                format!("{}: {}{cut}", self.message, &details[..end])
            }
        }
    }
}

impl Peer {
    pub(crate) fn new(out: Sender) -> Arc<Self> {
        Arc::new(Self {
            out,
            open: Mutex::default(),
            gone: CancellationToken::new(),
        })
    }

    /// Where lines for the client go.
    pub(crate) fn out(&self) -> &Sender {
        &self.out
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ask, and wait for the answer as long as it takes. Dropping the future takes the question
    /// back with `$/cancel_request` (CANCEL-7).
    pub(crate) async fn request<P: Serialize + Sync, R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
    ) -> Result<R, PeerError> {
        let answer = self.call(method, params).await?;
        serde_json::from_str(answer.get()).map_err(|error| PeerError::Nonsense(error.to_string()))
    }

    /// Ask for something whose answer says nothing: `{}`, `null`, anything (FS-3).
    pub(crate) async fn command<P: Serialize + Sync>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
    ) -> Result<(), PeerError> {
        self.call(method, params).await.map(drop)
    }

    /// Ask for something and wait for nothing, not even for the client to listen: for what has to be
    /// said last. Its answer is one to an unknown question, and means nothing.
    pub(crate) fn tell<P: Serialize>(&self, method: &'static str, params: &P) {
        let id = self.open().next_id();
        let call = Call {
            jsonrpc: "2.0",
            id,
            method,
            params,
        };
        if let Ok(line) = json_line(&call) {
            send_detached(&self.out, line);
        }
    }

    async fn call<P: Serialize + Sync>(
        self: &Arc<Self>,
        method: &'static str,
        params: &P,
    ) -> Reply {
        let room = self.out.reserve().await.map_err(|_| PeerError::Gone)?;
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut open = self.open();
            if open.closed {
                return Err(PeerError::Gone);
            }
            if open.waiting.len() >= ASKS_OPEN {
                return Err(PeerError::Full);
            }
            let id = open.next_id();
            open.waiting.insert(id, sender);
            id
        };
        let mut withdraw = Withdraw {
            peer: Arc::clone(self),
            id: Some(id),
        };
        let line = json_line(&Call {
            jsonrpc: "2.0",
            id,
            method,
            params,
        })?;
        room.send(Out::Lines(line));
        let reply = receiver.await.unwrap_or(Err(PeerError::Gone));
        withdraw.id = None;
        reply
    }

    /// A reply has come. Unknown, late and repeated ones mean nothing (RPC-17).
    pub(crate) fn answered(&self, id: &RequestId, reply: Result<&RawValue, &RawValue>) {
        let RequestId::Number(id) = id else { return };
        let Some(waiting) = self.open().waiting.remove(id) else {
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
                Err(PeerError::Refused {
                    code: body.code,
                    message: body.text(),
                })
            }
        });
    }

    /// No reply will ever come again: all who wait are told.
    pub(crate) fn close(&self) {
        let mut open = self.open();
        open.closed = true;
        open.waiting.clear();
        self.gone.cancel();
    }

    /// Ready once nothing more will come from the client.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

/// Takes a request back that nobody waits for any more.
struct Withdraw {
    peer: Arc<Peer>,
    id: Option<i64>,
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if self.peer.open().waiting.remove(&id).is_none() {
            return;
        }
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}}}\n"
        );
        send_detached(&self.peer.out, line.into_bytes());
    }
}

/// Send from where nothing can be awaited: at once if there is room, else as soon as there is.
pub(crate) fn send_detached(out: &Sender, line: Vec<u8>) {
    if let Err(tokio::sync::mpsc::error::TrySendError::Full(line)) = out.try_send(Out::Lines(line))
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let out = out.clone();
        runtime.spawn(async move {
            let _ = out.send(line).await;
        });
    }
}

/// A message as a line.
pub(crate) fn json_line<T: Serialize>(message: &T) -> Result<Vec<u8>, PeerError> {
    let mut line =
        serde_json::to_vec(message).map_err(|error| PeerError::Nonsense(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}
