//! `session/set_config_option`: mode, model or thinking, at any time. An unknown option, value or type of
//! value changes nothing (V2-18).

use crate::{
    fault::{Fault, parse},
    methods::Call,
    options::{self as values, MODE, MODEL, THINKING},
    v2::options,
};
use agent_client_protocol_schema::v2::{
    SessionConfigOptionValue, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
};

pub(super) async fn answer(call: Call) -> Result<SetSessionConfigOptionResponse, Fault> {
    let request: SetSessionConfigOptionRequest = parse(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let SessionConfigOptionValue::Id { value } = &request.value else {
        return Err(Fault::params(
            "type must be \"id\": no option of this session is anything but a choice.",
        ));
    };
    match &*request.config_id.0 {
        MODE => session.set_mode(values::mode(&value.0)?).await?,
        MODEL => session.set_model(&value.0).await?,
        THINKING => session.set_thinking(values::thinking(&value.0)?).await?,
        unknown => {
            return Err(Fault::params(format!(
                "{unknown:?} is no option of this session: choose {MODE}, {MODEL} or {THINKING}."
            )));
        }
    }
    Ok(SetSessionConfigOptionResponse::new(options::config(
        &session.options(),
    )))
}
