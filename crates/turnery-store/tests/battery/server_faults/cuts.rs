//! Cuts connections within every message of every operation: the request or the answer is lost. The store repeats the
//! operation, and it is done once.

use super::{
    mutations::{assert_found, run_with_panic},
    proxy::{Direction, Proxy, Replacement},
};
use crate::{effects::effect, is_late, postgres_address, recovery::dead_owner, samples::*};
use std::sync::Arc;
use turnery_engine::{LoopStatus, SessionId};
use turnery_store::{
    Commit, ListQuery, LoopBeginning, NextEffect, PostgresAddress, PostgresStore,
    RememberedApproval, SessionPatch, Store, StoreError, TakenEffect, TranscriptNote,
};

/// Names of the operations of [`Scene::run`], in their order.
const OPERATIONS: [&str; 16] = [
    "create",
    "patch",
    "claim",
    "release",
    "claim and journal",
    "append",
    "add notes",
    "commit",
    "take an effect",
    "finish an effect",
    "take another effect",
    "postpone an effect",
    "claim after a crash",
    "commit and release",
    "replay",
    "delete",
];

/// A store behind a proxy, and another one to look at what the first has done.
struct Scene {
    store: PostgresStore,
    direct: PostgresStore,
    proxy: Proxy,
    cuts: usize,
    sessions: usize,
}

/// Where to cut: within the message after this many messages of an operation.
#[derive(Clone, Copy, Debug)]
struct CutPoint {
    operation: &'static str,
    direction: Direction,
    messages: usize,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.proxy.stop_cutting();
    }
}

impl Scene {
    fn new(flaw: &[Replacement]) -> Self {
        let proxy = Proxy::start(flaw);
        let schema = turnery_store::new_uuid().to_string();
        let address = PostgresAddress::parse(&proxy.url(&schema), |_| None).unwrap();
        Self {
            store: PostgresStore::open(address),
            direct: PostgresStore::open(postgres_address(&schema)),
            proxy,
            cuts: 0,
            sessions: 0,
        }
    }

    /// Cuts within each message of these operations.
    async fn cut_everywhere(&mut self, operations: &[&'static str], direction: Direction) {
        // The first connection of a store is not repeated.
        self.store.list(ListQuery::default()).await.unwrap();
        for &operation in operations {
            for messages in 0.. {
                let point = CutPoint {
                    operation,
                    direction,
                    messages,
                };
                let cuts = self.cuts;
                // The session of an attempt that took too long is given up.
                while let Err(error) = self.run(point).await {
                    assert!(is_late(&error), "{error}");
                }
                if self.cuts == cuts {
                    break;
                }
            }
        }
    }

    /// Begins an operation.
    fn begin(&mut self, point: CutPoint, operation: &'static str) {
        self.end();
        if point.operation == operation {
            self.proxy.cut_after(point.direction, point.messages);
        }
    }

    fn end(&mut self) {
        self.cuts += usize::from(self.proxy.stop_cutting());
    }

    /// Does everything that there is to do in a new session. One of the operations is cut.
    async fn run(&mut self, point: CutPoint) -> Result<(), StoreError> {
        self.sessions += 1;
        let name = format!("s{}", self.sessions);
        let (name, id) = (name.as_str(), SessionId::from(name.as_str()));
        let (a, b) = (owner("a"), owner("b"));
        let records = [1, 2, 3, 4].map(|number| Arc::new(record(name, number, "Well?")));
        let beginning = |head: u64, number: usize| {
            Arc::new(LoopBeginning {
                expected_head: head,
                loop_id: records[number - 1].loop_id.clone(),
                events: records[number - 1].events[..4].to_vec(),
            })
        };

        self.begin(point, "create");
        let created = self.store.create(new_session(name)).await?;
        assert_eq!((created.id.clone(), created.head_version), (id.clone(), 0));

        self.begin(point, "patch");
        let approval = RememberedApproval::Allow("shell(cargo test:*)".into());
        let patch = SessionPatch {
            mode: Some("plan".into()),
            always: Some(approval.clone()),
            ..SessionPatch::default()
        };
        let patched = self.store.patch(&id, patch).await?;
        assert_eq!(
            (patched.mode.as_str(), &patched.always),
            ("plan", &vec![approval])
        );

        self.begin(point, "claim");
        let claimed = self.store.claim(&id, &b).await?;
        assert_eq!((claimed.info, claimed.last_number), (patched.clone(), 0));

        self.begin(point, "release");
        self.store.release(&claimed.lane).await?;

        self.begin(point, "claim and journal");
        let claimed = self
            .store
            .claim_and_journal(&id, &a, beginning(0, 1))
            .await?;
        assert!(claimed.is_journalled);
        let claimed = claimed.claimed_lane;
        assert_eq!((claimed.info, claimed.last_number), (patched, 0));
        let lane = claimed.lane;

        self.begin(point, "append");
        let loop_id = &records[0].loop_id;
        self.store
            .append(&lane, loop_id, records[0].events[4..6].to_vec());
        let rest = records[0].events[6..8].to_vec();
        self.store.append_now(&lane, loop_id, rest).await?;

        self.begin(point, "add notes");
        let note = |at_second| TranscriptNote {
            at: at(at_second),
            message: (*message(loop_id, "note", user("/help"))).clone(),
        };
        self.store.add_notes(&id, vec![note(1), note(2)]).await?;

        self.begin(point, "commit");
        let commit = Commit {
            effects: vec![effect(name, 0), effect(name, 1)],
            title: Some("Well?".into()),
            ..commit_of(&lane, 0, &records[0])
        };
        assert_eq!(self.store.commit(commit).await?, 1);

        let taken = |number| TakenEffect {
            pending: effect(name, number),
            attempt: 1,
        };
        self.begin(point, "take an effect");
        let next = self.store.take_effect(&id, &a).await?;
        assert_eq!(next, NextEffect::Taken(taken(0)));

        self.begin(point, "finish an effect");
        self.store.finish_effect(&taken(0)).await?;

        self.begin(point, "take another effect");
        let next = self.store.take_effect(&id, &a).await?;
        assert_eq!(next, NextEffect::Taken(taken(1)));

        self.begin(point, "postpone an effect");
        let hour = std::time::Duration::from_secs(3600);
        self.store.postpone_effect(&taken(1), hour).await?;

        // The next holder dies.
        self.end();
        self.store.release(&lane).await?;
        let dead = dead_owner("dead");
        let begun = self
            .store
            .claim_and_journal(&id, &dead, beginning(1, 2))
            .await?;
        assert!(begun.is_journalled);

        self.begin(point, "claim after a crash");
        let claimed = self.store.claim(&id, &b).await?;
        assert_eq!((claimed.info.head_version, claimed.last_number), (2, 2));

        self.begin(point, "commit and release");
        let commit = Commit {
            release: true,
            ..commit_of(&claimed.lane, 2, &records[2])
        };
        assert_eq!(self.store.commit(commit).await?, 3);

        self.end();
        let loops = self.direct.loops(&id, 0).await?;
        assert_eq!(loops.len(), 3);
        assert_eq!((&loops[0], &loops[2]), (&records[0], &records[2]));
        let aborted = &loops[1];
        assert_eq!(
            (&aborted.loop_id, aborted.status),
            (&records[1].loop_id, LoopStatus::Aborted)
        );
        assert_eq!(aborted.events[..4], records[1].events[..4]);
        assert_eq!(self.direct.notes(&id).await?, [note(1), note(2)]);
        let later = self.direct.take_effect(&id, &b).await?;
        assert!(matches!(later, NextEffect::Later(_)), "{later:?}");
        assert_eq!(self.direct.check(Some(&id)).await?, []);

        // The next prompt works, and nothing is left in the journal that would become a loop.
        let next = self
            .store
            .claim_and_journal(&id, &a, beginning(3, 4))
            .await?;
        assert!(next.is_journalled);
        assert_eq!(next.claimed_lane.last_number, 3);
        let commit = Commit {
            release: true,
            ..commit_of(&next.claimed_lane.lane, 3, &records[3])
        };
        assert_eq!(self.store.commit(commit).await?, 4);

        self.begin(point, "replay");
        let page = self.store.replay_page(&id, None).await?;
        self.end();
        let expected = self.direct.replay_page(&id, None).await?;
        assert_eq!((page.loops.len(), page.has_all_loops), (4, true));
        assert_eq!((page.loops, page.events), (expected.loops, expected.events));

        self.begin(point, "delete");
        assert!(self.store.delete(&id).await?);
        self.end();
        let gone = self.direct.info(&id).await;
        assert_eq!(gone, Err(StoreError::NotFound(id)));
        Ok(())
    }
}

/// Each operation has at least three messages in each direction.
const MIN_CUTS: usize = 3 * OPERATIONS.len();

#[tokio::test]
async fn lost_requests_are_repeated() {
    let mut scene = Scene::new(&[]);
    scene.cut_everywhere(&OPERATIONS, Direction::Request).await;
    assert!(scene.cuts >= MIN_CUTS, "{}", scene.cuts);
}

#[tokio::test]
async fn operations_without_answer_are_done_once() {
    let mut scene = Scene::new(&[]);
    scene.cut_everywhere(&OPERATIONS, Direction::Answer).await;
    assert!(scene.cuts >= MIN_CUTS, "{}", scene.cuts);
}

/// Each statement is a transaction of its own, so that a journal is lost with the connection.
const NO_TRANSACTIONS: Replacement = Replacement {
    part: "BEGIN",
    by: "SELECT 1",
};

/// A repeated note has another key.
const NEW_KEY_OF_EACH_ATTEMPT: Replacement = Replacement {
    part: "SELECT s.session_id, t.key, t.body",
    by: "SELECT s.session_id, gen_random_uuid()::text, t.body",
};

#[tokio::test]
async fn work_in_several_transactions_is_caught() {
    let found = run_with_panic(async {
        let mut scene = Scene::new(&[NO_TRANSACTIONS]);
        let operation = ["claim after a crash"];
        scene.cut_everywhere(&operation, Direction::Answer).await;
    });
    assert_found(found.await);
}

#[tokio::test]
async fn note_with_another_key_is_caught() {
    let found = run_with_panic(async {
        let mut scene = Scene::new(&[NEW_KEY_OF_EACH_ATTEMPT]);
        scene
            .cut_everywhere(&["add notes"], Direction::Answer)
            .await;
    });
    assert_found(found.await);
}
