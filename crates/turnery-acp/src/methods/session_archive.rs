//! `session/archive` and `session/unarchive` (unstable, behind `sessionCapabilities.archive`): puts a session away,
//! so that a list shows it only when asked, and takes it back. Once more is no error.

use super::{Call, setup};
use crate::fault::{Fault, parse};
use agent_client_protocol_schema::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, UnarchiveSessionRequest,
    UnarchiveSessionResponse,
};
use turnery_engine::SessionId;

/// One that is open is closed first, and what runs in it is cancelled.
pub(super) async fn archive(call: Call) -> Result<ArchiveSessionResponse, Fault> {
    let request: ArchiveSessionRequest = parse(&call.params)?;
    setup::close_if_open(&call.connection, &request.session_id.0).await;
    set(&call, &request.session_id.0, true).await?;
    Ok(ArchiveSessionResponse::new())
}

/// Take a session back.
pub(super) async fn unarchive(call: Call) -> Result<UnarchiveSessionResponse, Fault> {
    let request: UnarchiveSessionRequest = parse(&call.params)?;
    set(&call, &request.session_id.0, false).await?;
    Ok(UnarchiveSessionResponse::new())
}

async fn set(call: &Call, id: &str, archived: bool) -> Result<(), Fault> {
    let agent = &call.connection.agent;
    let kept = agent.set_archived(&SessionId::from(id), archived).await;
    kept.map_err(|error| Fault::store(&error))
}
