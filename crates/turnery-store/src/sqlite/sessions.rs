//! Sessions: make, find, list, change and remove them.

use super::{
    fault::Fault,
    loops::{maybe, text, time},
};
use crate::{
    Archived, ListPage, ListQuery, NewSession, PAGE_SIZE, SessionInfo, SessionPatch, StoreError,
    cursor::{Cursor, time_text},
};
use rusqlite::{Connection, Row, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use turnery_engine::SessionId;

pub(super) const COLUMNS: &str = "session_id, cwd, roots, title, model, mode, created_at, updated_at, head_version, tip_loop_id, \
     spawned_by, thinking, always, archived";

/// How many columns that are.
pub(super) const WIDTH: usize = 14;

pub(super) fn create(db: &mut Connection, new: NewSession) -> Result<SessionInfo, Fault> {
    let at = time_text(new.at);
    let spawned_by = new.spawned_by.as_ref().map(serde_json::to_string);
    let spawned_by = spawned_by.transpose()?;
    let mut insert = db.prepare_cached(
        "INSERT INTO sessions (session_id, cwd, folder, roots, model, mode, created_at, updated_at, spawned_by) \
         VALUES (?1, ?2, ?8, ?3, ?4, ?5, ?6, ?6, ?7) ON CONFLICT (session_id) DO NOTHING",
    )?;
    let made = insert.execute(params![
        new.id.as_str(),
        path_text(&new.cwd)?,
        serde_json::to_string(&new.roots)?,
        new.model,
        new.mode,
        at,
        spawned_by,
        path_text(new.folder.as_ref().unwrap_or(&new.cwd))?
    ])?;
    if made == 0 {
        return Err(StoreError::Exists(new.id).into());
    }
    Ok(SessionInfo {
        id: new.id,
        cwd: new.cwd,
        roots: new.roots,
        title: None,
        model: new.model,
        mode: new.mode,
        created_at: new.at,
        updated_at: new.at,
        head_version: 0,
        tip_loop_id: None,
        spawned_by: new.spawned_by,
        thinking: None,
        always: Vec::new(),
        archived: false,
    })
}

pub(super) fn info(db: &mut Connection, id: &SessionId) -> Result<SessionInfo, Fault> {
    get(db, id)
}

pub(super) fn get(db: &Connection, id: &SessionId) -> Result<SessionInfo, Fault> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sessions WHERE session_id = ?1"
    ))?;
    let mut rows = select.query((id.as_str(),))?;
    match rows.next()? {
        Some(row) => session(row),
        None => Err(StoreError::NotFound(id.clone()).into()),
    }
}

/// The one last active first; of two at once, the one with the greater id first.
pub(super) fn list(db: &mut Connection, query: &ListQuery) -> Result<ListPage, Fault> {
    let limit = match query.limit {
        0 => PAGE_SIZE,
        limit => limit,
    };
    let start = match &query.cursor {
        Some(cursor) => Some(Cursor::decode(cursor)?),
        None => None,
    };
    // A text above all times begins at the top.
    let (before, below) = match &start {
        Some(start) => (start.updated_at.as_str(), start.id.as_str()),
        None => ("~", ""),
    };
    let here = match &query.cwd {
        Some(cwd) => Some(path_text(cwd)?),
        None => None,
    };
    let folder = if here.is_some() {
        "folder = ?4"
    } else {
        "?4 IS NULL"
    };
    let whose = if query.spawned {
        "TRUE"
    } else {
        "spawned_by IS NULL"
    };
    let which = match query.archived {
        Archived::Exclude => "NOT archived",
        Archived::Include => "TRUE",
        Archived::Only => "archived",
    };
    // The ids first: there is no index by time, since each commit would have to write it, and to sort
    // whole rows takes longer.
    let mut select = db.prepare_cached(&format!(
        "WITH page AS MATERIALIZED (SELECT session_id FROM sessions \
             WHERE (updated_at, session_id) < (?1, ?2) AND {folder} AND {whose} AND {which} \
             ORDER BY updated_at DESC, session_id DESC LIMIT ?3) \
         SELECT {COLUMNS} FROM page JOIN sessions USING (session_id) \
         ORDER BY updated_at DESC, session_id DESC"
    ))?;
    let one_more = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut rows = select.query(params![before, below, one_more, here])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        sessions.push(session(row)?);
    }
    let more = sessions.len() > limit;
    sessions.truncate(limit);
    let last = sessions.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::after(last.updated_at, last.id.clone()).encode());
    Ok(ListPage {
        sessions,
        next_cursor,
    })
}

/// What belongs to a session goes with it: each table says so itself. Its children go by name.
pub(super) fn delete(db: &mut Connection, id: &SessionId) -> Result<bool, Fault> {
    let mut delete = db.prepare_cached(
        "WITH RECURSIVE gone (id) AS (VALUES (?1) UNION SELECT session_id FROM sessions \
             JOIN gone ON spawned_by ->> 'session_id' = gone.id) \
         DELETE FROM sessions WHERE session_id IN gone RETURNING session_id",
    )?;
    let mut gone = delete.query((id.as_str(),))?;
    let mut found = false;
    while let Some(row) = gone.next()? {
        found |= text(row, 0)? == id.as_str();
    }
    Ok(found)
}

pub(super) fn patch(
    db: &mut Connection,
    id: &SessionId,
    patch: SessionPatch,
) -> Result<SessionInfo, Fault> {
    let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut info = get(&db, id)?;
    patch.apply(&mut info);
    let mut update = db.prepare_cached(
        "UPDATE sessions SET title = ?2, model = ?3, mode = ?4, roots = ?5, updated_at = ?6, \
         thinking = ?7, always = ?8, archived = ?9 \
         WHERE session_id = ?1",
    )?;
    update.execute(params![
        id.as_str(),
        info.title,
        info.model,
        info.mode,
        serde_json::to_string(&info.roots)?,
        time_text(info.updated_at),
        info.thinking,
        serde_json::to_string(&info.always)?,
        info.archived
    ])?;
    drop(update);
    db.commit()?;
    Ok(info)
}

impl SessionPatch {
    /// Change what it names.
    pub(crate) fn apply(self, info: &mut SessionInfo) {
        if let Some(title) = self.title {
            info.title = title;
        }
        if let Some(model) = self.model {
            info.model = model;
        }
        if let Some(mode) = self.mode {
            info.mode = mode;
        }
        if let Some(roots) = self.roots {
            info.roots = roots;
        }
        if let Some(updated_at) = self.updated_at {
            info.updated_at = updated_at;
        }
        if let Some(thinking) = self.thinking {
            info.thinking = Some(thinking);
        }
        if let Some(archived) = self.archived {
            info.archived = archived;
        }
        if let Some(always) = self.always
            && !info.always.contains(&always)
        {
            info.always.push(always);
        }
    }
}

/// Read [`COLUMNS`].
pub(super) fn session(row: &Row<'_>) -> Result<SessionInfo, Fault> {
    Ok(SessionInfo {
        id: text(row, 0)?.into(),
        cwd: PathBuf::from(text(row, 1)?),
        roots: serde_json::from_str(text(row, 2)?)?,
        title: row.get(3)?,
        model: row.get(4)?,
        mode: row.get(5)?,
        created_at: time(text(row, 6)?)?,
        updated_at: time(text(row, 7)?)?,
        head_version: row.get(8)?,
        tip_loop_id: maybe(row, 9)?.map(Into::into),
        spawned_by: maybe(row, 10)?.map(serde_json::from_str).transpose()?,
        thinking: row.get(11)?,
        always: serde_json::from_str(text(row, 12)?)?,
        archived: row.get(13)?,
    })
}

fn path_text(path: &Path) -> Result<&str, Fault> {
    path.to_str()
        .ok_or_else(|| Fault::Row(format!("the folder name {path:?} is not UTF-8")))
}
