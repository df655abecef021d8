//! Searches sessions with the help of the table `search_chunks`.
//!
//! The index of the server finds the chunks that have all words of a term. Filters exclude most of those that do not have
//! them one after the other; the text of the rest decides, newest session first, until the page is full.

use super::{
    connection::Connection,
    engine::Shared,
    pg_error::PgError,
    phrase_filters::{self, PhraseHashes},
    rows::Columns,
    search_index::{self, read_messages},
    sessions::{COLUMN_COUNT, ListParameters, session_columns, session_from_row},
    texts::FetchedTexts,
};
use crate::{
    SearchHit, SearchPage, SearchQuery, StoreError,
    search::{SearchTerm, SearchTerms, page_size, searched_texts, snippet},
};
use std::{fmt::Write as _, time::Duration};
use tokio_postgres::Row;

/// Timeout of a search. A phrase of frequent words that hardly ever follow each other is looked for in all texts.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

/// The server knows nothing of new tables, and little of the cost of cutting a chunk into words. `OFFSET 0` has the same
/// purpose: it keeps the server from reading all chunks in the order of another index.
const BEGIN: &str = "BEGIN READ ONLY; SET LOCAL enable_seqscan = off; SET LOCAL jit = off";

/// Condition of a session that the list would show.
macro_rules! is_listed {
    () => {
        "(s.updated_at, s.session_id) < ($4, $5) AND ($7::text IS NULL OR s.folder = $7) \
         AND ($8 OR s.spawned_by IS NULL) AND ($9::boolean IS NULL OR s.archived = $9)"
    };
}

/// Sessions of one page, newest first, from `candidates`. Many of them are found fastest among all sessions in the order
/// of the list, few by their keys.
macro_rules! page_of {
    ($number:literal, $sessions:expr) => {
        concat!(
            "SELECT s.session_id, s.updated_at FROM (SELECT s.session_id, s.updated_at ",
            $sessions,
            " ORDER BY s.updated_at DESC, s.session_id DESC OFFSET 0) AS s \
             WHERE (SELECT count(*) FROM candidates) ",
            $number,
            " AND (SELECT coalesce(bool_and(( \
                     SELECT TRUE FROM search_chunks c \
                     WHERE c.session_id = s.session_id AND CASE \
                         WHEN (c.chunk, t.place) IN (SELECT e.chunk, e.place FROM excluded e) THEN FALSE \
                         ELSE strpos(c.words, t.needle) > 0 END LIMIT 1) IS TRUE), TRUE) \
                 FROM terms t WHERE t.is_phrase) \
             LIMIT $6"
        )
    };
}

const FIND: &str = concat!(
    "WITH terms AS MATERIALIZED ( \
         SELECT t.query::tsquery AS query, t.needle, t.is_phrase, t.place \
         FROM unnest($1::text[], $2::text[], $3::boolean[]) WITH ORDINALITY AS t (query, needle, is_phrase, place)), \
     excluded AS MATERIALIZED ( \
         SELECT p.place, u.chunk FROM search_filters f CROSS JOIN LATERAL ( \
             SELECT g.place, \
                 bit_and(('x' || encode(substr(f.bits, (g.hash % (octet_length(f.bits) / 32))::integer * 32 + 1, 32), 'hex'))::bit(256)) \
                     AS may_have \
             FROM unnest($10::bigint[], $11::bigint[]) AS g (place, hash) GROUP BY g.place) AS p \
         CROSS JOIN LATERAL unnest(f.chunks) WITH ORDINALITY AS u (chunk, number) \
         WHERE get_bit(p.may_have, u.number::integer - 1) = 0), \
     candidates AS MATERIALIZED ( \
         SELECT f.session_id FROM ( \
             SELECT DISTINCT f.session_id, t.place FROM terms t CROSS JOIN LATERAL ( \
                 SELECT c.session_id FROM search_chunks c \
                 WHERE array_to_tsvector(string_to_array(btrim(c.words, ' '), ' ')) @@ t.query \
                     AND (c.chunk, t.place) NOT IN (SELECT e.chunk, e.place FROM excluded e) OFFSET 0) AS f) AS f \
         GROUP BY f.session_id HAVING count(*) = cardinality($1::text[])), \
     page AS MATERIALIZED ((",
    page_of!(
        "> 1000",
        concat!(
            "FROM sessions s WHERE ",
            is_listed!(),
            " AND (s.session_id IN (SELECT f.session_id FROM candidates f)) IS TRUE"
        )
    ),
    ") UNION ALL (",
    page_of!(
        "<= 1000",
        concat!(
            "FROM candidates f JOIN sessions s ON s.session_id = f.session_id WHERE ",
            is_listed!()
        )
    ),
    ")) SELECT ",
    session_columns!(),
    ", p.first_loop, p.last_loop, p.place FROM page JOIN sessions s USING (session_id) LEFT JOIN LATERAL ( \
         SELECT c.first_loop, c.last_loop, t.place FROM terms t CROSS JOIN LATERAL ( \
             SELECT c.first_loop, c.last_loop FROM search_chunks c \
             WHERE c.session_id = page.session_id AND c.first_loop > 0 AND strpos(c.words, t.needle) > 0 \
             ORDER BY c.first_loop LIMIT 1) AS c \
         ORDER BY t.place LIMIT 1) AS p ON TRUE \
     ORDER BY page.updated_at DESC, page.session_id DESC"
);

const SELECT_MESSAGES: &str = "SELECT l.session_id, l.messages \
     FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS t (session_id, first_loop, last_loop) \
     JOIN loops l ON l.session_id = t.session_id AND l.loop BETWEEN t.first_loop AND t.last_loop \
     ORDER BY l.session_id, l.loop";

/// Searches, after adding what was stored since the last search.
pub(super) async fn search(shared: &Shared, query: SearchQuery) -> Result<SearchPage, StoreError> {
    let terms = SearchTerms::parse(&query.text);
    let list = &query.list;
    let Some(parameters) = ListParameters::new(list, page_size(list))? else {
        return Ok(SearchPage::default());
    };
    if terms.is_empty() {
        return Ok(SearchPage::default());
    }
    search_index::update(shared).await?;
    let phrases = PhraseHashes::new(terms.iter());
    if !phrases.is_empty()
        && let Err(error) = phrase_filters::update(shared).await
    {
        tracing::debug!(%error, "failed to add filters of phrases");
    }
    shared
        .run(SEARCH_TIMEOUT, async |connection| {
            find(connection, &terms, &phrases, &parameters, list.spawned).await
        })
        .await
}

async fn find(
    connection: &Connection,
    terms: &SearchTerms,
    phrases: &PhraseHashes,
    parameters: &ListParameters<'_>,
    spawned: bool,
) -> Result<SearchPage, PgError> {
    let queries: Vec<String> = terms.iter().map(to_tsquery).collect();
    let needles: Vec<String> = terms.iter().map(to_needle).collect();
    let are_phrases: Vec<bool> = terms.iter().map(|term| term.words.len() > 1).collect();
    let (before, below) = parameters.start();
    let rows = connection
        .begin(
            BEGIN,
            FIND,
            &[
                &queries,
                &needles,
                &are_phrases,
                &before,
                &below,
                &parameters.row_limit(),
                &parameters.folder,
                &spawned,
                &parameters.archived,
                &phrases.places,
                &phrases.hashes,
            ],
        )
        .await?;
    let (rows, next_cursor) = parameters.split(&rows)?;
    let hits = rows.iter().map(|row| {
        Ok(SearchHit {
            session: session_from_row(Columns(row))?,
            snippet: None,
        })
    });
    let mut hits = hits.collect::<Result<Vec<_>, PgError>>()?;
    add_snippets(connection, terms, rows, &mut hits).await?;
    connection.commit().await?;
    Ok(SearchPage { hits, next_cursor })
}

/// Loops of a session, in one of which a term has its first place.
struct FoundPlace<'a> {
    session: &'a str,
    first_loop: i64,
    last_loop: i64,
    term: &'a SearchTerm,
}

/// Adds the text around the first place of the first term that the conversation of a session has.
async fn add_snippets(
    connection: &Connection,
    terms: &SearchTerms,
    rows: &[Row],
    hits: &mut [SearchHit],
) -> Result<(), PgError> {
    let places = rows.iter().map(|row| found_place(Columns(row), terms));
    let places = places.collect::<Result<Vec<_>, PgError>>()?;
    let found = || places.iter().flatten();
    let ids: Vec<&str> = found().map(|it| it.session).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let first_loops: Vec<i64> = found().map(|it| it.first_loop).collect();
    let last_loops: Vec<i64> = found().map(|it| it.last_loop).collect();
    let loops = connection
        .query(SELECT_MESSAGES, &[&ids, &first_loops, &last_loops])
        .await?;
    for (hit, place) in hits.iter_mut().zip(&places) {
        let Some(FoundPlace { session, term, .. }) = place else {
            continue;
        };
        for row in loops.iter().map(Columns) {
            if row.text(0)? != *session {
                continue;
            }
            let (id, json) = (&hit.session.id, row.text(1)?);
            let texts = FetchedTexts::fetch(connection, id, [json]).await?;
            let messages = read_messages(id, json, &texts);
            let mut texts = messages.iter().flat_map(|it| searched_texts(it));
            hit.snippet = texts.find_map(|text| Some(snippet(text, term.find(text)?)));
            if hit.snippet.is_some() {
                break;
            }
        }
    }
    Ok(())
}

fn found_place<'a>(
    row: Columns<'a>,
    terms: &'a SearchTerms,
) -> Result<Option<FoundPlace<'a>>, PgError> {
    let [first, last, place] = [0, 1, 2].map(|column| row.optional_integer(COLUMN_COUNT + column));
    let (Some(first_loop), Some(last_loop), Some(place)) = (first?, last?, place?) else {
        return Ok(None);
    };
    let place = usize::try_from(place).unwrap_or_default();
    let term = terms.iter().nth(place.saturating_sub(1));
    let session = row.text(0)?;
    Ok(term.map(|term| FoundPlace {
        session,
        first_loop,
        last_loop,
        term,
    }))
}

/// Returns a query for the chunks that have all words of a term. Words have no character that would need an escape.
fn to_tsquery(term: &SearchTerm) -> String {
    let mut query = String::new();
    for word in &term.words {
        let and = if query.is_empty() { "" } else { " & " };
        let _ = write!(query, "{and}'{word}'");
    }
    if term.is_prefix {
        query.push_str(":*");
    }
    query
}

/// Returns a text that the words of a chunk contain where they have the term.
fn to_needle(term: &SearchTerm) -> String {
    let end = if term.is_prefix { "" } else { " " };
    format!(" {}{end}", term.words.join(" "))
}
