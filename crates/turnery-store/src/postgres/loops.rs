//! Reads the loops of a session as records.

use super::{
    connection::Connection,
    loop_rows::{LoopRows, LoopView, Selection},
    pg_error::PgError,
};
use crate::{
    History,
    encoding::{loop_columns::is_foreign, survey::Survey},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use turnery_engine::{LoopRecord, SessionId};

/// Returns the readable loops committed after head version `after`, oldest first.
pub(super) async fn read_loops(
    connection: &Connection,
    id: &SessionId,
    after: u64,
) -> Result<Vec<Arc<LoopRecord>>, PgError> {
    let rows = LoopRows::read(connection, id, Selection::Newer(after)).await?;
    if let Some(loops) = read_all(&rows, id, after)? {
        return Ok(loops);
    }
    Ok(survey(connection, id).await?.into_loops(after))
}

/// Returns the loops, or `None` as soon as one is damaged or its parent is missing.
fn read_all(
    rows: &LoopRows,
    id: &SessionId,
    after: u64,
) -> Result<Option<Vec<Arc<LoopRecord>>>, PgError> {
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    for row in rows.iter() {
        let is_parent_known = row.parent()?.is_none_or(|parent| {
            known.contains(parent) || after > 0 || (known.is_empty() && is_foreign(id, parent))
        });
        if !is_parent_known || !row.is_head_intact()? || !row.is_log_intact()? {
            return Ok(None);
        }
        let Ok(record) = row.read_record_with_events()? else {
            return Ok(None);
        };
        known.insert(row.loop_id()?);
        found.push(Arc::new(record));
    }
    Ok(Some(found))
}

/// Returns the loops that the next prompt follows, without their events, and the damage found among them. Reads the
/// events only if the chain to the tip is damaged.
pub(super) async fn history(connection: &Connection, id: &SessionId) -> Result<History, PgError> {
    let rows = LoopRows::read(connection, id, Selection::WithoutLog).await?;
    if let Some(chain) = chain(&rows, id)? {
        let loops = chain.into_iter().map(|(_, record)| record);
        let loops: Vec<_> = loops.filter(|record| record.is_in_conversation()).collect();
        return Ok(History {
            has_all_loops: loops.len() == rows.iter().count(),
            loops,
            damage: Vec::new(),
        });
    }
    Ok(survey(connection, id).await?.into_history())
}

/// Judges all loops of a session, and logs the damage.
pub(super) async fn survey(connection: &Connection, id: &SessionId) -> Result<Survey, PgError> {
    let rows = LoopRows::read(connection, id, Selection::All).await?;
    let survey = rows.into_survey()?;
    survey.log_damage();
    Ok(survey)
}

/// A loop of the chain, with its row.
pub(super) type ChainLoop<'a> = (LoopView<'a>, Arc<LoopRecord>);

/// Returns the loops from the first to the tip, on the chain or not; `None` if one is damaged, if the chain does not
/// reach the first loop, or if a newer loop is on the chain.
pub(super) fn chain<'a>(
    rows: &'a LoopRows,
    id: &SessionId,
) -> Result<Option<Vec<ChainLoop<'a>>>, PgError> {
    let mut by_id = HashMap::new();
    let mut newest = 0;
    for row in rows.iter() {
        by_id.insert(row.loop_id()?, row);
        if row.on_chain()? {
            newest = newest.max(row.version()?);
        }
    }
    let Some(tip) = &rows.tip else {
        return Ok((newest == 0).then(Vec::new));
    };
    let mut chain = Vec::new();
    let mut next = Some(tip.as_str());
    while let Some(wanted) = next {
        let Some(row) = by_id.remove(wanted) else {
            // The first loop of a child session follows a loop of its parent.
            let is_whole = !chain.is_empty() && is_foreign(id, wanted);
            return Ok(is_whole.then(|| reversed(chain)));
        };
        if chain.is_empty() && newest > row.version()? {
            return Ok(None);
        }
        if !row.is_head_intact()? {
            return Ok(None);
        }
        let Ok(record) = row.read_record()? else {
            return Ok(None);
        };
        next = row.parent()?;
        chain.push((row, Arc::new(record)));
    }
    Ok(Some(reversed(chain)))
}

fn reversed<T>(mut taken: Vec<T>) -> Vec<T> {
    taken.reverse();
    taken
}
