//! `session/new`: creates a session and stores it before the response, so that another process can resume it.

use super::session_setup::SessionSetup;
use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::config_options::with_options,
};
use agent_client_protocol_schema::v1::{NewSessionRequest, NewSessionResponse};

pub(super) async fn handle(call: MethodCall) -> Result<NewSessionResponse, RpcError> {
    let request: NewSessionRequest = parse_params(&call.params)?;
    let setup = SessionSetup::from_params(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
        request.system_prompt,
    )?;
    let session = setup.create(&call, None).await?;
    let response = NewSessionResponse::new(session.id().to_string());
    Ok(with_options!(response, &session))
}
