//! Reads all loops of a session one by one, so that a damaged loop hides no other. Used when the fast path
//! meets damage, and by checks and repairs.

use super::{
    checksum::{Checksum, ChecksumVerdict},
    columns::text,
    event_log::{self, logged_parent},
    job_error::{JobError, none_if_damaged, reason_if_damaged},
    long_texts::expand_references,
    sessions,
    stored_loop::{
        self, CHECKSUM_COLUMN, LOG_COLUMN, ON_CHAIN_COLUMN, PARENT_COLUMN, SELECT_LOOP, is_foreign,
    },
};
use crate::{Damage, DamagedPart, History};
use rusqlite::{Connection, Row, types::ValueRef};
use std::{collections::HashMap, sync::Arc};
use turnery_engine::{ContinuationKind, LoopId, LoopRecord, SessionId, context};

/// Selects the keys of a session's loops, oldest first. Reads the table without its index, which may be
/// damaged.
const SELECT_KEYS: &str = "SELECT loop FROM loops NOT INDEXED WHERE session_id = ?1 ORDER BY loop";

/// Like [`SELECT_KEYS`], for all sessions.
const SELECT_ALL_KEYS: &str = "SELECT session_id, loop FROM loops NOT INDEXED ORDER BY loop";

/// Columns before the long ones, for a row whose end is unreadable.
const SELECT_HEAD: &str = "SELECT version, loop_id, parent_loop_id FROM loops WHERE loop = ?1";

/// All loops of a session as far as they are readable, with the damage found.
pub(super) struct Survey {
    pub(super) rows: Vec<SurveyedLoop>,
    /// Index of the loop that the next prompt follows; the loop may be unreadable.
    pub(super) tip: Option<usize>,
    pub(super) damage: Vec<Damage>,
}

/// Loop keys of all sessions, found in one pass over the table.
pub(super) struct LoopKeys(HashMap<SessionId, Vec<i64>>);

impl LoopKeys {
    pub(super) fn read(db: &Connection) -> Result<Self, JobError> {
        let mut keys: HashMap<SessionId, Vec<i64>> = HashMap::new();
        let mut select = db.prepare_cached(SELECT_ALL_KEYS)?;
        let mut rows = select.query(())?;
        while let Some(row) = rows.next()? {
            // A session id that is not text matches no session.
            if let Ok(id) = text(row, 0) {
                keys.entry(id.into()).or_default().push(row.get(1)?);
            }
        }
        Ok(Self(keys))
    }

    pub(super) fn of_session(&self, id: &SessionId) -> &[i64] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

/// One row of the table `loops`.
pub(super) struct SurveyedLoop {
    pub(super) key: i64,
    pub(super) version: Option<u64>,
    pub(super) loop_id: LoopId,
    /// Parent according to the row.
    pub(super) parent: Option<LoopId>,
    /// Parent according to the first event of the loop; `None` without such an event.
    logged_parent: Option<Option<LoopId>>,
    pub(super) verdict: ChecksumVerdict,
    /// Column that caused the checksum mismatch, if correcting it makes the checksum match.
    pub(super) damaged_column: Option<DamagedColumn>,
    pub(super) is_set_aside: bool,
    /// True if the events are unreadable; the messages still hold the full conversation.
    pub(super) is_log_broken: bool,
    /// True if only the content is invalid: a newer version may be able to read it.
    pub(super) is_from_newer_version: bool,
    /// Record with its events and its corrected parent. `None` if the row is unreadable or has been set aside.
    pub(super) record: Option<LoopRecord>,
    /// Index of the previous loop.
    previous: Option<usize>,
    /// True if the record's parent differs from the stored one, because the stored reference is wrong or its
    /// loop is unreadable.
    pub(super) is_relinked: bool,
}

/// Column whose correct value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DamagedColumn {
    Parent,
    OnChain,
}

/// Values from a survey that replace those of a row in a replay. Equal to the stored ones if the row is
/// intact.
#[derive(Clone, Debug)]
pub(super) struct RowCorrection {
    pub(super) parent: Option<LoopId>,
    pub(super) kind: ContinuationKind,
    pub(super) on_chain: bool,
}

impl Survey {
    pub(super) fn of_session(db: &Connection, id: &SessionId) -> Result<Self, JobError> {
        let mut select = db.prepare_cached(SELECT_KEYS)?;
        let keys = select.query_map((id.as_str(),), |row| row.get(0))?;
        let keys: Vec<i64> = keys.collect::<Result<_, _>>()?;
        Self::of_loops(db, id, &keys)
    }

    /// Surveys a session whose loops have these keys.
    pub(super) fn of_loops(
        db: &Connection,
        id: &SessionId,
        keys: &[i64],
    ) -> Result<Self, JobError> {
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
    pub(super) fn log_damage(&self) {
        for damage in &self.damage {
            let session = damage.session_id.as_ref();
            tracing::warn!(
                session = session.map(SessionId::as_str),
                "damage in the store: {damage}"
            );
        }
    }

    /// Returns the loops committed after head version `after`.
    pub(super) fn into_loops(self, after: u64) -> Vec<Arc<LoopRecord>> {
        let rows = self.rows.into_iter();
        rows.filter(|row| row.version.is_none_or(|version| version > after))
            .filter_map(|row| row.record.map(Arc::new))
            .collect()
    }

    pub(super) fn into_history(mut self) -> History {
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

    /// Returns the loops to replay: those of the history without loops that were rerun.
    pub(super) fn replay_loops(&self) -> Vec<(i64, RowCorrection)> {
        let records: Vec<Arc<LoopRecord>> = self
            .rows
            .iter()
            .filter_map(|row| row.record.clone().map(Arc::new))
            .collect();
        let tip = self.readable_tip().map(|place| &self.rows[place].loop_id);
        let chain = context::loop_chain(&records, tip);
        let of = |record: &Arc<LoopRecord>| {
            let row = self.rows.iter().find(|row| row.loop_id == record.loop_id)?;
            Some((
                row.key,
                RowCorrection {
                    parent: record.parent_loop_id.clone(),
                    kind: record.continuation_kind,
                    on_chain: record.on_chain,
                },
            ))
        };
        chain.iter().filter_map(of).collect()
    }

    /// Returns the tip, or the nearest readable loop before it.
    pub(super) fn readable_tip(&self) -> Option<usize> {
        let tip = self.tip?;
        match self.rows[tip].record {
            Some(_) => Some(tip),
            None => self.readable_previous(tip),
        }
    }

    /// Returns the indexes of the loops on the chain, oldest first.
    fn chain(&self) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut next = self.readable_tip();
        while let Some(place) = next {
            if self.is_in_conversation(place) {
                chain.push(place);
            }
            next = self.readable_previous(place);
        }
        chain.reverse();
        chain
    }

    fn is_in_conversation(&self, place: usize) -> bool {
        let record = self.rows[place].record.as_ref();
        record.is_some_and(LoopRecord::is_in_conversation)
    }

    /// Returns the nearest readable loop before this one. Its index is always smaller.
    fn readable_previous(&self, place: usize) -> Option<usize> {
        let mut next = self.rows[place].previous;
        while let Some(place) = next
            && self.rows[place].record.is_none()
        {
            next = self.rows[place].previous;
        }
        next
    }

    /// Finds the previous loop of each loop, and gives each record its nearest readable ancestor as parent.
    fn link(&mut self, id: &SessionId) {
        let mut by_id: HashMap<LoopId, usize> = HashMap::new();
        for place in 0..self.rows.len() {
            let (before, complaint) = self.find_previous(id, place, &by_id);
            let row = &mut self.rows[place];
            row.previous = before;
            row.is_relinked = complaint.is_some();
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
            self.relink(place);
        }
    }

    fn relink(&mut self, place: usize) {
        let before = self.rows[place].previous;
        let readable = self.readable_previous(place);
        let parent = readable.map(|place| self.rows[place].loop_id.clone());
        let row = &mut self.rows[place];
        let Some(record) = &mut row.record else {
            return;
        };
        let is_retied = row.is_relinked || readable != before;
        if !is_retied {
            return;
        }
        row.is_relinked = true;
        record.parent_loop_id = parent;
        // As a rerun it would replace the loop that it now follows.
        if record.continuation_kind == ContinuationKind::Rerun {
            record.continuation_kind = ContinuationKind::Initial;
        }
    }

    /// Returns the previous loop of the one at `place`, and the damage of the reference to it.
    fn find_previous(
        &self,
        id: &SessionId,
        place: usize,
        by_id: &HashMap<LoopId, usize>,
    ) -> (Option<usize>, Option<String>) {
        let row = &self.rows[place];
        let logged = row.logged_parent.as_ref();
        let known = |parent: &LoopId| by_id.get(parent).copied();
        let logged_before = logged.and_then(Option::as_ref).and_then(known);
        if row.damaged_column == Some(DamagedColumn::Parent) {
            return (
                logged_before,
                Some(self.parent_complaint(row, logged_before)),
            );
        }
        if let Some(before) = row.parent.as_ref().and_then(known) {
            // Without a checksum, the first event of the loop confirms the parent.
            let other = logged_before
                .filter(|logged| row.verdict == ChecksumVerdict::Unknown && *logged != before);
            return match other {
                Some(logged) => (Some(logged), Some(self.parent_complaint(row, Some(logged)))),
                None => (Some(before), None),
            };
        }
        let is_beginning = match &row.parent {
            None => row.verdict == ChecksumVerdict::Matches || !matches!(logged, Some(Some(_))),
            // The first loop of a child session follows a loop of its parent.
            Some(parent) => {
                is_foreign(id, parent.as_str())
                    && row.verdict != ChecksumVerdict::Differs
                    && logged_before.is_none()
                    && !(0..place).any(|earlier| self.is_in_conversation(earlier))
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
                .find(|other| self.is_in_conversation(*other))
        };
        let before = logged_before.or_else(newest);
        (before, Some(self.parent_complaint(row, before)))
    }

    fn parent_complaint(&self, row: &SurveyedLoop, before: Option<usize>) -> String {
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
        let on_chain = |row: &SurveyedLoop| {
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

/// Reads a row, and describes the damage of its content.
fn read(
    db: &Connection,
    id: &SessionId,
    key: i64,
) -> Result<(SurveyedLoop, Option<String>), JobError> {
    let mut select = db.prepare_cached(SELECT_LOOP)?;
    let mut rows = select.query((key,))?;
    let read = match rows.next() {
        Ok(Some(row)) => read_whole(db, id, key, row),
        Ok(None) => Err(JobError::InvalidRow(
            "it is not where its index says".to_owned(),
        )),
        Err(error) => Err(error.into()),
    };
    match read {
        Err(error) if error.is_damage() => {
            let reason = format!("cannot be read: {error}");
            Ok((read_head(db, key)?, Some(reason)))
        }
        read => read,
    }
}

/// Reads the first columns of a row whose end is unreadable.
fn read_head(db: &Connection, key: i64) -> Result<SurveyedLoop, JobError> {
    let mut select = db.prepare_cached(SELECT_HEAD)?;
    let mut rows = select.query((key,))?;
    let row = none_if_damaged(rows.next().map_err(JobError::from))?;
    Ok(SurveyedLoop::from_head(key, row.flatten()))
}

/// Reads a complete row, and describes the damage of its content.
fn read_whole(
    db: &Connection,
    id: &SessionId,
    key: i64,
    row: &Row<'_>,
) -> Result<(SurveyedLoop, Option<String>), JobError> {
    let verdict = stored_loop::verify(row, id)?;
    let log = text(row, LOG_COLUMN).ok();
    let mut surveyed = SurveyedLoop {
        logged_parent: log.and_then(logged_parent),
        verdict,
        is_set_aside: stored_loop::is_set_aside(row)?,
        ..SurveyedLoop::from_head(key, Some(row))
    };
    if surveyed.is_set_aside {
        return Ok((surveyed, None));
    }
    let mut record = match stored_loop::read_record(db, row, id, &mut String::new()) {
        Ok(record) => record,
        Err(error) if error.is_damage() => {
            // A long text may be lost although the row is intact.
            surveyed.is_from_newer_version =
                verdict == ChecksumVerdict::Matches && matches!(error, JobError::Json(_));
            let reason = error.to_string();
            return Ok((surveyed, Some(format!("cannot be read: {reason}"))));
        }
        Err(error) => return Err(error),
    };
    let log = log.map(|log| reason_if_damaged(expand_references(db, id, log)));
    let (events, failure, is_lost) = match log.transpose()? {
        Some(Ok(log)) => {
            let (events, failure) = event_log::read_all(&log, &record);
            (events, failure, verdict != ChecksumVerdict::Matches)
        }
        Some(Err(reason)) => (Vec::new(), Some(reason), true),
        None => (Vec::new(), Some("they are not text".to_owned()), true),
    };
    record.events = events;
    surveyed.is_log_broken = failure.is_some() && is_lost;
    let mut complaint = failure.map(|failure| format!("has events that cannot be read: {failure}"));
    if verdict == ChecksumVerdict::Differs {
        surveyed.damaged_column = find_culprit(id, row, surveyed.logged_parent.as_ref())?;
        complaint = complaint.or_else(|| match surveyed.damaged_column {
            // Reported with the reference itself.
            Some(DamagedColumn::Parent) => None,
            Some(DamagedColumn::OnChain) => {
                Some("is marked wrongly as part of the conversation or not".to_owned())
            }
            None => Some("differs from what was written: its checksum does not match".to_owned()),
        });
    }
    if surveyed.damaged_column == Some(DamagedColumn::OnChain) {
        record.on_chain = !record.on_chain;
    }
    surveyed.record = Some(record);
    Ok((surveyed, complaint))
}

/// Returns the column whose correction makes the checksum match.
fn find_culprit(
    id: &SessionId,
    row: &Row<'_>,
    logged: Option<&Option<LoopId>>,
) -> Result<Option<DamagedColumn>, JobError> {
    let stored = row.get_ref(CHECKSUM_COLUMN)?;
    let on_chain: bool = row.get(ON_CHAIN_COLUMN)?;
    let matches = |culprit: DamagedColumn| {
        let start = Ok(Checksum::default().text(id.as_str()));
        let sum = (0..=LOG_COLUMN).fold(start, |sum: Result<Checksum, JobError>, column| {
            Ok(match (culprit, column, logged) {
                (DamagedColumn::Parent, PARENT_COLUMN, Some(parent)) => {
                    sum?.optional(parent.as_ref().map(LoopId::as_str))
                }
                (DamagedColumn::OnChain, ON_CHAIN_COLUMN, _) => sum?.integer(i64::from(!on_chain)),
                (DamagedColumn::Parent | DamagedColumn::OnChain, _, _) => {
                    sum?.value(row.get_ref(column)?)
                }
            })
        });
        Ok::<bool, JobError>(sum?.verify(stored) == ChecksumVerdict::Matches)
    };
    for culprit in [DamagedColumn::Parent, DamagedColumn::OnChain] {
        if matches(culprit)? {
            return Ok(Some(culprit));
        }
    }
    Ok(None)
}

/// Returns the text of a value with replacement characters for invalid UTF-8; `None` for NULL.
fn lossy_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

impl SurveyedLoop {
    /// Reads the columns before the long ones, as far as they are readable.
    fn from_head(key: i64, row: Option<&Row<'_>>) -> Self {
        let value = |column| row.and_then(|row| row.get_ref(column).ok());
        let text = |column| value(column).and_then(lossy_text);
        Self {
            key,
            version: value(0).and_then(|value| u64::try_from(value.as_i64().ok()?).ok()),
            loop_id: text(1).unwrap_or_else(|| format!("in row {key}")).into(),
            parent: text(PARENT_COLUMN).map(LoopId::from),
            logged_parent: None,
            verdict: ChecksumVerdict::Unknown,
            damaged_column: None,
            is_set_aside: false,
            is_log_broken: false,
            is_from_newer_version: false,
            record: None,
            previous: None,
            is_relinked: false,
        }
    }
}
