//! Tests followers: over any pages, commits and reconnects, a follower sees each event once and in order.

use crate::{
    World, battery,
    commits::{claim_new_session, sample_record},
    samples::*,
};
use std::{collections::BTreeMap, sync::Arc};
use turnery_engine::{Event, EventKind, LoopId, LoopRecord, LoopStatus, ModelDelta, SessionId};
use turnery_store::{
    Commit, FollowCursor, FollowFrom, FollowItem, FollowUpdate, Lane, LoopBeginning,
    SessionFollower, Store, StoreError,
};

battery!(
    follower_sees_each_event_once,
    loop_begun_differently_is_withdrawn,
    forgotten_loop_is_withdrawn,
    interrupted_loop_is_told_as_aborted,
    loops_of_a_group_are_followed_together,
    follower_from_now_begins_with_the_running_loop,
    many_loops_are_followed_in_pages,
    cursor_of_another_session_is_refused,
    deleted_session_ends_its_follower,
    follower_is_woken_by_each_change,
    random_reconnects_lose_nothing,
);

/// What a follower has seen. Fails on any event that is doubled, out of order, or of a stored loop.
#[derive(Default)]
pub(crate) struct FollowedLoops {
    open: BTreeMap<String, Vec<Event>>,
    stored: Vec<(LoopId, u64, LoopStatus, Vec<Event>)>,
    withdrawn: Vec<LoopId>,
}

impl FollowedLoops {
    pub(crate) fn apply(&mut self, update: FollowUpdate) {
        let is_stored = |id: &LoopId| self.stored.iter().any(|(stored, ..)| stored == id);
        match update {
            FollowUpdate::Event(event) => {
                assert!(!is_stored(&event.loop_id), "{event:?}");
                let events = self.open.entry(event.loop_id.to_string()).or_default();
                let last = events.last().map(|last| last.seq);
                assert!(last < Some(event.seq), "{last:?} {event:?}");
                events.push(*event);
            }
            FollowUpdate::LoopStored {
                loop_id,
                version,
                status,
                ..
            } => {
                assert!(!is_stored(&loop_id), "{loop_id}");
                let events = self.open.remove(loop_id.as_str()).unwrap_or_default();
                self.stored.push((loop_id, version, status, events));
            }
            FollowUpdate::Withdrawn { loop_id } => {
                let events = self.open.remove(loop_id.as_str());
                assert!(events.is_some(), "nothing of {loop_id} was sent");
                self.withdrawn.push(loop_id);
            }
            FollowUpdate::Damaged(damage) => panic!("{damage}"),
        }
    }

    /// Compares the stored loops with those of the store.
    pub(crate) async fn assert_equal(&self, store: &dyn Store, id: &SessionId) {
        let loops = store.loops(id, 0).await.unwrap();
        let shown = self.stored.iter().map(|(id, _, status, _)| (id, *status));
        let expected = loops.iter().map(|it| (&it.loop_id, it.status));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            expected.collect::<Vec<_>>(),
            "loops"
        );
        for ((_, _, _, events), record) in self.stored.iter().zip(&loops) {
            let expected = record.events.iter();
            let expected = expected.filter(|event| !matches!(event.kind, EventKind::Delta { .. }));
            assert!(events.iter().eq(expected), "{events:#?}\n{record:#?}");
        }
    }

    fn open_seqs(&self, loop_id: &LoopId) -> Vec<u64> {
        let events = self.open.get(loop_id.as_str());
        events.map_or_else(Vec::new, |events| events.iter().map(|it| it.seq).collect())
    }
}

/// Follower that connects again with the text of its cursor before each page.
struct TestFollower {
    id: SessionId,
    from: FollowFrom,
    seen: FollowedLoops,
}

impl TestFollower {
    fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            from: FollowFrom::Start,
            seen: FollowedLoops::default(),
        }
    }

    /// Reads a page, and sees at most this many of its updates. Returns true if there may be more.
    async fn read(&mut self, store: &dyn Store, limit: usize) -> bool {
        let page = store.follow_page(&self.id, self.from.clone()).await;
        let page = page.unwrap();
        let is_cut = page.items.len() > limit;
        let mut place = page.cursor;
        for FollowItem { update, cursor } in page.items.into_iter().take(limit) {
            self.seen.apply(update);
            if is_cut {
                place = cursor;
            }
        }
        if !is_cut || limit > 0 {
            let text = place.to_string();
            self.from = FollowFrom::After(text.parse().unwrap());
        }
        is_cut || page.has_more
    }

    async fn read_all(&mut self, store: &dyn Store) {
        while self.read(store, usize::MAX).await {}
    }
}

async fn journal(world: &World, lane: &Lane, events: &[Event]) {
    let loop_id = events.first().unwrap().loop_id.clone();
    let written = world.store.append_now(lane, &loop_id, events.to_vec());
    written.await.unwrap();
}

pub(crate) async fn follower_sees_each_event_once(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    let mut seen = TestFollower::new("s1");
    seen.read_all(store).await;
    let first = sample_record(1);
    journal(world, &lane, &first.events[..4]).await;
    seen.read_all(store).await;
    assert_eq!(seen.seen.open_seqs(&first.loop_id), [0, 1, 2, 3]);
    // Fragments of text are not journalled.
    let delta = EventKind::Delta {
        message_id: "m".into(),
        delta: ModelDelta::Text {
            block: 0,
            text: "All".into(),
        },
    };
    let mut rest = first.events[4..].to_vec();
    rest.insert(1, event("s1", 1, 5, Some(0), delta));
    journal(world, &lane, &rest[..3]).await;
    // One update at a time.
    while seen.read(store, 1).await {}
    assert_eq!(seen.seen.open_seqs(&first.loop_id), [0, 1, 2, 3, 4, 5]);
    // The end is shown once the loop is stored.
    journal(world, &lane, &rest[3..]).await;
    seen.read_all(store).await;
    assert_eq!(
        seen.seen.open_seqs(&first.loop_id),
        [0, 1, 2, 3, 4, 5, 6, 7]
    );
    world.commit(&lane, 0, &first).await.unwrap();
    while seen.read(store, 1).await {}
    // A loop that was never journalled, and one that is stored before its last events were.
    world.commit(&lane, 1, &sample_record(2)).await.unwrap();
    let third = sample_record(3);
    journal(world, &lane, &third.events[..6]).await;
    while seen.read(store, 4).await {}
    world.commit(&lane, 2, &third).await.unwrap();
    while seen.read(store, 3).await {}
    seen.seen.assert_equal(store, &"s1".into()).await;
    let versions: Vec<u64> = seen.seen.stored.iter().map(|it| it.1).collect();
    assert_eq!((versions, seen.seen.withdrawn.len()), (vec![1, 2, 3], 0));
}

/// The same id and number of events, other content: also if nothing but the commit says so.
pub(crate) async fn loop_begun_differently_is_withdrawn(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    let mut seen = TestFollower::new("s1");
    journal(world, &lane, &events("s1", 1, "Predicted")[..4]).await;
    seen.read_all(store).await;
    journal(world, &lane, &events("s1", 1, "Different")[..4]).await;
    seen.read_all(store).await;
    assert_eq!(seen.seen.withdrawn, [loop_id("s1", 1)]);
    assert_eq!(seen.seen.open_seqs(&loop_id("s1", 1)), [0, 1, 2, 3]);
    let last = record("s1", 1, "Yet another").into();
    world.commit(&lane, 0, &last).await.unwrap();
    seen.read_all(store).await;
    assert_eq!(seen.seen.withdrawn.len(), 2);
    // Written again with the same content, and split otherwise: nothing is withdrawn.
    let all = events("s1", 2, "Same");
    journal(world, &lane, &all[..2]).await;
    journal(world, &lane, &all[2..5]).await;
    seen.read_all(store).await;
    journal(world, &lane, &all[..6]).await;
    seen.read_all(store).await;
    assert_eq!(seen.seen.open_seqs(&loop_id("s1", 2)), [0, 1, 2, 3, 4, 5]);
    world
        .commit(&lane, 1, &record("s1", 2, "Same").into())
        .await
        .unwrap();
    seen.read_all(store).await;
    assert_eq!(seen.seen.withdrawn.len(), 2);
    seen.seen.assert_equal(store, &"s1".into()).await;
}

/// A commit at a stale head settles the journal without storing the loop.
async fn forgotten_loop_is_withdrawn(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    let mut seen = TestFollower::new("s1");
    journal(world, &lane, &events("s1", 1, "Hello")[..4]).await;
    seen.read_all(store).await;
    let refused = world.commit(&lane, 7, &sample_record(1)).await;
    assert!(refused.is_err());
    seen.read_all(store).await;
    assert_eq!(seen.seen.withdrawn, [loop_id("s1", 1)]);
    assert_eq!((seen.seen.open.len(), seen.seen.stored.len()), (0, 0));
}

/// The events that close the loop follow those that were seen.
async fn interrupted_loop_is_told_as_aborted(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    let mut seen = TestFollower::new("s1");
    journal(world, &lane, &events("s1", 1, "Hello")[..5]).await;
    while seen.read(store, 2).await {}
    assert_eq!(seen.seen.open_seqs(&loop_id("s1", 1)), [0, 1, 2, 3, 4]);
    world.claim("a").await.unwrap();
    seen.read_all(store).await;
    let (id, _, status, events) = &seen.seen.stored[0];
    assert_eq!((id, *status), (&loop_id("s1", 1), LoopStatus::Aborted));
    assert!(events.len() > 5, "{events:?}");
    assert_eq!(seen.seen.withdrawn, []);
    seen.seen.assert_equal(store, &"s1".into()).await;
}

async fn loops_of_a_group_are_followed_together(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    let mut seen = TestFollower::new("s1");
    let group = [record("s1", 2, "Two"), record("s1", 1, "One")].map(|record| {
        Arc::new(LoopRecord {
            parent_loop_id: None,
            ..record
        })
    });
    for places in [0..3, 3..4, 4..7] {
        for record in &group {
            journal(world, &lane, &record.events[places.clone()]).await;
            while seen.read(store, 2).await {}
        }
    }
    let commit = Commit {
        records: group.to_vec(),
        ..commit_of(&lane, 0, &group[0])
    };
    store.commit(commit).await.unwrap();
    while seen.read(store, 1).await {}
    let versions: Vec<u64> = seen.seen.stored.iter().map(|it| it.1).collect();
    assert_eq!((versions, seen.seen.withdrawn.len()), (vec![1, 1], 0));
    seen.seen.assert_equal(store, &"s1".into()).await;
}

async fn follower_from_now_begins_with_the_running_loop(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    let second = sample_record(2);
    journal(world, &lane, &second.events[..3]).await;
    let mut seen = TestFollower::new("s1");
    seen.from = FollowFrom::Now;
    seen.read_all(store).await;
    assert_eq!(seen.seen.open_seqs(&second.loop_id), [0, 1, 2]);
    world.commit(&lane, 1, &second).await.unwrap();
    seen.read_all(store).await;
    let (id, version, _, events) = &seen.seen.stored[0];
    assert_eq!((id, *version), (&second.loop_id, 2));
    assert_eq!(*events, second.events);
    assert_eq!(seen.seen.stored.len(), 1);
}

async fn many_loops_are_followed_in_pages(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    for number in 1..=70 {
        let record = record("s1", number, "Hello");
        let record = with_calls(record, 5, "line");
        let commit = world.commit(&lane, u64::from(number) - 1, &record.into());
        commit.await.unwrap();
    }
    journal(world, &lane, &events("s1", 71, "Last")[..3]).await;
    let mut seen = TestFollower::new("s1");
    let mut pages = 1;
    while seen.read(store, usize::MAX).await {
        pages += 1;
    }
    assert!(pages > 1);
    assert_eq!(seen.seen.open_seqs(&loop_id("s1", 71)), [0, 1, 2]);
    seen.seen.assert_equal(store, &"s1".into()).await;
}

/// Also the cursor of a deleted session with the same id.
async fn cursor_of_another_session_is_refused(world: &World) {
    let lane = claim_new_session(world).await;
    let store = &*world.store;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    let mut seen = TestFollower::new("s1");
    seen.read_all(store).await;
    let FollowFrom::After(cursor) = seen.from.clone() else {
        panic!("no cursor")
    };
    let refused = Err(StoreError::BadCursor(cursor.to_string()));
    store.create(new_session("s2")).await.unwrap();
    let page = store.follow_page(&"s2".into(), seen.from.clone()).await;
    assert_eq!(page.map(|_| ()), refused);
    store.delete_in_use(&"s1".into()).await.unwrap();
    let again = turnery_store::NewSession {
        at: at(1),
        ..new_session("s1")
    };
    store.create(again).await.unwrap();
    let page = store.follow_page(&"s1".into(), seen.from.clone()).await;
    assert_eq!(page.map(|_| ()), refused);
    assert!("f1.00".parse::<FollowCursor>().is_err());
}

async fn deleted_session_ends_its_follower(world: &World) {
    claim_new_session(world).await;
    let mut follower = SessionFollower::new(world.store.clone(), "s1".into(), FollowFrom::Start);
    assert_eq!(follower.next_ready().await, Ok(None));
    world.store.delete_in_use(&"s1".into()).await.unwrap();
    let gone = Err(StoreError::NotFound("s1".into()));
    assert_eq!(follower.next().await.map(|_| ()), gone);
}

/// A change that is not announced would leave the mark as it is.
async fn follower_is_woken_by_each_change(world: &World) {
    let lane = claim_new_session(world).await;
    let (store, id) = (&*world.store, "s1".into());
    let mut mark = store.wait_for_change(&id, None).await.unwrap();
    if world.has_heartbeat {
        // The server has accepted the follower: once with its connection, once with its session.
        for _ in 0..2 {
            mark = store.wait_for_change(&id, Some(mark)).await.unwrap();
        }
    }
    let mut wait = async |what: &str| {
        let now = store.wait_for_change(&id, Some(mark)).await.unwrap();
        assert_ne!(now, mark, "{what}");
        mark = now;
    };
    journal(world, &lane, &events("s1", 1, "Hello")[..4]).await;
    wait("journal").await;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    wait("commit").await;
    journal(world, &lane, &events("s1", 2, "And?")[..4]).await;
    wait("second journal").await;
    world.claim("a").await.unwrap();
    wait("recovery").await;
    let beginning = LoopBeginning {
        expected_head: 2,
        loop_id: loop_id("s1", 3),
        events: events("s1", 3, "Well")[..4].to_vec(),
    };
    let owner = owner("a");
    let claimed = store.claim_and_journal(&id, &owner, beginning.into());
    claimed.await.unwrap();
    wait("claim").await;
}

/// Random numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % end
    }
}

/// Loops are journalled in random parts, written again, begun differently, interrupted, given up and stored, while a
/// follower reads random parts of its pages.
pub(crate) async fn random_reconnects_lose_nothing(world: &World) {
    for seed in 0..24 {
        random_schedule(world, seed).await;
    }
}

async fn random_schedule(world: &World, seed: u64) {
    let store = &*world.store;
    let session = format!("random-{seed}");
    let id = SessionId::from(session.as_str());
    store.create(new_session(&session)).await.unwrap();
    let mut random = Random::new(seed);
    let holder = owner("a");
    let mut opened = store.claim(&id, &holder).await.unwrap();
    let mut seen = TestFollower::new(&session);
    let mut number = 1;
    let mut question = 0;
    let mut journalled = 0;
    for _ in 0..60 {
        let lane = opened.lane.clone();
        let running = record(&session, number, &format!("Question {question}"));
        let running = with_calls(running, 1, "line");
        let events = &running.events;
        match random.below(12) {
            0..=2 => {
                let end = (journalled + 1 + random.below(4) as usize).min(events.len());
                if end > journalled {
                    journal(world, &lane, &events[journalled..end]).await;
                    journalled = end;
                }
            }
            3 if journalled > 0 => journal(world, &lane, &events[..journalled]).await,
            4 if journalled > 0 => {
                question += 1;
                let other = record(&session, number, &format!("Question {question}"));
                let other = with_calls(other, 1, "line");
                journalled = 1 + random.below(6) as usize;
                journal(world, &lane, &other.events[..journalled]).await;
            }
            5 => {
                let head = opened.info.head_version;
                opened.info.head_version =
                    world.commit(&lane, head, &running.into()).await.unwrap();
                (number, journalled) = (number + 1, 0);
            }
            6 => {
                opened = store.claim(&id, &holder).await.unwrap();
                number = u32::try_from(opened.last_number).unwrap() + 1;
                journalled = 0;
            }
            7 if journalled > 0 => {
                let refused = world.commit(&lane, 1_000, &running.into()).await;
                assert!(refused.is_err());
                (number, journalled) = (number + 1, 0);
            }
            _ => {
                let limit = random.below(6) as usize;
                seen.read(store, limit).await;
            }
        }
    }
    let opened = store.claim(&id, &holder).await.unwrap();
    seen.read_all(store).await;
    assert_eq!(seen.seen.open.len(), 0, "seed {seed}");
    seen.seen.assert_equal(store, &id).await;
    store.release(&opened.lane).await.unwrap();
}
