//! What a dead holder leaves behind (S5, LOAD-7).

use crate::{World, battery, samples::*};
use std::sync::Arc;
use turnery_engine::{
    CallId, Content, Disposition, EventKind, LoopRecord, LoopStatus, Message, MessageStop,
    StreamDelta, ToolEnvelope,
};
use turnery_store::{Lane, Owner, StoreError};

battery!(
    interrupted_loop_becomes_the_tip,
    an_announced_loop_is_aborted_too,
    a_running_call_is_closed,
    a_loser_cannot_journal_any_more,
    a_loser_cannot_settle_the_holders_journal,
    a_loop_that_begins_anew_forgets_its_first_journal,
    a_journal_without_a_beginning_is_dropped,
    several_journals_become_loops_in_order_of_time,
    recovery_needs_no_claim,
    recovery_leaves_a_live_holder_alone,
    last_number_is_no_count,
    last_number_of_a_new_session_is_its_own,
);

async fn opened(world: &World) -> Lane {
    opened_by(world, &owner("a")).await
}

async fn opened_by(world: &World, owner: &Owner) -> Lane {
    world.store.create(new_session("s1")).await.expect("made");
    let opened = world.store.claim(&"s1".into(), owner).await;
    opened.expect("claimed").lane
}

/// A handle of a process that has ended.
pub(crate) fn dead(id: &str) -> Owner {
    let mut child = std::process::Command::new("true").spawn().expect("begun");
    let process = format!("pid={}", child.id());
    child.wait().expect("ended");
    Owner {
        id: id.into(),
        process,
    }
}

async fn after_the_crash(world: &World) -> Vec<Arc<LoopRecord>> {
    let opened = world.store.claim(&"s1".into(), &owner("a")).await;
    opened.expect("claimed again");
    world.store.loops(&"s1".into(), 0).await.expect("loaded")
}

/// The history stays, and the interrupted loop follows it: closed, marked, and seen by the next prompt.
// proves: LOOP-54, S5, C-3, C-12
async fn interrupted_loop_becomes_the_tip(world: &World) {
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
    assert!(loops[1].on_chain);
    assert_eq!(loops[1].events[..5], all[..5]);
    let said: Vec<_> = loops[1].messages.iter().map(|it| &it.message).collect();
    let [Message::User { .. }, answer, Message::System { text }] = &said[..] else {
        panic!("{said:?}");
    };
    assert_eq!(said[0].text(), "And then?");
    // What was streamed of the answer is not kept.
    assert_eq!(answer.text(), "");
    assert!(text.contains("interrupted"), "{text}");
    let info = world.store.info(&"s1".into()).await.unwrap();
    assert_eq!(info.tip_loop_id, Some(loop_id("s1", 2)));
    assert_eq!(info.head_version, 2);
    let history = world.store.history(&"s1".into()).await.unwrap();
    assert_eq!(history.loops.len(), 2);
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

    let loops = after_the_crash(world).await;
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

/// Callers that only read see it too, and hold nothing; a second one finds it done.
// proves: S5
async fn recovery_needs_no_claim(world: &World) {
    let lane = opened_by(world, &dead("a")).await;
    let running = events("s1", 1, "Hello")[..4].to_vec();
    let id = loop_id("s1", 1);
    world.store.append_now(&lane, &id, running).await.unwrap();
    for _ in 0..2 {
        world.store.recover(&"s1".into()).await.unwrap();
        let info = world.store.info(&"s1".into()).await.unwrap();
        assert_eq!(info.head_version, 1);
        assert_eq!(info.tip_loop_id, Some(loop_id("s1", 1)));
        assert_eq!(info.title.as_deref(), Some("Hello"));
    }
    // Nobody holds the lane, and the dead holder never gets it back.
    let late = record("s1", 1, "Late").into();
    let refused = world.store.commit(commit(&lane, 1, &late)).await;
    assert_eq!(refused, Err(StoreError::LaneLost("s1".into())));
    let free = world.store.claim(&"s1".into(), &owner("b")).await;
    assert_eq!(free.unwrap().lane.fence, lane.fence + 2);
    let missing = world.store.recover(&"s2".into()).await;
    assert!(matches!(missing, Ok(_) | Err(StoreError::NotFound(_))));
}

/// A holder that is alive keeps its journal and its lane, also when its time has run out.
// proves: S5, UP-27
async fn recovery_leaves_a_live_holder_alone(world: &World) {
    let lane = opened(world).await;
    let running = events("s1", 1, "Hello")[..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 1), running);
    world.pass(60);
    world.store.recover(&"s1".into()).await.unwrap();
    assert_eq!(world.store.loops(&"s1".into(), 0).await, Ok(Vec::new()));
    let record = record("s1", 1, "Hello").into();
    let committed = world.store.commit(commit(&lane, 0, &record)).await;
    assert_eq!(committed, Ok(1));
}

/// LOOP-10: the next number is greater than any, whatever is missing between and wherever it stands.
// proves: LOOP-10, LOOP-12
pub(crate) async fn last_number_is_no_count(world: &World) {
    let lane = opened(world).await;
    let stored = [7, 3].map(|number| Arc::new(record("s1", number, "Hello")));
    for (head, record) in (0..).zip(&stored) {
        world
            .store
            .commit(commit(&lane, head, record))
            .await
            .unwrap();
    }
    let last = || async {
        let opened = world.store.claim(&"s1".into(), &owner("a")).await;
        let opened = opened.unwrap();
        (opened.lane, opened.last_number)
    };
    let (lane, number) = last().await;
    assert_eq!(number, 7);
    // Stored after the numbers were read.
    let ninth = record("s1", 9, "Hello").into();
    world.store.commit(commit(&lane, 2, &ninth)).await.unwrap();
    let (lane, number) = last().await;
    assert_eq!(number, 9);
    // Journalled, with a beginning or without.
    let twelfth = events("s1", 12, "Hello")[..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 12), twelfth);
    let middle = events("s1", 15, "Hello")[1..4].to_vec();
    world.store.append(&lane, &loop_id("s1", 15), middle);
    assert_eq!(last().await.1, 15);
    // Nothing is left of the last one, and its number is not used again.
    let (lane, number) = last().await;
    assert_eq!(number, 15);
    // Shown, and refused.
    let shown = record("s1", 20, "Hello").into();
    let refused = world.store.commit(commit(&lane, 77, &shown)).await;
    assert!(matches!(refused, Err(StoreError::HeadConflict { .. })));
    assert_eq!(last().await.1, 20);
}

/// A session that was deleted and made again under its id has numbers of its own.
async fn last_number_of_a_new_session_is_its_own(world: &World) {
    for numbers in [[1, 2, 3].as_slice(), &[1], &[4, 5, 6, 7]] {
        let lane = opened(world).await;
        for (head, number) in (0..).zip(numbers) {
            let record = record("s1", *number, "Hello").into();
            world
                .store
                .commit(commit(&lane, head, &record))
                .await
                .unwrap();
        }
        let again = world.store.claim(&"s1".into(), &owner("a")).await.unwrap();
        assert_eq!(
            Some(again.last_number),
            numbers.last().map(|it| u64::from(*it))
        );
        world.store.release(&again.lane).await.unwrap();
        world.store.delete(&"s1".into()).await.unwrap();
    }
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
    assert_eq!(after_the_crash(world).await[0].events[..4], running);
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
    assert_eq!(loops[0].messages[0].message.text(), "Second");
    let questions = loops[0]
        .messages
        .iter()
        .filter(|it| matches!(it.message, Message::User { .. }));
    assert_eq!(questions.count(), 1);
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
