//! Tests the recovery of what a dead holder leaves behind (S5, LOAD-7).

use crate::{World, battery, samples::*};
use std::sync::Arc;
use turnery_engine::{
    CallId, Content, Disposition, EventKind, LoopRecord, LoopStatus, Message, MessageStop,
    ModelDelta, ToolEnvelope,
};
use turnery_store::{Lane, Owner, StoreError};

battery!(
    interrupted_loop_becomes_the_tip,
    announced_loop_is_aborted,
    running_call_is_closed_by_recovery,
    lost_lane_cannot_journal,
    late_events_of_a_stored_loop_are_no_error,
    lost_lane_cannot_drop_the_holders_journal,
    restarted_loop_replaces_its_journal,
    journal_without_first_event_is_dropped,
    journals_are_recovered_in_time_order,
    recovery_needs_no_claim,
    recovery_leaves_a_live_holder_alone,
    last_loop_number_counts_lost_loops,
    recreated_session_has_its_own_loop_numbers,
);

async fn claim_new_session(world: &World) -> Lane {
    claim_new_session_as(world, &owner("a")).await
}

async fn claim_new_session_as(world: &World, owner: &Owner) -> Lane {
    world.store.create(new_session("s1")).await.expect("made");
    let opened = world.store.claim(&"s1".into(), owner).await;
    opened.expect("claimed").lane
}

/// Owner in a process that has ended.
pub(crate) fn dead_owner(id: &str) -> Owner {
    let mut child = std::process::Command::new("true").spawn().expect("begun");
    let process = format!("pid={}", child.id());
    child.wait().expect("ended");
    Owner {
        id: id.into(),
        process,
    }
}

async fn recovered_loops(world: &World) -> Vec<Arc<LoopRecord>> {
    let opened = world.claim("a").await;
    opened.expect("claimed again");
    world.loops().await.expect("loaded")
}

/// The history stays, and the interrupted loop follows it: closed, marked, and visible to the next prompt.
// proves: LOOP-54, S5, C-3, C-12
async fn interrupted_loop_becomes_the_tip(world: &World) {
    let lane = claim_new_session(world).await;
    let first = record("s1", 1, "Hello").into();
    world.commit(&lane, 0, &first).await.unwrap();
    let all = events("s1", 2, "And then?");
    let delta = EventKind::Delta {
        message_id: "m".into(),
        delta: ModelDelta::Text {
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

    let loops = recovered_loops(world).await;
    assert_eq!(loops.len(), 2);
    assert_eq!(loops[0], first);
    assert_eq!(loops[1].loop_id, loop_id("s1", 2));
    assert_eq!(loops[1].status, LoopStatus::Aborted);
    assert_eq!(loops[1].outcome, None);
    assert!(loops[1].on_chain);
    assert_eq!(loops[1].events[..5], all[..5]);
    let said: Vec<_> = loops[1].messages.iter().map(|it| &it.message).collect();
    let [Message::User { .. }, answer, Message::System { text }] = &said[..] else {
        panic!("{said:?}");
    };
    assert_eq!(said[0].text(), "And then?");
    // Streamed text of the response is not kept.
    assert_eq!(answer.text(), "");
    assert!(text.contains("interrupted"), "{text}");
    let info = world.info().await.unwrap();
    assert_eq!(info.tip_loop_id, Some(loop_id("s1", 2)));
    assert_eq!(info.head_version, 2);
    let history = world.store.history(&"s1".into()).await.unwrap();
    assert_eq!(history.loops.len(), 2);
    // A second recovery changes nothing.
    assert_eq!(recovered_loops(world).await.len(), 2);
}

/// The loop never started, and its group never ended.
// proves: LOOP-50, LOOP-54, S5
async fn announced_loop_is_aborted(world: &World) {
    let lane = claim_new_session(world).await;
    let ids = [loop_id("s1", 1), loop_id("s1", 2)];
    let announcement = EventKind::ParallelStart {
        agent_id: "agent".into(),
        loop_ids: ids.to_vec(),
    };
    let event = event("s1", 2, 0, None, announcement);
    world.store.append(&lane, &ids[1], vec![event.clone()]);
    let loops = recovered_loops(world).await;
    let [lost] = &loops[..] else {
        panic!("{loops:?}");
    };
    assert_eq!((&lost.loop_id, lost.status), (&ids[1], LoopStatus::Aborted));
    assert!(!lost.on_chain);
    assert_eq!(lost.events, [event]);
    let info = world.info().await.unwrap();
    assert_eq!(info.tip_loop_id, None);
}

/// LOAD-7: one call ran, another waited; both have ended after recovery, and each bracket is complete (R1,
/// R2).
// proves: R1, R2, LOAD-7
async fn running_call_is_closed_by_recovery(world: &World) {
    let lane = claim_new_session(world).await;
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
    let mut journal = events("s1", 1, "Read it")[..4].to_vec();
    let answer = Message::Assistant {
        content: ["done", "running", "waiting"]
            .map(|id| Content::ToolCall(call(id)))
            .to_vec(),
        stop: MessageStop::ToolUse,
        model: "echo".into(),
        provider: "offline".into(),
        usage: None,
        error: None,
        request: None,
    };
    let answer = message(&loop_id("s1", 1), "m1", answer);
    let kinds = [
        EventKind::MessageStart {
            message_id: answer.message_id.clone(),
        },
        EventKind::MessageEnd { message: answer },
        EventKind::UsageReported {
            usage: None,
            cumulative: usage(0, 0),
        },
        asked("done"),
        asked("running"),
        asked("waiting"),
        start("done", true),
        end("done", ToolEnvelope::text("read"), Disposition::Executed),
        start("running", true),
    ];
    for (seq, kind) in (4..).zip(kinds) {
        journal.push(event("s1", 1, seq, Some(0), kind));
    }
    let count = journal.len();
    world.store.append(&lane, &loop_id("s1", 1), journal);

    let loops = recovered_loops(world).await;
    let ends: Vec<_> = loops[0].events[count..]
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolExecutionStart { call_id, runs, .. } => {
                Some((call_id.as_str(), format!("runs: {runs}")))
            }
            EventKind::ToolExecutionEnd {
                call_id,
                disposition,
                ..
            } => Some((call_id.as_str(), format!("{disposition:?}"))),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("running", "Cancelled".to_owned()),
            ("waiting", "runs: false".to_owned()),
            ("waiting", "Skipped".to_owned()),
        ]
    );
    let results: Vec<_> = loops[0]
        .messages
        .iter()
        .filter_map(|message| match &message.message {
            Message::ToolResult {
                call_id, is_error, ..
            } => Some((call_id.as_str(), *is_error, message.message.text())),
            _ => None,
        })
        .collect();
    assert_eq!(results[0], ("done", false, "read".to_owned()));
    assert_eq!((results[1].0, results[1].1), ("running", true));
    assert!(results[1].2.contains("interrupted"), "{results:?}");
    assert_eq!((results[2].0, results[2].1), ("waiting", true));
    assert!(results[2].2.contains("not run"), "{results:?}");
}

/// Recovery works without a claim, leaves the lane free, and is idempotent.
// proves: S5
async fn recovery_needs_no_claim(world: &World) {
    let lane = claim_new_session_as(world, &dead_owner("a")).await;
    let running = events("s1", 1, "Hello")[..4].to_vec();
    let id = loop_id("s1", 1);
    world.store.append_now(&lane, &id, running).await.unwrap();
    for _ in 0..2 {
        world.store.recover(&"s1".into()).await.unwrap();
        let info = world.info().await.unwrap();
        assert_eq!(info.head_version, 1);
        assert_eq!(info.tip_loop_id, Some(loop_id("s1", 1)));
        assert_eq!(info.title.as_deref(), Some("Hello"));
    }
    // The lane is free, and the dead holder never gets it back.
    let late = record("s1", 1, "Late").into();
    let refused = world.commit(&lane, 1, &late).await;
    assert_eq!(refused, Err(StoreError::LaneLost("s1".into())));
    let free = world.claim("b").await;
    assert_eq!(free.unwrap().lane.fence, lane.fence + 2);
    let missing = world.store.recover(&"s2".into()).await;
    assert!(matches!(missing, Ok(_) | Err(StoreError::NotFound(_))));
}

/// A live holder keeps its journal and its lane, even after its lease expired.
// proves: S5, UP-27
async fn recovery_leaves_a_live_holder_alone(world: &World) {
    let lane = claim_new_session(world).await;
    let running = events("s1", 1, "Hello")[..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 1), running);
    world.advance_clock(60);
    world.store.recover(&"s1".into()).await.unwrap();
    assert_eq!(world.loops().await, Ok(Vec::new()));
    let record = record("s1", 1, "Hello").into();
    let committed = world.commit(&lane, 0, &record).await;
    assert_eq!(committed, Ok(1));
}

/// LOOP-10: the next number exceeds all others, whatever is missing in between and wherever it is stored.
// proves: LOOP-10, LOOP-12
pub(crate) async fn last_loop_number_counts_lost_loops(world: &World) {
    let lane = claim_new_session(world).await;
    let stored = [7, 3].map(|number| Arc::new(record("s1", number, "Hello")));
    for (head, record) in (0..).zip(&stored) {
        world.commit(&lane, head, record).await.unwrap();
    }
    let last = || async {
        let opened = world.claim("a").await;
        let opened = opened.unwrap();
        (opened.lane, opened.last_number)
    };
    let (lane, number) = last().await;
    assert_eq!(number, 7);
    // Stored after the numbers were cached.
    let ninth = record("s1", 9, "Hello").into();
    world.commit(&lane, 2, &ninth).await.unwrap();
    let (lane, number) = last().await;
    assert_eq!(number, 9);
    // Journalled, with or without a start event.
    let twelfth = events("s1", 12, "Hello")[..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 12), twelfth);
    let middle = events("s1", 15, "Hello")[1..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 15), middle);
    assert_eq!(last().await.1, 15);
    // Nothing of the last loop is left, and its number is not reused.
    let (lane, number) = last().await;
    assert_eq!(number, 15);
    // Shown, and refused.
    let shown = record("s1", 20, "Hello").into();
    let refused = world.commit(&lane, 77, &shown).await;
    assert!(matches!(refused, Err(StoreError::HeadConflict { .. })));
    assert_eq!(last().await.1, 20);
}

/// A session recreated under the id of a deleted one has its own numbers.
async fn recreated_session_has_its_own_loop_numbers(world: &World) {
    for numbers in [[1, 2, 3].as_slice(), &[1], &[4, 5, 6, 7]] {
        let lane = claim_new_session(world).await;
        for (head, number) in (0..).zip(numbers) {
            let record = record("s1", *number, "Hello").into();
            world.commit(&lane, head, &record).await.unwrap();
        }
        let again = world.claim("a").await.unwrap();
        assert_eq!(
            Some(again.last_number),
            numbers.last().map(|it| u64::from(*it))
        );
        world.store.release(&again.lane).await.unwrap();
        world.store.delete(&"s1".into()).await.unwrap();
    }
}

/// C-12: the journal of a loser is not attributed to the new holder.
// proves: C-12
pub(crate) async fn lost_lane_cannot_journal(world: &World) {
    let old = claim_new_session(world).await;
    let new = world.claim("a").await.unwrap();
    world
        .store
        .append(&old, &loop_id("s1", 1), events("s1", 1, "Late"));
    let awaited = events("s1", 2, "Later");
    let refused = world.store.append_now(&old, &loop_id("s1", 2), awaited);
    assert_eq!(refused.await, Err(StoreError::LaneLost("s1".into())));
    assert_eq!(recovered_loops(world).await, []);
    assert_eq!(new.lane.fence, 2);
}

/// The commit has settled the loop.
// proves: C-12
async fn late_events_of_a_stored_loop_are_no_error(world: &World) {
    let lane = claim_new_session(world).await;
    let record = Arc::new(record("s1", 1, "Mine"));
    assert_eq!(world.commit(&lane, 0, &record).await, Ok(1));
    let late = events("s1", 1, "Mine");
    let settled = world.store.append_now(&lane, &loop_id("s1", 1), late);
    assert_eq!(settled.await, Ok(()));
    assert_eq!(recovered_loops(world).await, [record]);
}

/// C-12: a commit refused because of its lane keeps the journal of the running loop.
// proves: C-12
async fn lost_lane_cannot_drop_the_holders_journal(world: &World) {
    let old = claim_new_session(world).await;
    let new = world.claim("a").await.unwrap();
    let running = events("s1", 1, "Mine")[..4].to_vec();
    world
        .store
        .append(&new.lane, &loop_id("s1", 1), running.clone());
    let late = record("s1", 1, "Late").into();
    let refused = world.commit(&old, 0, &late).await;
    assert_eq!(refused, Err(StoreError::LaneLost("s1".into())));
    assert_eq!(recovered_loops(world).await[0].events[..4], running);
}

/// An id is reused after a failed commit; the two journals must not mix.
async fn restarted_loop_replaces_its_journal(world: &World) {
    let lane = claim_new_session(world).await;
    let id = loop_id("s1", 1);
    world.store.append(&lane, &id, events("s1", 1, "First"));
    world
        .store
        .append(&lane, &id, events("s1", 1, "Second")[..4].to_vec());
    let loops = recovered_loops(world).await;
    assert_eq!(loops.len(), 1);
    assert_eq!(loops[0].messages[0].message.text(), "Second");
    let questions = loops[0]
        .messages
        .iter()
        .filter(|it| matches!(it.message, Message::User { .. }));
    assert_eq!(questions.count(), 1);
}

async fn journal_without_first_event_is_dropped(world: &World) {
    let lane = claim_new_session(world).await;
    let middle = events("s1", 1, "Hello")[1..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 1), middle);
    assert_eq!(recovered_loops(world).await, []);
    let info = world.info().await.unwrap();
    assert_eq!(info.head_version, 0);
}

async fn journals_are_recovered_in_time_order(world: &World) {
    let lane = claim_new_session(world).await;
    for number in [10, 2, 9] {
        let journal = events("s1", number, "Hello")[..5].to_vec();
        world.store.append(&lane, &loop_id("s1", number), journal);
    }
    let loops = recovered_loops(world).await;
    let ids: Vec<_> = loops.iter().map(|record| record.loop_id.clone()).collect();
    let expected = [2, 9, 10].map(|number| loop_id("s1", number));
    assert_eq!(ids, expected);
}
