//! `session/set_config_option`: mode, model or thinking, at any time (CFG-7).

use super::Call;
use crate::{
    fault::{Fault, parse},
    options::{self, MODE, MODEL, THINKING},
    serve::send,
    update,
};
use agent_client_protocol_schema::v1::{
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
};

pub(super) async fn answer(call: Call) -> Result<SetSessionConfigOptionResponse, Fault> {
    let request: SetSessionConfigOptionRequest = parse(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    let Some(value) = request.value.as_value_id() else {
        return Err(Fault::params(
            "value must be a string: no option is a switch.",
        ));
    };
    match &*request.config_id.0 {
        MODE => {
            session.set_mode(options::mode(&value.0)?).await?;
            let update = options::mode_update(&session);
            let line = update::line(session.id().as_str(), &update);
            send(call.connection.peer.out(), line).await;
        }
        MODEL => session.set_model(&value.0).await?,
        THINKING => session.set_thinking(options::thinking(&value.0)?).await?,
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
