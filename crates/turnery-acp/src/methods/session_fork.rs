//! `session/fork` (unstable, behind `sessionCapabilities.fork`): creates a session with a copy of the stored
//! history of another, open or not. The history is not replayed: the client already has it.

use super::session_setup::SessionSetup;
use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::config_options::with_options,
};
use agent_client_protocol_schema::v1::{ForkSessionRequest, ForkSessionResponse};
use turnery_engine::SessionId;

pub(super) async fn handle(call: MethodCall) -> Result<ForkSessionResponse, RpcError> {
    let request: ForkSessionRequest = parse_params(&call.params)?;
    let setup = SessionSetup::from_params(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
        request.system_prompt,
    )?;
    let source = SessionId::from(&*request.session_id.0);
    let session = setup.create(&call, Some(&source)).await?;
    let response = ForkSessionResponse::new(session.id().to_string());
    Ok(with_options!(response, &session))
}
