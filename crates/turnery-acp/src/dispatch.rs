//! Dispatch: from a request to the line that answers it. Each request gets exactly one (RPC-12).

use crate::{
    connection::{Connection, RequestScope},
    dialect::Dialect,
    envelope::{Request, RequestId},
    fault::{CANCELLED, Fault, INTERNAL, INVALID_REQUEST, METHOD_NOT_FOUND},
    methods, v2,
};
use futures_util::{FutureExt, future::BoxFuture};
use jsonrpsee::{
    ConnectionId, MethodCallback, Methods,
    types::{ErrorObjectOwned, Id, Params},
};
use serde_json::value::RawValue;
use std::{panic::AssertUnwindSafe, sync::Arc};

/// How every answer of the method table begins: it is given the id 0, and the client's own id is
/// put in its place byte for byte, because that table cannot hold all ids that ACP allows.
const TABLE_HEAD: &str = r#"{"jsonrpc":"2.0","id":0"#;

/// The methods of a connection.
pub(crate) struct Dispatch {
    connection: Arc<Connection>,
    v1: Methods,
    /// Only if it was switched on.
    v2: Option<Methods>,
}

impl Dispatch {
    /// `v2`: whether clients that ask for the second version of the protocol get it.
    pub(crate) fn new(connection: Arc<Connection>, v2: bool) -> Self {
        Self {
            v1: methods::table(Arc::clone(&connection)),
            v2: v2.then(|| v2::methods::table(Arc::clone(&connection))),
            connection,
        }
    }

    /// The methods of the version that a request is of: the one that is spoken, or for `initialize` the
    /// one that it chooses.
    fn table(&self, request: &Request<'_>) -> Result<&Methods, Fault> {
        let Some(v2) = &self.v2 else {
            return Ok(&self.v1);
        };
        let dialect = match request.method == methods::INITIALIZE {
            true => v2::methods::initialize::negotiate(&self.connection, request.params)?,
            false => {
                self.connection.settle();
                self.connection.dialect()
            }
        };
        match dialect {
            Dialect::V1 => Ok(&self.v1),
            Dialect::V2 if request.id == RequestId::Null => Err(Fault::new(
                INVALID_REQUEST,
                "The request has no id",
                "An id is an integer or a string.",
            )),
            Dialect::V2 => Ok(v2),
        }
    }

    /// Call a method. The handler does nothing before its first poll.
    pub(crate) fn call(
        &self,
        request: &Request<'_>,
        scope: RequestScope,
    ) -> BoxFuture<'static, Vec<u8>> {
        let raw_id = request.raw_id.to_owned();
        let refused = |fault: Fault| {
            let line = error_line(request.raw_id, fault);
            async move { line }.boxed()
        };
        let method = request.method.as_str();
        if method != methods::INITIALIZE && !self.connection.is_initialized() {
            return refused(Fault::new(
                INVALID_REQUEST,
                "The connection is not initialized",
                "Send initialize first.",
            ));
        }
        let table = match self.table(request) {
            Ok(table) => table,
            Err(fault) => return refused(fault),
        };
        let Some(MethodCallback::Async(callback)) = table.method(method) else {
            return refused(
                Fault::new(
                    METHOD_NOT_FOUND,
                    "There is no such method",
                    format!("{method:?} is not a method of this agent; see its capabilities."),
                )
                .with("method", method),
            );
        };
        let params = Params::new(request.params.map(RawValue::get)).into_owned();
        let mut extensions = jsonrpsee::Extensions::new();
        extensions.insert(scope.clone());
        let handler = callback(
            Id::Number(0),
            params,
            ConnectionId(0),
            usize::MAX,
            extensions,
        );
        let can_be_dropped = methods::CAN_BE_DROPPED.contains(&method);
        async move {
            let answer = AssertUnwindSafe(handler).catch_unwind();
            let answer = tokio::select! {
                biased;
                answer = answer => answer,
                () = scope.cancel.cancelled(), if can_be_dropped => {
                    return error_line(&raw_id, withdrawn());
                }
            };
            match answer {
                Ok(answer) => answer_line(&raw_id, answer.as_json().get()),
                Err(_) => error_line(&raw_id, broken()),
            }
        }
        .boxed()
    }
}

fn withdrawn() -> Fault {
    Fault::new(
        CANCELLED,
        "The request was cancelled",
        "The client took the request back.",
    )
}

fn broken() -> Fault {
    Fault::new(
        INTERNAL,
        "The agent broke while it answered",
        "Nothing else is affected; the cause is on stderr. Please report it.",
    )
    .with("retryable", false)
}

/// The table's answer under the client's id (RPC-2).
fn answer_line(raw_id: &str, answer: &str) -> Vec<u8> {
    match answer.strip_prefix(TABLE_HEAD) {
        Some(rest) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw_id}{rest}\n").into_bytes(),
        None => error_line(raw_id, broken()),
    }
}

/// An error as a line. `raw_id` is JSON.
pub(crate) fn error_line(raw_id: &str, fault: Fault) -> Vec<u8> {
    let error: ErrorObjectOwned = fault.into();
    let error = serde_json::to_string(&error)
        .unwrap_or_else(|_| r#"{"code":-32603,"message":"The agent broke"}"#.to_owned());
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw_id},\"error\":{error}}}\n").into_bytes()
}
