//! A model of the tables and statements of a PostgreSQL store.
//!
//! Each statement, or transaction that holds the lock of its session, is one step. The conditions of the statements are
//! written once more here; who keeps a lane, what a journal becomes and which of its events count is decided by the
//! code of the store.

use super::super::{hosts::HostHold, journal, lanes::PgLaneRow};
use crate::{
    ClaimOutcome, ClaimedLane, Commit, LEASE_DURATION, Lane, LoopBeginning, MAX_EFFECT_DELAY,
    NewSession, NextEffect, Owner, PendingEffect, SessionInfo, StoreError, TakenEffect,
    effect_hold::TAKEN_EFFECT_RECHECK,
    list_cursor::last_active_at,
    owner::machine_identity,
    recovery::{last_loop_number, recover_loops},
    simulation::{
        Backend, BackendKind, Flaw, MAX_PROCESSES, ProcessTime, Progress, Request, Response,
    },
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use turnery_engine::{Event, LoopId, LoopRecord, SessionId, Timestamp};

/// Age from which a heartbeat is written again.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Row of `hosts`.
struct HostRow {
    machine: String,
    process: String,
    heartbeat_at: Timestamp,
}

/// Row of `outbox`.
struct EffectRow {
    pending: PendingEffect,
    attempts: u32,
    taken_by: Option<usize>,
    held_until: Option<Timestamp>,
}

/// Row of `sessions`, with the rows of other tables that belong to it.
struct SessionRow {
    info: SessionInfo,
    fence: u64,
    owner_id: Option<String>,
    host: Option<usize>,
    last_number: u64,
    loops: Vec<(u64, Arc<LoopRecord>)>,
    journal: Vec<(LoopId, Vec<Event>)>,
    outbox: Vec<EffectRow>,
}

/// The model.
#[derive(Default)]
pub(super) struct PgModel {
    hosts: Vec<HostRow>,
    sessions: HashMap<SessionId, SessionRow>,
    /// Processes that each store has registered.
    registered: [HashSet<String>; MAX_PROCESSES],
    flaw: Option<Flaw>,
}

impl SessionRow {
    fn is_held(&self, lane: &Lane) -> bool {
        self.fence == lane.fence && self.owner_id.as_ref() == Some(&lane.owner_id)
    }

    fn find(&self, id: &LoopId) -> Option<&(u64, Arc<LoopRecord>)> {
        self.loops.iter().find(|(_, record)| record.loop_id == *id)
    }

    fn free(&mut self) {
        self.owner_id = None;
        self.host = None;
    }

    /// Assignments and rows that a commit and a recovery have in common.
    fn store_loops(&mut self, records: &[Arc<LoopRecord>], tip: usize) -> u64 {
        let info = &mut self.info;
        info.head_version += 1;
        self.last_number = self.last_number.max(last_loop_number(records));
        if let Some(tip) = records.get(tip).filter(|record| record.on_chain) {
            info.tip_loop_id = Some(tip.loop_id.clone());
        }
        for record in records {
            info.updated_at = info.updated_at.max(last_active_at(record));
            self.loops.push((info.head_version, Arc::clone(record)));
            self.journal.retain(|(id, _)| *id != record.loop_id);
        }
        self.info.head_version
    }

    /// Turns the journal into loops.
    fn recover_journal(&mut self) {
        let mut loops: Vec<(LoopId, Vec<Event>)> = Vec::new();
        for (loop_id, events) in std::mem::take(&mut self.journal) {
            match loops.iter_mut().find(|(id, _)| *id == loop_id) {
                Some((_, known)) => journal::extend(known, events),
                None => loops.push((loop_id, events)),
            }
        }
        loops.sort_by_key(|(_, events)| events.iter().map(|event| event.at).min());
        let loops: Vec<_> = loops.into_iter().map(|(_, events)| events).collect();
        let (records, lost_number) = recover_loops(&loops);
        for record in records {
            if self.find(&record.loop_id).is_none() {
                let title = record.on_chain.then(|| record.title()).flatten();
                self.info.title = self.info.title.take().or(title);
                self.store_loops(&[Arc::new(record)], 0);
            }
        }
        self.last_number = self.last_number.max(lost_number);
    }
}

impl PgModel {
    fn session(&mut self, id: &SessionId) -> Result<&mut SessionRow, StoreError> {
        let session = self.sessions.get_mut(id);
        session.ok_or_else(|| StoreError::NotFound(id.clone()))
    }

    fn lane_row(&self, id: &SessionId, now: Timestamp) -> Result<PgLaneRow, StoreError> {
        let session = self.sessions.get(id);
        let session = session.ok_or_else(|| StoreError::NotFound(id.clone()))?;
        let host = session.host.and_then(|host| self.hosts.get(host));
        let host = host.filter(|_| session.owner_id.is_some());
        Ok(PgLaneRow {
            info: session.info.clone(),
            fence: session.fence,
            owner_id: session.owner_id.clone(),
            hold: host.map(|host| {
                HostHold::since(
                    host.machine.clone(),
                    host.process.clone(),
                    host.heartbeat_at,
                )
            }),
            heartbeat_at: host.map(|host| host.heartbeat_at),
            now,
            last_number: session.last_number,
            loop_count: session.loops.len() as u64,
            has_journal: !session.journal.is_empty(),
        })
    }

    /// Registers a process unless its store has done so. Returns its host.
    fn register(&mut self, time: ProcessTime, owner: &Owner) -> usize {
        let machine = machine_identity();
        let is_new = self.registered[time.process].insert(owner.process.clone());
        let known = self
            .hosts
            .iter()
            .position(|host| host.machine == machine && host.process == owner.process);
        match known {
            Some(host) => {
                if is_new {
                    self.hosts[host].heartbeat_at = time.wall;
                }
                host
            }
            None => {
                self.hosts.push(HostRow {
                    machine: machine.to_owned(),
                    process: owner.process.clone(),
                    heartbeat_at: time.wall,
                });
                self.hosts.len() - 1
            }
        }
    }

    fn beat(&mut self, host: usize, now: Timestamp) {
        let host = &mut self.hosts[host];
        if host.heartbeat_at < now - HEARTBEAT_INTERVAL {
            host.heartbeat_at = now;
        }
    }

    /// `claim::claim`, up to the next decision.
    fn claim(
        &mut self,
        time: ProcessTime,
        id: &SessionId,
        owner: &Owner,
        beginning: Option<&LoopBeginning>,
        progress: &mut Progress,
    ) -> Option<Result<ClaimOutcome, StoreError>> {
        if *progress == Progress::FoundJournal {
            *progress = Progress::Start;
            return match self.recover_for_claim(id, owner, time.wall) {
                Ok(()) => None,
                Err(error) => Some(Err(error)),
            };
        }
        let host = self.register(time, owner);
        let seen = match self.lane_row(id, time.wall) {
            Ok(seen) => seen,
            Err(error) => return Some(Err(error)),
        };
        let is_compared = self.flaw != Some(Flaw::ReplacedWithoutComparison);
        let is_dead = match progress {
            Progress::FoundDead {
                fence,
                heartbeat_at,
            } => !is_compared || (seen.fence == *fence && seen.heartbeat_at == *heartbeat_at),
            _ => false,
        };
        let is_free = seen.owner_id.is_none() || seen.owner_id.as_ref() == Some(&owner.id);
        if seen.has_journal || !(is_free || is_dead) {
            if let Some(busy) = seen.refusal(&owner.id) {
                return Some(Err(busy));
            }
            *progress = match seen.has_journal {
                true => Progress::FoundJournal,
                false => Progress::FoundDead {
                    fence: seen.fence,
                    heartbeat_at: seen.heartbeat_at,
                },
            };
            return None;
        }
        self.beat(host, time.wall);
        let session = self.sessions.get_mut(id)?;
        session.fence += 1;
        session.owner_id = Some(owner.id.clone());
        session.host = Some(host);
        let next = session.last_number + 1;
        let fits = |it: &&LoopBeginning| {
            it.expected_head == session.info.head_version && it.loop_id.number() == Some(next)
        };
        let beginning = beginning.filter(fits);
        if let Some(it) = beginning {
            session
                .journal
                .push((it.loop_id.clone(), it.events.clone()));
        }
        Some(Ok(ClaimOutcome {
            claimed_lane: ClaimedLane {
                lane: Lane {
                    session_id: id.clone(),
                    owner_id: owner.id.clone(),
                    fence: session.fence,
                },
                info: seen.info,
                last_number: seen.last_number,
            },
            is_journalled: beginning.is_some(),
        }))
    }

    /// The transaction of a claim that finds a journal.
    fn recover_for_claim(
        &mut self,
        id: &SessionId,
        owner: &Owner,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let seen = self.lane_row(id, now)?;
        if let Some(busy) = seen.refusal(&owner.id) {
            return Err(busy);
        }
        let session = self.session(id)?;
        session.recover_journal();
        session.free();
        Ok(())
    }

    fn recover(&mut self, id: &SessionId, now: Timestamp) -> Result<(), StoreError> {
        let has_journal = self
            .sessions
            .get(id)
            .is_some_and(|it| !it.journal.is_empty());
        if !has_journal || self.lane_row(id, now)?.active_refusal().is_some() {
            return Ok(());
        }
        let session = self.session(id)?;
        session.recover_journal();
        session.free();
        session.fence += 1;
        Ok(())
    }

    fn append(&mut self, lane: &Lane, id: &LoopId, events: &[Event]) -> Result<(), StoreError> {
        let session = self.sessions.get_mut(&lane.session_id);
        let Some(session) = session.filter(|session| session.is_held(lane)) else {
            return Err(StoreError::LaneLost(lane.session_id.clone()));
        };
        if session.find(id).is_none() {
            session.journal.push((id.clone(), events.to_vec()));
        }
        Ok(())
    }

    fn commit(
        &mut self,
        commit: &Commit,
        progress: &mut Progress,
    ) -> Option<Result<u64, StoreError>> {
        if *progress == Progress::Refused {
            *progress = Progress::Start;
            return self.explain(commit);
        }
        let Commit { lane, records, .. } = commit;
        let session = self.sessions.get_mut(&lane.session_id);
        let session = session.filter(|session| {
            session.is_held(lane)
                && session.info.head_version == commit.expected_head
                && records
                    .iter()
                    .all(|record| session.find(&record.loop_id).is_none())
        });
        let Some(session) = session else {
            *progress = Progress::Refused;
            return None;
        };
        let version = session.store_loops(records, commit.tip);
        if session.info.title.is_none() {
            session.info.title.clone_from(&commit.title);
        }
        if commit.release {
            session.free();
        }
        for pending in &commit.effects {
            let outbox = &mut session.outbox;
            if outbox.iter().all(|known| known.pending.key != pending.key) {
                outbox.push(EffectRow {
                    pending: pending.clone(),
                    attempts: 0,
                    taken_by: None,
                    held_until: None,
                });
            }
        }
        Some(Ok(version))
    }

    /// The transaction that finds out why a commit was refused; `None` if the commit is to be tried again.
    fn explain(&mut self, commit: &Commit) -> Option<Result<u64, StoreError>> {
        let Commit { lane, records, .. } = commit;
        let session = match self.session(&lane.session_id) {
            Ok(session) => session,
            Err(error) => return Some(Err(error)),
        };
        let known: Vec<_> = records.iter().map(|it| session.find(&it.loop_id)).collect();
        let version = known
            .first()
            .copied()
            .flatten()
            .map(|(version, _)| *version);
        let is_same = known.iter().zip(records).all(|(known, record)| {
            known.is_some_and(|(made, known)| Some(*made) == version && known == record)
        });
        if let Some(version) = version.filter(|_| is_same) {
            if commit.release && session.is_held(lane) {
                session.free();
            }
            return Some(Ok(version));
        }
        if !session.is_held(lane) {
            return Some(Err(StoreError::LaneLost(lane.session_id.clone())));
        }
        if let Some((_, known)) = known.into_iter().flatten().next() {
            return Some(Err(StoreError::CommitMismatch(known.loop_id.clone())));
        }
        let actual = session.info.head_version;
        if actual == commit.expected_head {
            return None;
        }
        let is_settled = |id: &LoopId| records.iter().any(|record| record.loop_id == *id);
        session.journal.retain(|(id, _)| !is_settled(id));
        session.last_number = session.last_number.max(last_loop_number(records));
        Some(Err(StoreError::HeadConflict {
            expected: commit.expected_head,
            actual,
        }))
    }

    fn renew(&mut self, lane: &Lane, now: Timestamp) -> Result<(), StoreError> {
        let session = self.sessions.get(&lane.session_id);
        let session = session.filter(|session| session.is_held(lane));
        let session = session.ok_or_else(|| StoreError::LaneLost(lane.session_id.clone()))?;
        if let Some(host) = session.host {
            self.beat(host, now);
        }
        Ok(())
    }

    fn delete(
        &mut self,
        id: &SessionId,
        is_forced: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Ok(seen) = self.lane_row(id, now) else {
            return Ok(false);
        };
        match seen.active_refusal() {
            Some(busy) if !is_forced => Err(busy),
            _ => Ok(self.sessions.remove(id).is_some()),
        }
    }

    /// `effects::take`, up to the next decision.
    fn take_effect(
        &mut self,
        time: ProcessTime,
        id: &SessionId,
        owner: &Owner,
        progress: &mut Progress,
    ) -> Option<NextEffect> {
        if let Progress::FoundEffect {
            key,
            attempts,
            held_until,
        } = std::mem::take(progress)
        {
            let host = self.register(time, owner);
            let is_compared = self.flaw != Some(Flaw::TakenWithoutComparison);
            let outbox = &mut self.sessions.get_mut(id)?.outbox;
            let effect = outbox.iter_mut().find(|effect| {
                let is_as_seen = effect.attempts == attempts && effect.held_until == held_until;
                effect.pending.key == key && (is_as_seen || !is_compared)
            })?;
            effect.attempts += 1;
            effect.taken_by = Some(host);
            effect.held_until = Some(time.wall + LEASE_DURATION);
            return Some(NextEffect::Taken(TakenEffect {
                pending: effect.pending.clone(),
                attempt: attempts + 1,
            }));
        }
        let Some(session) = self.sessions.get(id) else {
            return Some(NextEffect::Empty);
        };
        let mut soonest = None;
        for effect in &session.outbox {
            let Some(left) = self.time_left(effect, time.wall) else {
                *progress = Progress::FoundEffect {
                    key: effect.pending.key.clone(),
                    attempts: effect.attempts,
                    held_until: effect.held_until,
                };
                return None;
            };
            soonest = Some(soonest.map_or(left, |sooner: Duration| sooner.min(left)));
        }
        Some(soonest.map_or(NextEffect::Empty, NextEffect::Later))
    }

    fn time_left(&self, effect: &EffectRow, now: Timestamp) -> Option<Duration> {
        let until = effect.held_until?;
        if let Some(host) = effect.taken_by {
            let host = &self.hosts[host];
            let hold = HostHold {
                machine: host.machine.clone(),
                process: host.process.clone(),
                until,
            };
            return hold.is_held(now).then_some(TAKEN_EFFECT_RECHECK);
        }
        let left = (until - now).to_std().unwrap_or_default();
        (!left.is_zero() && left <= MAX_EFFECT_DELAY).then_some(left)
    }
}

impl Backend for PgModel {
    fn kind(&self) -> BackendKind {
        BackendKind { has_server: true }
    }

    fn begin_schedule(&mut self) -> u64 {
        *self = Self {
            flaw: self.flaw,
            ..Self::default()
        };
        0
    }

    fn set_flaw(&mut self, flaw: Option<Flaw>) {
        self.flaw = flaw;
    }

    fn create(&mut self, new: NewSession) -> Result<(), StoreError> {
        let info = new.into_info();
        let row = SessionRow {
            info: info.clone(),
            fence: 0,
            owner_id: None,
            host: None,
            last_number: 0,
            loops: Vec::new(),
            journal: Vec::new(),
            outbox: Vec::new(),
        };
        match self.sessions.insert(info.id.clone(), row) {
            Some(_) => Err(StoreError::Exists(info.id)),
            None => Ok(()),
        }
    }

    fn perform(
        &mut self,
        time: ProcessTime,
        request: &Request,
        progress: &mut Progress,
    ) -> Option<Response> {
        Some(match request {
            Request::Claim {
                session,
                owner,
                beginning,
            } => {
                let beginning = beginning.as_deref();
                let claimed = self.claim(time, session, owner, beginning, progress);
                Response::Claimed(claimed?)
            }
            Request::ForgetJournal {
                session,
                owner,
                loop_id,
            } => {
                if let Some(session) = self.sessions.get_mut(session)
                    && session.owner_id.as_ref() == Some(&owner.id)
                {
                    session.journal.retain(|(id, _)| id != loop_id);
                }
                Response::Done(Ok(()))
            }
            Request::Append {
                lane,
                loop_id,
                events,
                is_awaited,
            } => match self.append(lane, loop_id, events) {
                Err(_) if !is_awaited => Response::Done(Ok(())),
                written => Response::Done(written),
            },
            Request::Commit(commit) => Response::Committed(self.commit(commit, progress)?),
            Request::Renew(lane) => Response::Done(self.renew(lane, time.wall)),
            Request::Release(lane) => {
                if let Some(session) = self.sessions.get_mut(&lane.session_id)
                    && session.is_held(lane)
                {
                    session.free();
                }
                Response::Done(Ok(()))
            }
            Request::Recover(session) => Response::Done(self.recover(session, time.wall)),
            Request::Delete { session, is_forced } => {
                Response::Deleted(self.delete(session, *is_forced, time.wall))
            }
            Request::TakeEffect { session, owner } => {
                Response::Effect(Ok(self.take_effect(time, session, owner, progress)?))
            }
            Request::FinishEffect(taken) => {
                if let Some(session) = self.sessions.get_mut(&taken.pending.session_id) {
                    let key = &taken.pending.key;
                    session.outbox.retain(|effect| effect.pending.key != *key);
                }
                Response::Done(Ok(()))
            }
            Request::PostponeEffect(taken, delay) => {
                if let Some(session) = self.sessions.get_mut(&taken.pending.session_id) {
                    let until = Some(time.wall + *delay.min(&MAX_EFFECT_DELAY));
                    let (key, attempt) = (&taken.pending.key, taken.attempt);
                    let mut effects = session.outbox.iter_mut();
                    if let Some(effect) =
                        effects.find(|it| it.pending.key == *key && it.attempts == attempt)
                    {
                        (effect.taken_by, effect.held_until) = (None, until);
                    }
                }
                Response::Done(Ok(()))
            }
        })
    }

    fn crash(&mut self, process: usize) {
        self.registered[process].clear();
    }

    fn loops(
        &mut self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<Arc<LoopRecord>>, StoreError> {
        let loops = self.session(session)?.loops.iter();
        let newer = loops.filter(|(version, _)| *version > after);
        Ok(newer.map(|(_, record)| Arc::clone(record)).collect())
    }

    fn info(&mut self, session: &SessionId) -> Result<SessionInfo, StoreError> {
        Ok(self.session(session)?.info.clone())
    }
}
