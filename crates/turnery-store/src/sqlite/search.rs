//! Searches sessions with the help of a [`SearchIndex`].

use super::{
    columns::{optional_text_column, text},
    job_error::JobError,
    long_texts::expand_references,
    search_index::{Place, SearchIndex},
    sessions,
};
use crate::{
    ArchivedFilter, ListQuery, SearchHit, SearchPage, SearchQuery, StoreError,
    list_cursor::ListCursor,
    search::{SearchTerms, page_size, searched_texts, snippet},
};
use rusqlite::Connection;
use std::sync::Arc;
use turnery_engine::{LlmMessage, SessionId};

/// Row of a session, as far as a search needs it.
struct SessionRow {
    id: String,
    updated_at: String,
    title: Option<String>,
    /// True if the query's list would have the session.
    is_listed: bool,
}

/// Searches, after adding to the index what was stored since. If the index file cannot be used, the search builds one
/// in memory.
pub(super) fn search(db: &Connection, query: &SearchQuery) -> Result<SearchPage, JobError> {
    let terms = SearchTerms::parse(&query.text);
    let start = query.list.cursor.as_deref().map(ListCursor::decode);
    let start = start.transpose()?;
    if terms.is_empty() {
        return Ok(SearchPage::default());
    }
    let in_file = SearchIndex::open(db).and_then(|index| find(db, index, &terms, query, &start));
    match in_file {
        Err(error) => {
            tracing::warn!(%error, "failed to use the index of the search");
            if error.is_damage() {
                SearchIndex::remove(db)?;
            }
            find(db, SearchIndex::in_memory()?, &terms, query, &start)
        }
        found => found,
    }
}

fn find(
    db: &Connection,
    mut index: SearchIndex,
    terms: &SearchTerms,
    query: &SearchQuery,
    start: &Option<ListCursor>,
) -> Result<SearchPage, JobError> {
    let indexed = index.update(db)?;
    let rows = read_rows(db, &query.list)?;
    // Of each term, where the conversation of a session first has it.
    let places = terms
        .iter()
        .map(|term| index.places(term))
        .collect::<Result<Vec<_>, _>>()?;
    let mut candidates: Vec<(&SessionRow, Option<Place>)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_listed) {
        if start.as_ref().is_some_and(|start| {
            (row.updated_at.as_str(), row.id.as_str()) >= (&*start.updated_at, start.id.as_str())
        }) {
            continue;
        }
        let session = indexed.get(row.id.as_str());
        let mut first = None;
        let title = row.title.as_deref().unwrap_or_default();
        let is_match = terms.iter().zip(&places).all(|(term, places)| {
            let place = session.and_then(|session| places.get(session)).copied();
            first = first.or(place);
            place.is_some() || term.find(title).is_some()
        });
        if is_match {
            candidates.push((row, first));
        }
    }
    candidates
        .sort_unstable_by(|(a, _), (b, _)| (&b.updated_at, &b.id).cmp(&(&a.updated_at, &a.id)));
    let limit = page_size(&query.list);
    let mut page = SearchPage::default();
    let mut last = None;
    for (row, place) in candidates {
        if page.hits.len() == limit {
            page.next_cursor = last.map(|last: ListCursor| last.encode());
            break;
        }
        let id = SessionId::from(row.id.as_str());
        let session = match sessions::get(db, &id) {
            // Deleted meanwhile.
            Err(JobError::Store(StoreError::NotFound(_))) => continue,
            session => session?,
        };
        let key = place
            .map(|place| index.loop_of(place))
            .transpose()?
            .flatten();
        let snippet = match key {
            Some(key) => loop_snippet(db, &id, key, terms)?,
            None => None,
        };
        last = Some(ListCursor {
            updated_at: row.updated_at.clone(),
            id,
        });
        page.hits.push(SearchHit { session, snippet });
    }
    Ok(page)
}

fn read_rows(db: &Connection, query: &ListQuery) -> Result<Vec<SessionRow>, JobError> {
    let folder = match &query.folder {
        // No session is stored for a folder whose name is not UTF-8.
        Some(folder) => match folder.to_str() {
            Some(folder) => Some(folder),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    let mut select = db.prepare_cached(
        "SELECT session_id, updated_at, title, (?1 IS NULL OR folder = ?1) AND (?2 OR spawned_by IS NULL) \
         AND (?3 IS NULL OR archived = ?3) FROM sessions",
    )?;
    let archived = match query.archived {
        ArchivedFilter::Exclude => Some(false),
        ArchivedFilter::Include => None,
        ArchivedFilter::Only => Some(true),
    };
    let mut found = select.query((folder, query.spawned, archived))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(SessionRow {
            id: text(row, 0)?.to_owned(),
            // Of a damaged row, an empty time: last in the list.
            updated_at: text(row, 1).unwrap_or_default().to_owned(),
            title: optional_text_column(row, 2)
                .unwrap_or_default()
                .map(ToOwned::to_owned),
            is_listed: row.get(3)?,
        });
    }
    Ok(rows)
}

/// Returns the text around the first term that a loop has.
fn loop_snippet(
    db: &Connection,
    id: &SessionId,
    key: i64,
    terms: &SearchTerms,
) -> Result<Option<String>, JobError> {
    let messages = loop_messages(db, id, key)?;
    let texts = || messages.iter().flat_map(|message| searched_texts(message));
    let found = terms.iter().find_map(|term| {
        texts().find_map(|text| term.find(text).map(|range| snippet(text, range)))
    });
    Ok(found)
}

/// Returns the messages of a stored loop; none if it cannot be read or is gone.
pub(super) fn loop_messages(
    db: &Connection,
    id: &SessionId,
    key: i64,
) -> Result<Vec<Arc<LlmMessage>>, JobError> {
    let mut select = db.prepare_cached("SELECT messages FROM loops WHERE loop = ?1")?;
    let mut rows = select.query((key,))?;
    let Some(row) = rows.next()? else {
        return Ok(Vec::new());
    };
    let parsed = text(row, 0)
        .and_then(|json| expand_references(db, id, json))
        .and_then(|json| Ok(serde_json::from_str(&json)?));
    match parsed {
        Err(error) if error.is_damage() => {
            tracing::debug!(session = %id, %error, "a damaged loop is not searched");
            Ok(Vec::new())
        }
        parsed => parsed,
    }
}
