//! `session/set_mode`: how freely the agent acts, at any time (MODE-2).

use super::Call;
use crate::{
    fault::{Fault, parse},
    options,
    serve::send,
    update,
};
use agent_client_protocol_schema::v1::{SetSessionModeRequest, SetSessionModeResponse};

pub(super) async fn answer(call: Call) -> Result<SetSessionModeResponse, Fault> {
    let request: SetSessionModeRequest = parse(&call.params)?;
    let session = call.connection.session(&request.session_id.0)?;
    session.set_mode(options::mode(&request.mode_id.0)?).await?;
    let update = options::config_update(&session);
    let line = update::line(session.id().as_str(), &update);
    send(call.connection.peer.out(), line).await;
    Ok(SetSessionModeResponse::new())
}
