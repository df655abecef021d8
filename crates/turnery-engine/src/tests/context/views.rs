//! Tests of the view: frames, blocks that are laid, and what is forgotten.

use super::{exchange, record, within};
use crate::{
    CompactionBlock, CompactionSettings, ContextSize, ContinuationKind, Kept, LlmMessage,
    LoopRecord, Timestamp,
    compaction::plan,
    context::View,
    tests::compaction::talk::{Talk, long, words},
};
use std::sync::Arc;

fn summary(id: &str) -> Arc<LlmMessage> {
    let mut message = Arc::unwrap_or_clone(Arc::clone(&Talk::of(id).user("summary").messages[0]));
    message.turn_id = None;
    Arc::new(message)
}

fn block(first: &[&str], recent: &[&str], through: &str) -> CompactionBlock {
    CompactionBlock {
        keep_first: first.iter().map(|id| (*id).into()).collect(),
        keep_compacted: vec![summary("sum")],
        keep_recent: recent
            .iter()
            .map(|id| Kept {
                message_id: (*id).into(),
                shortened: None,
            })
            .collect(),
        through: through.into(),
        created_at: Timestamp::UNIX_EPOCH,
    }
}

/// Four exchanges; the third calls a tool.
fn loops(block_of_third: Option<CompactionBlock>) -> Vec<Arc<LoopRecord>> {
    let third = Talk::of("3").user("three").answer("call", &["result"]);
    vec![
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "second"),
        Arc::new(LoopRecord {
            compaction_block: block_of_third,
            ..record("3", Some("2"), third)
        }),
        exchange("4", Some("3"), "four", "fourth"),
    ]
}

// proves: LOOP-46, LOOP-47, UP-11
#[test]
fn a_block_stands_for_all_up_to_its_end() {
    let block = block(&["1.m0"], &["2.m1"], "2.m1");
    let view = View::of(&loops(Some(block)));
    let expected = [
        "one", "summary", "second", "three", "call", "result", "four", "fourth",
    ];
    assert_eq!(words(view.messages()), expected);
    assert_eq!(view.size().messages, 8);
}

// proves: LOOP-48, UP-14
#[test]
fn the_messages_under_a_block_are_still_there() {
    let block = block(&["1.m0"], &["2.m1"], "2.m1");
    let with = loops(Some(block));
    let without = loops(None);
    for (with, without) in with.iter().zip(&without) {
        assert_eq!(with.messages, without.messages);
    }
    let mut removed = with;
    Arc::make_mut(&mut removed[2]).compaction_block = None;
    let all = [
        "one", "first", "two", "second", "three", "call", "result", "four", "fourth",
    ];
    assert_eq!(words(View::of(&removed).messages()), all);
}

// proves: LOOP-47, C-14
#[test]
fn the_newest_block_stands_alone() {
    let mut loops = loops(Some(block(&["1.m0"], &["2.m1"], "2.m1")));
    let newer = CompactionBlock {
        keep_compacted: vec![summary("new")],
        ..block(&["1.m0"], &["3.m1", "3.m2"], "4.m0")
    };
    Arc::make_mut(&mut loops[3]).compaction_block = Some(newer);
    let view = View::of(&loops);
    let ids: Vec<&str> = view
        .messages()
        .iter()
        .map(|m| m.message_id.as_str())
        .collect();
    assert_eq!(ids, ["1.m0", "new.m0", "3.m1", "3.m2", "4.m1"]);
}

/// A block that does not fit is as if it were not there: nothing is lost, no call is parted from its results.
// proves: UP-11, D-16
#[test]
fn a_block_that_does_not_fit_changes_nothing() {
    let no_summary = CompactionBlock {
        keep_compacted: Vec::new(),
        ..block(&["1.m0"], &["2.m1"], "2.m1")
    };
    let bad = [
        block(&["1.m0"], &["2.m1"], "9.m1"),
        block(&["9.m0"], &["2.m1"], "2.m1"),
        block(&["1.m0"], &["9.m1"], "2.m1"),
        block(&["1.m0"], &["4.m0"], "2.m1"),
        // Between a call and its result.
        block(&["1.m0"], &["3.m0"], "3.m1"),
        block(&["1.m0"], &["3.m2"], "3.m2"),
        block(&["3.m1"], &["3.m2"], "3.m2"),
        no_summary,
    ];
    let all = View::of(&loops(None));
    for bad in bad {
        let mut live = all.clone();
        assert!(!live.lay(&bad), "{bad:?}");
        assert_eq!(live.messages(), all.messages());
        assert_eq!(live.block(), None);
        let view = View::of(&loops(Some(bad)));
        assert_eq!(view.messages(), all.messages());
        assert_eq!(view.block(), None);
    }
}

// proves: LASH-12, C-14
#[test]
fn a_frame_begins_with_its_task_and_sees_nothing_before_it() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "switches"),
        within("f1", exchange("3", Some("2"), "tidy", "tidying")),
        within("f1", exchange("4", Some("3"), "four", "fourth")),
        within("f2", exchange("5", Some("4"), "sweep", "sweeping")),
    ];
    let seen = |count: usize| words(View::of(&loops[..count]).messages());
    assert_eq!(seen(5), ["sweep", "sweeping"]);
    assert_eq!(seen(4), ["tidy", "tidying", "four", "fourth"]);
    assert_eq!(seen(3), ["tidy", "tidying"]);
    // The frame is not there before its first loop; a branch from here is in the frame that was then.
    assert_eq!(seen(2), ["one", "first", "two", "switches"]);
}

/// The same overlay inside a frame; a block of the frame before is of no use in it.
// proves: C-14
#[test]
fn blocks_hold_within_their_frame() {
    let mut two = Arc::unwrap_or_clone(exchange("2", Some("1"), "two", "switches"));
    two.compaction_block = Some(block(&[], &["1.m1"], "1.m1"));
    let mut four = Arc::unwrap_or_clone(exchange("4", Some("3"), "four", "fourth"));
    four.compaction_block = Some(block(&["3.m0"], &["4.m0"], "4.m0"));
    let loops = [
        exchange("1", None, "one", "first"),
        Arc::new(two),
        within("f1", exchange("3", Some("2"), "tidy", "tidying")),
        within("f1", Arc::new(four)),
    ];
    let seen = |count: usize| words(View::of(&loops[..count]).messages());
    assert_eq!(seen(2), ["summary", "first", "two", "switches"]);
    assert_eq!(seen(3), ["tidy", "tidying"]);
    assert_eq!(seen(4), ["tidy", "summary", "four", "fourth"]);
}

/// A standalone compaction is a loop without turns that has a block.
// proves: UP-13, LOOP-21
#[test]
fn a_loop_that_only_compacts_lays_its_block() {
    let mut loops = loops(None);
    loops.push(Arc::new(LoopRecord {
        continuation_kind: ContinuationKind::Compaction,
        compaction_block: Some(block(&["1.m0"], &["4.m0", "4.m1"], "4.m1")),
        ..record("5", Some("4"), Talk::of("5"))
    }));
    let seen = words(View::of(&loops).messages());
    assert_eq!(seen, ["one", "summary", "four", "fourth"]);
}

/// What a lost or refused loop compacted is as it was.
// proves: UP-35, LASH-35
#[test]
fn a_block_is_taken_off_again_with_its_loop() {
    let mut view = View::default();
    let mut talk = Talk::of("1").user("prompt");
    for _ in 0..14 {
        talk = talk.answer("a", &[&long("r", 100)]);
    }
    talk.messages.into_iter().for_each(|m| view.push(m));
    view.mark();
    let before = (Arc::clone(view.messages()), view.size());
    for message in Talk::of("2").user("more").messages {
        view.push(message);
    }
    for summary in ["once", "twice"] {
        let settings = CompactionSettings {
            recent_turns: if summary == "once" { 4 } else { 2 },
            ..CompactionSettings::default()
        };
        let plan = plan(view.messages(), view.block(), &settings).unwrap();
        let (block, _) = plan.block(summary, Timestamp::UNIX_EPOCH);
        assert!(view.lay(&block));
    }
    assert!(view.size().tokens < before.1.tokens);
    view.rewind();
    assert_eq!((Arc::clone(view.messages()), view.size()), before);
    assert_eq!(view.block(), None);
    view.push(summary("next"));
    assert_eq!(view.size().messages, before.1.messages + 1);
}

#[test]
fn an_empty_session_shows_nothing() {
    let view = View::of(&[]);
    assert!(view.messages().is_empty());
    assert_eq!(view.size(), ContextSize::default());
}
