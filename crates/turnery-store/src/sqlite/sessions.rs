//! Creates, finds, lists and changes sessions.

use super::{
    columns::{optional_text_column, text, time},
    job_error::JobError,
};
use crate::{
    ArchivedFilter, ListPage, ListQuery, NewSession, SessionInfo, SessionPatch, StoreError,
    list_cursor::{ListCursor, PAGE_SIZE, format_time},
};
use rusqlite::{Connection, Row, TransactionBehavior, params, types::ValueRef};
use serde::de::DeserializeOwned;
use std::path::Path;
use turnery_engine::SessionId;

pub(super) const COLUMNS: &str = "session_id, cwd, roots, title, model, mode, created_at, updated_at, head_version, tip_loop_id, \
     spawned_by, thinking, always, archived, folder, protocol";

/// Number of columns in [`COLUMNS`].
pub(super) const COLUMN_COUNT: usize = 16;

/// Index of `updated_at` in [`COLUMNS`].
const UPDATED_AT_COLUMN: usize = 7;

pub(super) fn create(db: &Connection, new: NewSession) -> Result<SessionInfo, JobError> {
    let info = new.into_info();
    let spawned_by = info.spawned_by.as_ref().map(serde_json::to_string);
    let mut insert = db.prepare_cached(
        "INSERT INTO sessions (session_id, cwd, folder, roots, model, mode, created_at, updated_at, spawned_by) \
         VALUES (?1, ?2, ?8, ?3, ?4, ?5, ?6, ?6, ?7) ON CONFLICT (session_id) DO NOTHING",
    )?;
    let made = insert.execute(params![
        info.id.as_str(),
        path_text(&info.cwd)?,
        serde_json::to_string(&info.roots)?,
        info.model,
        info.mode,
        format_time(info.created_at),
        spawned_by.transpose()?,
        path_text(&info.folder)?
    ])?;
    match made {
        0 => Err(StoreError::Exists(info.id).into()),
        _ => Ok(info),
    }
}

pub(super) fn get(db: &Connection, id: &SessionId) -> Result<SessionInfo, JobError> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE session_id = ?1"
    ))?;
    let mut rows = select.query((id.as_str(),))?;
    match rows.next()? {
        Some(row) => Ok(session_from_row(row)),
        None => Err(StoreError::NotFound(id.clone()).into()),
    }
}

/// Lists sessions by last activity, newest first; ties are ordered by descending id.
pub(super) fn list(db: &Connection, query: &ListQuery) -> Result<ListPage, JobError> {
    let limit = match query.limit {
        0 => PAGE_SIZE,
        limit => limit,
    };
    let start = query
        .cursor
        .as_deref()
        .map(ListCursor::decode)
        .transpose()?;
    // A text greater than every time starts at the top.
    let (before, below) = match &start {
        Some(start) => (start.updated_at.as_str(), start.id.as_str()),
        None => ("~", ""),
    };
    let here = match &query.folder {
        // No session is stored for a folder whose name is not UTF-8.
        Some(cwd) => match cwd.to_str() {
            Some(cwd) => Some(cwd),
            None => return Ok(ListPage::default()),
        },
        None => None,
    };
    let mut select = db.prepare_cached(&list_sql(query))?;
    let one_more = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut rows = select.query(params![before, below, one_more, here])?;
    let mut sessions = Vec::new();
    let (mut last, mut next_cursor) = (None, None);
    while let Some(row) = rows.next()? {
        if sessions.len() == limit {
            next_cursor = last.map(|last: ListCursor| last.encode());
            break;
        }
        let session = session_from_row(row);
        last = Some(ListCursor {
            updated_at: cursor_time(row)?,
            id: session.id.clone(),
        });
        sessions.push(session);
    }
    Ok(ListPage {
        sessions,
        next_cursor,
    })
}

/// Returns the statement of one list page. Parameters: the position after which the page starts (time and id),
/// the number of rows, the folder or NULL.
fn list_sql(query: &ListQuery) -> String {
    let folder = match query.folder {
        Some(_) => "folder = ?4",
        None => "?4 IS NULL",
    };
    let spawned = match query.spawned {
        true => "TRUE",
        false => "spawned_by IS NULL",
    };
    let archived = match query.archived {
        ArchivedFilter::Exclude => "NOT archived",
        ArchivedFilter::Include => "TRUE",
        ArchivedFilter::Only => "archived",
    };
    // Selects ids first: the index covers the inner statement, so only the rows of the page are read
    // completely.
    format!(
        "WITH page AS MATERIALIZED (SELECT session_id FROM sessions \
             WHERE (updated_at, session_id) < (?1, ?2) AND {folder} AND {spawned} AND {archived} \
             ORDER BY updated_at DESC, session_id DESC LIMIT ?3) \
         SELECT {COLUMNS} FROM page JOIN sessions USING (session_id) \
         ORDER BY updated_at DESC, session_id DESC"
    )
}

pub(super) fn patch(
    db: &mut Connection,
    id: &SessionId,
    patch: SessionPatch,
) -> Result<SessionInfo, JobError> {
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut info = get(&db, id)?;
    let mut update = db.prepare_cached(
        "UPDATE sessions SET title = iif(?2, ?3, title), model = coalesce(?4, model), \
         mode = coalesce(?5, mode), roots = coalesce(?6, roots), \
         updated_at = coalesce(?7, updated_at), thinking = coalesce(?8, thinking), \
         always = coalesce(?9, always), archived = coalesce(?10, archived), \
         protocol = coalesce(?11, protocol) WHERE session_id = ?1",
    )?;
    let named = patch.clone();
    patch.apply(&mut info);
    let roots = named.roots.map(|_| serde_json::to_string(&info.roots));
    let always = named.always.map(|_| serde_json::to_string(&info.always));
    // Columns that the patch does not name are not written: their stored values may be unreadable but intact.
    update.execute(params![
        id.as_str(),
        named.title.is_some(),
        named.title.flatten(),
        named.model,
        named.mode,
        roots.transpose()?,
        named.updated_at.map(format_time),
        named.thinking,
        always.transpose()?,
        named.archived,
        named.protocol
    ])?;
    drop(update);
    db.commit()?;
    Ok(info)
}

/// Reads [`COLUMNS`]. Unreadable columns become empty and are logged.
pub(super) fn session_from_row(row: &Row<'_>) -> SessionInfo {
    let (info, damage) = read_columns(row);
    for UnreadableColumn { column, reason } in damage {
        tracing::warn!(session = %info.id, column, reason, "failed to read a column of a session");
    }
    info
}

/// Unreadable column of a session.
pub(super) struct UnreadableColumn {
    pub(super) column: &'static str,
    pub(super) reason: String,
}

/// Reads [`COLUMNS`], and returns the unreadable ones.
pub(super) fn read_columns(row: &Row<'_>) -> (SessionInfo, Vec<UnreadableColumn>) {
    let mut columns = ColumnReader {
        row,
        unreadable: Vec::new(),
    };
    let id = columns.text(0, "session_id").unwrap_or_default();
    let created_at = columns.get(6, "created_at", |column| time(text(row, column)?));
    let updated_at = columns.get(7, "updated_at", |column| time(text(row, column)?));
    let either = updated_at.or(created_at).unwrap_or_default();
    let cwd = columns.text(1, "cwd").unwrap_or_default();
    // A repair empties an unreadable folder.
    let folder = columns.text(14, "folder").filter(|it| !it.is_empty());
    let info = SessionInfo {
        id: id.into(),
        folder: folder.unwrap_or_else(|| cwd.clone()).into(),
        cwd: cwd.into(),
        roots: columns.json(2, "roots").unwrap_or_default(),
        title: columns.optional(3, "title"),
        model: columns.text(4, "model").unwrap_or_default(),
        mode: columns.text(5, "mode").unwrap_or_default(),
        created_at: created_at.unwrap_or(either),
        updated_at: either,
        head_version: columns
            .get(8, "head_version", |column| Ok(row.get(column)?))
            .unwrap_or_default(),
        tip_loop_id: columns.optional(9, "tip_loop_id").map(Into::into),
        spawned_by: columns
            .get(10, "spawned_by", |column| {
                Ok(optional_text_column(row, column)?
                    .map(serde_json::from_str)
                    .transpose()?)
            })
            .flatten(),
        thinking: columns.optional(11, "thinking"),
        always: columns.json(12, "always").unwrap_or_default(),
        archived: columns
            .get(13, "archived", |column| Ok(row.get(column)?))
            .unwrap_or_default(),
        protocol: columns.optional(15, "protocol"),
    };
    (info, columns.unreadable)
}

/// Reads columns one by one and collects errors.
struct ColumnReader<'r, 's> {
    row: &'r Row<'s>,
    unreadable: Vec<UnreadableColumn>,
}

impl ColumnReader<'_, '_> {
    fn get<T>(
        &mut self,
        column: usize,
        name: &'static str,
        read: impl FnOnce(usize) -> Result<T, JobError>,
    ) -> Option<T> {
        match read(column) {
            Ok(value) => Some(value),
            Err(error) => {
                self.unreadable.push(UnreadableColumn {
                    column: name,
                    reason: error.to_string(),
                });
                None
            }
        }
    }

    fn text(&mut self, column: usize, name: &'static str) -> Option<String> {
        let row = self.row;
        self.get(column, name, |column| Ok(text(row, column)?.to_owned()))
    }

    fn optional(&mut self, column: usize, name: &'static str) -> Option<String> {
        let row = self.row;
        let read = self.get(column, name, |column| {
            Ok(optional_text_column(row, column)?.map(ToOwned::to_owned))
        });
        read.flatten()
    }

    fn json<T: DeserializeOwned>(&mut self, column: usize, name: &'static str) -> Option<T> {
        let row = self.row;
        self.get(column, name, |column| {
            Ok(serde_json::from_str(text(row, column)?)?)
        })
    }
}

/// Returns the longest valid UTF-8 prefix of `updated_at`: the position of the next page in list order, even
/// if it is not a time.
fn cursor_time(row: &Row<'_>) -> Result<String, JobError> {
    let bytes = match row.get_ref(UPDATED_AT_COLUMN)? {
        ValueRef::Text(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => &[],
    };
    let end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn path_text(path: &Path) -> Result<&str, JobError> {
    path.to_str()
        .ok_or_else(|| JobError::InvalidRow(format!("the folder name {path:?} is not UTF-8")))
}

#[cfg(test)]
mod tests;
