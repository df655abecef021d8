//! Judges all loops of a session, so that a damaged loop hides no other. Used when the fast path meets damage,
//! and by checks and repairs.

use super::{checksum::ChecksumVerdict, event_log, loop_columns::is_foreign, row_error::RowError};
use crate::{Damage, DamagedPart, History};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use turnery_engine::{ContinuationKind, LoopId, LoopRecord, SessionId, context};

/// All loops of a session as far as they are readable, with the damage found.
pub(crate) struct Survey {
    pub(crate) rows: Vec<SurveyedLoop>,
    /// Index of the loop that the next prompt follows; the loop may be unreadable.
    pub(crate) tip: Option<usize>,
    pub(crate) damage: Vec<Damage>,
}

/// One row of the table `loops`.
pub(crate) struct SurveyedLoop {
    pub(crate) key: i64,
    pub(crate) version: Option<u64>,
    pub(crate) loop_id: LoopId,
    /// Parent according to the row.
    pub(crate) parent: Option<LoopId>,
    /// Parent according to the first event of the loop; `None` without such an event.
    pub(crate) logged_parent: Option<Option<LoopId>>,
    pub(crate) verdict: ChecksumVerdict,
    /// Column that caused the checksum mismatch, if correcting it makes the checksum match.
    pub(crate) damaged_column: Option<DamagedColumn>,
    pub(crate) is_set_aside: bool,
    /// True if the events are unreadable; the messages still hold the full conversation.
    pub(crate) is_log_broken: bool,
    /// True if only the content is invalid: a newer version may be able to read it.
    pub(crate) is_from_newer_version: bool,
    /// Record with its events and its corrected parent. `None` if the row is unreadable or has been set aside.
    pub(crate) record: Option<LoopRecord>,
    /// Index of the previous loop.
    pub(crate) previous: Option<usize>,
    /// True if the record's parent differs from the stored one, because the stored reference is wrong or its
    /// loop is unreadable.
    pub(crate) is_relinked: bool,
}

/// Column whose correct value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DamagedColumn {
    Parent,
    OnChain,
}

/// Values from a survey that replace those of a row in a replay. Equal to the stored ones if the row is
/// intact.
#[derive(Clone, Debug)]
pub(crate) struct RowCorrection {
    pub(crate) parent: Option<LoopId>,
    pub(crate) kind: ContinuationKind,
    pub(crate) on_chain: bool,
}

impl Survey {
    /// Judges the rows of a session, oldest first, each with the damage of its content. `tip` is the loop that the
    /// next prompt follows according to the session.
    pub(crate) fn new(
        id: &SessionId,
        tip: Option<LoopId>,
        rows: impl IntoIterator<Item = (SurveyedLoop, Option<String>)>,
    ) -> Self {
        let mut survey = Self {
            rows: Vec::new(),
            tip: None,
            damage: Vec::new(),
        };
        for (row, complaint) in rows {
            if let Some(reason) = complaint {
                let loop_id = row.loop_id.clone();
                let part = DamagedPart::Loop { loop_id };
                survey.damage.push(Damage::new(id, part, reason));
            }
            survey.rows.push(row);
        }
        survey.link(id);
        survey.find_tip(id, tip);
        survey
    }

    /// Logs all damage.
    pub(crate) fn log_damage(&self) {
        for damage in &self.damage {
            let session = damage.session_id.as_ref();
            tracing::warn!(
                session = session.map(SessionId::as_str),
                "damage in the store: {damage}"
            );
        }
    }

    /// Returns the loops committed after head version `after`.
    pub(crate) fn into_loops(self, after: u64) -> Vec<Arc<LoopRecord>> {
        let rows = self.rows.into_iter();
        rows.filter(|row| row.version.is_none_or(|version| version > after))
            .filter_map(|row| row.record.map(Arc::new))
            .collect()
    }

    pub(crate) fn into_history(mut self) -> History {
        let loops = self.chain().into_iter().filter_map(|place| {
            let mut record = self.rows[place].record.take()?;
            record.events = Vec::new();
            Some(Arc::new(record))
        });
        let loops = loops.collect();
        History {
            loops,
            damage: self.damage,
            has_all_loops: false,
        }
    }

    /// Returns the loops to replay: those of the history without loops that were rerun.
    pub(crate) fn replay_loops(&self) -> Vec<(i64, RowCorrection)> {
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
    pub(crate) fn readable_tip(&self) -> Option<usize> {
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

impl SurveyedLoop {
    /// Judges the content of a row that is not set aside, and describes its damage. `log` is the JSON of its events,
    /// or the reason why it cannot be read; `find_culprit` returns the column whose correction makes the checksum
    /// match, given the parent according to the first event.
    pub(crate) fn judge<E>(
        mut self,
        record: Result<LoopRecord, RowError>,
        log: Result<Cow<'_, str>, String>,
        find_culprit: impl FnOnce(Option<&Option<LoopId>>) -> Result<Option<DamagedColumn>, E>,
    ) -> Result<(Self, Option<String>), E> {
        let mut record = match record {
            Ok(record) => record,
            Err(error) => {
                // A long text may be lost although the row is intact.
                self.is_from_newer_version =
                    self.verdict == ChecksumVerdict::Matches && matches!(error, RowError::Json(_));
                return Ok((self, Some(format!("cannot be read: {error}"))));
            }
        };
        let (events, failure, is_lost) = match log {
            Ok(log) => {
                let (events, failure) = event_log::read_all(&log, &record);
                (events, failure, self.verdict != ChecksumVerdict::Matches)
            }
            Err(reason) => (Vec::new(), Some(reason), true),
        };
        record.events = events;
        self.is_log_broken = failure.is_some() && is_lost;
        let mut complaint =
            failure.map(|failure| format!("has events that cannot be read: {failure}"));
        if self.verdict == ChecksumVerdict::Differs {
            self.damaged_column = find_culprit(self.logged_parent.as_ref())?;
            complaint = complaint.or_else(|| match self.damaged_column {
                // Reported with the reference itself.
                Some(DamagedColumn::Parent) => None,
                Some(DamagedColumn::OnChain) => {
                    Some("is marked wrongly as part of the conversation or not".to_owned())
                }
                None => {
                    Some("differs from what was written: its checksum does not match".to_owned())
                }
            });
        }
        if self.damaged_column == Some(DamagedColumn::OnChain) {
            record.on_chain = !record.on_chain;
        }
        self.record = Some(record);
        Ok((self, complaint))
    }
}
