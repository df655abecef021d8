//! `session/resume`: opens a stored session without replaying it (RES-1, RES-2).

use super::session_setup::SessionSetup;
use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::config_options::with_options,
};
use agent_client_protocol_schema::v1::{ResumeSessionRequest, ResumeSessionResponse};

pub(super) async fn handle(call: MethodCall) -> Result<ResumeSessionResponse, RpcError> {
    let request: ResumeSessionRequest = parse_params(&call.params)?;
    let setup = SessionSetup::from_params(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
        request.system_prompt,
    )?;
    let session = setup.open(&call, &request.session_id.0, false).await?;
    let response = ResumeSessionResponse::new();
    Ok(with_options!(response, &session))
}
