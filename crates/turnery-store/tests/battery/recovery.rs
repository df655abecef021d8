//! What a dead holder leaves behind (S5, LOAD-7).

use crate::{World, battery, samples::*};
use std::sync::Arc;
use turnery_engine::{
    CallId, Disposition, Event, EventKind, FailureKind, LoopRecord, LoopStatus, StreamDelta,
    ToolEnvelope,
};
use turnery_store::{Lane, StoreError};

battery!(
    a_journal_becomes_an_aborted_loop,
    an_announced_loop_is_aborted_too,
    a_running_call_is_closed,
    a_loser_cannot_journal_any_more,
    a_loser_cannot_settle_the_holders_journal,
    a_loop_that_begins_anew_forgets_its_first_journal,
    a_journal_without_a_beginning_is_dropped,
    several_journals_become_loops_in_order_of_time,
);

async fn opened(world: &World) -> Lane {
    world.store.create(new_session("s1")).await.expect("made");
    let opened = world.store.claim(&"s1".into(), &owner("a")).await;
    opened.expect("claimed").lane
}

async fn after_the_crash(world: &World) -> Vec<Arc<LoopRecord>> {
    let opened = world.store.claim(&"s1".into(), &owner("a")).await;
    opened.expect("claimed again");
    world.store.loops(&"s1".into(), 0).await.expect("loaded")
}

/// The history that was stays; the aborted loop comes after it and the next prompt does not see it.
// proves: LOOP-54, S5, C-3, C-12
async fn a_journal_becomes_an_aborted_loop(world: &World) {
    let lane = opened(world).await;
    let first = record("s1", 1, "Hello").into();
    world.store.commit(commit(&lane, 0, &first)).await.unwrap();
    let all = events("s1", 2, "And then?");
    let delta = EventKind::Delta {
        message_id: "m".into(),
        delta: StreamDelta::Text {
            block: 0,
            text: "All".into(),
        },
    };
    let streamed = event("s1", 2, 5, Some(0), delta);
    world
        .store
        .append(&lane, &loop_id("s1", 2), all[..3].to_vec());
    world.store.append(
        &lane,
        &loop_id("s1", 2),
        vec![all[3].clone(), all[4].clone()],
    );
    world.store.append(&lane, &loop_id("s1", 2), vec![streamed]);

    let loops = after_the_crash(world).await;
    assert_eq!(loops.len(), 2);
    assert_eq!(loops[0], first);
    assert_eq!(loops[1].loop_id, loop_id("s1", 2));
    assert_eq!(loops[1].status, LoopStatus::Aborted);
    assert_eq!(loops[1].outcome, None);
    assert!(!loops[1].on_chain);
    assert_eq!(loops[1].events, all[..5]);
    assert_eq!(loops[1].messages[0].message.text(), "And then?");
    let info = world.store.info(&"s1".into()).await.unwrap();
    assert_eq!(info.tip_loop_id, Some(loop_id("s1", 1)));
    assert_eq!(info.head_version, 2);
    // Once is enough.
    assert_eq!(after_the_crash(world).await.len(), 2);
}

/// It never began, and its group never ended.
// proves: LOOP-50, LOOP-54
async fn an_announced_loop_is_aborted_too(world: &World) {
    let lane = opened(world).await;
    let ids = [loop_id("s1", 1), loop_id("s1", 2)];
    let announcement = EventKind::ParallelStart {
        agent_id: "agent".into(),
        loop_ids: ids.to_vec(),
    };
    let event = event("s1", 2, 0, None, announcement);
    world.store.append(&lane, &ids[1], vec![event.clone()]);
    let loops = after_the_crash(world).await;
    let [lost] = &loops[..] else {
        panic!("{loops:?}");
    };
    assert_eq!((&lost.loop_id, lost.status), (&ids[1], LoopStatus::Aborted));
    assert!(!lost.on_chain);
    assert_eq!(lost.events, [event]);
    let info = world.store.info(&"s1".into()).await.unwrap();
    assert_eq!(info.tip_loop_id, None);
}

/// LOAD-7: one call ran, another waited; both have ended afterwards, and each bracket is whole (R1, R2).
// proves: R1, R2, LOAD-7
async fn a_running_call_is_closed(world: &World) {
    let lane = opened(world).await;
    let asked = |id: &str| EventKind::ToolCallRequested {
        call: call(id),
        detail: detail("Read a.txt"),
    };
    let start = |id: &str, runs: bool| EventKind::ToolExecutionStart {
        call_id: CallId::from(id),
        tool_name: "read".into(),
        runs,
    };
    let end = |id: &str, envelope: ToolEnvelope, disposition| EventKind::ToolExecutionEnd {
        call_id: CallId::from(id),
        tool_name: "read".into(),
        envelope,
        disposition,
        child_loop_id: None,
    };
    let gone = || {
        let text = "the process ended before this call did";
        ToolEnvelope::failed(FailureKind::Cancelled, text)
    };
    let mut journal = events("s1", 1, "Read it")[..2].to_vec();
    let kinds = [
        asked("done"),
        asked("running"),
        asked("waiting"),
        start("done", true),
        end("done", ToolEnvelope::text("read"), Disposition::Executed),
        start("running", true),
    ];
    for (seq, kind) in (2..).zip(kinds) {
        journal.push(event("s1", 1, seq, Some(0), kind));
    }
    world.store.append(&lane, &loop_id("s1", 1), journal);

    let loops = after_the_crash(world).await;
    let added: Vec<&Event> = loops[0].events.iter().skip(8).collect();
    let kinds: Vec<&EventKind> = added.iter().map(|event| &event.kind).collect();
    assert_eq!(
        kinds,
        [
            &end("running", gone(), Disposition::Cancelled),
            &start("waiting", false),
            &end("waiting", gone(), Disposition::Cancelled),
        ]
    );
    let places: Vec<_> = added
        .iter()
        .map(|event| (event.seq, event.turn_index))
        .collect();
    assert_eq!(places, [(8, Some(0)), (9, Some(0)), (10, Some(0))]);
}

/// C-12: the journal of a loser is no evidence of the new holder's.
// proves: C-12
pub(crate) async fn a_loser_cannot_journal_any_more(world: &World) {
    let old = opened(world).await;
    let new = world.store.claim(&"s1".into(), &owner("a")).await.unwrap();
    world
        .store
        .append(&old, &loop_id("s1", 1), events("s1", 1, "Late"));
    assert_eq!(after_the_crash(world).await, []);
    assert_eq!(new.lane.fence, 2);
}

/// C-12: a commit that is refused for its lane leaves the evidence of the loop that really runs.
// proves: C-12
async fn a_loser_cannot_settle_the_holders_journal(world: &World) {
    let old = opened(world).await;
    let new = world.store.claim(&"s1".into(), &owner("a")).await.unwrap();
    let running = events("s1", 1, "Mine")[..4].to_vec();
    world
        .store
        .append(&new.lane, &loop_id("s1", 1), running.clone());
    let late = record("s1", 1, "Late").into();
    let refused = world.store.commit(commit(&old, 0, &late)).await;
    assert_eq!(refused, Err(StoreError::LaneLost("s1".into())));
    assert_eq!(after_the_crash(world).await[0].events, running);
}

/// An id is used again when its commit failed; the evidence of the two must not mix.
async fn a_loop_that_begins_anew_forgets_its_first_journal(world: &World) {
    let lane = opened(world).await;
    let id = loop_id("s1", 1);
    world.store.append(&lane, &id, events("s1", 1, "First"));
    world
        .store
        .append(&lane, &id, events("s1", 1, "Second")[..4].to_vec());
    let loops = after_the_crash(world).await;
    assert_eq!(loops.len(), 1);
    assert_eq!(loops[0].messages.len(), 1);
    assert_eq!(loops[0].messages[0].message.text(), "Second");
}

async fn a_journal_without_a_beginning_is_dropped(world: &World) {
    let lane = opened(world).await;
    let middle = events("s1", 1, "Hello")[1..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 1), middle);
    assert_eq!(after_the_crash(world).await, []);
    let info = world.store.info(&"s1".into()).await.unwrap();
    assert_eq!(info.head_version, 0);
}

async fn several_journals_become_loops_in_order_of_time(world: &World) {
    let lane = opened(world).await;
    for number in [10, 2, 9] {
        let journal = events("s1", number, "Hello")[..5].to_vec();
        world.store.append(&lane, &loop_id("s1", number), journal);
    }
    let loops = after_the_crash(world).await;
    let ids: Vec<_> = loops.iter().map(|record| record.loop_id.clone()).collect();
    let expected = [2, 9, 10].map(|number| loop_id("s1", number));
    assert_eq!(ids, expected);
}
