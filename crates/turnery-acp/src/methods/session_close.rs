//! `session/close`: cancels what runs and closes the session (CLOSE-1). Succeeds if the session is not open.

use super::session_setup;
use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{CloseSessionRequest, CloseSessionResponse};

pub(crate) async fn handle(call: MethodCall) -> Result<CloseSessionResponse, RpcError> {
    let request: CloseSessionRequest = parse_params(&call.params)?;
    session_setup::close_if_open(&call.connection, &request.session_id.0).await;
    Ok(CloseSessionResponse::new())
}
