//! `session/status` (unstable, behind `sessionCapabilities.status`): reports whether a session is open or only
//! stored. Changes nothing.

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{
    SessionStatus, SessionStatusRequest, SessionStatusResponse,
};
use turnery_engine::SessionId;

pub(super) async fn handle(call: MethodCall) -> Result<SessionStatusResponse, RpcError> {
    let request: SessionStatusRequest = parse_params(&call.params)?;
    let id = &*request.session_id.0;
    if call.connection.session(id).is_ok() {
        return Ok(SessionStatusResponse::new(SessionStatus::Open));
    }
    match call.connection.agent.info(&SessionId::from(id)).await {
        Ok(_) => Ok(SessionStatusResponse::new(SessionStatus::Saved)),
        Err(error) => Err(RpcError::from_store(&error)),
    }
}
