//! Survey: all loops of a session, read one by one, so that a damaged one hides no other. Taken when the
//! quick way through the session has met damage, and by checks and repairs.

use super::{
    checksum::{Checksum, Verdict},
    fault::Fault,
    log,
    loops::{self, CHECKSUM, LOG, LOOP, ON_CHAIN, PARENT, is_foreign, text},
    sessions,
    texts::expand,
};
use crate::{Damage, DamagedPart, History};
use rusqlite::{Connection, Row, types::ValueRef};
use serde::Deserialize;
use std::{collections::HashMap, sync::Arc};
use turnery_engine::{ContinuationKind, LoopId, LoopRecord, SessionId, context};

/// The index may be damaged too: it is not used.
const KEYS: &str = "SELECT loop FROM loops NOT INDEXED WHERE session_id = ?1 ORDER BY loop";

/// The same for all sessions.
const ALL_KEYS: &str = "SELECT session_id, loop FROM loops NOT INDEXED ORDER BY loop";

/// The columns that come before the long ones, for a row whose end cannot be reached.
const HEAD: &str = "SELECT version, loop_id, parent_loop_id FROM loops WHERE loop = ?1";

/// All loops of a session as far as they can be read, and what is wrong with them.
pub(super) struct Survey {
    pub(super) rows: Vec<Surveyed>,
    /// The loop that the next prompt follows; it may itself be unreadable.
    pub(super) tip: Option<usize>,
    pub(super) damage: Vec<Damage>,
}

/// Keys of the loops of all sessions, found in one pass over the table.
pub(super) struct AllKeys(HashMap<SessionId, Vec<i64>>);

impl AllKeys {
    pub(super) fn read(db: &Connection) -> Result<Self, Fault> {
        let mut keys: HashMap<SessionId, Vec<i64>> = HashMap::new();
        let mut select = db.prepare_cached(ALL_KEYS)?;
        let mut rows = select.query(())?;
        while let Some(row) = rows.next()? {
            // What is not text is of no session.
            if let Ok(id) = text(row, 0) {
                keys.entry(id.into()).or_default().push(row.get(1)?);
            }
        }
        Ok(Self(keys))
    }

    pub(super) fn of(&self, id: &SessionId) -> &[i64] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

/// One row.
pub(super) struct Surveyed {
    pub(super) key: i64,
    pub(super) version: Option<u64>,
    pub(super) loop_id: LoopId,
    /// Parent as the row has it.
    pub(super) parent: Option<LoopId>,
    /// Parent as the first event of the loop has it; `None` without such an event.
    logged_parent: Option<Option<LoopId>>,
    pub(super) verdict: Verdict,
    /// Column that made the checksum differ, if putting it right makes the checksum match.
    pub(super) culprit: Option<Culprit>,
    pub(super) is_set_aside: bool,
    /// Its events cannot be read; all that was said is in its messages.
    pub(super) is_log_broken: bool,
    /// Nothing but its content was found wrong: a newer version may be able to read it.
    pub(super) is_newer: bool,
    /// With its events, and with the parent that it is taken to have. `None` if it cannot be read or
    /// has been set aside.
    pub(super) record: Option<LoopRecord>,
    /// The loop before it.
    before: Option<usize>,
    /// The reference to the loop before it is wrong.
    pub(super) is_retied: bool,
}

/// A column whose right value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Culprit {
    Parent,
    OnChain,
}

/// What a loop is shown with in place of what its row says.
#[derive(Clone, Debug)]
pub(super) struct Tie {
    pub(super) parent: Option<LoopId>,
    pub(super) kind: ContinuationKind,
    pub(super) on_chain: bool,
}

impl Survey {
    pub(super) fn of(db: &Connection, id: &SessionId) -> Result<Self, Fault> {
        let mut select = db.prepare_cached(KEYS)?;
        let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
        let keys: Vec<i64> = keys.collect::<Result<_, _>>()?;
        Self::of_rows(db, id, &keys)
    }

    /// Surveys a session whose loops have these keys.
    pub(super) fn of_rows(db: &Connection, id: &SessionId, keys: &[i64]) -> Result<Self, Fault> {
        let tip = sessions::get(db, id)?.tip_loop_id;
        let mut survey = Self {
            rows: Vec::new(),
            tip: None,
            damage: Vec::new(),
        };
        for key in keys {
            let (row, complaint) = read(db, id, *key)?;
            if let Some(reason) = complaint {
                let loop_id = row.loop_id.clone();
                let part = DamagedPart::Loop { loop_id };
                survey.damage.push(Damage::new(id, part, reason));
            }
            survey.rows.push(row);
        }
        survey.link(id);
        survey.find_tip(id, tip);
        Ok(survey)
    }

    /// Logs all damage.
    pub(super) fn warn(&self) {
        for damage in &self.damage {
            let session = damage.session_id.as_ref();
            tracing::warn!(
                session = session.map(SessionId::as_str),
                "damage in the store: {damage}"
            );
        }
    }

    /// The loops committed after head version `after`.
    pub(super) fn loops(self, after: u64) -> Vec<Arc<LoopRecord>> {
        let rows = self.rows.into_iter();
        rows.filter(|row| row.version.is_none_or(|version| version > after))
            .filter_map(|row| row.record.map(Arc::new))
            .collect()
    }

    pub(super) fn history(mut self) -> History {
        let loops = self.chain().into_iter().filter_map(|place| {
            let mut record = self.rows[place].record.take()?;
            record.events = Vec::new();
            Some(Arc::new(record))
        });
        let loops = loops.collect();
        History {
            loops,
            damage: self.damage,
        }
    }

    /// The loops to be shown again: those of the history without those that were run again.
    pub(super) fn shown(&self) -> Vec<(i64, Tie)> {
        let records: Vec<Arc<LoopRecord>> = self
            .rows
            .iter()
            .filter_map(|row| row.record.clone().map(Arc::new))
            .collect();
        let tip = self.readable_tip().map(|place| &self.rows[place].loop_id);
        let chain = context::chain(&records, tip);
        let of = |record: &Arc<LoopRecord>| {
            let row = self.rows.iter().find(|row| row.loop_id == record.loop_id)?;
            Some((
                row.key,
                Tie {
                    parent: record.parent_loop_id.clone(),
                    kind: record.continuation_kind,
                    on_chain: record.on_chain,
                },
            ))
        };
        chain.iter().filter_map(of).collect()
    }

    /// The tip, or the loop nearest before it that can be read.
    pub(super) fn readable_tip(&self) -> Option<usize> {
        let tip = self.tip?;
        match self.rows[tip].record {
            Some(_) => Some(tip),
            None => self.readable_before(tip),
        }
    }

    /// Places of the loops on the chain, oldest first.
    fn chain(&self) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut next = self.readable_tip();
        while let Some(place) = next {
            if self.stands(place) {
                chain.push(place);
            }
            next = self.readable_before(place);
        }
        chain.reverse();
        chain
    }

    fn stands(&self, place: usize) -> bool {
        let record = self.rows[place].record.as_ref();
        record.is_some_and(LoopRecord::stands)
    }

    /// The nearest loop before this one that can be read. What comes before has a smaller place.
    fn readable_before(&self, place: usize) -> Option<usize> {
        let mut next = self.rows[place].before;
        while let Some(place) = next
            && self.rows[place].record.is_none()
        {
            next = self.rows[place].before;
        }
        next
    }

    /// Finds the loop before each loop, and gives each record the parent that can be read.
    fn link(&mut self, id: &SessionId) {
        let mut by_id: HashMap<LoopId, usize> = HashMap::new();
        for place in 0..self.rows.len() {
            let (before, complaint) = self.find_before(id, place, &by_id);
            let row = &mut self.rows[place];
            row.before = before;
            row.is_retied = complaint.is_some();
            let loop_id = row.loop_id.clone();
            if !row.is_set_aside
                && let Some(reason) = complaint
            {
                let part = DamagedPart::Parent {
                    loop_id: loop_id.clone(),
                };
                self.damage.push(Damage::new(id, part, reason));
            }
            by_id.entry(loop_id).or_insert(place);
            self.tie(place);
        }
    }

    fn tie(&mut self, place: usize) {
        let before = self.rows[place].before;
        let readable = self.readable_before(place);
        let parent = readable.map(|place| self.rows[place].loop_id.clone());
        let row = &mut self.rows[place];
        let Some(record) = &mut row.record else {
            return;
        };
        let is_retied = row.is_retied || readable != before;
        if !is_retied {
            return;
        }
        row.is_retied = true;
        record.parent_loop_id = parent;
        // It would take the place of the loop that it follows now.
        if record.continuation_kind == ContinuationKind::Rerun {
            record.continuation_kind = ContinuationKind::Initial;
        }
    }

    /// The loop before the one at this place, and what is wrong with the reference to it.
    fn find_before(
        &self,
        id: &SessionId,
        place: usize,
        by_id: &HashMap<LoopId, usize>,
    ) -> (Option<usize>, Option<String>) {
        let row = &self.rows[place];
        let logged = row.logged_parent.as_ref();
        let known = |parent: &LoopId| by_id.get(parent).copied();
        let logged_before = logged.and_then(Option::as_ref).and_then(known);
        if row.culprit == Some(Culprit::Parent) {
            return (logged_before, Some(self.names(row, logged_before)));
        }
        if let Some(before) = row.parent.as_ref().and_then(known) {
            // Without a checksum the first event of the loop is the second witness.
            let other =
                logged_before.filter(|logged| row.verdict == Verdict::Unknown && *logged != before);
            return match other {
                Some(logged) => (Some(logged), Some(self.names(row, Some(logged)))),
                None => (Some(before), None),
            };
        }
        let is_beginning = match &row.parent {
            None => row.verdict == Verdict::Matches || !matches!(logged, Some(Some(_))),
            // The first loop of a child session follows a loop of its parent.
            Some(parent) => {
                is_foreign(id, parent.as_str())
                    && row.verdict != Verdict::Differs
                    && logged_before.is_none()
                    && !(0..place).any(|earlier| self.stands(earlier))
            }
        };
        if is_beginning {
            return (None, None);
        }
        let newest = || {
            let earlier = |other: &usize| {
                let other = &self.rows[*other];
                other.version.is_none() || other.version != row.version
            };
            (0..place)
                .rev()
                .filter(earlier)
                .find(|other| self.stands(*other))
        };
        let before = logged_before.or_else(newest);
        (before, Some(self.names(row, before)))
    }

    fn names(&self, row: &Surveyed, before: Option<usize>) -> String {
        let instead = match before {
            Some(before) => format!("loop {} is taken for it", self.rows[before].loop_id),
            None => "what came before it is lost".to_owned(),
        };
        match &row.parent {
            Some(parent) => format!(
                "names {:?} as the loop that it follows, which is wrong; {instead}",
                parent.as_str()
            ),
            None => format!("has lost the name of the loop that it follows; {instead}"),
        }
    }

    fn find_tip(&mut self, id: &SessionId, tip: Option<LoopId>) {
        let on_chain = |row: &Surveyed| {
            let record = row.record.as_ref();
            record.is_some_and(|record| record.on_chain)
        };
        let newest = self.rows.iter().rposition(on_chain);
        let named = |tip: &LoopId| self.rows.iter().position(|row| row.loop_id == *tip);
        let found = tip.as_ref().and_then(named);
        let version = |place: usize| self.rows[place].version;
        let complaint = match (&tip, found, newest) {
            (None, _, None) => None,
            (None, _, Some(_)) => Some("is missing".to_owned()),
            (Some(tip), None, _) => Some(format!("names {:?}, which is not stored", tip.as_str())),
            (Some(tip), Some(found), Some(newest))
                if version(found).is_some() && version(newest) > version(found) =>
            {
                Some(format!("names loop {tip}, which is not the last one"))
            }
            (Some(_), Some(_), _) => None,
        };
        let Some(complaint) = complaint else {
            self.tip = found;
            return;
        };
        let instead = match newest {
            Some(newest) => format!("loop {} is taken for it", self.rows[newest].loop_id),
            None => "no loop is left that could be it".to_owned(),
        };
        let reason = format!("{complaint}; {instead}");
        self.tip = newest;
        self.damage.push(Damage::new(id, DamagedPart::Tip, reason));
    }
}

/// A row, and what is wrong with its content.
fn read(db: &Connection, id: &SessionId, key: i64) -> Result<(Surveyed, Option<String>), Fault> {
    let mut select = db.prepare_cached(LOOP)?;
    let mut rows = select.query((key,))?;
    let read = match rows.next() {
        Ok(Some(row)) => whole(db, id, key, row),
        Ok(None) => Err(Fault::Row("it is not where its index says".to_owned())),
        Err(error) => Err(error.into()),
    };
    match read {
        Err(fault) if fault.is_damage() => {
            let reason = format!("cannot be read: {}", fault.in_words());
            Ok((head(db, key)?, Some(reason)))
        }
        read => read,
    }
}

/// The beginning of a row whose end cannot be read.
fn head(db: &Connection, key: i64) -> Result<Surveyed, Fault> {
    let mut select = db.prepare_cached(HEAD)?;
    let mut rows = select.query((key,))?;
    let row = match rows.next().map_err(Fault::from) {
        Ok(row) => row,
        Err(fault) if fault.is_damage() => None,
        Err(fault) => return Err(fault),
    };
    let value = |column| row.and_then(|row| row.get_ref(column).ok());
    Ok(Surveyed {
        version: value(0).and_then(|value| u64::try_from(value.as_i64().ok()?).ok()),
        loop_id: value(1)
            .and_then(lossy)
            .unwrap_or_else(|| format!("in row {key}"))
            .into(),
        parent: value(2).and_then(lossy).map(LoopId::from),
        ..Surveyed::unread(key)
    })
}

/// A row that can be read to its end, and what is wrong with its content.
fn whole(
    db: &Connection,
    id: &SessionId,
    key: i64,
    row: &Row<'_>,
) -> Result<(Surveyed, Option<String>), Fault> {
    let verdict = loops::verify(row, id)?;
    let value = |column| row.get_ref(column).ok();
    let log = text(row, LOG).ok();
    let mut surveyed = Surveyed {
        version: row.get(0).ok(),
        loop_id: value(1)
            .and_then(lossy)
            .unwrap_or_else(|| format!("in row {key}"))
            .into(),
        parent: value(PARENT).and_then(lossy).map(LoopId::from),
        logged_parent: log.and_then(logged_parent),
        verdict,
        is_set_aside: loops::is_set_aside(row)?,
        ..Surveyed::unread(key)
    };
    if surveyed.is_set_aside {
        return Ok((surveyed, None));
    }
    let mut record = match loops::record(db, row, id, &mut String::new()) {
        Ok(record) => record,
        Err(fault) if fault.is_damage() => {
            // A text of it may be lost, though the row is what was written.
            surveyed.is_newer = verdict == Verdict::Matches && matches!(fault, Fault::Json(_));
            let reason = fault.in_words();
            return Ok((surveyed, Some(format!("cannot be read: {reason}"))));
        }
        Err(fault) => return Err(fault),
    };
    let log = log.map(|log| loops::undamaged_or(expand(db, id, log)));
    let (events, failure, is_lost) = match log.transpose()? {
        Some(Ok(log)) => {
            let (events, failure) = log::all(&log, &record);
            (events, failure, verdict != Verdict::Matches)
        }
        Some(Err(reason)) => (Vec::new(), Some(reason), true),
        None => (Vec::new(), Some("they are not text".to_owned()), true),
    };
    record.events = events;
    surveyed.is_log_broken = failure.is_some() && is_lost;
    let mut complaint = failure.map(|failure| format!("has events that cannot be read: {failure}"));
    if verdict == Verdict::Differs {
        surveyed.culprit = culprit(id, row, surveyed.logged_parent.as_ref())?;
        complaint = complaint.or_else(|| match surveyed.culprit {
            // Told with the reference itself.
            Some(Culprit::Parent) => None,
            Some(Culprit::OnChain) => {
                Some("is marked wrongly as part of the conversation or not".to_owned())
            }
            None => Some("differs from what was written: its checksum does not match".to_owned()),
        });
    }
    if surveyed.culprit == Some(Culprit::OnChain) {
        record.on_chain = !record.on_chain;
    }
    surveyed.record = Some(record);
    Ok((surveyed, complaint))
}

/// The column which, put right, makes the checksum match.
fn culprit(
    id: &SessionId,
    row: &Row<'_>,
    logged: Option<&Option<LoopId>>,
) -> Result<Option<Culprit>, Fault> {
    let stored = row.get_ref(CHECKSUM)?;
    let on_chain: bool = row.get(ON_CHAIN)?;
    let matches = |culprit: Culprit| {
        let start = Ok(Checksum::default().text(id.as_str()));
        let sum = (0..=LOG).fold(start, |sum: Result<Checksum, Fault>, column| {
            Ok(match (culprit, column, logged) {
                (Culprit::Parent, PARENT, Some(parent)) => {
                    sum?.optional(parent.as_ref().map(LoopId::as_str))
                }
                (Culprit::OnChain, ON_CHAIN, _) => sum?.integer(i64::from(!on_chain)),
                (Culprit::Parent | Culprit::OnChain, _, _) => sum?.value(row.get_ref(column)?),
            })
        });
        Ok::<bool, Fault>(sum?.verify(stored) == Verdict::Matches)
    };
    for culprit in [Culprit::Parent, Culprit::OnChain] {
        if matches(culprit)? {
            return Ok(Some(culprit));
        }
    }
    Ok(None)
}

/// Parent of a loop by the event that began it.
pub(super) fn logged_parent(log: &str) -> Option<Option<LoopId>> {
    #[derive(Deserialize)]
    struct Entry {
        start: Option<Kind>,
        body: Option<Kind>,
    }
    #[derive(Deserialize)]
    struct Kind {
        event: String,
        parent_loop_id: Option<LoopId>,
    }
    let entries = log.strip_prefix('[')?;
    let mut at = 0;
    // The announcement of a group may come before it.
    for _ in 0..2 {
        let rest = entries.get(at..)?;
        let rest = rest.strip_prefix(',').unwrap_or(rest);
        let mut entry = serde_json::Deserializer::from_str(rest).into_iter::<Entry>();
        let kind = entry.next()?.ok()?;
        at = entries.len() - rest.len() + entry.byte_offset();
        if let Some(kind) = kind
            .start
            .or(kind.body)
            .filter(|kind| kind.event == "loop_start")
        {
            return Some(kind.parent_loop_id);
        }
    }
    None
}

/// Text of a value, with marks in place of what is not UTF-8. `None` for NULL.
fn lossy(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

impl Surveyed {
    fn unread(key: i64) -> Self {
        Self {
            key,
            version: None,
            loop_id: LoopId::from(""),
            parent: None,
            logged_parent: None,
            verdict: Verdict::Unknown,
            culprit: None,
            is_set_aside: false,
            is_log_broken: false,
            is_newer: false,
            record: None,
            before: None,
            is_retied: false,
        }
    }
}
