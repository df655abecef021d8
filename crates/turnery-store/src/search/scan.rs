//! Searches by reading every session: for stores without an index.

use super::{SearchHit, SearchPage, SearchQuery, SearchTerms, page_size, searched_texts, snippet};
use crate::{Store, StoreError, list_cursor::ListCursor};
use std::sync::Arc;
use turnery_engine::LoopRecord;

/// Searches, and reads every session of the list until the page is full.
pub(crate) async fn scan<S: Store + ?Sized>(
    store: &S,
    query: SearchQuery,
) -> Result<SearchPage, StoreError> {
    let SearchQuery { text, mut list } = query;
    let terms = SearchTerms::parse(&text);
    let limit = page_size(&list);
    list.limit = 0;
    let mut found = SearchPage::default();
    loop {
        let page = store.list(list.clone()).await?;
        for session in page.sessions {
            if terms.is_empty() {
                continue;
            }
            let loops = match store.loops(&session.id, 0).await {
                // Deleted meanwhile.
                Err(StoreError::NotFound(_)) => continue,
                loops => loops?,
            };
            let Some(snippet) = match_session(&terms, session.title.as_deref(), &loops) else {
                continue;
            };
            if found.hits.len() == limit {
                found.next_cursor = found.hits.last().map(|last| {
                    ListCursor::after(last.session.updated_at, last.session.id.clone()).encode()
                });
                return Ok(found);
            }
            found.hits.push(SearchHit { session, snippet });
        }
        match page.next_cursor {
            Some(cursor) => list.cursor = Some(cursor),
            None => return Ok(found),
        }
    }
}

/// Returns the snippet of a session that has all terms; `None` if one is missing.
fn match_session(
    terms: &SearchTerms,
    title: Option<&str>,
    loops: &[Arc<LoopRecord>],
) -> Option<Option<String>> {
    let mut is_found: Vec<bool> = terms
        .iter()
        .map(|term| term.find(title.unwrap_or_default()).is_some())
        .collect();
    let mut snippets: Vec<Option<String>> = vec![None; is_found.len()];
    for record in loops {
        for text in record.messages.iter().flat_map(|it| searched_texts(it)) {
            for ((term, is_found), place) in terms.iter().zip(&mut is_found).zip(&mut snippets) {
                if place.is_none()
                    && let Some(range) = term.find(text)
                {
                    *is_found = true;
                    *place = Some(snippet(text, range));
                }
            }
        }
    }
    let is_match = is_found.into_iter().all(|it| it);
    is_match.then(|| snippets.into_iter().flatten().next())
}
