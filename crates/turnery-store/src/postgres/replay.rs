//! Reads a conversation page by page for replay.

use super::{
    connection::Connection,
    journal,
    loop_rows::{LoopRows, LoopView, Selection},
    loops, notes,
    pg_error::PgError,
};
use crate::{
    Damage, DamagedPart, ReplayPage, StoreError,
    encoding::{event_log, survey::RowCorrection},
    replay::REPLAY_PAGE_EVENTS,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use turnery_engine::{ContinuationKind, EventKind, LoopId, LoopRecord, SessionId};

/// Size at which a page with at least one event is full, and of the events that are fetched together. Unit: bytes as
/// stored.
const PAGE_BYTES: usize = 1 << 20;

/// Remaining part of a replay. A stored loop never changes, and is only deleted with its session.
#[derive(Default)]
pub(super) struct PostgresReplay {
    /// Loops that are not fetched.
    pending: VecDeque<PgReplayLoop>,
    /// Loops that are fetched, with their events.
    open: VecDeque<PgOpenLoop>,
    /// True if the whole session was searched for damage, so that pages need not report it.
    is_surveyed: bool,
    /// Page that is being read. A failed attempt leaves it to the next one.
    page: ReplayPage,
    /// Damage found while reading it.
    found: Vec<Damage>,
}

/// Loop to replay.
struct PgReplayLoop {
    key: i64,
    log_bytes: usize,
    correction: Option<RowCorrection>,
}

/// Loop whose events are being read.
struct PgOpenLoop {
    record: Arc<LoopRecord>,
    log: String,
    /// Position in the log. Unit: bytes.
    position: usize,
}

/// Begins a replay. Its first page has the damage that is known already.
pub(super) async fn begin(
    connection: &Connection,
    id: &SessionId,
) -> Result<PostgresReplay, PgError> {
    let mut replay = PostgresReplay::default();
    let rows = LoopRows::read(connection, id, Selection::WithoutLog).await?;
    match loops::chain(&rows, id)? {
        Some(chain) => {
            let mut is_run_again = false;
            for (row, record) in chain.into_iter().rev() {
                let is_rerun = record.continuation_kind == ContinuationKind::Rerun;
                let stays = !std::mem::replace(&mut is_run_again, is_rerun);
                if stays && record.is_in_conversation() {
                    replay.pending.push_front(PgReplayLoop {
                        key: row.key()?,
                        log_bytes: row.log_bytes()?,
                        correction: None,
                    });
                }
            }
        }
        None => {
            let mut survey = loops::survey(connection, id).await?;
            replay.is_surveyed = true;
            replay.page.damage.append(&mut survey.damage);
            let loops = survey.replay_loops().into_iter();
            replay
                .pending
                .extend(loops.map(|(key, correction)| PgReplayLoop {
                    key,
                    log_bytes: PAGE_BYTES,
                    correction: Some(correction),
                }));
        }
    }
    let page = &mut replay.page;
    page.has_all_loops = !replay.is_surveyed && replay.pending.len() == rows.iter().count();
    page.damage.append(&mut notes::check(connection, id).await?);
    page.damage
        .append(&mut journal::read(connection, id).await?.damage);
    Ok(replay)
}

impl PostgresReplay {
    /// Reads the next page. After an error or a timeout, the next call goes on.
    pub(super) async fn read_page(
        &mut self,
        connection: &Connection,
        id: &SessionId,
    ) -> Result<ReplayPage, PgError> {
        let mut bytes = 0;
        'loops: loop {
            if self.open.is_empty() {
                match self.fetch(connection, id).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    // What was read is not lost; the next page reports the error.
                    Err(_) if !self.page.events.is_empty() || !self.page.loops.is_empty() => break,
                    Err(error) => return Err(error),
                }
            }
            let page = &mut self.page;
            while let Some(open) = self.open.front_mut() {
                loop {
                    if page.events.len() == REPLAY_PAGE_EVENTS || bytes > PAGE_BYTES {
                        break 'loops;
                    }
                    let from = open.position;
                    let next = event_log::next_event(
                        &open.log,
                        &mut open.position,
                        &open.record,
                        EventKind::TRANSIENT_KINDS,
                    );
                    match next {
                        Ok(Some(event)) => page.events.push(event),
                        Ok(None) => break,
                        Err(reason) => {
                            let reason = format!("has events that cannot be read: {reason}");
                            report(&mut self.found, id, &open.record.loop_id, reason);
                            if open.position == from {
                                break;
                            }
                        }
                    }
                    bytes += open.position - from;
                }
                page.loops.push(Arc::clone(&open.record));
                self.open.pop_front();
            }
        }
        let mut found = std::mem::take(&mut self.found);
        let mut page = std::mem::take(&mut self.page);
        if !self.is_surveyed {
            for damage in &found {
                tracing::warn!(session = %id, "damage in the store: {damage}");
            }
            page.damage.append(&mut found);
        }
        Ok(page)
    }

    /// Returns true if the conversation goes on after the last page.
    pub(super) fn has_more(&self) -> bool {
        !self.open.is_empty() || !self.pending.is_empty()
    }

    /// Fetches the next loops with their events. Returns false at the end.
    async fn fetch(&mut self, connection: &Connection, id: &SessionId) -> Result<bool, PgError> {
        let (mut keys, mut bytes) = (Vec::new(), 0_usize);
        for pending in &self.pending {
            bytes = bytes.saturating_add(pending.log_bytes);
            if !keys.is_empty() && bytes > PAGE_BYTES {
                break;
            }
            keys.push(pending.key);
        }
        if keys.is_empty() {
            return Ok(false);
        }
        let rows = LoopRows::read(connection, id, Selection::Keys(&keys)).await?;
        let mut views = HashMap::new();
        for row in rows.iter() {
            views.insert(row.key()?, row);
        }
        for _ in &keys {
            let Some(pending) = self.pending.pop_front() else {
                break;
            };
            let row = views.get(&pending.key);
            let row = row.ok_or_else(|| StoreError::NotFound(id.clone()))?;
            let opened = open_loop(*row, id, pending, &mut self.found)?;
            self.open.extend(opened);
        }
        Ok(true)
    }
}

/// Opens a loop; `None` if it is unreadable.
fn open_loop(
    row: LoopView<'_>,
    id: &SessionId,
    pending: PgReplayLoop,
    damage: &mut Vec<Damage>,
) -> Result<Option<PgOpenLoop>, PgError> {
    let mut record = match row.read_record()? {
        Ok(record) => record,
        Err(reason) => {
            let reason = format!("cannot be read: {reason}");
            report(damage, id, &row.loop_id()?.into(), reason);
            return Ok(None);
        }
    };
    let is_intact = row.is_log_intact()?;
    let log = row.expand_log()?.map_err(|error| error.to_string());
    let log = log.and_then(|log| {
        // The events of a truncated log are not replayed: the messages hold the full conversation.
        if !is_intact
            && let (events, Some(reason)) = event_log::read_all(&log, &record)
            && events.is_empty()
        {
            return Err(reason);
        }
        Ok(log)
    });
    let log = log.unwrap_or_else(|reason| {
        let reason = format!("has events that cannot be read: {reason}");
        report(damage, id, &record.loop_id, reason);
        "[]".to_owned()
    });
    if let Some(correction) = pending.correction {
        record.parent_loop_id = correction.parent;
        record.continuation_kind = correction.kind;
        record.on_chain = correction.on_chain;
    }
    Ok(Some(PgOpenLoop {
        record: Arc::new(record),
        log,
        position: 0,
    }))
}

fn report(damage: &mut Vec<Damage>, id: &SessionId, loop_id: &LoopId, reason: String) {
    let part = DamagedPart::Loop {
        loop_id: loop_id.clone(),
    };
    if damage.last().is_none_or(|last| last.part != part) {
        damage.push(Damage::new(id, part, reason));
    }
}
