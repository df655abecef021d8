//! `session/list`: the stored sessions, a page at a time.

use crate::{
    fault::{Fault, parse},
    methods::{Call, setup::absolute},
    outbox::rfc3339,
};
use agent_client_protocol_schema::v2::{ListSessionsRequest, ListSessionsResponse, SessionInfo};
use turnery_store::{Archived, ListQuery};
use turnery_tools::visible_line;

pub(super) async fn answer(call: Call) -> Result<ListSessionsResponse, Fault> {
    let request: ListSessionsRequest = parse(&call.params)?;
    let cwd = request.cwd.map(|cwd| cwd.into_inner());
    if let Some(cwd) = &cwd {
        absolute("cwd", cwd)?;
    }
    let query = ListQuery {
        spawned: false,
        archived: Archived::Exclude,
        cwd,
        cursor: request.cursor.map(|cursor| cursor.0.to_string()),
        limit: 0,
    };
    let page = call.connection.agent.list(query).await;
    let page = page.map_err(|error| Fault::store(&error))?;
    let sessions = page.sessions.into_iter().map(to_wire).collect();
    let list = ListSessionsResponse::new(sessions);
    Ok(match page.next_cursor {
        Some(cursor) => list.next_cursor(cursor.as_str()),
        None => list,
    })
}

fn to_wire(session: turnery_store::SessionInfo) -> SessionInfo {
    SessionInfo::new(session.id.as_str(), session.cwd)
        .additional_directories(session.roots)
        .title(session.title.map(|title| visible_line(&title).into_owned()))
        .updated_at(rfc3339(session.updated_at))
}
