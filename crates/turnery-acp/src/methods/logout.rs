//! `logout`: deletes the keys that were entered and refuses new sessions until the client authenticates again
//! (AUTH-7). Open sessions stay open and fail when they need a key (AUTH-8).

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{LogoutRequest, LogoutResponse};

pub(super) async fn handle(call: MethodCall) -> Result<LogoutResponse, RpcError> {
    let _: LogoutRequest = parse_params(&call.params)?;
    if let Some(login) = call.connection.login() {
        (login.forget_keys)().map_err(|why| {
            let details = format!("{why}. Delete that file by hand.");
            RpcError::internal("keys", "The keys could not be deleted", details, false)
        })?;
    }
    call.connection.log_out();
    Ok(LogoutResponse::new())
}
