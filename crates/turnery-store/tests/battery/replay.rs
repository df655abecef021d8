//! Tests the replay of a conversation: pages of the chain, without transient events.

use crate::{
    World, battery,
    commits::{claim_new_session, sample_record},
    samples::*,
};
use turnery_engine::{
    CallId, ContinuationKind, EventKind, LoopRecord, ModelDelta, TurnTrigger, Verdict,
};
use turnery_store::{ReplayPage, StoreError};

battery!(
    replay_is_the_chain_without_transient_events,
    transient_events_are_not_replayed,
    long_loop_is_replayed_in_pages,
    deleted_session_is_not_replayed,
);

/// Returns all pages of `s1`.
async fn replay_page(world: &World) -> Vec<ReplayPage> {
    let mut pages = Vec::new();
    let mut cursor = None;
    loop {
        let mut page = world.store.replay_page(&"s1".into(), cursor).await.unwrap();
        cursor = page.next_cursor.take();
        pages.push(page);
        if cursor.is_none() {
            return pages;
        }
    }
}

/// UP-12, LOOP-86: a rerun loop is not replayed.
// proves: UP-12, LOOP-86
pub(crate) async fn replay_is_the_chain_without_transient_events(world: &World) {
    let lane = claim_new_session(world).await;
    let again = LoopRecord {
        continuation_kind: ContinuationKind::Rerun,
        ..record("s1", 3, "How is it?")
    };
    let after = record("s1", 4, "And now?");
    for (head, record) in [
        (0, sample_record(1)),
        (1, sample_record(2)),
        (2, again.into()),
        (3, after.into()),
    ] {
        let done = world.commit(&lane, head, &record);
        done.await.unwrap();
    }
    let all = replay_page(world).await;
    let page = all.last().unwrap();
    assert_eq!((all.len(), page.next_cursor.is_none()), (1, true));
    assert!(!page.has_all_loops);
    let loops = page.loops.iter().map(|record| &record.loop_id);
    let chain = [1, 3, 4].map(|number| loop_id("s1", number));
    assert_eq!(loops.collect::<Vec<_>>(), chain.iter().collect::<Vec<_>>());
    // Start, question, response, usage and end.
    let places = page.events.iter().map(|event| (&event.loop_id, event.seq));
    let expected = chain
        .iter()
        .flat_map(|id| [0, 3, 5, 6, 8].map(|seq| (id, seq)));
    assert_eq!(places.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!(page.events[1], events("s1", 1, "How is it?")[3]);
    assert_eq!(page.loops[0].messages, sample_record(1).messages);
    assert_eq!(page.loops[0].events, []);
}

/// Transient events are in the record, but not in the replay.
async fn transient_events_are_not_replayed(world: &World) {
    let call_id = CallId::from("c1");
    let delta = ModelDelta::Text {
        block: 0,
        text: "Hm".into(),
    };
    let passing = [
        EventKind::TurnStart {
            trigger: TurnTrigger::User,
        },
        EventKind::MessageStart {
            message_id: "m".into(),
        },
        EventKind::Delta {
            message_id: "m".into(),
            delta,
        },
        EventKind::PermissionResolved {
            call_id: call_id.clone(),
            verdict: Verdict::Allow,
        },
        EventKind::ToolExecutionStart {
            call_id: call_id.clone(),
            tool_name: "read".into(),
            runs: true,
        },
        EventKind::ToolProgress {
            call_id: call_id.clone(),
            text: "half".into(),
        },
        EventKind::ToolExecutionOutput {
            call_id: call_id.clone(),
            text: "out".into(),
        },
        EventKind::TurnEnd {
            usage: None,
            tool_results: Vec::new(),
        },
    ];
    let staying = [
        EventKind::PermissionRequested {
            call_id,
            detail: detail("Read a.txt"),
        },
        EventKind::Issue { text: "no".into() },
        EventKind::PlanUpdated {
            entries: Vec::new(),
        },
    ];
    let mut record = record("s1", 1, "How is it?");
    record.events.truncate(1);
    for (seq, kind) in (1..).zip(passing.into_iter().chain(staying)) {
        record.events.push(event("s1", 1, seq, Some(0), kind));
    }
    let lane = claim_new_session(world).await;
    let done = world.commit(&lane, 0, &record.into());
    done.await.unwrap();
    let seqs = replay_page(world).await[0]
        .events
        .iter()
        .map(|event| event.seq)
        .collect::<Vec<_>>();
    assert_eq!(seqs, [0, 9, 10, 11]);
}

/// A loop of any length is split into pages, with each event once and in order.
pub(crate) async fn long_loop_is_replayed_in_pages(world: &World) {
    let lane = claim_new_session(world).await;
    let long = with_calls(record("s1", 1, "How is it?"), 300, "one\ntwo");
    for (head, record) in [(0, long.clone().into()), (1, sample_record(2))] {
        let done = world.commit(&lane, head, &record);
        done.await.unwrap();
    }
    let pages = replay_page(world).await;
    let sizes: Vec<_> = pages.iter().map(|page| page.events.len()).collect();
    // Five of the loop, two of each call, five of the next loop.
    assert_eq!(sizes, [256, 256, 98]);
    assert!(pages[0].has_all_loops);
    let loops = pages.iter().map(|page| page.loops.len());
    assert_eq!(loops.collect::<Vec<_>>(), [0, 0, 2]);
    let mut expected = long.events;
    expected.extend(events("s1", 2, "How is it?"));
    expected.retain(|event| {
        !matches!(
            event.kind,
            EventKind::TurnStart { .. }
                | EventKind::MessageStart { .. }
                | EventKind::ToolExecutionStart { .. }
                | EventKind::TurnEnd { .. }
        )
    });
    let events = pages.into_iter().flat_map(|page| page.events);
    assert_eq!(events.collect::<Vec<_>>(), expected);
}

/// A session deleted during its replay is gone.
async fn deleted_session_is_not_replayed(world: &World) {
    let lane = claim_new_session(world).await;
    let long = with_calls(record("s1", 1, "How is it?"), 300, "one");
    let done = world.commit(&lane, 0, &long.into());
    done.await.unwrap();
    let id = "s1".into();
    let first = world.store.replay_page(&id, None).await.unwrap();
    world.store.delete_in_use(&id).await.unwrap();
    let missing = StoreError::NotFound(id.clone());
    for cursor in [first.next_cursor, None] {
        assert_eq!(
            world.store.replay_page(&id, cursor).await.err(),
            Some(missing.clone())
        );
    }
}

/// The cursor of one store is invalid for another kind of store.
#[tokio::test]
async fn cursor_of_another_store_is_refused() {
    let worlds = [World::memory(), World::sqlite()];
    let mut cursors = Vec::new();
    for world in &worlds {
        let lane = claim_new_session(world).await;
        let long = with_calls(record("s1", 1, "How is it?"), 300, "one");
        let done = world.commit(&lane, 0, &long.into());
        done.await.unwrap();
        cursors.push(
            world
                .store
                .replay_page(&"s1".into(), None)
                .await
                .unwrap()
                .next_cursor,
        );
    }
    cursors.reverse();
    for (world, cursor) in worlds.iter().zip(cursors) {
        let refused = world.store.replay_page(&"s1".into(), cursor).await.err();
        let why = "a page of another store was asked for".to_owned();
        assert_eq!(refused, Some(StoreError::Broken(why)));
    }
}
