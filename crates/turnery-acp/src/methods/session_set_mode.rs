//! `session/set_mode`: sets how freely the agent acts, at any time (MODE-2).

use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    transport::{update_writer, writer::send_line},
    v1::config_options,
    view::session_options,
};
use agent_client_protocol_schema::v1::{SetSessionModeRequest, SetSessionModeResponse};

pub(super) async fn handle(call: MethodCall) -> Result<SetSessionModeResponse, RpcError> {
    let request: SetSessionModeRequest = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    session
        .set_mode(session_options::parse_mode(&request.mode_id.0)?)
        .await?;
    let update = config_options::encode_config_update(&session);
    let line = update_writer::update_line(session.id().as_str(), &update);
    send_line(call.connection.peer.out(), line).await;
    Ok(SetSessionModeResponse::new())
}
