//! `session/delete`: closes the session if it is open here, and deletes it. Succeeds for an unknown id
//! (DEL-2).

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{DeleteSessionRequest, DeleteSessionResponse};
use turnery_engine::SessionId;

pub(crate) async fn handle(call: MethodCall) -> Result<DeleteSessionResponse, RpcError> {
    let request: DeleteSessionRequest = parse_params(&call.params)?;
    let id = SessionId::from(&*request.session_id.0);
    call.connection.close_session(id.as_str()).await;
    match call.connection.agent.delete(&id).await {
        Ok(_) => Ok(DeleteSessionResponse::new()),
        Err(error) => Err(RpcError::from_store(&error)),
    }
}
