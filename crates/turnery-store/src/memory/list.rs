//! Lists the sessions in memory.

use super::MemorySession;
use crate::{
    ListPage, ListQuery, SessionInfo,
    list_cursor::{ListCursor, PAGE_SIZE, format_time},
};
use std::collections::HashMap;
use turnery_engine::SessionId;

/// Returns a page of sessions, the last active ones first.
pub(super) fn list_page(
    sessions: &HashMap<SessionId, MemorySession>,
    query: &ListQuery,
    start: Option<&ListCursor>,
) -> ListPage {
    let limit = match query.limit {
        0 => PAGE_SIZE,
        limit => limit,
    };
    let here = |session: &&MemorySession| {
        query
            .folder
            .as_ref()
            .is_none_or(|cwd| session.info.folder == *cwd)
    };
    let infos = sessions.values().filter(here).map(|session| &session.info);
    let mut found: Vec<(String, &SessionInfo)> = infos
        .filter(|info| query.spawned || info.spawned_by.is_none())
        .filter(|info| query.archived.matches(info.archived))
        .map(|info| (format_time(info.updated_at), info))
        .filter(|(updated_at, info)| {
            start.is_none_or(|start| (updated_at, &info.id) < (&start.updated_at, &start.id))
        })
        .collect();
    found.sort_by(|(next_event, a), (bt, b)| (bt, &b.id).cmp(&(next_event, &a.id)));
    let more = found.len() > limit;
    let sessions: Vec<SessionInfo> = found
        .into_iter()
        .take(limit)
        .map(|(_, info)| info.clone())
        .collect();
    let last = sessions.last().filter(|_| more);
    ListPage {
        next_cursor: last.map(|last| ListCursor::after(last.updated_at, last.id.clone()).encode()),
        sessions,
    }
}
