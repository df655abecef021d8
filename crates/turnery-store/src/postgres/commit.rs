//! Commits loops atomically with everything that belongs to them (S1 to S4, S6).

use super::{
    connection::Connection,
    engine::Shared,
    escape::escape,
    lanes,
    listener::tell_followers,
    pg_error::PgError,
    rows::{Columns, to_integer},
    session_queue::SessionQueue,
    texts::{EncodeError, NewTexts, store_texts},
};
use crate::{
    Commit, PendingEffect, StoreError,
    encoding::{checksum::Checksum, loop_row::LoopRow},
    lease::COMMIT_TIMEOUT,
    list_cursor::{format_time, last_active_at},
    recovery::last_loop_number,
};
use std::{borrow::Cow, sync::Arc};
use tokio_postgres::types::ToSql;
use turnery_engine::{LoopId, LoopRecord, SessionId};

/// Parts of a commit after the update of its session, which returns `session_id` and `head_version` as `lane`: loops and
/// the end of their journals. The rows are parameters 2 to 13.
macro_rules! store_rows {
    () => {
        "stored AS ( \
             INSERT INTO loops (session_id, version, loop_id, parent_loop_id, on_chain, continuation_kind, status, \
                 started_at, ended_at, record, messages, log, checksum, log_checksum) \
             SELECT lane.session_id, lane.head_version, t.loop_id, t.parent, t.on_chain, t.kind, t.status, \
                 t.started_at, t.ended_at, t.record, t.messages, t.log, t.checksum, t.log_checksum \
             FROM lane, unnest($2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::text[], \
                 $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[]) \
                 WITH ORDINALITY AS t (loop_id, parent, on_chain, kind, status, started_at, ended_at, record, \
                     messages, log, checksum, log_checksum, place) \
             ORDER BY t.place), \
         settled AS ( \
             DELETE FROM journal USING lane \
             WHERE journal.session_id = lane.session_id AND journal.loop_id = ANY ($2))"
    };
}

/// Assignments that make a commit the newest version of its session. Uses parameters 14 to 17.
macro_rules! advance {
    () => {
        "head_version = s.head_version + 1, loop_count = s.loop_count + cardinality($2::text[]), \
         last_number = greatest(s.last_number, $14), updated_at = greatest(s.updated_at, $15), \
         tip_loop_id = coalesce($16, s.tip_loop_id), title = coalesce(s.title, $17)"
    };
}

/// Stores loops and further parts in a session. `$rest` follows the assignments of its update.
macro_rules! store_loops {
    ($rest:literal $(, $part:expr)*) => {
        concat!(
            "WITH lane AS (UPDATE sessions s SET ",
            advance!(),
            $rest,
            " RETURNING s.session_id, s.head_version), ",
            store_rows!(),
            $($part,)*
            ", told AS (",
            tell_followers!("lane"),
            ") SELECT lane.head_version, (SELECT count(*) FROM told) FROM lane"
        )
    };
}

/// Stores loops if the lane is held and the head is as expected. Fails if one of the loops is stored already.
macro_rules! commit_with {
    ($($part:expr),*) => {
        store_loops!(
            ", owner_id = CASE WHEN $21 THEN NULL ELSE s.owner_id END, \
             host = CASE WHEN $21 THEN NULL ELSE s.host END \
             WHERE s.session_id = $1 AND s.owner_id = $18 AND s.fence = $19 AND s.head_version = $20"
            $(, $part)*
        )
    };
}

const COMMIT: &str = commit_with!();

/// For a commit with long texts or effects. Most have none, and a statement costs by its parts, even by empty ones.
const COMMIT_WITH_EXTRAS: &str = commit_with!(
    store_texts!("$22", "$23", "$24"),
    ", effects AS ( \
         INSERT INTO outbox (session_id, key, tool_name, effect, checksum) \
         SELECT p.session_id, t.key, t.tool_name, t.effect, t.checksum \
         FROM lane, unnest($25::text[], $26::text[], $27::text[], $28::text[], $29::bigint[]) \
             WITH ORDINALITY AS t (session_id, key, tool_name, effect, checksum, place) \
         JOIN sessions p ON p.session_id = t.session_id ORDER BY t.place ON CONFLICT DO NOTHING)"
);

/// Stores recovered loops in a locked session.
const STORE_RECOVERED: &str = store_loops!(
    " WHERE s.session_id = $1",
    store_texts!("$18", "$19", "$20")
);

const SELECT_STORED: &str = "SELECT version, loop_id, parent_loop_id, on_chain, continuation_kind, status, \
     started_at, ended_at, record, messages, log FROM loops WHERE session_id = $1 AND loop_id = ANY ($2)";

const IS_STORED: &str = "SELECT 1 FROM loops WHERE session_id = $1 AND loop_id = $2";

const DROP_JOURNALS: &str = "DELETE FROM journal WHERE session_id = $1 AND loop_id = ANY ($2)";

const NOTE_LOST_NUMBER: &str =
    "UPDATE sessions SET last_number = $2 WHERE session_id = $1 AND last_number < $2";

/// Loops that are stored together.
pub(super) struct NewLoops<'a> {
    pub(super) session: &'a SessionId,
    pub(super) version: u64,
    pub(super) records: &'a [Arc<LoopRecord>],
    /// Index of the record that the next prompt follows, if that record is on the chain.
    pub(super) tip: Option<usize>,
    pub(super) title: Option<&'a str>,
}

/// Encoded loops, column by column.
#[derive(Default)]
struct LoopArrays<'a> {
    loop_ids: Vec<&'a str>,
    parents: Vec<Option<&'a str>>,
    on_chain: Vec<bool>,
    /// `continuation_kind`, `status`, `started_at`, `ended_at`, `record`, `messages` and `log`.
    columns: [Vec<Option<&'a str>>; 7],
    checksums: Vec<i64>,
    log_checksums: Vec<i64>,
}

impl<'a> LoopArrays<'a> {
    fn new(version: i64, records: &'a [Arc<LoopRecord>], rows: &'a [LoopRow]) -> Self {
        let mut arrays = Self::default();
        for (record, row) in records.iter().zip(rows) {
            arrays.loop_ids.push(record.loop_id.as_str());
            let parent = record.parent_loop_id.as_ref();
            arrays.parents.push(parent.map(LoopId::as_str));
            arrays.on_chain.push(record.on_chain);
            let columns = row.columns();
            for (array, column) in arrays.columns.iter_mut().zip(columns) {
                array.push(column);
            }
            arrays
                .checksums
                .push(row.checksum_without_log(version, record));
            let [.., log] = columns;
            arrays
                .log_checksums
                .push(Checksum::default().optional(log).finish());
        }
        arrays
    }
}

/// Parameters 1 to 17 of a statement that stores loops.
struct LoopParameters<'a> {
    session: &'a str,
    arrays: LoopArrays<'a>,
    last_number: i64,
    updated_at: Option<String>,
    tip: Option<&'a str>,
    title: Option<Cow<'a, str>>,
}

impl LoopParameters<'_> {
    fn list(&self) -> Vec<&(dyn ToSql + Sync)> {
        let arrays = &self.arrays;
        let [kinds, statuses, started, ended, records, messages, logs] = &arrays.columns;
        vec![
            &self.session,
            &arrays.loop_ids,
            &arrays.parents,
            &arrays.on_chain,
            kinds,
            statuses,
            started,
            ended,
            records,
            messages,
            logs,
            &arrays.checksums,
            &arrays.log_checksums,
            &self.last_number,
            &self.updated_at,
            &self.tip,
            &self.title,
        ]
    }
}

impl NewLoops<'_> {
    fn encode(&self, texts: &mut NewTexts) -> Result<Vec<LoopRow>, EncodeError> {
        let rows = self.records.iter().map(|record| {
            LoopRow::validate(record)?;
            match LoopRow::encode_inline(record)? {
                Some(row) => Ok(row),
                None => LoopRow::encode_with_stored_texts(texts, record),
            }
        });
        rows.collect()
    }

    fn tip_loop_id(&self) -> Option<&str> {
        let tip = self.records.get(self.tip?)?;
        tip.on_chain.then_some(tip.loop_id.as_str())
    }

    fn updated_at(&self) -> Option<String> {
        let times = self.records.iter().map(|record| last_active_at(record));
        times.max().map(format_time)
    }

    /// Returns the first parameters of a statement that stores the loops.
    fn parameters<'s>(&'s self, rows: &'s [LoopRow]) -> LoopParameters<'s> {
        LoopParameters {
            session: self.session.as_str(),
            arrays: LoopArrays::new(to_integer(self.version), self.records, rows),
            last_number: to_integer(last_loop_number(self.records)),
            updated_at: self.updated_at(),
            tip: self.tip_loop_id(),
            title: self.title.map(escape),
        }
    }

    /// Stores recovered loops in a session that is locked.
    pub(super) async fn store_recovered(&self, connection: &Connection) -> Result<(), PgError> {
        let mut texts = NewTexts::default();
        let rows = self.encode(&mut texts)?;
        let stored = self.parameters(&rows);
        let mut parameters = stored.list();
        parameters.extend(texts.parameters());
        connection.query(STORE_RECOVERED, &parameters).await?;
        Ok(())
    }
}

pub(super) async fn commit(
    shared: &Shared,
    queue: &SessionQueue,
    commit: &Commit,
) -> Result<u64, StoreError> {
    let loops = NewLoops {
        session: &commit.lane.session_id,
        version: commit.expected_head.saturating_add(1),
        records: &commit.records,
        tip: Some(commit.tip),
        title: commit.title.as_deref(),
    };
    let mut texts = NewTexts::unknown_to(queue, commit.lane.fence);
    let rows = loops.encode(&mut texts);
    let rows = rows.map_err(|error| PgError::from(error).into_store_error(&shared.pool.address))?;
    let effects = EffectArrays::new(&commit.effects);
    let version = shared
        .run(COMMIT_TIMEOUT, async |connection| {
            match store(connection, commit, &loops, &rows, &texts, &effects).await? {
                Some(version) => Ok(version),
                None => explain(connection, commit, &rows).await,
            }
        })
        .await?;
    texts.note_stored(queue, commit.lane.fence);
    Ok(version)
}

/// Stores the loops; `None` if a condition does not hold, and then nothing is changed.
async fn store(
    connection: &Connection,
    commit: &Commit,
    loops: &NewLoops<'_>,
    rows: &[LoopRow],
    texts: &NewTexts,
    effects: &EffectArrays<'_>,
) -> Result<Option<u64>, PgError> {
    let stored = loops.parameters(rows);
    let (fence, head) = (commit.lane.fence, commit.expected_head);
    let (fence, head) = (to_integer(fence), to_integer(head));
    let mut parameters = stored.list();
    let lane: [&(dyn ToSql + Sync); 4] = [&commit.lane.owner_id, &fence, &head, &commit.release];
    parameters.extend(lane);
    let sql = if texts.names.is_empty() && effects.keys.is_empty() {
        COMMIT
    } else {
        parameters.extend(texts.parameters());
        parameters.extend(effects.parameters());
        COMMIT_WITH_EXTRAS
    };
    match connection.query_optional(sql, &parameters).await {
        Ok(row) => row.map(|row| Columns(&row).count(0)).transpose(),
        Err(error) if error.is_duplicate() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds out why a commit was refused: the response to an earlier attempt was lost (S2), the lane or the head is not the
/// expected one, or a loop is stored with other content.
async fn explain(
    connection: &Connection,
    commit: &Commit,
    rows: &[LoopRow],
) -> Result<u64, PgError> {
    let Commit { lane, records, .. } = commit;
    let seen = lanes::lock(connection, &lane.session_id, None).await?;
    let ids: Vec<&str> = records
        .iter()
        .map(|record| record.loop_id.as_str())
        .collect();
    let id = lane.session_id.as_str();
    let stored = connection.query(SELECT_STORED, &[&id, &ids]).await?;
    let mut versions = Vec::new();
    let mut is_same = true;
    for (record, row) in records.iter().zip(rows) {
        let mut found = None;
        for stored in stored.iter().map(Columns) {
            if stored.text(1)? != record.loop_id.as_str() {
                continue;
            }
            found = Some(stored.count(0)?);
            let parent = record.parent_loop_id.as_ref().map(LoopId::as_str);
            is_same &= stored.optional_text(2)? == parent && stored.boolean(3)? == record.on_chain;
            for (part, column) in row.columns().into_iter().zip(4..) {
                is_same &= stored.optional_text(column)? == part;
            }
        }
        versions.push(found);
    }
    if let Some(Some(version)) = versions.first()
        && is_same
        && versions.iter().all(|it| *it == Some(*version))
    {
        if commit.release {
            lanes::release(connection, lane).await?;
        }
        connection.commit().await?;
        return Ok(*version);
    }
    if seen.fence != lane.fence || seen.owner_id.as_ref() != Some(&lane.owner_id) {
        connection.commit().await?;
        return Err(StoreError::LaneLost(lane.session_id.clone()).into());
    }
    let mut stored = records
        .iter()
        .zip(&versions)
        .filter(|(_, version)| version.is_some());
    if let Some((record, _)) = stored.next() {
        connection.commit().await?;
        return Err(StoreError::CommitMismatch(record.loop_id.clone()).into());
    }
    if seen.info.head_version == commit.expected_head {
        // The lane was free or held otherwise a moment ago.
        connection.commit().await?;
        return Err(PgError::Raced);
    }
    // The loops' journals are settled, whatever the outcome (C-12).
    connection.execute(DROP_JOURNALS, &[&id, &ids]).await?;
    note_lost_number(connection, &lane.session_id, last_loop_number(records)).await?;
    connection.commit().await?;
    Err(StoreError::HeadConflict {
        expected: commit.expected_head,
        actual: seen.info.head_version,
    }
    .into())
}

/// Returns true if the loop was committed.
pub(super) async fn is_stored(
    connection: &Connection,
    session: &SessionId,
    loop_id: &LoopId,
) -> Result<bool, PgError> {
    let parameters: &[&(dyn ToSql + Sync)] = &[&session.as_str(), &loop_id.as_str()];
    Ok(connection
        .query_optional(IS_STORED, parameters)
        .await?
        .is_some())
}

/// Records the number of a loop that was shown but is neither stored nor journalled any more, so that it is never reused
/// (LOOP-10).
pub(super) async fn note_lost_number(
    connection: &Connection,
    session: &SessionId,
    number: u64,
) -> Result<(), PgError> {
    if number > 0 {
        connection
            .execute(NOTE_LOST_NUMBER, &[&session.as_str(), &to_integer(number)])
            .await?;
    }
    Ok(())
}

/// Effects of a commit, column by column.
struct EffectArrays<'a> {
    sessions: Vec<&'a str>,
    keys: Vec<&'a str>,
    tool_names: Vec<&'a str>,
    effects: Vec<String>,
    checksums: Vec<i64>,
}

impl<'a> EffectArrays<'a> {
    fn new(pending: &'a [PendingEffect]) -> Self {
        let effects: Vec<String> = pending.iter().map(|it| it.effect.to_string()).collect();
        let checksums = pending.iter().zip(&effects);
        let checksums = checksums
            .map(|(it, effect)| {
                super::effects::checksum(&it.session_id, &it.key, &it.tool_name, effect).finish()
            })
            .collect();
        Self {
            sessions: pending.iter().map(|it| it.session_id.as_str()).collect(),
            keys: pending.iter().map(|it| it.key.as_str()).collect(),
            tool_names: pending.iter().map(|it| it.tool_name.as_str()).collect(),
            effects,
            checksums,
        }
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 5] {
        [
            &self.sessions,
            &self.keys,
            &self.tool_names,
            &self.effects,
            &self.checksums,
        ]
    }
}
