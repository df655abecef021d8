//! Index of the words of prompts and answers, in a file of its own beside the database.
//!
//! Only searches write it: each adds what was stored since the last one, so that commits cost the same with and without
//! it. It can be deleted at any time. The index consists of segments, which are never changed: many small ones are
//! replaced by one, and with a deleted session the segments go in which it has words. Parts of sessions that lose their
//! segment that way wait for the next search.

use super::{
    columns::text,
    job_error::{JOB_TIMEOUT, JobError},
    open::create_file,
    search::loop_messages,
    search_postings::{PartList, Places, Postings},
    transaction::write,
};
use crate::search::{SearchTerm, for_each_word, searched_texts};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};
use std::{
    collections::{HashMap, VecDeque},
    fs, io, iter,
    path::PathBuf,
    time::Duration,
};
use turnery_engine::SessionId;

/// Version of the index. Others are deleted and built again.
const INDEX_VERSION: i64 = 1;

const SCHEMA: &str = "
    -- What of a session is in parts.
    CREATE TABLE sessions (
        session    INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL UNIQUE,
        version    INTEGER NOT NULL,     -- head_version up to which all loops are in parts
        last_loop  INTEGER NOT NULL      -- greatest loop that is in a part
    ) STRICT;
    -- Loops of one session that were added together, in the order of their sessions.
    CREATE TABLE parts (
        part    INTEGER PRIMARY KEY,
        segment INTEGER NOT NULL,        -- 0: waits to be added to a segment
        session INTEGER NOT NULL,
        loops   BLOB NOT NULL            -- of each loop, its difference to the one before and its number of places
    ) STRICT;
    CREATE INDEX parts_of_segment ON parts (segment, part, session);
    CREATE INDEX parts_of_session ON parts (session);
    CREATE TABLE segments (segment INTEGER PRIMARY KEY, size INTEGER NOT NULL) STRICT;
    CREATE TABLE words (
        segment INTEGER NOT NULL,
        word    TEXT NOT NULL,
        places  BLOB NOT NULL,
        PRIMARY KEY (segment, word)
    ) STRICT, WITHOUT ROWID;";

/// Text after which a segment is written. Unit: bytes.
const SEGMENT_BYTES: usize = 16 << 20;

/// Sizes below which segments of about the same size are merged. Unit: bytes.
const MERGED_SIZES: [usize; 2] = [64 << 10, 1 << 20];

/// Number of segments of a size that are merged.
const MERGED_SEGMENTS: i64 = 16;

/// Segment of parts that wait for one.
const WAITING: i64 = 0;

/// Index of the words of a database.
pub(super) struct SearchIndex {
    sql: Connection,
    /// Session of each part.
    session_of: HashMap<i64, i64>,
}

/// Place of a word: position in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    part: i64,
    position: u64,
}

/// What the index has of a session.
struct IndexedSession {
    session: i64,
    version: i64,
    last_loop: i64,
}

impl SearchIndex {
    /// Opens the index of a database, and creates it if there is none or one of another version.
    pub(super) fn open(db: &Connection) -> Result<Self, JobError> {
        let opened = Self::open_file(db);
        match opened {
            Err(error) if error.is_damage() || is_foreign_file(&error) => {
                Self::remove(db)?;
                Self::open_file(db)
            }
            opened => opened,
        }
    }

    fn open_file(db: &Connection) -> Result<Self, JobError> {
        let path = index_path(db)?;
        create_file(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::prepare(Connection::open_with_flags(&path, flags)?)
    }

    /// Creates an empty index in memory.
    pub(super) fn in_memory() -> Result<Self, JobError> {
        Self::prepare(Connection::open_in_memory()?)
    }

    fn prepare(sql: Connection) -> Result<Self, JobError> {
        sql.busy_timeout(JOB_TIMEOUT)?;
        sql.pragma_update(None, "secure_delete", true)?;
        sql.pragma_update(None, "synchronous", "NORMAL")?;
        if index_version(&sql)? != INDEX_VERSION {
            // Of a new file: deleted segments give their space back. In any other, this would be a write.
            sql.pragma_update(None, "auto_vacuum", "FULL")?;
            write(&sql, |sql| match index_version(sql)? {
                // Another process was faster.
                INDEX_VERSION => Ok(()),
                0 => {
                    sql.execute_batch(SCHEMA)?;
                    Ok(sql.pragma_update(None, "user_version", INDEX_VERSION)?)
                }
                other => Err(JobError::InvalidRow(format!(
                    "the index of the search has version {other}"
                ))),
            })?;
        }
        Ok(Self {
            sql,
            session_of: HashMap::new(),
        })
    }

    /// Deletes the index of a database.
    pub(super) fn remove(db: &Connection) -> Result<(), JobError> {
        let path = index_path(db)?;
        for suffix in ["", "-journal"] {
            let mut file = path.clone().into_os_string();
            file.push(suffix);
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                Err(_) | Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Removes the words of sessions that are no longer in the database, if it has an index. Returns false if a search
    /// keeps the index locked for longer than `patience`.
    pub(super) fn forget_deleted(db: &Connection, patience: Duration) -> Result<bool, JobError> {
        if !index_path(db).is_ok_and(|path| path.exists()) {
            return Ok(true);
        }
        let forgotten = Self::open(db).and_then(|index| {
            index.sql.busy_timeout(patience)?;
            let stored = stored_versions(db)?;
            index.forget(&outdated_sessions(&index.sessions()?, &stored))
        });
        match forgotten {
            Ok(()) => Ok(true),
            Err(error) if error.is_busy() => Ok(false),
            // An index that cannot be changed must not keep the words.
            Err(error) => {
                tracing::debug!(%error, "the index of the search is deleted");
                Self::remove(db).map(|()| true)
            }
        }
    }

    /// Adds what was stored since the last update. Returns the keys of the sessions by their ids.
    pub(super) fn update(&mut self, db: &Connection) -> Result<HashMap<String, i64>, JobError> {
        let stored = stored_versions(db)?;
        let mut indexed = self.sessions()?;
        let outdated = outdated_sessions(&indexed, &stored);
        if !outdated.is_empty() {
            self.forget(&outdated)?;
            indexed = self.sessions()?;
        }
        let mut changed: VecDeque<(String, i64)> = stored
            .into_iter()
            .filter(|(id, version)| match indexed.get(id) {
                Some(known) => known.version < *version,
                None => *version > 0,
            })
            .collect();
        if !changed.is_empty() {
            self.merge_small_segments()?;
        }
        if !changed.is_empty() || self.has_waiting_parts()? {
            while !changed.is_empty() || self.has_waiting_parts()? {
                write(&self.sql, |sql| add_segment(sql, db, &mut changed))?;
            }
            indexed = self.sessions()?;
        }
        let mut select = self
            .sql
            .prepare("SELECT part, session FROM parts WHERE segment > 0")?;
        let pairs = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.session_of = pairs.collect::<Result<_, _>>()?;
        let sessions = indexed.into_iter();
        Ok(sessions.map(|(id, known)| (id, known.session)).collect())
    }

    fn sessions(&self) -> Result<HashMap<String, IndexedSession>, JobError> {
        let mut select = self
            .sql
            .prepare_cached("SELECT session_id, session, version, last_loop FROM sessions")?;
        let rows = select.query_map([], |row| {
            let known = IndexedSession {
                session: row.get(1)?,
                version: row.get(2)?,
                last_loop: row.get(3)?,
            };
            Ok((row.get(0)?, known))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes sessions with all segments in which they have words.
    fn forget(&self, sessions: &[i64]) -> Result<(), JobError> {
        if sessions.is_empty() {
            return Ok(());
        }
        write(&self.sql, |sql| {
            for session in sessions {
                let mut select =
                    sql.prepare_cached("SELECT DISTINCT segment FROM parts WHERE session = ?1")?;
                let segments = select.query_map((session,), |row| row.get(0))?;
                for segment in segments.collect::<Result<Vec<i64>, _>>()? {
                    dissolve(sql, segment)?;
                }
                sql.prepare_cached("DELETE FROM parts WHERE session = ?1")?
                    .execute((session,))?;
                sql.prepare_cached("DELETE FROM sessions WHERE session = ?1")?
                    .execute((session,))?;
            }
            Ok(())
        })
    }

    fn merge_small_segments(&self) -> Result<(), JobError> {
        let mut least = 0;
        for size in MERGED_SIZES {
            write(&self.sql, |sql| {
                let mut select = sql.prepare_cached(
                    "SELECT segment FROM segments WHERE size >= ?1 AND size < ?2",
                )?;
                let small = select.query_map((least, size), |row| row.get(0))?;
                let small = small.collect::<Result<Vec<i64>, _>>()?;
                if small.len() as i64 >= MERGED_SEGMENTS {
                    for segment in small {
                        dissolve(sql, segment)?;
                    }
                }
                Ok(())
            })?;
            least = size;
        }
        Ok(())
    }

    fn has_waiting_parts(&self) -> Result<bool, JobError> {
        let mut select = self.sql.prepare_cached(
            "SELECT 1 FROM parts JOIN sessions USING (session) WHERE segment = ?1",
        )?;
        Ok(select.exists((WAITING,))?)
    }

    /// Returns the first place of a term in each session that has it, by the keys of the sessions.
    pub(super) fn places(&self, term: &SearchTerm) -> Result<HashMap<i64, Place>, JobError> {
        let mut first: HashMap<i64, Place> = HashMap::new();
        let mut select = self.sql.prepare_cached("SELECT segment FROM segments")?;
        let segments = select.query_map([], |row| row.get(0))?;
        for segment in segments.collect::<Result<Vec<i64>, _>>()? {
            for (part, position) in self.places_in(segment, term)? {
                let Some(session) = self.session_of.get(&part) else {
                    continue;
                };
                let place = Place { part, position };
                let known = first.entry(*session).or_insert(place);
                *known = place.min(*known);
            }
        }
        Ok(first)
    }

    /// Returns the first place of a term in each part of a segment that has it.
    fn places_in(&self, segment: i64, term: &SearchTerm) -> Result<HashMap<i64, u64>, JobError> {
        let [before @ .., last] = term.words.as_slice() else {
            return Ok(HashMap::new());
        };
        // Of each part, the places at which the next word must be.
        let mut next: Option<HashMap<i64, Vec<u64>>> = None;
        for word in before {
            let mut found = HashMap::new();
            self.visit(segment, word, false, |part, places| {
                let places: Vec<u64> = match &next {
                    None => places.map(|place| place + 1).collect(),
                    Some(next) => shared_places(places, next.get(&part))
                        .map(|place| place + 1)
                        .collect(),
                };
                if !places.is_empty() {
                    found.insert(part, places);
                }
            })?;
            next = Some(found);
        }
        let mut first = HashMap::new();
        self.visit(segment, last, term.is_prefix, |part, mut places| {
            let place = match &next {
                None => places.next(),
                Some(next) => shared_places(places, next.get(&part)).next(),
            };
            if let Some(place) = place {
                let known = first.entry(part).or_insert(place);
                *known = place.min(*known);
            }
        })?;
        Ok(first)
    }

    /// Visits each part of a segment that has a word or, with `is_prefix`, one that starts with it.
    fn visit(
        &self,
        segment: i64,
        word: &str,
        is_prefix: bool,
        mut visit: impl FnMut(i64, Places<'_>),
    ) -> Result<(), JobError> {
        // No word has a greater character.
        let end = match is_prefix {
            true => format!("{word}{}", char::MAX),
            false => word.to_owned(),
        };
        let mut select = self.sql.prepare_cached(
            "SELECT places FROM words WHERE segment = ?1 AND word >= ?2 AND word <= ?3",
        )?;
        let mut rows = select.query((segment, word, end))?;
        while let Some(row) = rows.next()? {
            let places = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            for (part, places) in Postings::read(places) {
                visit(part, places);
            }
        }
        Ok(())
    }

    /// Returns the loop that has a place.
    pub(super) fn loop_of(&self, place: Place) -> Result<Option<i64>, JobError> {
        let mut select = self
            .sql
            .prepare_cached("SELECT loops FROM parts WHERE part = ?1")?;
        let list = select.query_row((place.part,), |row| row.get::<_, Vec<u8>>(0));
        let list = list.optional()?.unwrap_or_default();
        let mut end = 0_u64;
        Ok(PartList::read(&list).find_map(|(key, places)| {
            end = places.saturating_add(end);
            (place.position < end).then_some(key)
        }))
    }
}

/// Returns the places that are among others as well. Both are ascending.
fn shared_places<'a>(
    mut places: Places<'a>,
    others: Option<&'a Vec<u64>>,
) -> impl Iterator<Item = u64> {
    let mut others = others.map_or(&[][..], Vec::as_slice);
    iter::from_fn(move || {
        while let Some(other) = others.first() {
            let place = places.find(|place| place >= other)?;
            let skipped = others.iter().take_while(|other| **other < place).count();
            others = others.get(skipped..).unwrap_or_default();
            if let Some((_, rest)) = others.split_first().filter(|(other, _)| **other == place) {
                others = rest;
                return Some(place);
            }
        }
        None
    })
}

fn is_foreign_file(error: &JobError) -> bool {
    matches!(error, JobError::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase))
}

/// Returns the path of the index of a database.
fn index_path(db: &Connection) -> Result<PathBuf, JobError> {
    match db.path() {
        Some(path) if !path.is_empty() => Ok(format!("{path}-search").into()),
        Some(_) | None => Err(JobError::InvalidRow("the database has no file".to_owned())),
    }
}

fn index_version(sql: &Connection) -> Result<i64, JobError> {
    Ok(sql.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Returns the head version of each session in the database.
fn stored_versions(db: &Connection) -> Result<HashMap<String, i64>, JobError> {
    let mut select = db.prepare_cached("SELECT session_id, head_version FROM sessions")?;
    let mut rows = select.query([])?;
    let mut stored = HashMap::new();
    while let Some(row) = rows.next()? {
        stored.insert(text(row, 0)?.to_owned(), row.get(1)?);
    }
    Ok(stored)
}

/// Returns the sessions that are no longer in the database, or are another one of the same id.
fn outdated_sessions(
    indexed: &HashMap<String, IndexedSession>,
    stored: &HashMap<String, i64>,
) -> Vec<i64> {
    let outdated = indexed.iter().filter(|(id, known)| {
        let version = stored.get(*id);
        version.is_none_or(|version| *version < known.version)
    });
    outdated.map(|(_, known)| known.session).collect()
}

/// Deletes a segment. Its parts wait for another one.
fn dissolve(sql: &Connection, segment: i64) -> Result<(), JobError> {
    for statement in [
        "DELETE FROM words WHERE segment = ?1",
        "DELETE FROM segments WHERE segment = ?1",
        "UPDATE parts SET segment = 0 WHERE segment = ?1",
    ] {
        sql.prepare_cached(statement)?.execute((segment,))?;
    }
    Ok(())
}

/// Adds one segment: parts that wait, then new loops of changed sessions, as many as a segment holds. Removes the
/// sessions that are done from `changed`.
fn add_segment(
    sql: &Connection,
    db: &Connection,
    changed: &mut VecDeque<(String, i64)>,
) -> Result<(), JobError> {
    let segment: i64 = sql.query_row(
        "SELECT coalesce(max(segment), 0) + 1 FROM segments",
        [],
        |row| row.get(0),
    )?;
    let mut batch = Postings::default();
    add_waiting_parts(sql, db, segment, &mut batch)?;
    while batch.text_bytes < SEGMENT_BYTES
        && let Some((id, version)) = changed.front()
    {
        if add_session(sql, db, segment, id, *version, &mut batch)? {
            changed.pop_front();
        }
    }
    let mut insert =
        sql.prepare_cached("INSERT INTO words (segment, word, places) VALUES (?1, ?2, ?3)")?;
    let size = batch.text_bytes;
    let mut is_empty = true;
    for (word, places) in batch.into_sorted() {
        insert.execute((segment, &*word, places))?;
        is_empty = false;
    }
    // Without words there is nothing to find. Parts are kept: their loops are done.
    if !is_empty {
        sql.prepare_cached("INSERT INTO segments (segment, size) VALUES (?1, ?2)")?
            .execute((segment, size))?;
    }
    Ok(())
}

fn add_waiting_parts(
    sql: &Connection,
    db: &Connection,
    segment: i64,
    batch: &mut Postings,
) -> Result<(), JobError> {
    let mut select = sql.prepare_cached(
        "SELECT part, session_id, loops FROM parts JOIN sessions USING (session) WHERE segment = ?1 ORDER BY part",
    )?;
    let mut rows = select.query((WAITING,))?;
    let mut done = Vec::new();
    while batch.text_bytes < SEGMENT_BYTES
        && let Some(row) = rows.next()?
    {
        let (part, id) = (row.get(0)?, SessionId::from(text(row, 1)?));
        let list: Vec<u8> = row.get(2)?;
        let mut loops = PartList::default();
        for (key, _) in PartList::read(&list) {
            add_loop(db, &id, key, part, &mut loops, batch)?;
        }
        done.push((part, loops.into_bytes()));
    }
    for (part, loops) in done {
        sql.prepare_cached("UPDATE parts SET segment = ?2, loops = ?3 WHERE part = ?1")?
            .execute((part, segment, loops))?;
    }
    Ok(())
}

/// Adds a part with the new loops of a session. Returns true if the session has no more.
fn add_session(
    sql: &Connection,
    db: &Connection,
    segment: i64,
    id: &str,
    version: i64,
    batch: &mut Postings,
) -> Result<bool, JobError> {
    sql.prepare_cached(
        "INSERT INTO sessions (session_id, version, last_loop) VALUES (?1, 0, 0) ON CONFLICT DO NOTHING",
    )?
    .execute((id,))?;
    // Read here, since another process may have added the loops meanwhile.
    let mut select = sql
        .prepare_cached("SELECT session, version, last_loop FROM sessions WHERE session_id = ?1")?;
    let known = select.query_row((id,), |row| {
        Ok(IndexedSession {
            session: row.get(0)?,
            version: row.get(1)?,
            last_loop: row.get(2)?,
        })
    })?;
    if known.version >= version {
        return Ok(true);
    }
    let mut select =
        db.prepare_cached("SELECT loop FROM loops WHERE session_id = ?1 AND loop > ?2")?;
    let keys = select.query_map((id, known.last_loop), |row| row.get(0))?;
    let mut keys = keys.collect::<Result<Vec<i64>, _>>()?;
    keys.sort_unstable();
    let part: i64 = sql.query_row("SELECT coalesce(max(part), 0) + 1 FROM parts", [], |row| {
        row.get(0)
    })?;
    let (mut loops, mut last_loop, mut is_done) = (PartList::default(), known.last_loop, true);
    let id = SessionId::from(id);
    for key in keys {
        if batch.text_bytes >= SEGMENT_BYTES {
            is_done = false;
            break;
        }
        add_loop(db, &id, key, part, &mut loops, batch)?;
        last_loop = key;
    }
    if last_loop > known.last_loop {
        sql.prepare_cached(
            "INSERT INTO parts (part, segment, session, loops) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((part, segment, known.session, loops.into_bytes()))?;
    }
    let version = if is_done { version } else { known.version };
    sql.prepare_cached("UPDATE sessions SET version = ?2, last_loop = ?3 WHERE session = ?1")?
        .execute((known.session, version, last_loop))?;
    Ok(is_done)
}

/// Adds the words of a loop to a part.
fn add_loop(
    db: &Connection,
    id: &SessionId,
    key: i64,
    part: i64,
    loops: &mut PartList,
    batch: &mut Postings,
) -> Result<(), JobError> {
    let start = loops.places();
    let mut place = start;
    for message in loop_messages(db, id, key)? {
        for text in searched_texts(&message) {
            for_each_word(text, |word, _| {
                batch.add(word, part, place);
                place += 1;
            });
            batch.text_bytes += text.len();
            // A phrase does not go on in another text.
            place += 1;
        }
    }
    // A loop without words has a place too, so that the next one begins elsewhere.
    loops.push(key, place - start + 1);
    Ok(())
}
