//! `session/status` (unstable, behind `sessionCapabilities.status`): whether a session is open or only
//! stored. Changes nothing.

use super::Call;
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{
    SessionStatus, SessionStatusRequest, SessionStatusResponse,
};
use turnery_engine::SessionId;

pub(super) async fn answer(call: Call) -> Result<SessionStatusResponse, Fault> {
    let request: SessionStatusRequest = parse(&call.params)?;
    let id = &*request.session_id.0;
    if call.connection.session(id).is_ok() {
        return Ok(SessionStatusResponse::new(SessionStatus::Open));
    }
    match call.connection.agent.info(&SessionId::from(id)).await {
        Ok(_) => Ok(SessionStatusResponse::new(SessionStatus::Saved)),
        Err(error) => Err(Fault::store(&error)),
    }
}
