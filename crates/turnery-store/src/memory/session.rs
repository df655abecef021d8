//! Claims, journals and commits of one session in memory.

use super::{MemoryReplay, MemorySession, effects::MemoryEffects, without_events};
use crate::{
    ClaimedLane, Commit, Lane, Owner, REPLAY_PAGE_EVENTS, ReplayCursor, ReplayPage, SessionInfo,
    StoreError,
    clock::ClockReading,
    lease::{LaneHolder, LeaseEnd},
    list_cursor::last_active_at,
    owner::describe_holder,
    recovery::{self, last_loop_number},
};
use std::sync::Arc;
use turnery_engine::{Event, EventKind, LoopId, LoopRecord, context};

impl MemorySession {
    pub(super) fn new(info: SessionInfo) -> Self {
        Self {
            info,
            notes: Vec::new(),
            loops: Vec::new(),
            fence: 0,
            last_lost_number: 0,
            holder: None,
            journal: Vec::new(),
            effects: MemoryEffects::default(),
        }
    }

    pub(super) fn is_lane_held(&self, lane: &Lane) -> bool {
        let holder = self.holder.as_ref();
        self.fence == lane.fence && holder.is_some_and(|holder| holder.owner_id == lane.owner_id)
    }

    /// Returns the holder of the lane, described for the user.
    pub(super) fn active_holder(&self, now: ClockReading) -> Option<String> {
        let holder = self.holder.as_ref()?;
        holder
            .may_be_active(now)
            .then(|| describe_holder(&holder.process))
    }

    pub(super) fn claim(
        &mut self,
        owner: &Owner,
        now: ClockReading,
    ) -> Result<ClaimedLane, StoreError> {
        if let Some(holder) = &self.holder
            && holder.blocks(owner, now)
        {
            return Err(StoreError::Busy {
                session: self.info.id.clone(),
                holder: describe_holder(&holder.process),
            });
        }
        self.fence += 1;
        let end = LeaseEnd::after(now);
        self.holder = Some(LaneHolder {
            owner_id: owner.id.clone(),
            process: end.stamp_process(&owner.process),
            expires_at: end.wall,
        });
        self.recover_journal();
        let numbers = self.loops.iter().filter_map(|(_, it)| it.loop_id.number());
        Ok(ClaimedLane {
            lane: Lane {
                session_id: self.info.id.clone(),
                owner_id: owner.id.clone(),
                fence: self.fence,
            },
            info: self.info.clone(),
            last_number: numbers.max().unwrap_or_default().max(self.last_lost_number),
        })
    }

    /// Turns journals into loops.
    pub(super) fn recover_journal(&mut self) {
        let mut journal = std::mem::take(&mut self.journal);
        journal.sort_by_key(|(_, events)| events.iter().map(|event| event.at).min());
        let journals: Vec<_> = journal.into_iter().map(|(_, events)| events).collect();
        let (records, last_lost_number) = recovery::recover_loops(&journals);
        self.last_lost_number = self.last_lost_number.max(last_lost_number);
        for record in records {
            if record.on_chain && self.info.title.is_none() {
                self.info.title = record.title();
            }
            self.store_version(vec![Arc::new(record)], Some(0));
        }
    }

    pub(super) fn recover(&mut self, now: ClockReading) {
        if self.active_holder(now).is_some() || self.journal.is_empty() {
            return;
        }
        self.fence += 1;
        self.holder = None;
        self.recover_journal();
    }

    pub(super) fn release(&mut self, lane: &Lane) {
        if self.is_lane_held(lane) {
            self.holder = None;
        }
    }

    pub(super) fn append(
        &mut self,
        lane: &Lane,
        loop_id: &LoopId,
        mut events: Vec<Event>,
    ) -> Result<(), StoreError> {
        if !self.is_lane_held(lane) {
            return Err(StoreError::LaneLost(lane.session_id.clone()));
        }
        let stored = self.find_loop(loop_id).is_some();
        events.retain(|event| !matches!(event.kind, EventKind::Delta { .. }));
        if stored || events.is_empty() {
            return Ok(());
        }
        if events.first().is_some_and(|event| event.seq == 0) {
            self.journal.retain(|(id, _)| id != loop_id);
        }
        match self.journal.iter_mut().find(|(id, _)| id == loop_id) {
            Some((_, known)) => known.append(&mut events),
            None => self.journal.push((loop_id.clone(), events)),
        }
        Ok(())
    }

    pub(super) fn find_loop(&self, id: &LoopId) -> Option<&(u64, Arc<LoopRecord>)> {
        self.loops.iter().find(|(_, known)| known.loop_id == *id)
    }

    pub(super) fn commit(&mut self, commit: Commit) -> Result<u64, StoreError> {
        let Commit { lane, records, .. } = commit;
        let earlier: Vec<_> = records
            .iter()
            .map(|record| self.find_loop(&record.loop_id))
            .collect();
        let version = earlier.first().copied().flatten().map(|(made, _)| *made);
        let again = earlier.iter().zip(&records).all(|(earlier, record)| {
            earlier.is_some_and(|(made, known)| Some(*made) == version && known == record)
        });
        let version = match version {
            Some(version) if again => version,
            Some(_) | None => {
                if !self.is_lane_held(&lane) {
                    return Err(StoreError::LaneLost(lane.session_id));
                }
                if let Some((_, known)) = earlier.into_iter().flatten().next() {
                    return Err(StoreError::CommitMismatch(known.loop_id.clone()));
                }
                let settled = |id: &LoopId| records.iter().any(|record| record.loop_id == *id);
                self.journal.retain(|(id, _)| !settled(id));
                if self.info.head_version != commit.expected_head {
                    self.last_lost_number = self.last_lost_number.max(last_loop_number(&records));
                    return Err(StoreError::HeadConflict {
                        expected: commit.expected_head,
                        actual: self.info.head_version,
                    });
                }
                if self.info.title.is_none() {
                    self.info.title = commit.title;
                }
                self.store_version(records, Some(commit.tip))
            }
        };
        if commit.release {
            self.release(&lane);
        }
        Ok(version)
    }

    /// Stores records under the next version (S3), and moves the tip to the record at `tip` if that is on the
    /// chain.
    pub(super) fn store_version(
        &mut self,
        records: Vec<Arc<LoopRecord>>,
        tip: Option<usize>,
    ) -> u64 {
        let info = &mut self.info;
        info.head_version += 1;
        let tip = tip.and_then(|place| records.get(place));
        if let Some(tip) = tip.filter(|record| record.on_chain) {
            info.tip_loop_id = Some(tip.loop_id.clone());
        }
        for record in records {
            info.updated_at = info.updated_at.max(last_active_at(&record));
            self.loops.push((info.head_version, record));
        }
        info.head_version
    }

    /// Returns the loops of the conversation, oldest first and without events.
    pub(super) fn chain(&self) -> Vec<Arc<LoopRecord>> {
        let mut next = self.info.tip_loop_id.as_ref();
        let mut chain = Vec::new();
        for (_, record) in self.loops.iter().rev() {
            if next != Some(&record.loop_id) {
                continue;
            }
            next = record.parent_loop_id.as_ref();
            if record.is_in_conversation() {
                chain.push(without_events(record));
            }
        }
        chain.reverse();
        chain
    }

    pub(super) fn replay_page(
        &self,
        cursor: Option<ReplayCursor>,
    ) -> Result<ReplayPage, StoreError> {
        let mut page = ReplayPage::default();
        let MemoryReplay {
            mut loops,
            mut next_event,
        } = match cursor {
            Some(cursor) => cursor.into_position()?,
            None => {
                let loops = self.loops.iter().map(|(_, record)| Arc::clone(record));
                let loops: Vec<_> = loops.collect();
                let chain = context::loop_chain(&loops, self.info.tip_loop_id.as_ref());
                page.has_all_loops = chain.len() == loops.len();
                MemoryReplay {
                    loops: chain.into(),
                    next_event: 0,
                }
            }
        };
        while let Some(record) = loops.front()
            && page.events.len() < REPLAY_PAGE_EVENTS
        {
            match record.events.get(next_event) {
                Some(event) => {
                    page.events
                        .extend((!event.kind.is_transient()).then(|| event.clone()));
                    next_event += 1;
                }
                None => {
                    page.loops.push(without_events(record));
                    loops.pop_front();
                    next_event = 0;
                }
            }
        }
        page.next_cursor =
            (!loops.is_empty()).then(|| ReplayCursor::new(MemoryReplay { loops, next_event }));
        Ok(page)
    }
}
