//! `session/delete`: closes the session if it is open here, and removes it. None of that id: done already (DEL-2).

use super::{Call, setup};
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{DeleteSessionRequest, DeleteSessionResponse};
use turnery_engine::SessionId;

pub(crate) async fn answer(call: Call) -> Result<DeleteSessionResponse, Fault> {
    let request: DeleteSessionRequest = parse(&call.params)?;
    let id = SessionId::from(&*request.session_id.0);
    setup::close_if_open(&call.connection, id.as_str()).await;
    match call.connection.agent.delete(&id).await {
        Ok(_) => Ok(DeleteSessionResponse::new()),
        Err(error) => Err(Fault::store(&error)),
    }
}
