//! Tests the effects of a commit, and when it is refused (S1 to S3, S5, S8).

use crate::{World, battery, effects::effect, samples::*};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};
use turnery_engine::{
    CandidateCheck, ChildLoopRef, ChildUsage, CommandJudgement, CompactionBlock, ContinuationKind,
    EventKind, FailedAttempt, Frame, LoopRecord, LoopStatus, ModelError, ModelErrorKind,
    ParallelGroup, RetainedMessage, ToolState,
};
use turnery_store::{Commit, Lane, NextEffect, StoreError, TakenEffect};

battery!(
    commit_advances_the_session,
    stored_loops_are_read_back_unchanged,
    one_commit_holds_all_of_its_loops,
    retried_commit_returns_the_same_version,
    same_loop_id_with_other_content_is_refused,
    stale_head_changes_nothing,
    lost_lane_changes_nothing,
    loop_off_the_chain_keeps_the_tip,
    first_title_is_kept,
    commit_can_release_the_lane,
    a_committed_loop_leaves_no_journal,
    loops_after_a_version_are_returned,
    the_history_is_the_chain_without_events,
    a_group_commits_once,
    retried_group_returns_the_same_version,
    partly_stored_group_is_refused,
    loop_of_another_session_is_refused,
);

pub(crate) async fn claim_new_session(world: &World) -> Lane {
    world.store.create(new_session("s1")).await.expect("made");
    let opened = world.claim("a").await;
    opened.expect("claimed").lane
}

pub(crate) fn sample_record(number: u32) -> Arc<LoopRecord> {
    Arc::new(record("s1", number, "How is it?"))
}

/// S3.
// proves: S3, UP-28
async fn commit_advances_the_session(world: &World) {
    let lane = claim_new_session(world).await;
    let commits = [(0, sample_record(1)), (1, sample_record(2))];
    for (head, record) in &commits {
        let version = world.commit(&lane, *head, record).await;
        assert_eq!(version, Ok(head + 1));
    }
    let info = world.info().await.unwrap();
    assert_eq!(info.head_version, 2);
    assert_eq!(info.tip_loop_id, Some(loop_id("s1", 2)));
    assert_eq!(info.updated_at, at(208));
    let again = world.claim("a").await.unwrap();
    assert_eq!(again.last_number, 2);
    assert_eq!(again.info, info);
}

// proves: LOOP-2
async fn stored_loops_are_read_back_unchanged(world: &World) {
    let lane = claim_new_session(world).await;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    world.commit(&lane, 1, &sample_record(2)).await.unwrap();
    let loops = world.loops().await.unwrap();
    assert_eq!(loops, [sample_record(1), sample_record(2)]);
}

/// Record in which no field is empty: one of the loops 2 and 3, which ran after loop 1.
fn full_record(number: u32) -> Arc<LoopRecord> {
    let ids = vec![loop_id("s1", 2), loop_id("s1", 3)];
    let is_selected = number == 3;
    let sample = record("s1", number, "How is it?");
    Arc::new(LoopRecord {
        loop_id: sample.loop_id,
        session_id: sample.session_id,
        agent_id: sample.agent_id,
        prompt_id: sample.prompt_id,
        status: LoopStatus::Rejected,
        outcome: sample.outcome,
        copied_from: Some(loop_id("s2", 3)),
        continuation_kind: ContinuationKind::Branch,
        parent_loop_id: Some(loop_id("s1", 1)),
        started_at: sample.started_at,
        ended_at: sample.ended_at,
        rejection: Some("not here".to_owned()),
        config: sample.config,
        tag: Some("2026-11-21T05:00:00Z".to_owned()),
        metadata: Some(json!({"request": 7, "trace": null})),
        frame_id: Some("f1".into()),
        frame: Some(Frame {
            frame_id: "f1".into(),
            parent_frame_id: Some("f0".into()),
            opened_by: loop_id("s1", 9),
            task: "look".to_owned(),
        }),
        usage: sample.usage,
        children_usage: vec![ChildUsage {
            session_id: "s2".into(),
            source: "subagent".to_owned(),
            model: "offline/echo".to_owned(),
            iteration: 1,
            usage: Some(usage(1, 2)),
            cumulative: usage(4, 5),
        }],
        child_loop_refs: vec![ChildLoopRef {
            tool_call_id: "c".into(),
            tool_name: "task".to_owned(),
            child_session_id: "s2".into(),
            child_loop_id: loop_id("s2", 1),
        }],
        tool_states: BTreeMap::from([(
            "run_code".to_owned(),
            ToolState {
                call_id: "c".into(),
                state: "state".into(),
            },
        )]),
        parallel_group: Some(ParallelGroup {
            all_loop_ids: ids.clone(),
            selected_loop_id: ids[1].clone(),
            selected_config_index: 1,
            evaluation_usage: usage(3, 4),
            judge: Some("offline/echo".to_owned()),
            command: Some(Box::new(CommandJudgement {
                command: "cargo test".to_owned(),
                results: vec![CandidateCheck {
                    loop_id: ids[1].clone(),
                    exit_code: Some(0),
                    output: "ok".to_owned(),
                }],
            })),
            is_selected,
        }),
        compaction_block: Some(CompactionBlock {
            keep_first: vec!["s1.cfg.1.ask".into()],
            keep_compacted: vec![message(&ids[0], "m0", user("summary"))],
            keep_recent: vec![RetainedMessage {
                message_id: "s1.cfg.1.answer".into(),
                shortened: Some(message(&ids[0], "answer", assistant("All is"))),
            }],
            through: "m1".into(),
            created_at: at(3),
        }),
        compaction_usage: Some(usage(5, 6)),
        attempts: vec![FailedAttempt {
            turn_index: 0,
            attempt: 1,
            error: ModelError::new(ModelErrorKind::Network, "it broke"),
        }],
        issues: vec!["a hook failed".to_owned()],
        turns: sample.turns,
        messages: sample.messages,
        events: sample.events,
        on_chain: is_selected,
    })
}

/// Records with everything that a loop may hold, an effect, the title and the release of the lane are one commit.
// proves: UP-28, LOOP-28
async fn one_commit_holds_all_of_its_loops(world: &World) {
    let lane = claim_new_session(world).await;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    let records = vec![full_record(2), full_record(3)];
    let commit = Commit {
        lane: lane.clone(),
        expected_head: 1,
        records: records.clone(),
        tip: 1,
        title: Some("Weather".to_owned()),
        release: true,
        effects: vec![effect("s1", 0)],
    };
    assert_eq!(world.store.commit(commit).await, Ok(2));
    let stored = world.store.loops(&"s1".into(), 1).await;
    assert_eq!(stored, Ok(records));
    let taken = world.store.take_effect(&"s1".into(), &owner("b")).await;
    let expected = NextEffect::Taken(TakenEffect {
        pending: effect("s1", 0),
        attempt: 1,
    });
    assert_eq!(taken, Ok(expected));
    let info = world.info().await.unwrap();
    assert_eq!(
        (info.head_version, info.tip_loop_id),
        (2, Some(loop_id("s1", 3)))
    );
    assert_eq!(info.title.as_deref(), Some("Weather"));
    assert_eq!(
        world.store.renew(&lane).await,
        Err(StoreError::LaneLost("s1".into()))
    );
}

/// S2, even if the first attempt released the lane.
// proves: S2, UP-28
pub(crate) async fn retried_commit_returns_the_same_version(world: &World) {
    let lane = claim_new_session(world).await;
    let giving = Commit {
        release: true,
        ..commit_of(&lane, 0, &sample_record(1))
    };
    assert_eq!(world.store.commit(giving.clone()).await, Ok(1));
    assert_eq!(world.store.commit(giving).await, Ok(1));
    assert_eq!(world.loops().await.unwrap().len(), 1);
}

/// S2.
// proves: S2, UP-28
async fn same_loop_id_with_other_content_is_refused(world: &World) {
    let lane = claim_new_session(world).await;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    let other = Arc::new(record("s1", 1, "How was it?"));
    assert_eq!(
        world.commit(&lane, 1, &other).await,
        Err(StoreError::CommitMismatch(loop_id("s1", 1)))
    );
    assert_eq!(world.loops().await, Ok(vec![sample_record(1)]));
}

/// S1, S8: the loser's journal is dropped (C-12).
// proves: LASH-34, LASH-35, S1, S8, C-12, UP-28
pub(crate) async fn stale_head_changes_nothing(world: &World) {
    let lane = claim_new_session(world).await;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    let before = world.info().await.unwrap();
    let loser = sample_record(2);
    world
        .store
        .append(&lane, &loser.loop_id, loser.events.clone());
    let refused = StoreError::HeadConflict {
        expected: 0,
        actual: 1,
    };
    assert_eq!(world.commit(&lane, 0, &loser).await, Err(refused));
    let opened = world.claim("a").await.unwrap();
    assert_eq!(opened.info, before);
    assert_eq!(world.loops().await, Ok(vec![sample_record(1)]));
}

/// S1, S8: the fence decides, not the id of the holder.
// proves: LASH-35, S1, S8
pub(crate) async fn lost_lane_changes_nothing(world: &World) {
    let old = claim_new_session(world).await;
    let new = world.claim("a").await.unwrap();
    let lost = Err(StoreError::LaneLost("s1".into()));
    assert_eq!(world.commit(&old, 0, &sample_record(1)).await, lost);
    assert_eq!(world.loops().await, Ok(Vec::new()));
    let committed = world.commit(&new.lane, 0, &sample_record(1)).await;
    assert_eq!(committed, Ok(1));
    // A loser is not told about a mismatch of another owner's loop.
    let other = Arc::new(record("s1", 1, "How was it?"));
    assert_eq!(world.commit(&old, 1, &other).await, lost);
}

pub(crate) async fn loop_off_the_chain_keeps_the_tip(world: &World) {
    let lane = claim_new_session(world).await;
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    let refused = Arc::new(LoopRecord {
        status: LoopStatus::Rejected,
        on_chain: false,
        rejection: Some("no".into()),
        ..record("s1", 2, "?")
    });
    world.commit(&lane, 1, &refused).await.unwrap();
    let info = world.info().await.unwrap();
    assert_eq!(info.head_version, 2);
    assert_eq!(info.tip_loop_id, Some(loop_id("s1", 1)));
    assert_eq!(world.loops().await, Ok(vec![sample_record(1), refused]));
}

pub(crate) async fn first_title_is_kept(world: &World) {
    let lane = claim_new_session(world).await;
    for (head, title) in [(0, "First"), (1, "Second")] {
        let titled = Commit {
            title: Some(title.into()),
            ..commit_of(
                &lane,
                head,
                &sample_record(1 + u32::try_from(head).unwrap()),
            )
        };
        world.store.commit(titled).await.unwrap();
    }
    let info = world.info().await.unwrap();
    assert_eq!(info.title.as_deref(), Some("First"));
}

// proves: UP-28
async fn commit_can_release_the_lane(world: &World) {
    let lane = claim_new_session(world).await;
    let giving = Commit {
        release: true,
        ..commit_of(&lane, 0, &sample_record(1))
    };
    world.store.commit(giving).await.unwrap();
    let lost = Err(StoreError::LaneLost("s1".into()));
    assert_eq!(world.store.renew(&lane).await, lost);
    let next = world.claim("b").await.unwrap();
    assert_eq!(next.lane.fence, lane.fence + 1);
}

/// Events that arrive after the commit of their loop are dropped too.
// proves: UP-28
pub(crate) async fn a_committed_loop_leaves_no_journal(world: &World) {
    let lane = claim_new_session(world).await;
    let (before, after) = (events("s1", 1, "How is it?"), events("s1", 1, "Late"));
    world.store.append(&lane, &loop_id("s1", 1), before);
    world.store.renew(&lane).await.unwrap();
    world.commit(&lane, 0, &sample_record(1)).await.unwrap();
    world.store.append(&lane, &loop_id("s1", 1), after);
    let next = world.claim("a").await.unwrap();
    assert_eq!(next.info.head_version, 1);
    assert_eq!(world.loops().await, Ok(vec![sample_record(1)]));
}

async fn loops_after_a_version_are_returned(world: &World) {
    let lane = claim_new_session(world).await;
    for (head, number) in [(0, 1), (1, 2), (2, 3)] {
        let committed = world.commit(&lane, head, &sample_record(number));
        committed.await.unwrap();
    }
    let id = "s1".into();
    assert_eq!(world.store.loops(&id, 2).await, Ok(vec![sample_record(3)]));
    assert_eq!(world.store.loops(&id, 3).await, Ok(Vec::new()));
    assert_eq!(world.store.loops(&id, u64::MAX).await, Ok(Vec::new()));
    let all = world.store.loops(&id, 0).await.unwrap();
    let ends = |record: &Arc<LoopRecord>| {
        let last = record.events.last();
        last.is_some_and(|event| matches!(event.kind, EventKind::LoopEnd { .. }))
    };
    assert!(all.iter().all(ends));
}

/// UP-12: the history excludes a branch that was not chosen, a loop off the chain, and a loop that the tip
/// does not descend from.
// proves: UP-12
pub(crate) async fn the_history_is_the_chain_without_events(world: &World) {
    let lane = claim_new_session(world).await;
    let child = |number, parent: u32| LoopRecord {
        parent_loop_id: Some(loop_id("s1", parent)),
        ..record("s1", number, "How is it?")
    };
    let refused = LoopRecord {
        status: LoopStatus::Rejected,
        on_chain: false,
        ..child(2, 1)
    };
    // The fourth continues from the first, the fifth from the refused one.
    for (head, record) in [
        (0, record("s1", 1, "How is it?")),
        (1, refused),
        (2, child(3, 1)),
        (3, child(4, 1)),
        (4, child(5, 2)),
    ] {
        let done = world.commit(&lane, head, &Arc::new(record));
        done.await.unwrap();
        let history = world.store.history(&"s1".into()).await.unwrap();
        assert_eq!(history.has_all_loops, head == 0);
        let tip = history.loops.last().map(|record| record.loop_id.clone());
        let info = world.info().await.unwrap();
        assert_eq!(tip, info.tip_loop_id);
    }
    let history = world.store.history(&"s1".into()).await.unwrap().loops;
    let bare = |record: LoopRecord| LoopRecord {
        events: Vec::new(),
        ..record
    };
    let expected = [
        bare(LoopRecord::clone(&sample_record(1))),
        bare(child(5, 2)),
    ];
    let history: Vec<_> = history.into_iter().map(Arc::unwrap_or_clone).collect();
    assert_eq!(history, expected);
}

/// Three branches, of which the second is chosen; the group's first loop starts before the others.
fn group(lane: &Lane, head: u64) -> Commit {
    Commit {
        records: (2..=4)
            .map(|number| {
                Arc::new(LoopRecord {
                    parent_loop_id: Some(loop_id("s1", 1)),
                    ..record("s1", number, "Which way?")
                })
            })
            .collect(),
        tip: 1,
        ..commit_of(lane, head, &sample_record(1))
    }
}

/// S3, S6.
// proves: S3, S6
pub(crate) async fn a_group_commits_once(world: &World) {
    let lane = claim_new_session(world).await;
    let first = commit_of(&lane, 0, &sample_record(1));
    world.store.commit(first).await.unwrap();
    for record in &group(&lane, 1).records {
        let half = record.events[..4].to_vec();
        world.store.append(&lane, &record.loop_id, half);
    }
    assert_eq!(world.store.commit(group(&lane, 1)).await, Ok(2));
    let again = world.claim("a").await.unwrap();
    assert_eq!((again.info.head_version, again.last_number), (2, 4));
    assert_eq!(again.info.tip_loop_id, Some(loop_id("s1", 3)));
    assert_eq!(again.info.updated_at, at(408));
    let loops = world.store.loops(&"s1".into(), 1).await.unwrap();
    assert_eq!(loops, group(&lane, 1).records);
    assert_eq!(world.store.loops(&"s1".into(), 2).await, Ok(Vec::new()));
    let history = world.store.history(&"s1".into()).await.unwrap().loops;
    let ids: Vec<_> = history.iter().map(|record| &record.loop_id).collect();
    assert_eq!(ids, [&loop_id("s1", 1), &loop_id("s1", 3)]);
}

/// S2, S6.
// proves: S2, S6
pub(crate) async fn retried_group_returns_the_same_version(world: &World) {
    let lane = claim_new_session(world).await;
    assert_eq!(world.store.commit(group(&lane, 0)).await, Ok(1));
    assert_eq!(world.store.commit(group(&lane, 0)).await, Ok(1));
    let loops = world.loops().await.unwrap();
    assert_eq!(loops.len(), 3);
}

/// S2, S6: all or nothing.
// proves: S2, S6
pub(crate) async fn partly_stored_group_is_refused(world: &World) {
    let lane = claim_new_session(world).await;
    let known = Commit {
        records: group(&lane, 0).records[2..].to_vec(),
        tip: 0,
        ..group(&lane, 0)
    };
    assert_eq!(world.store.commit(known).await, Ok(1));
    let mixed = Err(StoreError::CommitMismatch(loop_id("s1", 4)));
    assert_eq!(world.store.commit(group(&lane, 1)).await, mixed);
    let loops = world.loops().await.unwrap();
    assert_eq!(loops.len(), 1);
}

async fn loop_of_another_session_is_refused(world: &World) {
    let lane = claim_new_session(world).await;
    let stray = Commit {
        records: vec![sample_record(1), Arc::new(record("s2", 1, "Whose?"))],
        ..commit_of(&lane, 0, &sample_record(1))
    };
    let refused = world.store.commit(stray).await;
    assert!(matches!(refused, Err(StoreError::Broken(_))), "{refused:?}");
    let empty = Commit {
        records: Vec::new(),
        ..commit_of(&lane, 0, &sample_record(1))
    };
    let refused = world.store.commit(empty).await;
    assert!(matches!(refused, Err(StoreError::Broken(_))), "{refused:?}");
    assert_eq!(world.loops().await, Ok(Vec::new()));
}
