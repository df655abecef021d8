//! `session/load`: opens a stored session and replays its whole conversation before the response (LOAD-1,
//! LOAD-2).

use super::session_setup::SessionSetup;
use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::config_options::with_options,
};
use agent_client_protocol_schema::v1::{LoadSessionRequest, LoadSessionResponse};

pub(super) async fn handle(call: MethodCall) -> Result<LoadSessionResponse, RpcError> {
    let request: LoadSessionRequest = parse_params(&call.params)?;
    let setup = SessionSetup::from_params(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
        request.system_prompt,
    )?;
    let session = setup.open(&call, &request.session_id.0, true).await?;
    let response = LoadSessionResponse::new();
    Ok(with_options!(response, &session))
}
