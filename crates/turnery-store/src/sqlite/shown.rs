//! Shown: a conversation, read page by page to be shown again.

use super::{
    checksum::Verdict,
    fault::Fault,
    journal, log,
    loops::{self, LOG, LOOP, text, undamaged_or},
    remarks, sessions,
    survey::{Survey, Tie},
    texts::expand,
};
use crate::{
    Damage, DamagedPart, Page, StoreError,
    page::{PAGE_EVENTS, Rest},
};
use rusqlite::Connection;
use std::{sync::Arc, vec};
use turnery_engine::{EventKind, LoopId, LoopRecord, SessionId};

/// A page that holds this much is full, if it has an event. Unit: bytes of what is stored.
const PAGE_BYTES: usize = 1 << 20;

/// What is left to be read.
struct Left {
    /// Of the loops that have not been begun. A stored loop never changes, and goes only with its session.
    stops: vec::IntoIter<Stop>,
    begun: Option<Begun>,
    /// The whole session has been searched for damage: no page has to name what it meets.
    is_surveyed: bool,
}

/// A loop to be shown: its key, and what its row is wrong about.
type Stop = (i64, Option<Tie>);

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
    let mut page = Page::default();
    let mut left = match rest {
        Some(rest) => rest.left()?,
        None => {
            let left = begin(&db, id, &mut page.damage)?;
            page.damage.append(&mut remarks::check(&db, id)?);
            page.damage.append(&mut journal::check(&db, id)?);
            left
        }
    };
    // What is left may be of a session that has been deleted since.
    sessions::get(&db, id)?;
    let mut damage = Vec::new();
    let mut bytes = 0;
    let mut name = |loop_id: &LoopId, reason: String| {
        let loop_id = loop_id.clone();
        let part = DamagedPart::Loop { loop_id };
        if damage.last().is_none_or(|last: &Damage| last.part != part) {
            damage.push(Damage::new(id, part, reason));
        }
    };
    'loops: loop {
        let mut begun = match left.begun.take() {
            Some(begun) => begun,
            None => match left.stops.next() {
                Some(stop) => match open(&db, id, stop, &mut name)? {
                    Some(begun) => begun,
                    None => continue,
                },
                None => break,
            },
        };
        let Begun { record, log, at } = &mut begun;
        loop {
            if page.events.len() == PAGE_EVENTS || bytes > PAGE_BYTES {
                left.begun = Some(begun);
                break 'loops;
            }
            let from = *at;
            match undamaged_or(log::next(log, at, record, EventKind::PASSING))? {
                Ok(Some(event)) => page.events.push(event),
                Ok(None) => break,
                Err(reason) => {
                    name(
                        &record.loop_id,
                        format!("has events that cannot be read: {reason}"),
                    );
                    if *at == from {
                        break;
                    }
                }
            }
            bytes += *at - from;
        }
        page.loops.push(begun.record);
    }
    if !left.is_surveyed {
        for damage in &damage {
            tracing::warn!(session = %id, "damage in the store: {damage}");
        }
        page.damage.append(&mut damage);
    }
    page.rest = left.begun.is_some().then(|| Rest::new(left));
    Ok(page)
}

fn begin(db: &Connection, id: &SessionId, damage: &mut Vec<Damage>) -> Result<Left, Fault> {
    if let Some(keys) = loops::chain(db, id)? {
        let stops: Vec<Stop> = keys.into_iter().map(|key| (key, None)).collect();
        return Ok(Left {
            stops: stops.into_iter(),
            begun: None,
            is_surveyed: false,
        });
    }
    let mut survey = Survey::of(db, id)?;
    survey.warn();
    damage.append(&mut survey.damage);
    let stops = survey.shown().into_iter();
    let stops: Vec<Stop> = stops.map(|(key, tie)| (key, Some(tie))).collect();
    Ok(Left {
        stops: stops.into_iter(),
        begun: None,
        is_surveyed: true,
    })
}

/// `None` if the loop cannot be read.
fn open(
    db: &Connection,
    id: &SessionId,
    (key, tie): Stop,
    name: &mut impl FnMut(&LoopId, String),
) -> Result<Option<Begun>, Fault> {
    let mut select = db.prepare_cached(LOOP)?;
    let mut rows = select.query((key,))?;
    let Some(row) = rows.next()? else {
        return Err(StoreError::NotFound(id.clone()).into());
    };
    let mut record = match undamaged_or(loops::record(db, row, id, &mut String::new()))? {
        Ok(record) => record,
        Err(reason) => {
            let loop_id = text(row, 1).unwrap_or("(unreadable)");
            name(&loop_id.into(), format!("cannot be read: {reason}"));
            return Ok(None);
        }
    };
    let log = text(row, LOG).unwrap_or("[]");
    let mut log = match undamaged_or(expand(db, id, log))? {
        Ok(log) => log.into_owned(),
        Err(reason) => {
            name(
                &record.loop_id,
                format!("has events that cannot be read: {reason}"),
            );
            "[]".to_owned()
        }
    };
    // One that breaks off is not shown up to there: all that was said is in the messages.
    if loops::verify(row, id)? != Verdict::Matches
        && let (events, Some(reason)) = log::all(&log, &record)
        && events.is_empty()
    {
        name(
            &record.loop_id,
            format!("has events that cannot be read: {reason}"),
        );
        log = "[]".to_owned();
    }
    if let Some(Tie {
        parent,
        kind,
        on_chain,
    }) = tie
    {
        record.parent_loop_id = parent;
        record.continuation_kind = kind;
        record.on_chain = on_chain;
    }
    Ok(Some(Begun {
        record: Arc::new(record),
        log,
        at: 0,
    }))
}
