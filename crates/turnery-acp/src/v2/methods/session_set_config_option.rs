//! `session/set_config_option`: sets mode, model or thinking level, at any time. An unknown option, value or
//! value type changes nothing (V2-18).

use crate::{
    server::{method_call::MethodCall, params::parse_params, rpc_error::RpcError},
    v2::config_options,
    view::session_options::{self, MODE, MODEL, THINKING},
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
    match &*request.config_id.0 {
        MODE => {
            session
                .set_mode(session_options::parse_mode(&value.0)?)
                .await?
        }
        MODEL => session.set_model(&value.0).await?,
        THINKING => {
            session
                .set_thinking(session_options::parse_thinking(&value.0)?)
                .await?
        }
        unknown => {
            return Err(RpcError::invalid_params(format!(
                "{unknown:?} is not an option of this session: choose {MODE}, {MODEL} or {THINKING}."
            )));
        }
    }
    Ok(SetSessionConfigOptionResponse::new(
        config_options::encode_config_options(&session.options()),
    ))
}
