//! `session/close`: cancels what runs and lets the session go (CLOSE-1). One that is not open is closed already.

use super::{Call, setup};
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{CloseSessionRequest, CloseSessionResponse};

pub(crate) async fn answer(call: Call) -> Result<CloseSessionResponse, Fault> {
    let request: CloseSessionRequest = parse(&call.params)?;
    setup::close_if_open(&call.connection, &request.session_id.0).await;
    Ok(CloseSessionResponse::new())
}
