//! `session/list`: the stored sessions, a page at a time. Changes nothing (LIST-4).

use super::{Call, setup};
use crate::{
    fault::{Fault, parse},
    outbox::rfc3339,
};
use agent_client_protocol_schema::v1::{
    ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter, SessionInfo,
};
use turnery_store::{Archived, ListQuery};
use turnery_tools::visible_line;

pub(super) async fn answer(call: Call) -> Result<ListSessionsResponse, Fault> {
    let request: ListSessionsRequest = parse(&call.params)?;
    if let Some(cwd) = &request.cwd {
        setup::absolute("cwd", cwd)?;
    }
    let query = ListQuery {
        spawned: false,
        archived: filter(request.archived)?,
        cwd: request.cwd,
        cursor: request.cursor,
        limit: 0,
    };
    let page = call.connection.agent.list(query).await;
    let page = page.map_err(|error| Fault::store(&error))?;
    let sessions = page.sessions.into_iter().map(to_wire).collect();
    Ok(ListSessionsResponse::new(sessions).next_cursor(page.next_cursor))
}

fn to_wire(session: turnery_store::SessionInfo) -> SessionInfo {
    SessionInfo::new(session.id.to_string(), session.cwd)
        .additional_directories(session.roots)
        .title(session.title.map(|title| visible_line(&title).into_owned()))
        .updated_at(rfc3339(session.updated_at))
        .archived(session.archived)
}

/// Unstable, behind `sessionCapabilities.archive`. Without it, what was put away is not listed.
fn filter(asked: Option<SessionArchiveFilter>) -> Result<Archived, Fault> {
    match asked {
        None | Some(SessionArchiveFilter::Exclude) => Ok(Archived::Exclude),
        Some(SessionArchiveFilter::Include) => Ok(Archived::Include),
        Some(SessionArchiveFilter::Only) => Ok(Archived::Only),
        Some(_) => Err(Fault::params("archived: choose exclude, include or only.")),
    }
}
