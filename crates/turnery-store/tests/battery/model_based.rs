//! Compares the stores with a simple model under arbitrary sequences of operations.

use crate::{World, samples::*};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};
use turnery_engine::{Event, EventKind, LoopId, LoopRecord, SessionId};
use turnery_store::{Commit, Lane, ListQuery, SessionPatch, StoreError};

const SESSIONS: [&str; 2] = ["s1", "s2"];
const OWNERS: [&str; 2] = ["a", "b"];

/// Seconds for which a live local holder keeps its lane.
const LEASE: u32 = 90;

/// An operation. Sessions and owners are given by index; the lane is the last one of the owner.
#[derive(Clone, Debug)]
enum StoreOp {
    Create(usize),
    Delete(usize),
    Patch(usize, Option<Option<&'static str>>, u64),
    Claim(usize, usize),
    Renew(usize, usize),
    Release(usize, usize),
    Append(usize, usize, u32, usize),
    Commit(usize, usize, CommitOp),
    Pass(u32),
}

/// Commit of loop `number`, with the current head or one that is off by one.
#[derive(Clone, Debug)]
struct CommitOp {
    number: u32,
    stale: bool,
    question: &'static str,
    on_chain: bool,
    title: Option<&'static str>,
    release: bool,
}

fn op() -> impl Strategy<Value = StoreOp> {
    let (s, o) = (0..SESSIONS.len(), 0..OWNERS.len());
    let question = prop::sample::select(vec!["Why?", "Why?", "Who?"]);
    let title = prop::sample::select(vec![None, Some("One"), Some("Two")]);
    let renamed = prop::sample::select(vec![None, Some(None), Some(Some("Three"))]);
    let often = |one_in: u32| (0..one_in).prop_map(|number| number == 0);
    let change = (1..5_u32, often(5), question, often(2), title, often(4)).prop_map(
        |(number, stale, question, on_chain, title, release)| CommitOp {
            number,
            stale,
            question,
            on_chain,
            title,
            release,
        },
    );
    prop_oneof![
        2 => s.clone().prop_map(StoreOp::Create),
        1 => s.clone().prop_map(StoreOp::Delete),
        2 => (s.clone(), renamed, 0..1000_u64).prop_map(|(s, title, at)| StoreOp::Patch(s, title, at)),
        6 => (s.clone(), o.clone()).prop_map(|(s, o)| StoreOp::Claim(s, o)),
        2 => (s.clone(), o.clone()).prop_map(|(s, o)| StoreOp::Renew(s, o)),
        2 => (s.clone(), o.clone()).prop_map(|(s, o)| StoreOp::Release(s, o)),
        5 => (s.clone(), o.clone(), 1..5_u32, 1..8_usize)
            .prop_map(|(s, o, number, events)| StoreOp::Append(s, o, number, events)),
        9 => (s, o, change).prop_map(|(s, o, change)| StoreOp::Commit(s, o, change)),
        2 => (1..120_u32).prop_map(StoreOp::Pass),
    ]
}

/// State of a session in the model.
#[derive(Clone, Debug, Default)]
struct ModelSession {
    title: Option<String>,
    updated: u64,
    tip: Option<u32>,
    fence: u64,
    holder: Option<(&'static str, u32)>,
    journal: BTreeMap<u32, Vec<Event>>,
    /// Greatest number of a loop whose commit was refused because of its head.
    lost: Option<u32>,
    loops: Vec<Arc<LoopRecord>>,
}

#[derive(Default)]
struct StoreModel {
    sessions: BTreeMap<&'static str, ModelSession>,
    lanes: BTreeMap<(usize, usize), u64>,
    now: u32,
    /// Time of the last heartbeat, in a store that has one for all lanes of a process.
    heartbeat: u32,
}

fn record_for(session: &str, change: &CommitOp, parent: Option<LoopId>) -> Arc<LoopRecord> {
    let record = record(session, change.number, change.question);
    Arc::new(LoopRecord {
        on_chain: change.on_chain,
        events: with_parent(record.events, parent.as_ref()),
        parent_loop_id: parent,
        ..record
    })
}

/// Returns the events of a loop that follows `parent`.
fn with_parent(mut events: Vec<Event>, parent: Option<&LoopId>) -> Vec<Event> {
    if let EventKind::LoopStart { parent_loop_id, .. } = &mut events[0].kind {
        *parent_loop_id = parent.cloned();
    }
    events
}

impl ModelSession {
    fn holds(&self, owner: usize, fence: u64) -> bool {
        let name = self.holder.map(|(name, _)| name);
        self.fence == fence && name == Some(OWNERS[owner])
    }

    fn head(&self) -> u64 {
        self.loops.len() as u64
    }

    fn claim(&mut self, owner: usize, now: u32) -> bool {
        let name = OWNERS[owner];
        if self
            .holder
            .is_some_and(|(holder, until)| holder != name && now < until)
        {
            return false;
        }
        self.fence += 1;
        self.holder = Some((name, now + LEASE));
        // The samples' times rise with their numbers, like the order of the map.
        for (number, events) in std::mem::take(&mut self.journal) {
            // Up to the question there is no content to keep; recovery itself is tested by the engine.
            let said = events.len() > 3;
            let record = turnery_engine::recover_interrupted_loops(&[events])
                .pop()
                .expect("it begins");
            assert_eq!(record.on_chain, said);
            self.updated = self.updated.max(u64::from(number) * 100);
            if said {
                self.tip = Some(number);
                self.title.get_or_insert_with(|| "Why?".to_owned());
            }
            self.loops.push(Arc::new(record));
        }
        true
    }

    /// Returns the parent of a loop with this number: its stored parent, or else the tip.
    fn parent(&self, id: &str, number: u32) -> Option<LoopId> {
        let own = loop_id(id, number);
        match self.loops.iter().find(|known| known.loop_id == own) {
            Some(known) => known.parent_loop_id.clone(),
            None => self.tip.map(|tip| loop_id(id, tip)),
        }
    }

    fn commit(
        &mut self,
        id: &str,
        owner: usize,
        fence: u64,
        change: &CommitOp,
    ) -> Result<u64, StoreError> {
        let record = record_for(id, change, self.parent(id, change.number));
        let earlier = self
            .loops
            .iter()
            .position(|known| known.loop_id == record.loop_id);
        let version = match earlier {
            Some(place) if self.loops[place] == record => place as u64 + 1,
            Some(_) | None if !self.holds(owner, fence) => {
                return Err(StoreError::LaneLost(id.into()));
            }
            Some(_) => return Err(StoreError::CommitMismatch(record.loop_id.clone())),
            None => {
                self.journal.remove(&change.number);
                if change.stale {
                    self.lost = self.lost.max(Some(change.number));
                    return Err(StoreError::HeadConflict {
                        expected: self.head() + 1,
                        actual: self.head(),
                    });
                }
                if self.title.is_none() {
                    self.title = change.title.map(Into::into);
                }
                if change.on_chain {
                    self.tip = Some(change.number);
                }
                self.updated = self.updated.max(u64::from(change.number) * 100 + 8);
                self.loops.push(record);
                self.head()
            }
        };
        if change.release && self.holds(owner, fence) {
            self.holder = None;
        }
        Ok(version)
    }

    /// Journals the first events of a loop. `is_server` tells that a row may arrive twice, the second time late: then
    /// events that are known begin nothing anew.
    fn append(&mut self, id: &str, number: u32, count: usize, is_server: bool) {
        let stored = self
            .loops
            .iter()
            .any(|known| known.loop_id == loop_id(id, number));
        if !stored {
            let parent = self.parent(id, number);
            let all = with_parent(events(id, number, "Why?"), parent.as_ref());
            let known = self.journal.entry(number).or_default();
            if !(is_server && known.starts_with(&all[..count])) {
                *known = all[..count].to_vec();
            }
        }
    }
}

impl StoreModel {
    fn lane(&self, session: usize, owner: usize) -> (Lane, u64) {
        let fence = self.lanes.get(&(session, owner)).copied().unwrap_or(0);
        let lane = Lane {
            session_id: SESSIONS[session].into(),
            owner_id: OWNERS[owner].into(),
            fence,
        };
        (lane, fence)
    }

    /// Renews the lease of a holder, and with a heartbeat those of all lanes of its process. A heartbeat is not written
    /// again within five seconds.
    fn renew(&mut self, world: &World, session: &str, owner: usize) {
        if world.has_heartbeat {
            if self.now - self.heartbeat > 5 {
                self.heartbeat = self.now;
            }
            for session in self.sessions.values_mut() {
                if let Some((_, until)) = &mut session.holder {
                    *until = self.heartbeat + LEASE;
                }
            }
        } else if let Some(session) = self.sessions.get_mut(session) {
            session.holder = Some((OWNERS[owner], self.now + LEASE));
        }
    }

    /// Runs the operation in both, and compares the results.
    async fn step(&mut self, world: &World, op: StoreOp) {
        let store = &world.store;
        let missing = |id: &str| StoreError::NotFound(id.into());
        match op {
            StoreOp::Create(s) => {
                let made = store.create(new_session(SESSIONS[s])).await.is_ok();
                assert_eq!(made, !self.sessions.contains_key(SESSIONS[s]));
                self.sessions.entry(SESSIONS[s]).or_default();
            }
            StoreOp::Delete(s) => {
                let session = self.sessions.get(SESSIONS[s]);
                let is_busy = session.is_some_and(|session| session.holder.is_some());
                let deleted = store.delete(&SESSIONS[s].into()).await;
                match is_busy {
                    true => assert!(matches!(deleted, Err(StoreError::Busy { .. }))),
                    false => {
                        let there = self.sessions.remove(SESSIONS[s]).is_some();
                        assert_eq!(deleted, Ok(there));
                    }
                }
            }
            StoreOp::Patch(s, title, seconds) => {
                let patch = SessionPatch {
                    title: title.map(|title| title.map(Into::into)),
                    updated_at: Some(at(seconds)),
                    ..SessionPatch::default()
                };
                let patched = store.patch(&SESSIONS[s].into(), patch).await;
                let session = self.sessions.get_mut(SESSIONS[s]);
                assert_eq!(patched.is_ok(), session.is_some());
                if let Some(session) = session {
                    session.updated = seconds;
                    if let Some(title) = title {
                        session.title = title.map(Into::into);
                    }
                }
            }
            StoreOp::Claim(s, o) => {
                let claimed = store.claim(&SESSIONS[s].into(), &owner(OWNERS[o])).await;
                let Some(session) = self.sessions.get_mut(SESSIONS[s]) else {
                    assert_eq!(claimed, Err(missing(SESSIONS[s])));
                    return;
                };
                if session.claim(o, self.now) {
                    let claimed = claimed.expect("free");
                    assert_eq!(claimed.lane.fence, session.fence);
                    let stored = session.loops.iter().map(|it| it.loop_id.as_str());
                    let stored = stored.filter_map(|id| id.rsplit('.').next()?.parse().ok());
                    let last = stored.chain(session.lost).max();
                    assert_eq!(claimed.last_number, u64::from(last.unwrap_or(0)));
                    self.lanes.insert((s, o), session.fence);
                    self.renew(world, SESSIONS[s], o);
                } else {
                    assert!(
                        matches!(claimed, Err(StoreError::Busy { .. })),
                        "{claimed:?}"
                    );
                }
            }
            StoreOp::Renew(s, o) => {
                let (lane, fence) = self.lane(s, o);
                let renewed = store.renew(&lane).await;
                let session = self.sessions.get_mut(SESSIONS[s]);
                let held = session.filter(|session| session.holds(o, fence));
                assert_eq!(renewed.is_ok(), held.is_some());
                if held.is_some() {
                    self.renew(world, SESSIONS[s], o);
                }
            }
            StoreOp::Release(s, o) => {
                let (lane, fence) = self.lane(s, o);
                assert_eq!(store.release(&lane).await, Ok(()));
                let session = self.sessions.get_mut(SESSIONS[s]);
                if let Some(session) = session.filter(|session| session.holds(o, fence)) {
                    session.holder = None;
                }
            }
            StoreOp::Append(s, o, number, count) => {
                let (lane, fence) = self.lane(s, o);
                let id = SESSIONS[s];
                let parent = self.sessions.get(id);
                let parent = parent.and_then(|session| session.parent(id, number));
                let all = with_parent(events(id, number, "Why?"), parent.as_ref());
                store.append(&lane, &loop_id(id, number), all[..count].to_vec());
                let session = self.sessions.get_mut(id);
                if let Some(session) = session.filter(|session| session.holds(o, fence)) {
                    session.append(id, number, count, world.has_heartbeat);
                }
            }
            StoreOp::Commit(s, o, change) => {
                let (lane, fence) = self.lane(s, o);
                let id = SESSIONS[s];
                let head = self.sessions.get(id).map_or(0, ModelSession::head);
                let parent = self.sessions.get(id);
                let parent = parent.and_then(|session| session.parent(id, change.number));
                let committed = store.commit(Commit {
                    title: change.title.map(Into::into),
                    release: change.release,
                    ..commit_of(
                        &lane,
                        head + u64::from(change.stale),
                        &record_for(id, &change, parent),
                    )
                });
                let expected = match self.sessions.get_mut(id) {
                    Some(session) => session.commit(id, o, fence, &change),
                    None => Err(missing(id)),
                };
                assert_eq!(committed.await, expected);
            }
            StoreOp::Pass(seconds) => {
                world.advance_clock(seconds);
                self.now += seconds;
            }
        }
    }

    /// Compares the visible state.
    async fn compare(&self, world: &World) {
        let page = world
            .store
            .list(ListQuery::default())
            .await
            .expect("a page");
        let seen: Vec<_> = page.sessions.iter().map(|info| info.id.clone()).collect();
        let mut expected: Vec<_> = self
            .sessions
            .iter()
            .map(|(id, s)| (s.updated, *id))
            .collect();
        expected.sort_unstable();
        let ids = expected.iter().rev().map(|(_, id)| SessionId::from(*id));
        assert_eq!(seen, ids.collect::<Vec<_>>());
        for info in page.sessions {
            let id = info.id.as_str();
            let session = &self.sessions[id];
            assert_eq!(info.title, session.title);
            assert_eq!(info.updated_at, at(session.updated));
            assert_eq!(info.head_version, session.head());
            assert_eq!(info.tip_loop_id, session.tip.map(|tip| loop_id(id, tip)));
            let loops = world.store.loops(&info.id, 0).await.expect("loops");
            assert_eq!(loops, session.loops);
        }
    }
}

fn run(world: &World, ops: Vec<StoreOp>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(async {
        let mut model = StoreModel::default();
        for op in [StoreOp::Create(0), StoreOp::Claim(0, 0)]
            .into_iter()
            .chain(ops)
        {
            model.step(world, op).await;
            model.compare(world).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // proves: S1, S2, S3, S5, S8
    #[test]
    fn sqlite_matches_the_model(ops in prop::collection::vec(op(), 1..50)) {
        run(&World::sqlite(), ops);
    }

    // proves: S1, S2, S3, S5, S8
    #[test]
    fn memory_matches_the_model(ops in prop::collection::vec(op(), 1..50)) {
        run(&World::memory(), ops);
    }

    // proves: S1, S2, S3, S5, S8
    #[test]
    #[cfg(feature = "postgres")]
    fn postgres_matches_the_model(ops in prop::collection::vec(op(), 1..50)) {
        run(&World::postgres(), ops);
    }
}
