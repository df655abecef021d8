//! `session/list`: lists the stored sessions, one page at a time. Changes nothing (LIST-4).

use crate::{
    server::{
        method_call::MethodCall,
        params::{self, parse_params},
        rpc_error::RpcError,
    },
    v1::shared::encode_session,
};
use agent_client_protocol_schema::v1::{
    ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter,
};
use turnery_store::{ArchivedFilter, ListQuery};

pub(super) async fn handle(call: MethodCall) -> Result<ListSessionsResponse, RpcError> {
    let request: ListSessionsRequest = parse_params(&call.params)?;
    if let Some(cwd) = &request.cwd {
        params::check_absolute("cwd", cwd)?;
    }
    let query = ListQuery {
        archived: parse_archive_filter(request.archived)?,
        folder: request.cwd,
        cursor: request.cursor,
        ..ListQuery::default()
    };
    let page = call.connection.agent.list(query).await;
    let page = page.map_err(|error| RpcError::from_store(&error))?;
    let sessions = page.sessions.into_iter().map(|session| {
        let archived = session.archived;
        encode_session(session).archived(archived)
    });
    let sessions = sessions.collect();
    Ok(ListSessionsResponse::new(sessions).next_cursor(page.next_cursor))
}

/// Parses the archive filter (unstable, behind `sessionCapabilities.archive`). Without it, archived sessions
/// are omitted.
fn parse_archive_filter(filter: Option<SessionArchiveFilter>) -> Result<ArchivedFilter, RpcError> {
    match filter {
        None | Some(SessionArchiveFilter::Exclude) => Ok(ArchivedFilter::Exclude),
        Some(SessionArchiveFilter::Include) => Ok(ArchivedFilter::Include),
        Some(SessionArchiveFilter::Only) => Ok(ArchivedFilter::Only),
        Some(_) => Err(RpcError::invalid_params(
            "archived: choose exclude, include or only.",
        )),
    }
}
