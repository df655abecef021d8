//! `session/list`: lists the stored sessions, one page at a time.

use crate::{
    server::{
        method_call::MethodCall,
        params::{check_absolute, parse_params},
        rpc_error::RpcError,
    },
    v2::shared::encode_session,
};
use agent_client_protocol_schema::v2::{ListSessionsRequest, ListSessionsResponse};
use turnery_store::{ArchivedFilter, ListQuery};

pub(super) async fn handle(call: MethodCall) -> Result<ListSessionsResponse, RpcError> {
    let request: ListSessionsRequest = parse_params(&call.params)?;
    let cwd = request.cwd.map(|cwd| cwd.into_inner());
    if let Some(cwd) = &cwd {
        check_absolute("cwd", cwd)?;
    }
    let query = ListQuery {
        archived: ArchivedFilter::Exclude,
        folder: cwd,
        cursor: request.cursor.map(|cursor| cursor.0.to_string()),
        ..ListQuery::default()
    };
    let page = call.connection.agent.list(query).await;
    let page = page.map_err(|error| RpcError::from_store(&error))?;
    let sessions = page.sessions.into_iter().map(encode_session).collect();
    let list = ListSessionsResponse::new(sessions);
    Ok(match page.next_cursor {
        Some(cursor) => list.next_cursor(cursor.as_str()),
        None => list,
    })
}
