//! Knowledge about one session: what must be stored, and what may be.

use super::{
    Backend, Check, Commit, Event, JournalledLoop, KnownEffect, KnownSession, Lane, LoopId,
    LoopRecord, LoopStatus, StoreError, Violation, mark_of, require,
};
use std::sync::Arc;

impl KnownSession {
    pub(super) fn find(&self, id: &LoopId) -> Option<&(u64, Arc<LoopRecord>)> {
        self.loops.iter().find(|(_, record)| record.loop_id == *id)
    }

    /// Returns true if the lane is held. `was_accepted` decides if that is unknown.
    pub(super) fn is_held(&mut self, lane: &Lane, was_accepted: bool) -> bool {
        let holder = self.holder.as_ref();
        let is_holder =
            holder.is_some_and(|it| it.fence == lane.fence && it.owner_id == lane.owner_id);
        if is_holder && self.may_be_revoked {
            self.may_be_revoked = false;
            if !was_accepted {
                self.holder = None;
            }
            return was_accepted;
        }
        is_holder
    }

    pub(super) fn note_append(
        &mut self,
        lane: &Lane,
        loop_id: &LoopId,
        events: &[Event],
        is_awaited: bool,
    ) {
        let holder = self.holder.as_ref();
        let is_holder =
            holder.is_some_and(|it| it.fence == lane.fence && it.owner_id == lane.owner_id);
        if !is_holder || self.find(loop_id).is_some() {
            return;
        }
        let is_certain = is_awaited && !self.may_be_revoked;
        let journalled = self.journal.entry(loop_id.clone()).or_default();
        let known = journalled.sent.len();
        match events.first().map(|event| event.seq as usize) {
            Some(0) if !journalled.sent.starts_with(events) => journalled.sent = events.to_vec(),
            Some(first) if first == known => journalled.sent.extend_from_slice(events),
            // Written once more, or behind a gap.
            Some(_) | None => {}
        }
        if events.first().is_some_and(|event| event.seq == 0) {
            journalled.may_have_gap = false;
        }
        if is_certain {
            journalled.acknowledge();
        }
    }

    /// Reads the loops that were stored after those that are known.
    pub(super) fn read_new(
        &self,
        backend: &mut dyn Backend,
    ) -> Result<Vec<Arc<LoopRecord>>, Violation> {
        let read = backend.loops(&self.id, self.head);
        read.map_err(|error| Violation {
            check: Check::NothingElseFails,
            text: format!("the loops cannot be read: {error}"),
        })
    }

    /// Takes notice of the loops that a claim has made of the journal.
    pub(super) fn observe_recovered(&mut self, backend: &mut dyn Backend) -> Result<(), Violation> {
        let new = self.read_new(backend)?;
        self.check_recovered(new)
    }

    pub(super) fn check_recovered(&mut self, new: Vec<Arc<LoopRecord>>) -> Result<(), Violation> {
        let mut journal = std::mem::take(&mut self.journal);
        for record in new {
            let id = &record.loop_id;
            let journalled = journal.remove(id);
            let is_recovered = record.status == LoopStatus::Aborted && self.find(id).is_none();
            let journalled = journalled
                .filter(|_| is_recovered)
                .ok_or_else(|| Violation {
                    check: Check::RefusalChangesNothing,
                    text: format!(
                        "{id} is stored, which was not committed: {:?}",
                        record.status
                    ),
                })?;
            let JournalledLoop {
                sent, acknowledged, ..
            } = &journalled;
            let both = record.events.iter().zip(sent);
            let same = both.take_while(|(stored, sent)| stored == sent).count();
            require(same >= *acknowledged, Check::JournalIsKept, || {
                format!("{same} events of {id} are recovered, after {acknowledged} were journalled")
            })?;
            let mark = sent.first().map(mark_of);
            let is_own = record
                .events
                .iter()
                .all(|event| Some(mark_of(event)) == mark);
            require(is_own, Check::OnlyHolderWrites, || {
                format!("the journal of {id} has events of somebody else")
            })?;
            self.head += 1;
            self.add(self.head, record);
        }
        let lost = journal.iter().find(|(_, it)| it.acknowledged > 0);
        require(lost.is_none(), Check::JournalIsKept, || {
            format!(
                "the journal of {} is lost",
                lost.map_or("", |(id, _)| id.as_str())
            )
        })
    }

    pub(super) fn add(&mut self, version: u64, record: Arc<LoopRecord>) {
        let number = record.loop_id.number().unwrap_or_default();
        self.last_number = self.last_number.max(number);
        if record.on_chain {
            self.tip = Some(record.loop_id.clone());
        }
        self.loops.push((version, record));
    }

    pub(super) fn observe_commit(
        &mut self,
        commit: &Commit,
        result: &Result<u64, StoreError>,
        backend: &mut dyn Backend,
    ) -> Result<(), Violation> {
        let known: Vec<_> = commit
            .records
            .iter()
            .map(|it| self.find(&it.loop_id))
            .collect();
        let known: Vec<Option<(u64, bool)>> = known
            .into_iter()
            .zip(&commit.records)
            .map(|(known, record)| known.map(|(version, known)| (*version, known == record)))
            .collect();
        let first = known.first().copied().flatten().map(|(version, _)| version);
        let is_repeated = first.is_some()
            && known
                .iter()
                .all(|it| it.is_some_and(|(version, is_same)| is_same && Some(version) == first));
        let is_any_known = known.iter().any(Option::is_some);
        let was_accepted = !matches!(result, Err(StoreError::LaneLost(_)));
        let is_current = self.is_held(&commit.lane, was_accepted);
        let name = commit
            .records
            .first()
            .map_or("", |record| record.loop_id.as_str());
        let new = self.read_new(backend)?;
        match result {
            Ok(version) if is_repeated => {
                require(Some(*version) == first, Check::CommitIsStoredOnce, || {
                    format!("{name} has version {first:?}, and repeated {version}")
                })?;
                require(new.is_empty(), Check::CommitIsStoredOnce, || {
                    format!("{name} is stored again")
                })?;
            }
            Ok(version) => {
                require(is_current, Check::OnlyHolderWrites, || {
                    format!(
                        "{name} is committed by {}, who is not the holder",
                        commit.lane.owner_id
                    )
                })?;
                require(!is_any_known, Check::CommitIsStoredOnce, || {
                    format!("{name} is committed again, with other content")
                })?;
                let (head, expected) = (self.head, commit.expected_head);
                require(expected == head, Check::HeadIsCompared, || {
                    format!("{name} expects head {expected}, and is stored on head {head}")
                })?;
                require(*version == head + 1, Check::HeadIsCompared, || {
                    format!("{name} gets version {version} on head {head}")
                })?;
                require(new == commit.records, Check::CommitIsWhole, || {
                    let new: Vec<&str> = new.iter().map(|it| it.loop_id.as_str()).collect();
                    format!("of the commit of {name} is stored: {new:?}")
                })?;
                self.head = *version;
                self.drop_begun();
                for record in new {
                    self.journal.remove(&record.loop_id);
                    self.add(*version, record);
                }
                let effects = commit.effects.iter().map(|pending| KnownEffect {
                    pending: pending.clone(),
                    attempts: 0,
                    taker: None,
                    postponed_until: None,
                });
                self.effects.extend(effects);
            }
            Err(error) => {
                require(!is_repeated, Check::CommitIsStoredOnce, || {
                    format!("{name} is stored, and refused when repeated: {error}")
                })?;
                require(new.is_empty(), Check::RefusalChangesNothing, || {
                    format!("{name} is refused and stored: {error}")
                })?;
                for record in &commit.records {
                    if let Some(journalled) = self.journal.get_mut(&record.loop_id) {
                        journalled.may_have_gap = true;
                    }
                }
                self.check_refusal(commit, error, is_current, is_any_known)?;
            }
        }
        if result.is_ok() && commit.release && is_current {
            self.holder = None;
        }
        Ok(())
    }

    pub(super) fn drop_begun(&mut self) {
        if let Some(begun) = self.begun.take().and_then(|id| self.journal.get_mut(&id)) {
            begun.acknowledged = 0;
        }
    }

    pub(super) fn check_refusal(
        &mut self,
        commit: &Commit,
        error: &StoreError,
        is_current: bool,
        is_any_known: bool,
    ) -> Result<(), Violation> {
        let is_head_other = commit.expected_head != self.head;
        let is_justified = match error {
            StoreError::LaneLost(_) => !is_current,
            StoreError::CommitMismatch(_) => is_current && is_any_known,
            StoreError::HeadConflict { expected, actual } => {
                let is_reported = (*expected, *actual) == (commit.expected_head, self.head);
                is_current && !is_any_known && is_head_other && is_reported
            }
            StoreError::NotFound(_)
            | StoreError::Exists(_)
            | StoreError::Busy { .. }
            | StoreError::BadCursor(_)
            | StoreError::Broken(_) => false,
        };
        require(is_justified, Check::OnlyHolderWrites, || {
            format!("a commit of the holder is refused: {error}")
        })?;
        if matches!(error, StoreError::HeadConflict { .. }) {
            self.drop_begun();
            // The journals are settled, whatever the outcome (C-12).
            for record in &commit.records {
                self.journal.remove(&record.loop_id);
                let number = record.loop_id.number().unwrap_or_default();
                self.last_number = self.last_number.max(number);
            }
        }
        Ok(())
    }

    pub(super) fn check_end(&self, backend: &mut dyn Backend) -> Result<(), Violation> {
        let failed = |error: StoreError| Violation {
            check: Check::NothingElseFails,
            text: format!("{} cannot be read: {error}", self.id),
        };
        let stored = backend.loops(&self.id, 0).map_err(failed)?;
        let is_same = stored
            .iter()
            .eq(self.loops.iter().map(|(_, record)| record));
        require(is_same, Check::CommitIsStoredOnce, || {
            let names = |it: &Arc<LoopRecord>| it.loop_id.to_string();
            let stored: Vec<_> = stored.iter().map(names).collect();
            let known: Vec<_> = self.loops.iter().map(|(_, it)| names(it)).collect();
            format!("the store has {stored:?} instead of {known:?}")
        })?;
        let info = backend.info(&self.id).map_err(failed)?;
        require(
            info.head_version == self.head,
            Check::HeadIsCompared,
            || format!("the head is {} instead of {}", info.head_version, self.head),
        )?;
        require(
            info.tip_loop_id == self.tip,
            Check::CommitIsStoredOnce,
            || {
                format!(
                    "the tip is {:?} instead of {:?}",
                    info.tip_loop_id, self.tip
                )
            },
        )
    }
}
