//! Routes a request to its handler and produces the response line. Each request gets exactly one (RPC-12).

use crate::{
    methods,
    server::{
        acp_version::AcpVersion,
        connection::{Connection, RequestScope},
        envelope::IncomingRequest,
        rpc_error::{
            INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, REQUEST_CANCELLED, RpcError,
        },
    },
    v2,
};
use agent_client_protocol_schema::v1::RequestId;
use futures_util::{FutureExt, future::BoxFuture};
use jsonrpsee::{
    ConnectionId, MethodCallback, Methods,
    types::{ErrorObjectOwned, Id, Params},
};
use serde_json::value::RawValue;
use std::{panic::AssertUnwindSafe, sync::Arc};

/// Prefix of every response of the method table. The table is called with id 0, which is then replaced by the
/// client's id byte for byte, because the table cannot represent all ids that ACP allows.
const RESPONSE_PREFIX: &str = r#"{"jsonrpc":"2.0","id":0"#;

/// Method tables of a connection.
pub(crate) struct Dispatcher {
    connection: Arc<Connection>,
    v1: Methods,
    /// Methods of v2, if enabled.
    v2: Option<Methods>,
}

impl Dispatcher {
    /// Creates the method tables; `v2` enables the second version for clients that request it.
    pub(crate) fn new(connection: Arc<Connection>, v2: bool) -> Self {
        Self {
            v1: methods::method_table(Arc::clone(&connection)),
            v2: v2.then(|| v2::methods::method_table(Arc::clone(&connection))),
            connection,
        }
    }

    /// Returns the method table for a request: that of the negotiated version, or for `initialize` that of the
    /// version it selects.
    fn methods_for(&self, request: &IncomingRequest<'_>) -> Result<&Methods, RpcError> {
        let Some(v2) = &self.v2 else {
            return Ok(&self.v1);
        };
        let version = match request.method == methods::INITIALIZE {
            true => v2::methods::initialize::negotiate_version(&self.connection, request.params)?,
            false => {
                self.connection.fix_version();
                self.connection.version()
            }
        };
        match version {
            AcpVersion::V1 => Ok(&self.v1),
            AcpVersion::V2 if request.id == RequestId::Null => Err(RpcError::new(
                INVALID_REQUEST,
                "The request has no id",
                "An id is an integer or a string.",
            )),
            AcpVersion::V2 => Ok(v2),
        }
    }

    /// Calls a method. The handler does nothing before its first poll.
    pub(crate) fn dispatch(
        &self,
        request: &IncomingRequest<'_>,
        scope: RequestScope,
    ) -> BoxFuture<'static, Vec<u8>> {
        let raw_id = request.raw_id.to_owned();
        let refused = |fault: RpcError| {
            let line = error_line(request.raw_id, fault);
            async move { line }.boxed()
        };
        let method = request.method.as_str();
        if method != methods::INITIALIZE && !self.connection.is_initialized() {
            return refused(RpcError::new(
                INVALID_REQUEST,
                "The connection is not initialized",
                "Send initialize first.",
            ));
        }
        let table = match self.methods_for(request) {
            Ok(table) => table,
            Err(fault) => return refused(fault),
        };
        let Some(MethodCallback::Async(callback)) = table.method(method) else {
            return refused(
                RpcError::new(
                    METHOD_NOT_FOUND,
                    "There is no such method",
                    format!("{method:?} is not a method of this agent; see its capabilities."),
                )
                .with_data("method", method),
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
        let can_be_dropped = methods::DROPPABLE_METHODS.contains(&method);
        async move {
            let answer = AssertUnwindSafe(handler).catch_unwind();
            let answer = tokio::select! {
                biased;
                answer = answer => answer,
                () = scope.cancel.cancelled(), if can_be_dropped => {
                    return error_line(&raw_id, cancelled_error());
                }
            };
            match answer {
                Ok(answer) => response_line(&raw_id, answer.as_json().get()),
                Err(_) => error_line(&raw_id, panic_error()),
            }
        }
        .boxed()
    }
}

fn cancelled_error() -> RpcError {
    RpcError::new(
        REQUEST_CANCELLED,
        "The request was cancelled",
        "The client cancelled the request.",
    )
}

fn panic_error() -> RpcError {
    RpcError::new(
        INTERNAL_ERROR,
        "The agent failed while handling the request",
        "Nothing else is affected; the cause is on stderr. Please report it.",
    )
    .with_data("retryable", false)
}

/// Returns the table's response with the client's id (RPC-2).
fn response_line(raw_id: &str, answer: &str) -> Vec<u8> {
    match answer.strip_prefix(RESPONSE_PREFIX) {
        Some(rest) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw_id}{rest}\n").into_bytes(),
        None => error_line(raw_id, panic_error()),
    }
}

/// Encodes an error response as a line. `raw_id` is JSON.
pub(crate) fn error_line(raw_id: &str, error: RpcError) -> Vec<u8> {
    let error: ErrorObjectOwned = error.into();
    let error = serde_json::to_string(&error)
        .unwrap_or_else(|_| r#"{"code":-32603,"message":"The agent failed"}"#.to_owned());
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{raw_id},\"error\":{error}}}\n").into_bytes()
}
