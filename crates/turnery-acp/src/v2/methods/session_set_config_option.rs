//! `session/set_config_option`: sets mode, model or thinking level, at any time. An unknown option, value or
//! value type changes nothing (V2-18).

use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v2::shared,
    view::session_options::set_option,
};
use agent_client_protocol_schema::v2::{
    SessionConfigOptionValue, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
};

pub(super) async fn handle(call: MethodCall) -> Result<SetSessionConfigOptionResponse, RpcError> {
    let request: SetSessionConfigOptionRequest = parse_params(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let SessionConfigOptionValue::Id { value } = &request.value else {
        return Err(RpcError::invalid_params(
            "type must be \"id\": every option of this session is a choice.",
        ));
    };
    set_option(&session, &request.config_id.0, &value.0).await?;
    Ok(SetSessionConfigOptionResponse::new(
        shared::encode_config_options(&session),
    ))
}
