//! Creates, finds, lists and changes sessions.

use super::{
    connection::Connection,
    engine::{CALL_TIMEOUT, Shared},
    escape::{escape, unescape},
    pg_error::PgError,
    rows::{Columns, parse_time},
};
use crate::{
    ArchivedFilter, ListPage, ListQuery, NewSession, SessionInfo, SessionPatch, SpawnRef,
    StoreError,
    encoding::row_error::RowError,
    list_cursor::{ListCursor, PAGE_SIZE, format_time},
};
use serde::de::DeserializeOwned;
use std::{borrow::Cow, path::Path};
use tokio_postgres::Row;
use turnery_engine::SessionId;

/// Columns of the metadata of a session `s`.
macro_rules! session_columns {
    () => {
        "s.session_id, s.cwd, s.roots, s.title, s.model, s.mode, s.created_at, s.updated_at, s.head_version, \
         s.tip_loop_id, s.spawned_by, s.thinking, s.always, s.archived, s.folder, s.protocol"
    };
}
pub(super) use session_columns;

/// Number of columns in [`session_columns`].
pub(super) const COLUMN_COUNT: usize = 16;

const INSERT: &str = "INSERT INTO sessions \
     (session_id, cwd, folder, roots, model, mode, created_at, updated_at, spawned_by, parent_session_id) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9) ON CONFLICT DO NOTHING";

const SELECT: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE session_id = $1"
);

const SELECT_FOR_UPDATE: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions s WHERE session_id = $1 FOR NO KEY UPDATE"
);

const UPDATE: &str = "UPDATE sessions SET title = CASE WHEN $2 THEN $3 ELSE title END, \
     model = coalesce($4, model), mode = coalesce($5, mode), roots = coalesce($6, roots), \
     updated_at = coalesce($7, updated_at), thinking = coalesce($8, thinking), always = coalesce($9, always), \
     archived = coalesce($10, archived), protocol = coalesce($11, protocol) WHERE session_id = $1";

/// Statement of a page of the list.
macro_rules! list_sql {
    ($folder:expr) => {
        concat!(
            "SELECT ",
            session_columns!(),
            " FROM sessions s WHERE (updated_at, session_id) < ($1, $2) AND ",
            $folder,
            " AND ($5 OR spawned_by IS NULL) AND ($6::boolean IS NULL OR archived = $6) \
             ORDER BY updated_at DESC, session_id DESC LIMIT $3"
        )
    };
}

const LIST_ALL: &str = list_sql!("$4::text IS NULL");
const LIST_FOLDER: &str = list_sql!("folder = $4");

pub(super) async fn create(shared: &Shared, new: NewSession) -> Result<SessionInfo, StoreError> {
    let info = new.into_info();
    let mut has_tried = false;
    shared
        .run(CALL_TIMEOUT, async |connection| {
            let is_repeated = std::mem::replace(&mut has_tried, true);
            let made = insert(connection, &info).await;
            if let Err(PgError::Store(StoreError::Exists(id))) = &made
                && is_repeated
                && get(connection, id).await? == info
            {
                // An attempt whose answer was lost has made it.
                return Ok(());
            }
            made
        })
        .await?;
    Ok(info)
}

async fn insert(connection: &Connection, info: &SessionInfo) -> Result<(), PgError> {
    let spawned_by = info.spawned_by.as_ref().map(serde_json::to_string);
    let spawned_by = spawned_by.transpose().map_err(RowError::from)?;
    let parent = info.spawned_by.as_ref().map(|by| by.session_id.as_str());
    let roots = serde_json::to_string(&info.roots).map_err(RowError::from)?;
    let made = connection
        .execute(
            INSERT,
            &[
                &info.id.as_str(),
                &path_text(&info.cwd)?,
                &path_text(&info.folder)?,
                &roots,
                &escape(&info.model),
                &escape(&info.mode),
                &format_time(info.created_at),
                &spawned_by,
                &parent,
            ],
        )
        .await?;
    match made {
        0 => Err(StoreError::Exists(info.id.clone()).into()),
        _ => Ok(()),
    }
}

pub(super) async fn get(connection: &Connection, id: &SessionId) -> Result<SessionInfo, PgError> {
    let row = connection.query_optional(SELECT, &[&id.as_str()]).await?;
    let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
    session_from_row(Columns(&row))
}

/// Parameters of a statement that lists sessions, and the page that it fills.
pub(super) struct ListParameters<'q> {
    start: Option<ListCursor>,
    pub(super) folder: Option<Cow<'q, str>>,
    pub(super) archived: Option<bool>,
    limit: usize,
}

impl<'q> ListParameters<'q> {
    /// Returns the parameters of a page with at most `limit` sessions; `None` if no session can be on it.
    pub(super) fn new(query: &'q ListQuery, limit: usize) -> Result<Option<Self>, StoreError> {
        let start = query.cursor.as_deref().map(ListCursor::decode);
        let start = start.transpose()?;
        let folder = match &query.folder {
            // No session is stored for a folder whose name is not UTF-8.
            Some(folder) => match folder.to_str() {
                Some(folder) => Some(escape(folder)),
                None => return Ok(None),
            },
            None => None,
        };
        let archived = match query.archived {
            ArchivedFilter::Exclude => Some(false),
            ArchivedFilter::Include => None,
            ArchivedFilter::Only => Some(true),
        };
        Ok(Some(Self {
            start,
            folder,
            archived,
            limit,
        }))
    }

    /// Returns the time and the id below which the page begins.
    pub(super) fn start(&self) -> (&str, &str) {
        match &self.start {
            Some(start) => (start.updated_at.as_str(), start.id.as_str()),
            // A text greater than every time starts at the top.
            None => ("~", ""),
        }
    }

    /// Returns the number of rows to ask for: one more than the page takes shows whether there is another page.
    pub(super) fn row_limit(&self) -> i64 {
        i64::try_from(self.limit.saturating_add(1)).unwrap_or(i64::MAX)
    }

    /// Returns the rows of the page, which begin with [`session_columns`], and the cursor of the next one.
    pub(super) fn split<'r>(
        &self,
        rows: &'r [Row],
    ) -> Result<(&'r [Row], Option<String>), PgError> {
        let page = rows.get(..self.limit.min(rows.len())).unwrap_or_default();
        let next = match page.last().map(Columns) {
            Some(last) if rows.len() > page.len() => {
                let last = ListCursor {
                    updated_at: last.text(7)?.to_owned(),
                    id: last.text(0)?.into(),
                };
                Some(last.encode())
            }
            Some(_) | None => None,
        };
        Ok((page, next))
    }
}

/// Lists sessions by last activity, newest first; ties are ordered by descending id.
pub(super) async fn list(connection: &Connection, query: &ListQuery) -> Result<ListPage, PgError> {
    let limit = match query.limit {
        0 => PAGE_SIZE,
        limit => limit,
    };
    let Some(parameters) = ListParameters::new(query, limit)? else {
        return Ok(ListPage::default());
    };
    let (before, below) = parameters.start();
    let sql = match parameters.folder {
        Some(_) => LIST_FOLDER,
        None => LIST_ALL,
    };
    let rows = connection
        .query(
            sql,
            &[
                &before,
                &below,
                &parameters.row_limit(),
                &parameters.folder,
                &query.spawned,
                &parameters.archived,
            ],
        )
        .await?;
    let (rows, next_cursor) = parameters.split(&rows)?;
    let sessions = rows.iter().map(|row| session_from_row(Columns(row)));
    Ok(ListPage {
        sessions: sessions.collect::<Result<_, PgError>>()?,
        next_cursor,
    })
}

pub(super) async fn patch(
    connection: &Connection,
    id: &SessionId,
    patch: &SessionPatch,
) -> Result<SessionInfo, PgError> {
    let rows = connection
        .begin("BEGIN", SELECT_FOR_UPDATE, &[&id.as_str()])
        .await?;
    let row = rows.first().ok_or_else(|| StoreError::NotFound(id.clone()));
    let row = match row {
        Ok(row) => row,
        Err(error) => {
            connection.commit().await?;
            return Err(error.into());
        }
    };
    let mut info = session_from_row(Columns(row))?;
    let named = patch.clone();
    let title = named.title.clone().flatten();
    patch.clone().apply(&mut info);
    let roots = named.roots.map(|_| serde_json::to_string(&info.roots));
    let always = named.always.map(|_| serde_json::to_string(&info.always));
    connection
        .execute(
            UPDATE,
            &[
                &id.as_str(),
                &named.title.is_some(),
                &title.as_deref().map(escape),
                &named.model.as_deref().map(escape),
                &named.mode.as_deref().map(escape),
                &roots.transpose().map_err(RowError::from)?,
                &named.updated_at.map(format_time),
                &named.thinking,
                &always.transpose().map_err(RowError::from)?,
                &named.archived,
                &named.protocol,
            ],
        )
        .await?;
    connection.commit().await?;
    Ok(info)
}

/// Reads [`session_columns`]. Unreadable values become empty and are logged.
pub(super) fn session_from_row(row: Columns<'_>) -> Result<SessionInfo, PgError> {
    let (info, unreadable) = read_columns(row)?;
    for (column, reason) in unreadable {
        tracing::warn!(session = %info.id, column, reason, "failed to read a column of a session");
    }
    Ok(info)
}

/// Unreadable column of a session, and the reason.
pub(super) type PgUnreadableColumn = (&'static str, String);

/// Reads [`session_columns`], and returns the columns whose values are unreadable.
pub(super) fn read_columns(
    row: Columns<'_>,
) -> Result<(SessionInfo, Vec<PgUnreadableColumn>), PgError> {
    let mut unreadable = Vec::new();
    let mut note = |column, error: RowError| unreadable.push((column, error.to_string()));
    let mut read_time = |column, name| {
        parse_time(row.text(column)?).map(Some).or_else(|error| {
            note(name, error);
            Ok::<_, PgError>(None)
        })
    };
    let created_at = read_time(6, "created_at")?;
    let updated_at = read_time(7, "updated_at")?;
    let either = updated_at.or(created_at).unwrap_or_default();
    let roots = parse_json(row.text(2)?).unwrap_or_else(|error| {
        note("roots", error);
        Vec::new()
    });
    let always = parse_json(row.text(12)?).unwrap_or_else(|error| {
        note("always", error);
        Vec::new()
    });
    let spawned_by: Option<SpawnRef> = match row.optional_text(10)?.map(parse_json).transpose() {
        Ok(by) => by,
        Err(error) => {
            note("spawned_by", error);
            None
        }
    };
    let owned = |text: Option<&str>| text.map(|text| unescape(text).into_owned());
    let info = SessionInfo {
        id: row.text(0)?.into(),
        cwd: unescape(row.text(1)?).into_owned().into(),
        folder: unescape(row.text(14)?).into_owned().into(),
        roots,
        title: owned(row.optional_text(3)?),
        model: unescape(row.text(4)?).into_owned(),
        mode: unescape(row.text(5)?).into_owned(),
        created_at: created_at.unwrap_or(either),
        updated_at: either,
        head_version: row.count(8)?,
        tip_loop_id: row.optional_text(9)?.map(Into::into),
        spawned_by,
        thinking: owned(row.optional_text(11)?),
        protocol: owned(row.optional_text(15)?),
        always,
        archived: row.boolean(13)?,
    };
    Ok((info, unreadable))
}

fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T, RowError> {
    Ok(serde_json::from_str(text)?)
}

fn path_text(path: &Path) -> Result<Cow<'_, str>, PgError> {
    path.to_str()
        .map(escape)
        .ok_or_else(|| RowError::Invalid(format!("the folder name {path:?} is not UTF-8")).into())
}
