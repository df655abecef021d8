//! Adds the words of prompts, answers and titles to the table `search_chunks`.
//!
//! Only searches write it: each adds what was stored since the last one, so that a commit costs the same with and
//! without it. Several processes may do so at the same time.

use super::{
    connection::Connection,
    engine::{CALL_TIMEOUT, Shared},
    escape::unescape,
    pg_error::PgError,
    rows::Columns,
    texts::FetchedTexts,
};
use crate::{
    StoreError,
    search::{
        chunks::{CHUNK_BYTES, ChunkBuilder, SearchChunk},
        searched_texts,
    },
};
use std::{sync::Arc, time::Duration};
use tokio_postgres::Row;
use turnery_engine::{LlmMessage, SessionId};

/// About the number of loops that are added by one statement.
const BATCH_LOOPS: u64 = 512;

/// Condition of a session with loops or a title that are not in its chunks, as in the index `sessions_unsearched`.
macro_rules! is_unsearched {
    () => {
        "(s.head_version <> s.searched_version OR s.title IS DISTINCT FROM s.searched_title)"
    };
}

/// First loop that is not in a full chunk of the session.
macro_rules! first_open_loop {
    () => {
        "coalesce((SELECT CASE WHEN sum(octet_length(c.words)) < $1 THEN c.first_loop ELSE c.last_loop + 1 END \
         FROM search_chunks c WHERE c.session_id = s.session_id AND c.first_loop > 0 \
         GROUP BY c.first_loop, c.last_loop ORDER BY c.first_loop DESC LIMIT 1), 1)"
    };
}

/// Sessions, each with about the number of its loops that are new.
const SELECT_UNSEARCHED: &str = concat!(
    "SELECT s.session_id, CASE WHEN s.searched_version = 0 THEN s.loop_count \
     ELSE greatest(s.head_version - s.searched_version, 1) END FROM sessions s WHERE ",
    is_unsearched!(),
    " ORDER BY s.session_id"
);

const SELECT_BATCH: &str = concat!(
    "SELECT s.session_id, s.head_version, s.searched_version, s.title, s.searched_title, o.first_loop, l.loop, \
     l.messages FROM sessions s CROSS JOIN LATERAL (SELECT ",
    first_open_loop!(),
    " AS first_loop) o LEFT JOIN loops l ON l.session_id = s.session_id AND l.loop >= o.first_loop \
     WHERE s.session_id = ANY ($2) AND ",
    is_unsearched!(),
    " ORDER BY s.session_id, l.loop"
);

/// Replaces the open chunks of sessions that nobody else has changed meanwhile, and the titles. Returns the others.
const ADD_CHUNKS: &str = "WITH known AS ( \
         UPDATE sessions s SET searched_version = t.version, searched_title = t.title \
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[]) \
             AS t (session_id, previous, version, previous_title, title, first_loop) \
         WHERE s.session_id = t.session_id AND s.searched_version = t.previous \
             AND s.searched_title IS NOT DISTINCT FROM t.previous_title \
         RETURNING s.session_id, t.first_loop), \
     replaced AS ( \
         DELETE FROM search_chunks c USING known k \
         WHERE c.session_id = k.session_id AND (c.first_loop >= k.first_loop OR c.first_loop = 0)), \
     added AS ( \
         INSERT INTO search_chunks (session_id, first_loop, last_loop, words) \
         SELECT k.session_id, t.first_loop, t.last_loop, t.words \
         FROM unnest($7::text[], $8::bigint[], $9::bigint[], $10::text[]) \
             AS t (session_id, first_loop, last_loop, words) \
         JOIN known k ON k.session_id = t.session_id) \
     SELECT t.session_id FROM unnest($1::text[]) AS t (session_id) \
     WHERE NOT EXISTS (SELECT 1 FROM known k WHERE k.session_id = t.session_id)";

/// Key of the chunk of a title, which is below those of all loops.
pub(super) const TITLE_LOOP: i64 = 0;

/// Merges the newest words into the index. Searches read unmerged words one by one, and the server would merge them during
/// some later search. Only the owner of the index may do this.
const MERGE_INDEX: &str = "SELECT gin_clean_pending_list(oid) FROM pg_class \
     WHERE oid = to_regclass('search_chunks_words') AND pg_has_role(relowner, 'USAGE')";

/// Timeout of the merge, which may wait for one of the server's own.
const MERGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Adds what is stored now.
pub(super) async fn update(shared: &Shared) -> Result<(), StoreError> {
    let mut waiting = shared
        .run(CALL_TIMEOUT, async |connection| {
            let rows = connection.query(SELECT_UNSEARCHED, &[]).await?;
            let sessions = rows.iter().map(|row| {
                let row = Columns(row);
                Ok((row.text(0)?.to_owned(), row.count(1)?))
            });
            sessions.collect::<Result<Vec<_>, PgError>>()
        })
        .await?;
    let all_loops = waiting
        .iter()
        .fold(0_u64, |sum, (_, more)| sum.saturating_add(*more));
    while !waiting.is_empty() {
        let mut loops = 0_u64;
        let size = waiting.iter().take_while(|(_, more)| {
            let is_room = loops < BATCH_LOOPS;
            loops = loops.saturating_add(*more);
            is_room
        });
        let size = size.count();
        let batch: Vec<_> = waiting.drain(..size).collect();
        let ids: Vec<&str> = batch.iter().map(|(id, _)| id.as_str()).collect();
        // Another search may have added less than what this one must find.
        let missed = shared
            .run(CALL_TIMEOUT, async |connection| {
                add_batch(connection, &ids).await
            })
            .await?;
        waiting.extend(missed.into_iter().map(|id| (id, 1)));
    }
    if all_loops > BATCH_LOOPS {
        let merged = shared.run(MERGE_TIMEOUT, async |connection| {
            connection.query(MERGE_INDEX, &[]).await.map(drop)
        });
        if let Err(error) = merged.await {
            tracing::debug!(%error, "failed to merge the index of the search");
        }
    }
    Ok(())
}

fn chunk_bytes() -> i64 {
    i64::try_from(CHUNK_BYTES).unwrap_or(i64::MAX)
}

/// Adds the words of sessions. Returns those that others have changed meanwhile.
async fn add_batch(connection: &Connection, ids: &[&str]) -> Result<Vec<String>, PgError> {
    let rows = connection
        .query(SELECT_BATCH, &[&chunk_bytes(), &ids])
        .await?;
    let sessions = group_by_session(connection, rows).await?;
    // Cutting texts into words takes longer than reading them; it must not delay the commits on this thread.
    let cut = tokio::task::spawn_blocking(move || {
        let cut = sessions.iter().map(SessionBatch::cut);
        cut.collect::<Result<Vec<_>, PgError>>()
    });
    let cut = cut.await;
    let cut = cut.map_err(|error| PgError::Unusable(error.to_string()))??;
    let mut keys = KeyArrays::default();
    let mut chunks = ChunkArrays::default();
    for session in &cut {
        keys.push(session);
        chunks.push(session);
    }
    if cut.is_empty() {
        return Ok(Vec::new());
    }
    let rows = connection
        .query(
            ADD_CHUNKS,
            &[
                &keys.ids,
                &keys.previous,
                &keys.versions,
                &keys.previous_titles,
                &keys.titles,
                &keys.first_loops,
                &chunks.ids,
                &chunks.first_loops,
                &chunks.last_loops,
                &chunks.words,
            ],
        )
        .await?;
    let missed = rows.iter().map(|row| Ok(Columns(row).text(0)?.to_owned()));
    missed.collect()
}

/// Rows of one session, with the long texts that they refer to.
struct SessionBatch {
    id: SessionId,
    rows: Vec<Row>,
    texts: FetchedTexts,
}

async fn group_by_session(
    connection: &Connection,
    rows: Vec<Row>,
) -> Result<Vec<SessionBatch>, PgError> {
    let mut sessions: Vec<SessionBatch> = Vec::new();
    for row in rows {
        let id = Columns(&row).text(0)?;
        match sessions.last_mut() {
            Some(last) if last.id.as_str() == id => last.rows.push(row),
            Some(_) | None => sessions.push(SessionBatch {
                id: id.into(),
                rows: vec![row],
                texts: FetchedTexts::default(),
            }),
        }
    }
    for SessionBatch { id, rows, texts } in &mut sessions {
        let parts = rows.iter().map(|row| Columns(row).optional_text(7));
        let parts = parts.collect::<Result<Vec<_>, PgError>>()?;
        *texts = FetchedTexts::fetch(connection, id, parts.into_iter().flatten()).await?;
    }
    Ok(sessions)
}

/// Chunks of a session, and its row as it was when they were read.
struct CutSession {
    id: SessionId,
    previous: i64,
    version: i64,
    previous_title: Option<String>,
    title: Option<String>,
    first_loop: i64,
    chunks: Vec<SearchChunk>,
}

impl SessionBatch {
    fn cut(&self) -> Result<CutSession, PgError> {
        let mut builder = ChunkBuilder::default();
        let mut cut = CutSession {
            id: self.id.clone(),
            previous: 0,
            version: 0,
            previous_title: None,
            title: None,
            first_loop: 0,
            chunks: Vec::new(),
        };
        for row in self.rows.iter().map(Columns) {
            cut.version = row.integer(1)?;
            cut.previous = row.integer(2)?;
            cut.title = row.optional_text(3)?.map(str::to_owned);
            cut.previous_title = row.optional_text(4)?.map(str::to_owned);
            cut.first_loop = row.integer(5)?;
            let (Some(key), Some(json)) = (row.optional_integer(6)?, row.optional_text(7)?) else {
                continue;
            };
            let messages = read_messages(&self.id, json, &self.texts);
            builder.add_loop(key, messages.iter().flat_map(|it| searched_texts(it)));
        }
        cut.chunks = builder.finish();
        if let Some(title) = &cut.title {
            let mut chunk = SearchChunk::new(TITLE_LOOP);
            chunk.add_text(&unescape(title));
            cut.chunks.push(chunk);
        }
        Ok(cut)
    }
}

/// Returns the messages of a stored loop; none if they cannot be read.
pub(super) fn read_messages(
    session: &SessionId,
    json: &str,
    texts: &FetchedTexts,
) -> Vec<Arc<LlmMessage>> {
    let parsed = texts
        .expand(json)
        .and_then(|json| Ok(serde_json::from_str(&json)?));
    parsed.unwrap_or_else(|error| {
        tracing::debug!(%session, %error, "a damaged loop is not searched");
        Vec::new()
    })
}

/// Sessions, column by column.
#[derive(Default)]
struct KeyArrays<'a> {
    ids: Vec<&'a str>,
    previous: Vec<i64>,
    versions: Vec<i64>,
    previous_titles: Vec<Option<&'a str>>,
    titles: Vec<Option<&'a str>>,
    first_loops: Vec<i64>,
}

impl<'a> KeyArrays<'a> {
    fn push(&mut self, session: &'a CutSession) {
        self.ids.push(session.id.as_str());
        self.previous.push(session.previous);
        self.versions.push(session.version);
        self.previous_titles.push(session.previous_title.as_deref());
        self.titles.push(session.title.as_deref());
        self.first_loops.push(session.first_loop);
    }
}

/// Chunks, column by column.
#[derive(Default)]
struct ChunkArrays<'a> {
    ids: Vec<&'a str>,
    first_loops: Vec<i64>,
    last_loops: Vec<i64>,
    words: Vec<&'a str>,
}

impl<'a> ChunkArrays<'a> {
    fn push(&mut self, session: &'a CutSession) {
        for chunk in &session.chunks {
            self.ids.push(session.id.as_str());
            self.first_loops.push(chunk.first_loop);
            self.last_loops.push(chunk.last_loop);
            self.words.push(&chunk.words);
        }
    }
}
