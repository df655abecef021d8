//! `session/new`: creates a session and stores it before the response, so that another process can resume it.

use super::session_setup::SessionSetup;
use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v1::{config_options, shared},
    view::session_options,
};
use agent_client_protocol_schema::v1::{NewSessionRequest, NewSessionResponse};

pub(super) async fn handle(call: MethodCall) -> Result<NewSessionResponse, RpcError> {
    let request: NewSessionRequest = parse_params(&call.params)?;
    let setup = SessionSetup::from_params(
        request.cwd,
        request.additional_directories,
        &request.mcp_servers,
    )?
    .with_system_prompt(request.system_prompt)?;
    let session = setup.create(&call).await?;
    let options = session.options();
    Ok(NewSessionResponse::new(session.id().to_string())
        .modes(config_options::encode_modes(&options))
        .config_options(shared::encode_config_options(&options))
        .meta(session_options::session_meta(&options)))
}
