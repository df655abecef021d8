//! `session/new`: creates a session and returns its options and commands.

use crate::{
    methods::session_setup::SessionSetup,
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v2::{available_commands::list_available_commands, mcp_servers, shared::encode_config_options},
    view::session_options::session_meta,
};
use agent_client_protocol_schema::v2::{NewSessionRequest, NewSessionResponse};

pub(super) async fn handle(call: MethodCall) -> Result<NewSessionResponse, RpcError> {
    let request: NewSessionRequest = parse_params(&call.params)?;
    let roots = request.additional_directories.into_iter();
    let setup = SessionSetup::from_params(
        request.cwd.into_inner(),
        roots.map(|root| root.into_inner()).collect(),
        &mcp_servers::parse_servers(request.mcp_servers)?,
        None,
    )?;
    let session = setup.create(&call, None).await?;
    let options = session.options();
    Ok(NewSessionResponse::new(session.id().as_str())
        .config_options(encode_config_options(&session))
        .meta(session_meta(&options))
        .available_commands(list_available_commands(&options, &[])))
}
