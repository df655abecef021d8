//! Reads a conversation page by page for replay.

use super::{
    checksum::ChecksumVerdict,
    columns::text,
    job_error::{JobError, reason_if_damaged},
    journal,
    long_texts::expand_references,
    loops, notes, sessions,
    stored_loop::{self, LOG_COLUMN, SELECT_LOOP},
    survey::{RowCorrection, Survey},
};
use crate::{
    Damage, DamagedPart, ReplayPage, StoreError,
    encoding::event_log,
    replay::{REPLAY_PAGE_EVENTS, ReplayCursor},
};
use rusqlite::Connection;
use std::{sync::Arc, vec};
use turnery_engine::{EventKind, LoopId, LoopRecord, SessionId};

/// Size at which a page with at least one event is full. Unit: bytes as stored.
const PAGE_BYTES: usize = 1 << 20;

/// Remaining part of a replay.
struct SqliteReplay {
    /// Loops not yet opened. A stored loop never changes, and is only deleted with its session.
    pending: vec::IntoIter<ReplayLoop>,
    open: Option<OpenLoop>,
    /// True if the whole session was searched for damage, so that pages need not report it.
    is_surveyed: bool,
}

/// Loop to replay: its key, and corrections of its row.
type ReplayLoop = (i64, Option<RowCorrection>);

/// Loop whose events are being read.
struct OpenLoop {
    record: Arc<LoopRecord>,
    log: String,
    /// Position in the log. Unit: bytes.
    position: usize,
}

pub(super) fn read_page(
    db: &mut Connection,
    id: &SessionId,
    cursor: Option<ReplayCursor>,
) -> Result<ReplayPage, JobError> {
    let db = db.transaction()?;
    let mut page = ReplayPage::default();
    let mut left = match cursor {
        Some(cursor) => cursor.into_position()?,
        None => {
            let left = begin_replay(&db, id, &mut page)?;
            page.damage.append(&mut notes::check(&db, id)?);
            page.damage.append(&mut journal::check(&db, id)?);
            left
        }
    };
    // The session may have been deleted since the previous page.
    sessions::get(&db, id)?;
    let mut damage = Vec::new();
    let mut bytes = 0;
    let mut report = |loop_id: &LoopId, reason: String| {
        let loop_id = loop_id.clone();
        let part = DamagedPart::Loop { loop_id };
        if damage.last().is_none_or(|last: &Damage| last.part != part) {
            damage.push(Damage::new(id, part, reason));
        }
    };
    'loops: loop {
        let mut open = match left.open.take() {
            Some(open) => open,
            None => match left.pending.next() {
                Some(next) => match open_loop(&db, id, next, &mut report)? {
                    Some(open) => open,
                    None => continue,
                },
                None => break,
            },
        };
        let OpenLoop {
            record,
            log,
            position,
        } = &mut open;
        loop {
            if page.events.len() == REPLAY_PAGE_EVENTS || bytes > PAGE_BYTES {
                left.open = Some(open);
                break 'loops;
            }
            let from = *position;
            let next = event_log::next_event(log, position, record, EventKind::TRANSIENT_KINDS);
            match reason_if_damaged(next.map_err(JobError::from))? {
                Ok(Some(event)) => page.events.push(event),
                Ok(None) => break,
                Err(reason) => {
                    report(
                        &record.loop_id,
                        format!("has events that cannot be read: {reason}"),
                    );
                    if *position == from {
                        break;
                    }
                }
            }
            bytes += *position - from;
        }
        page.loops.push(open.record);
    }
    if !left.is_surveyed {
        for damage in &damage {
            tracing::warn!(session = %id, "damage in the store: {damage}");
        }
        page.damage.append(&mut damage);
    }
    page.next_cursor = left.open.is_some().then(|| ReplayCursor::new(left));
    Ok(page)
}

fn begin_replay(
    db: &Connection,
    id: &SessionId,
    page: &mut ReplayPage,
) -> Result<SqliteReplay, JobError> {
    let chain = loops::chain(db, id)?;
    let is_surveyed = chain.is_none();
    page.has_all_loops = chain.as_ref().is_some_and(|chain| chain.has_all_loops);
    let pending: Vec<ReplayLoop> = match chain {
        Some(chain) => chain.values.into_iter().map(|key| (key, None)).collect(),
        None => {
            let mut survey = Survey::of_session(db, id)?;
            survey.log_damage();
            page.damage.append(&mut survey.damage);
            let loops = survey.replay_loops().into_iter();
            loops.map(|(key, link)| (key, Some(link))).collect()
        }
    };
    Ok(SqliteReplay {
        pending: pending.into_iter(),
        open: None,
        is_surveyed,
    })
}

/// Opens a loop; `None` if it is unreadable.
fn open_loop(
    db: &Connection,
    id: &SessionId,
    (key, link): ReplayLoop,
    report: &mut impl FnMut(&LoopId, String),
) -> Result<Option<OpenLoop>, JobError> {
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let mut rows = select.query((key,))?;
    let Some(row) = rows.next()? else {
        return Err(StoreError::NotFound(id.clone()).into());
    };
    let mut record =
        match reason_if_damaged(stored_loop::read_record(db, row, id, &mut String::new()))? {
            Ok(record) => record,
            Err(reason) => {
                let loop_id = text(row, 1).unwrap_or("(unreadable)");
                report(&loop_id.into(), format!("cannot be read: {reason}"));
                return Ok(None);
            }
        };
    let is_verified = stored_loop::verify(row, id)? == ChecksumVerdict::Matches;
    let log = text(row, LOG_COLUMN).unwrap_or("[]");
    let log = reason_if_damaged(expand_references(db, id, log))?;
    let log = log.and_then(|log| {
        // The events of a truncated log are not replayed: the messages hold the full conversation.
        if !is_verified
            && let (events, Some(reason)) = event_log::read_all(&log, &record)
            && events.is_empty()
        {
            return Err(reason);
        }
        Ok(log.into_owned())
    });
    let log = log.unwrap_or_else(|reason| {
        report(
            &record.loop_id,
            format!("has events that cannot be read: {reason}"),
        );
        "[]".to_owned()
    });
    if let Some(link) = link {
        record.parent_loop_id = link.parent;
        record.continuation_kind = link.kind;
        record.on_chain = link.on_chain;
    }
    Ok(Some(OpenLoop {
        record: Arc::new(record),
        log,
        position: 0,
    }))
}
