//! `session/archive` and `session/unarchive` (unstable, behind `sessionCapabilities.archive`): hide a session
//! from lists that do not ask for archived ones, and restore it. Both are idempotent.

use crate::server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError};
use agent_client_protocol_schema::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, UnarchiveSessionRequest,
    UnarchiveSessionResponse,
};
use turnery_engine::SessionId;

/// Archives a session. An open session is closed first, which cancels what runs in it.
pub(super) async fn handle_archive(call: MethodCall) -> Result<ArchiveSessionResponse, RpcError> {
    let request: ArchiveSessionRequest = parse_params(&call.params)?;
    let id = &request.session_id.0;
    call.connection.close_session(id).await;
    set_archived(&call, id, true).await?;
    Ok(ArchiveSessionResponse::new())
}

/// Restores an archived session.
pub(super) async fn handle_unarchive(
    call: MethodCall,
) -> Result<UnarchiveSessionResponse, RpcError> {
    let request: UnarchiveSessionRequest = parse_params(&call.params)?;
    set_archived(&call, &request.session_id.0, false).await?;
    Ok(UnarchiveSessionResponse::new())
}

async fn set_archived(call: &MethodCall, id: &str, archived: bool) -> Result<(), RpcError> {
    let agent = &call.connection.agent;
    let kept = agent.set_archived(&SessionId::from(id), archived).await;
    kept.map_err(|error| RpcError::from_store(&error))
}
