//! `session/close`: cancels what runs and closes the session (CLOSE-1). Succeeds if the session is not open.

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{CloseSessionRequest, CloseSessionResponse};

pub(crate) async fn handle(call: MethodCall) -> Result<CloseSessionResponse, RpcError> {
    let request: CloseSessionRequest = parse_params(&call.params)?;
    let id = &request.session_id.0;
    call.connection.close_session(id).await;
    Ok(CloseSessionResponse::new())
}
