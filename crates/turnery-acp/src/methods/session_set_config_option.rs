//! `session/set_config_option`: sets mode, model or thinking level, at any time (CFG-7).

use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    transport::{update_writer, writer::send_line},
    v1::{config_options, shared},
    view::session_options::{MODE, set_option},
};
use agent_client_protocol_schema::v1::{
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
};

pub(super) async fn handle(call: MethodCall) -> Result<SetSessionConfigOptionResponse, RpcError> {
    let request: SetSessionConfigOptionRequest = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let Some(value) = request.value.as_value_id() else {
        return Err(RpcError::invalid_params(
            "value must be a string: no option is boolean.",
        ));
    };
    set_option(&session, &request.config_id.0, &value.0).await?;
    if &*request.config_id.0 == MODE {
        let update = config_options::encode_mode_update(&session);
        let line = update_writer::update_line(session.id().as_str(), &update);
        send_line(call.connection.peer.out(), line).await;
    }
    Ok(SetSessionConfigOptionResponse::new(
        shared::encode_config_options(&session),
    ))
}
