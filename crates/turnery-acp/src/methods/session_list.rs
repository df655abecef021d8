//! `session/list`: lists the stored sessions, one page at a time. Changes nothing (LIST-4).

use crate::{
    server::{
        method_call::MethodCall,
        params::{self, parse_params},
        rpc_error::RpcError,
    },
    view::rfc3339::format_rfc3339,
};
use agent_client_protocol_schema::v1::{
    ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter, SessionInfo,
};
use turnery_store::{ArchivedFilter, ListQuery};
use turnery_tools::escape_invisible_line;

pub(super) async fn handle(call: MethodCall) -> Result<ListSessionsResponse, RpcError> {
    let request: ListSessionsRequest = parse_params(&call.params)?;
    if let Some(cwd) = &request.cwd {
        params::check_absolute("cwd", cwd)?;
    }
    let query = ListQuery {
        spawned: false,
        archived: parse_archive_filter(request.archived)?,
        folder: request.cwd,
        cursor: request.cursor,
        limit: 0,
    };
    let page = call.connection.agent.list(query).await;
    let page = page.map_err(|error| RpcError::from_store(&error))?;
    let sessions = page.sessions.into_iter().map(encode_session).collect();
    Ok(ListSessionsResponse::new(sessions).next_cursor(page.next_cursor))
}

fn encode_session(session: turnery_store::SessionInfo) -> SessionInfo {
    SessionInfo::new(session.id.to_string(), session.cwd)
        .additional_directories(session.roots)
        .title(
            session
                .title
                .map(|title| escape_invisible_line(&title).into_owned()),
        )
        .updated_at(format_rfc3339(session.updated_at))
        .archived(session.archived)
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
