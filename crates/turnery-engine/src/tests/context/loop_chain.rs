//! Tests of the chain of loops that leads to the tip.

use super::{exchange, record};
use crate::{
    ContinuationKind, LoopRecord, LoopStatus, Outcome, TurnStop,
    context::{ContextView, loop_chain, previous_loop},
    tests::compaction::conversation::{ConversationBuilder, first_words},
};
use std::sync::Arc;

fn chain_ids(loops: &[Arc<LoopRecord>], tip: &str) -> Vec<String> {
    let chain = loop_chain(loops, Some(&tip.into()));
    first_words(ContextView::from_chain(&chain).messages())
}

// proves: UP-12
#[test]
fn chain_follows_parents_from_tip() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "second"),
        exchange("3", Some("2"), "three", "third"),
    ];
    assert_eq!(
        chain_ids(&loops, "3"),
        ["one", "first", "two", "second", "three", "third"]
    );
    assert_eq!(chain_ids(&loops, "2"), ["one", "first", "two", "second"]);
    assert!(loop_chain(&loops, None).is_empty());
    assert!(loop_chain(&loops, Some(&"9".into())).is_empty());
}

fn rerun_loop(id: &str, which: &str, prompt: &str, answer: &str) -> Arc<LoopRecord> {
    Arc::new(LoopRecord {
        continuation_kind: ContinuationKind::Rerun,
        ..Arc::unwrap_or_clone(exchange(id, Some(which), prompt, answer))
    })
}

// proves: UP-12, LOOP-86, LOOP-87
#[test]
fn other_branches_and_rerun_loops_are_not_in_chain() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "bad"),
        rerun_loop("2b", "2", "two", "worse"),
        rerun_loop("2c", "2b", "two", "better"),
        exchange("branch", Some("1"), "two", "other"),
        exchange("3", Some("2c"), "three", "third"),
        rerun_loop("1b", "1", "one", "anew"),
    ];
    assert_eq!(
        chain_ids(&loops, "3"),
        ["one", "first", "two", "better", "three", "third"]
    );
    assert_eq!(
        chain_ids(&loops, "branch"),
        ["one", "first", "two", "other"]
    );
    assert_eq!(chain_ids(&loops, "1b"), ["one", "anew"]);
    // Also if the loops that were rerun are included.
    let mut parents = loops[..4].to_vec();
    parents.push(Arc::clone(&loops[5]));
    let all = ["one", "first", "two", "better", "three", "third"];
    assert_eq!(
        first_words(ContextView::from_chain(&parents).messages()),
        all
    );
    assert_eq!(previous_loop(&loops, &loops[3]), Some(&"1".into()));
    assert_eq!(previous_loop(&loops, &loops[5]), Some(&"2c".into()));
    assert_eq!(previous_loop(&loops, &loops[6]), None);
}

// proves: UP-35, LOOP-54
#[test]
fn refused_and_aborted_loops_are_not_in_chain() {
    let off_chain = |id: &str, status| {
        let talk = ConversationBuilder::new(id)
            .user("bad")
            .answer("refused", &[]);
        Arc::new(LoopRecord {
            on_chain: false,
            status,
            outcome: Some(Outcome::Stopped(TurnStop::InvalidInput {
                reason: "no".to_owned(),
            })),
            ..record(id, Some("1"), talk)
        })
    };
    let loops = [
        exchange("1", None, "one", "first"),
        off_chain("2", LoopStatus::Rejected),
        off_chain("3", LoopStatus::Aborted),
        exchange("4", Some("3"), "four", "fourth"),
    ];
    assert_eq!(chain_ids(&loops, "3"), ["one", "first"]);
    assert_eq!(chain_ids(&loops, "4"), ["one", "first", "four", "fourth"]);
}

#[test]
fn cyclic_parents_terminate() {
    let one = exchange("1", Some("2"), "one", "first");
    let mut two = Arc::unwrap_or_clone(exchange("2", Some("1"), "two", "second"));
    two.on_chain = false;
    let loops = [one, Arc::new(two)];
    assert_eq!(chain_ids(&loops, "1"), ["one", "first"]);
    let loops = [
        rerun_loop("1", "2", "one", "first"),
        rerun_loop("2", "1", "two", "second"),
    ];
    assert_eq!(loop_chain(&loops, Some(&"1".into())).len(), 2);
}
