//! Tests of `ContextView`: frames, blocks and rewinding.

use super::{exchange, in_frame, record};
use crate::{
    CompactionBlock, CompactionSettings, ContextSize, ContinuationKind, LlmMessage, LoopRecord,
    Message, RetainedMessage, Timestamp, Usage,
    compaction::plan_compaction,
    context::ContextView,
    tests::compaction::conversation::{ConversationBuilder, first_words, long_text},
};
use std::sync::Arc;

fn summary(id: &str) -> Arc<LlmMessage> {
    let mut message = Arc::unwrap_or_clone(Arc::clone(
        &ConversationBuilder::new(id).user("summary").messages[0],
    ));
    message.turn_id = None;
    Arc::new(message)
}

fn block(first: &[&str], recent: &[&str], through: &str) -> CompactionBlock {
    CompactionBlock {
        keep_first: first.iter().map(|id| (*id).into()).collect(),
        keep_compacted: vec![summary("sum")],
        keep_recent: recent
            .iter()
            .map(|id| RetainedMessage {
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
    let third = ConversationBuilder::new("3")
        .user("three")
        .answer("call", &["result"]);
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
fn block_replaces_messages_through_its_end() {
    let block = block(&["1.m0"], &["2.m1"], "2.m1");
    let view = ContextView::from_chain(&loops(Some(block)));
    let expected = [
        "one", "summary", "second", "three", "call", "result", "four", "fourth",
    ];
    assert_eq!(first_words(view.messages()), expected);
    assert_eq!(view.size().messages, 8);
}

// proves: LOOP-48, UP-14
#[test]
fn original_messages_remain_without_block() {
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
    assert_eq!(
        first_words(ContextView::from_chain(&removed).messages()),
        all
    );
}

// proves: LOOP-47, C-14
#[test]
fn newest_block_wins() {
    let mut loops = loops(Some(block(&["1.m0"], &["2.m1"], "2.m1")));
    let newer = CompactionBlock {
        keep_compacted: vec![summary("new")],
        ..block(&["1.m0"], &["3.m1", "3.m2"], "4.m0")
    };
    Arc::make_mut(&mut loops[3]).compaction_block = Some(newer);
    let view = ContextView::from_chain(&loops);
    let ids: Vec<&str> = view
        .messages()
        .iter()
        .map(|m| m.message_id.as_str())
        .collect();
    assert_eq!(ids, ["1.m0", "new.m0", "3.m1", "3.m2", "4.m1"]);
}

/// An invalid block is ignored: nothing is lost, and no call is separated from its results.
// proves: UP-11, D-16
#[test]
fn block_that_does_not_fit_is_ignored() {
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
    let all = ContextView::from_chain(&loops(None));
    for bad in bad {
        let mut live = all.clone();
        assert!(!live.apply_block(&bad), "{bad:?}");
        assert_eq!(live.messages(), all.messages());
        assert_eq!(live.block(), None);
        let view = ContextView::from_chain(&loops(Some(bad)));
        assert_eq!(view.messages(), all.messages());
        assert_eq!(view.block(), None);
    }
}

// proves: LASH-12, C-14
#[test]
fn frame_starts_with_task_only() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "switches"),
        in_frame("f1", exchange("3", Some("2"), "tidy", "tidying")),
        in_frame("f1", exchange("4", Some("3"), "four", "fourth")),
        in_frame("f2", exchange("5", Some("4"), "sweep", "sweeping")),
    ];
    let seen = |count: usize| first_words(ContextView::from_chain(&loops[..count]).messages());
    assert_eq!(seen(5), ["sweep", "sweeping"]);
    assert_eq!(seen(4), ["tidy", "tidying", "four", "fourth"]);
    assert_eq!(seen(3), ["tidy", "tidying"]);
    // The frame does not exist before its first loop; a branch from here stays in the previous frame.
    assert_eq!(seen(2), ["one", "first", "two", "switches"]);
}

/// Blocks apply inside a frame; a block of the previous frame has no effect in it.
// proves: C-14
#[test]
fn blocks_apply_within_their_frame() {
    let mut two = Arc::unwrap_or_clone(exchange("2", Some("1"), "two", "switches"));
    two.compaction_block = Some(block(&[], &["1.m1"], "1.m1"));
    let mut four = Arc::unwrap_or_clone(exchange("4", Some("3"), "four", "fourth"));
    four.compaction_block = Some(block(&["3.m0"], &["4.m0"], "4.m0"));
    let loops = [
        exchange("1", None, "one", "first"),
        Arc::new(two),
        in_frame("f1", exchange("3", Some("2"), "tidy", "tidying")),
        in_frame("f1", Arc::new(four)),
    ];
    let seen = |count: usize| first_words(ContextView::from_chain(&loops[..count]).messages());
    assert_eq!(seen(2), ["summary", "first", "two", "switches"]);
    assert_eq!(seen(3), ["tidy", "tidying"]);
    assert_eq!(seen(4), ["tidy", "summary", "four", "fourth"]);
}

/// A standalone compaction is a loop without turns that has a block.
// proves: UP-13, LOOP-21
#[test]
fn standalone_compaction_applies_block() {
    let mut loops = loops(None);
    loops.push(Arc::new(LoopRecord {
        continuation_kind: ContinuationKind::Compaction,
        compaction_block: Some(block(&["1.m0"], &["4.m0", "4.m1"], "4.m1")),
        ..record("5", Some("4"), ConversationBuilder::new("5"))
    }));
    let seen = first_words(ContextView::from_chain(&loops).messages());
    assert_eq!(seen, ["one", "summary", "four", "fourth"]);
}

/// A rewind undoes the compaction of a lost or rejected loop.
// proves: UP-35, LASH-35
#[test]
fn rewind_removes_block() {
    let mut view = ContextView::default();
    let mut talk = ConversationBuilder::new("1").user("prompt");
    for _ in 0..14 {
        talk = talk.answer("a", &[&long_text("r", 100)]);
    }
    talk.messages.into_iter().for_each(|m| view.push(m));
    view.set_rewind_point();
    let before = (Arc::clone(view.messages()), view.size());
    for message in ConversationBuilder::new("2").user("more").messages {
        view.push(message);
    }
    for summary in ["once", "twice"] {
        let settings = CompactionSettings {
            recent_turns: if summary == "once" { 4 } else { 2 },
            ..CompactionSettings::default()
        };
        let plan = plan_compaction(view.messages(), view.block(), &settings).unwrap();
        let (block, _) = plan.into_block(summary, Timestamp::UNIX_EPOCH);
        assert!(view.apply_block(&block));
    }
    assert!(view.size().tokens < before.1.tokens);
    view.rewind();
    assert_eq!((Arc::clone(view.messages()), view.size()), before);
    assert_eq!(view.block(), None);
    view.push(summary("next"));
    assert_eq!(view.size().messages, before.1.messages + 1);
}

/// Returns a response for which the provider counted so many tokens, its request included.
fn counted_response(id: &str, tokens: u64) -> Arc<LlmMessage> {
    let answer = ConversationBuilder::new(id).answer("yes", &[]);
    let mut message = Arc::unwrap_or_clone(Arc::clone(&answer.messages[0]));
    if let Message::Assistant { usage, .. } = &mut message.message {
        *usage = Some(Usage {
            input: tokens,
            ..Usage::default()
        });
    }
    Arc::new(message)
}

/// The estimate counts four bytes a token and four tokens a message; the overhead of 50 is part of the count.
// proves: UP-10
#[test]
fn usage_of_last_response_replaces_estimate() {
    let mut view = ContextView::default();
    view.push(summary("1.m0"));
    assert_eq!(view.request_size(50).tokens, 50 + 2 + 4);
    view.push(counted_response("2", 900));
    assert_eq!(view.request_size(50).tokens, 900);
    view.push(counted_response("3", 0));
    view.push(summary("4.m0"));
    assert_eq!(view.request_size(50).tokens, 900 + (1 + 4) + (2 + 4));
    view.set_rewind_point();
    view.push(counted_response("5", 2_000));
    assert_eq!(view.request_size(50).tokens, 2_000);
    view.rewind();
    assert_eq!(view.request_size(50).tokens, 911);
}

/// A count from before a summary is worthless after it, live and loaded; one from after it is not.
// proves: UP-10
#[test]
fn block_removes_usage_of_kept_responses() {
    let messages = [summary("1.m0"), counted_response("2", 900)];
    let mut view = ContextView::default();
    messages.iter().for_each(|it| view.push(Arc::clone(it)));
    let block = block(&[], &["2.m0"], "2.m0");
    assert!(view.apply_block(&block));
    assert_eq!(view.request_size(50).tokens, 50 + (2 + 4) + (1 + 4));
    view.push(counted_response("3", 70));
    let mut loaded = ContextView::default();
    messages.into_iter().for_each(|it| loaded.push(it));
    loaded.push(counted_response("3", 70));
    assert!(loaded.apply_block(&block));
    for view in [view, loaded] {
        assert_eq!(view.request_size(50).tokens, 70);
    }
}

#[test]
fn empty_session_has_empty_view() {
    let view = ContextView::from_chain(&[]);
    assert!(view.messages().is_empty());
    assert_eq!(view.size(), ContextSize::default());
}
