//! `MemoryStore` keeps sessions in memory, for tests and for sessions that must leave nothing on disk.

mod effects;
mod follow;
mod list;
mod session;

use crate::{
    ChangeMark, ClaimedLane, Clock, Commit, DailyUsage, Damage, FollowFrom, FollowPage, History,
    Lane, ListPage, ListQuery, NewSession, NextEffect, Owner, PromptRemoval, QueuedPrompt,
    RepairReport, ReplayCursor, ReplayPage, SearchPage, SearchQuery, SessionInfo, SessionPatch,
    Store, StoreDescription, StoreError, StoreFuture, TakenEffect, TranscriptNote,
    clock::ClockReading,
    follow::wait_for_change,
    lease::{LaneHolder, LeaseEnd},
    list_cursor::ListCursor,
    search::scan::scan,
    store_walk,
};
use effects::MemoryEffects;
use futures_util::future::ready;
use list::list_page;
use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::watch;
use turnery_engine::{Event, LoopId, LoopRecord, PromptId, SessionId, Timestamp};

/// Store whose sessions live as long as the value.
#[derive(Debug)]
pub struct MemoryStore {
    sessions: Mutex<HashMap<SessionId, MemorySession>>,
    /// Number of changes that followers may see.
    changes: watch::Sender<u64>,
    clock: Clock,
}

#[derive(Debug)]
struct MemorySession {
    info: SessionInfo,
    notes: Vec<TranscriptNote>,
    /// Loops, each with the head version of its commit.
    loops: Vec<(u64, Arc<LoopRecord>)>,
    fence: u64,
    /// Greatest number of a loop that left a journal but no record.
    last_lost_number: u64,
    holder: Option<LaneHolder>,
    journal: Vec<(LoopId, Vec<Event>)>,
    effects: MemoryEffects,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Clock::system())
    }

    /// Creates a store that takes the time for leases from `clock`.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        Self {
            sessions: Mutex::default(),
            changes: watch::Sender::new(0),
            clock,
        }
    }

    fn with_all<T>(&self, work: impl FnOnce(&mut HashMap<SessionId, MemorySession>) -> T) -> T {
        work(&mut self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn with_session<T: Send + 'static>(
        &self,
        id: &SessionId,
        work: impl FnOnce(&mut MemorySession) -> Result<T, StoreError>,
    ) -> StoreFuture<'static, T> {
        Box::pin(ready(self.with_all(|sessions| {
            let session = sessions.get_mut(id);
            work(session.ok_or_else(|| StoreError::NotFound(id.clone()))?)
        })))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

/// Remaining part of a replay: loops, and the index of the next event of the first one.
struct MemoryReplay {
    loops: VecDeque<Arc<LoopRecord>>,
    next_event: usize,
}

fn without_events(record: &LoopRecord) -> Arc<LoopRecord> {
    Arc::new(LoopRecord {
        events: Vec::new(),
        ..record.clone()
    })
}

impl Store for MemoryStore {
    fn create(&self, new: NewSession) -> StoreFuture<'_, SessionInfo> {
        let info = new.into_info();
        Box::pin(ready(self.with_all(
            |sessions| match sessions.entry(info.id.clone()) {
                Entry::Occupied(_) => Err(StoreError::Exists(info.id)),
                Entry::Vacant(entry) => {
                    entry.insert(MemorySession::new(info.clone()));
                    Ok(info)
                }
            },
        )))
    }

    fn info(&self, id: &SessionId) -> StoreFuture<'_, SessionInfo> {
        self.with_session(id, |session| Ok(session.info.clone()))
    }

    fn list(&self, query: ListQuery) -> StoreFuture<'_, ListPage> {
        let start = query.cursor.as_deref().map(ListCursor::decode).transpose();
        Box::pin(ready(start.map(|start| {
            self.with_all(|sessions| list_page(sessions, &query, start.as_ref()))
        })))
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<'_, bool> {
        let now = self.clock.reading();
        Box::pin(ready(self.with_all(|sessions| {
            match active_holders(sessions, id, now).into_iter().next() {
                Some((session, holder)) => Err(StoreError::Busy { session, holder }),
                None => {
                    self.note_change();
                    Ok(remove_family(sessions, id))
                }
            }
        })))
    }

    fn delete_in_use(&self, id: &SessionId) -> StoreFuture<'_, Option<Vec<String>>> {
        let now = self.clock.reading();
        Box::pin(ready(Ok(self.with_all(|sessions| {
            let holders = active_holders(sessions, id, now).into_iter();
            let holders = holders.map(|(_, holder)| holder).collect();
            self.note_change();
            remove_family(sessions, id).then_some(holders)
        }))))
    }

    fn loops(&self, id: &SessionId, after: u64) -> StoreFuture<'_, Vec<Arc<LoopRecord>>> {
        self.with_session(id, |session| {
            let newer = session.loops.iter().filter(|(version, _)| *version > after);
            Ok(newer.map(|(_, record)| record.clone()).collect())
        })
    }

    fn history(&self, id: &SessionId) -> StoreFuture<'_, History> {
        self.with_session(id, |session| {
            let loops = session.chain();
            Ok(History {
                has_all_loops: loops.len() == session.loops.len(),
                loops,
                damage: Vec::new(),
            })
        })
    }

    fn replay_page(
        &self,
        id: &SessionId,
        cursor: Option<ReplayCursor>,
    ) -> StoreFuture<'_, ReplayPage> {
        self.with_session(id, |session| session.replay_page(cursor))
    }

    fn follow_page(&self, id: &SessionId, from: FollowFrom) -> StoreFuture<'_, FollowPage> {
        self.with_session(id, |session| session.follow_page(from))
    }

    fn wait_for_change(
        &self,
        _id: &SessionId,
        since: Option<ChangeMark>,
    ) -> StoreFuture<'_, ChangeMark> {
        Box::pin(wait_for_change(self.changes.subscribe(), since))
    }

    fn claim(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, ClaimedLane> {
        let now = self.clock.reading();
        let claimed = self.with_session(id, |session| session.claim(owner, now));
        self.note_change();
        claimed
    }

    fn recover(&self, id: &SessionId) -> StoreFuture<'_, Vec<Damage>> {
        let now = self.clock.reading();
        let recovered = self.with_session(id, |session| {
            session.recover(now);
            Ok(Vec::new())
        });
        self.note_change();
        recovered
    }

    fn renew(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        let end = LeaseEnd::after(self.clock.reading());
        let lost = || StoreError::LaneLost(lane.session_id.clone());
        let renewed = self.with_all(|sessions| {
            let session = sessions.get_mut(&lane.session_id);
            let session = session
                .filter(|session| session.is_lane_held(lane))
                .ok_or_else(lost)?;
            if let Some(holder) = &mut session.holder {
                let process = holder.process.split_once(' ');
                holder.process = end.stamp_process(process.map_or("", |(_, process)| process));
                holder.expires_at = end.wall;
            }
            Ok(())
        });
        Box::pin(ready(renewed))
    }

    fn release(&self, lane: &Lane) -> StoreFuture<'_, ()> {
        self.with_all(|sessions| {
            if let Some(session) = sessions.get_mut(&lane.session_id) {
                session.release(lane);
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn append(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) {
        drop(self.append_now(lane, loop_id, events));
    }

    fn append_now(&self, lane: &Lane, loop_id: &LoopId, events: Vec<Event>) -> StoreFuture<'_, ()> {
        let written = self.with_all(|sessions| match sessions.get_mut(&lane.session_id) {
            Some(session) => session.append(lane, loop_id, events),
            None => Err(StoreError::LaneLost(lane.session_id.clone())),
        });
        self.note_change();
        Box::pin(ready(written))
    }

    fn commit(&self, mut commit: Commit) -> StoreFuture<'_, u64> {
        let effects = std::mem::take(&mut commit.effects);
        let committed = commit.check().and_then(|()| {
            self.with_all(|sessions| {
                let id = &commit.lane.session_id;
                let session = sessions.get_mut(id);
                let session = session.ok_or_else(|| StoreError::NotFound(id.clone()))?;
                let known = session.info.head_version;
                let version = session.commit(commit)?;
                // A repeated commit changes nothing.
                if version > known {
                    for pending in effects {
                        if let Some(session) = sessions.get_mut(&pending.session_id) {
                            session.effects.add(pending);
                        }
                    }
                }
                Ok(version)
            })
        });
        self.note_change();
        Box::pin(ready(committed))
    }

    fn take_effect(&self, id: &SessionId, owner: &Owner) -> StoreFuture<'_, NextEffect> {
        let now = self.clock.reading();
        Box::pin(ready(Ok(self.with_all(|sessions| {
            let session = sessions.get_mut(id);
            session.map_or(NextEffect::Empty, |it| it.effects.take(owner, now))
        }))))
    }

    fn finish_effect(&self, taken: &TakenEffect) -> StoreFuture<'_, ()> {
        self.with_all(|sessions| {
            if let Some(session) = sessions.get_mut(&taken.pending.session_id) {
                session.effects.finish(taken);
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn postpone_effect(&self, taken: &TakenEffect, delay: Duration) -> StoreFuture<'_, ()> {
        let now = self.clock.reading();
        self.with_all(|sessions| {
            if let Some(session) = sessions.get_mut(&taken.pending.session_id) {
                session.effects.postpone(taken, delay, now);
            }
        });
        Box::pin(ready(Ok(())))
    }

    fn queue_prompt(&self, id: &SessionId, prompt: QueuedPrompt) -> StoreFuture<'_, ()> {
        let queued = self.with_session(id, |session| {
            let pending = prompt.encode(id);
            let pending = pending.map_err(|error| StoreError::Broken(error.to_string()))?;
            session.effects.add(pending);
            Ok(())
        });
        self.note_change();
        queued
    }

    fn queued_prompts(&self, id: &SessionId) -> StoreFuture<'_, Vec<QueuedPrompt>> {
        Box::pin(ready(Ok(self.with_all(|sessions| {
            let session = sessions.get(id);
            session.map_or_else(Vec::new, |session| session.effects.prompts())
        }))))
    }

    fn start_queued_prompt(&self, id: &SessionId, prompt: &PromptId) -> StoreFuture<'_, bool> {
        Box::pin(ready(Ok(self.with_all(|sessions| {
            let session = sessions.get_mut(id);
            session.is_some_and(|session| session.effects.start_prompt(prompt))
        }))))
    }

    fn remove_queued_prompt(
        &self,
        id: &SessionId,
        prompt: &PromptId,
        removal: PromptRemoval,
    ) -> StoreFuture<'_, bool> {
        let removed = self.with_all(|sessions| {
            let session = sessions.get_mut(id);
            session.is_some_and(|session| session.effects.remove_prompt(prompt, removal))
        });
        self.note_change();
        Box::pin(ready(Ok(removed)))
    }

    fn patch(&self, id: &SessionId, patch: SessionPatch) -> StoreFuture<'_, SessionInfo> {
        self.with_session(id, |session| {
            patch.apply(&mut session.info);
            Ok(session.info.clone())
        })
    }

    fn add_notes(&self, id: &SessionId, notes: Vec<TranscriptNote>) -> StoreFuture<'_, ()> {
        self.with_session(id, |session| {
            session.notes.extend(notes);
            Ok(())
        })
    }

    fn notes(&self, id: &SessionId) -> StoreFuture<'_, Vec<TranscriptNote>> {
        self.with_session(id, |session| Ok(session.notes.clone()))
    }

    fn search(&self, query: SearchQuery) -> StoreFuture<'_, SearchPage> {
        Box::pin(scan(self, query))
    }

    fn daily_usage(&self, since: Option<Timestamp>) -> StoreFuture<'_, Vec<DailyUsage>> {
        Box::pin(store_walk::daily_usage(self, since))
    }

    fn session_size(&self, id: &SessionId) -> StoreFuture<'_, u64> {
        let id = id.clone();
        Box::pin(async move { store_walk::json_size(self, &id).await })
    }

    fn describe(&self) -> StoreFuture<'_, StoreDescription> {
        let sessions = self.with_all(|sessions| sessions.len() as u64);
        Box::pin(ready(Ok(StoreDescription {
            kind: "memory",
            location: "this process".to_owned(),
            bytes: None,
            free_bytes: 0,
            sessions,
            format: None,
        })))
    }

    /// Memory holds no damage.
    fn check(&self, id: Option<&SessionId>) -> StoreFuture<'_, Vec<Damage>> {
        match id {
            Some(id) => self.with_session(id, |_| Ok(Vec::new())),
            None => Box::pin(ready(Ok(Vec::new()))),
        }
    }

    fn repair(&self, id: &SessionId) -> StoreFuture<'_, RepairReport> {
        let now = self.clock.reading();
        self.with_session(id, |session| match session.active_holder(now) {
            Some(holder) => Err(StoreError::Busy {
                session: session.info.id.clone(),
                holder,
            }),
            None => Ok(RepairReport::default()),
        })
    }
}

/// Returns a session and its descendants.
fn family(sessions: &HashMap<SessionId, MemorySession>, id: &SessionId) -> Vec<SessionId> {
    let mut family = vec![id.clone()];
    let mut next = 0;
    while let Some(parent) = family.get(next).cloned() {
        next += 1;
        for (child, session) in sessions {
            let spawned_by = session.info.spawned_by.as_ref();
            if spawned_by.is_some_and(|by| by.session_id == parent) && !family.contains(child) {
                family.push(child.clone());
            }
        }
    }
    family
}

/// Returns the sessions in use among a session and its descendants, with their holders.
fn active_holders(
    sessions: &HashMap<SessionId, MemorySession>,
    id: &SessionId,
    now: ClockReading,
) -> Vec<(SessionId, String)> {
    let held = |id: SessionId| {
        let holder = sessions.get(&id)?.active_holder(now)?;
        Some((id, holder))
    };
    family(sessions, id).into_iter().filter_map(held).collect()
}

/// Removes a session and its descendants. Returns true if the session existed.
fn remove_family(sessions: &mut HashMap<SessionId, MemorySession>, id: &SessionId) -> bool {
    let existed = sessions.contains_key(id);
    for id in family(sessions, id) {
        sessions.remove(&id);
    }
    existed
}
