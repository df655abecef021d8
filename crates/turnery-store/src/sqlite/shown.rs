//! Shown: a conversation, read page by page to be shown again.

use super::{
    fault::Fault,
    log,
    loops::{self, LOOP, text},
    sessions,
};
use crate::{
    Page, StoreError,
    page::{PAGE_EVENTS, Rest},
};
use rusqlite::{Connection, OptionalExtension};
use std::{sync::Arc, vec};
use turnery_engine::{EventKind, LoopRecord, SessionId};

/// A page that holds this much is full, if it has an event. Unit: bytes of what is stored.
const PAGE_BYTES: usize = 1 << 20;

/// What is left to be read.
struct Left {
    /// Of the loops that have not been begun. A stored loop never changes, and goes only with its session.
    keys: vec::IntoIter<i64>,
    begun: Option<Begun>,
}

/// A loop whose events are being read.
struct Begun {
    record: Arc<LoopRecord>,
    log: String,
    /// How far. Unit: bytes.
    at: usize,
}

pub(super) fn shown(
    db: &mut Connection,
    id: &SessionId,
    rest: Option<Rest>,
) -> Result<Page, Fault> {
    let db = db.transaction()?;
    let mut left = match rest {
        Some(rest) => rest.left()?,
        None => Left {
            keys: loops::chain(&db, id)?.into_iter(),
            begun: None,
        },
    };
    // What is left may be of a session that has been deleted since.
    sessions::get(&db, id)?;
    let mut page = Page::default();
    let mut bytes = 0;
    loop {
        let mut begun = match left.begun.take() {
            Some(begun) => begun,
            None => match left.keys.next() {
                Some(key) => begin(&db, id, key)?,
                None => return Ok(page),
            },
        };
        let Begun { record, log, at } = &mut begun;
        loop {
            if page.events.len() == PAGE_EVENTS || bytes > PAGE_BYTES {
                left.begun = Some(begun);
                page.rest = Some(Rest::new(left));
                return Ok(page);
            }
            let from = *at;
            let event = log::next(log, at, record, EventKind::PASSING)
                .map_err(|fault| loops::unreadable(Ok(record.loop_id.as_str()), fault))?;
            bytes += *at - from;
            match event {
                Some(event) => page.events.push(event),
                None => break,
            }
        }
        page.loops.push(begun.record);
    }
}

fn begin(db: &Connection, id: &SessionId, key: i64) -> Result<Begun, Fault> {
    let mut select = db.prepare_cached(LOOP)?;
    let begun = select.query_row((key,), |row| {
        let read = loops::record(row, id, &mut String::new())
            .map_err(|fault| loops::unreadable(text(row, 1), fault))
            .and_then(|record| {
                Ok(Begun {
                    record: Arc::new(record),
                    log: text(row, 10)?.to_owned(),
                    at: 0,
                })
            });
        Ok(read)
    });
    let gone = || StoreError::NotFound(id.clone());
    begun.optional()?.ok_or_else(gone)?
}
