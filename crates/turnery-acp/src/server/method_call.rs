//! Registers the handlers of methods, and calls them.

use crate::server::{
    connection::{Connection, RequestScope},
    rpc_error::RpcError,
};
use agent_client_protocol_schema::v1::RequestId;
use jsonrpsee::{
    Extensions, RpcModule,
    types::{ErrorObjectOwned, Params},
};
use serde::Serialize;
use std::sync::Arc;

/// Arguments of a handler.
pub(crate) struct MethodCall {
    pub(crate) params: Params<'static>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) scope: RequestScope,
}

pub(crate) fn register<R, Fut>(
    table: &mut RpcModule<Connection>,
    name: &'static str,
    handler: fn(MethodCall) -> Fut,
) where
    R: Serialize + Clone + Send + 'static,
    Fut: Future<Output = Result<R, RpcError>> + Send + 'static,
{
    let added = table.register_async_method(name, move |params, connection, extensions| {
        let scope = request_scope(&extensions);
        let answer = handler(MethodCall {
            params,
            connection,
            scope,
        });
        async move { answer.await.map_err(ErrorObjectOwned::from) }
    });
    debug_assert!(added.is_ok(), "{name} is in the table twice");
}

fn request_scope(extensions: &Extensions) -> RequestScope {
    extensions
        .get()
        .cloned()
        .unwrap_or_else(|| RequestScope::new(RequestId::Null))
}
