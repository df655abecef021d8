//! Tests of the chain: which loops lead to the tip.

use super::{exchange, record};
use crate::{
    ContinuationKind, LoopRecord, LoopStatus, Outcome, TurnStop,
    context::{View, before, chain},
    tests::compaction::talk::{Talk, words},
};
use std::sync::Arc;

fn seen(loops: &[Arc<LoopRecord>], tip: &str) -> Vec<String> {
    let chain = chain(loops, Some(&tip.into()));
    words(View::of(&chain).messages())
}

// proves: UP-12
#[test]
fn the_chain_follows_parents_from_the_tip() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "second"),
        exchange("3", Some("2"), "three", "third"),
    ];
    assert_eq!(
        seen(&loops, "3"),
        ["one", "first", "two", "second", "three", "third"]
    );
    assert_eq!(seen(&loops, "2"), ["one", "first", "two", "second"]);
    assert!(chain(&loops, None).is_empty());
    assert!(chain(&loops, Some(&"9".into())).is_empty());
}

fn again(id: &str, which: &str, prompt: &str, answer: &str) -> Arc<LoopRecord> {
    Arc::new(LoopRecord {
        continuation_kind: ContinuationKind::Rerun,
        ..Arc::unwrap_or_clone(exchange(id, Some(which), prompt, answer))
    })
}

// proves: UP-12, LOOP-86, LOOP-87
#[test]
fn branches_not_chosen_and_loops_that_were_run_again_are_not_seen() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "bad"),
        again("2b", "2", "two", "worse"),
        again("2c", "2b", "two", "better"),
        exchange("branch", Some("1"), "two", "other"),
        exchange("3", Some("2c"), "three", "third"),
        again("1b", "1", "one", "anew"),
    ];
    assert_eq!(
        seen(&loops, "3"),
        ["one", "first", "two", "better", "three", "third"]
    );
    assert_eq!(seen(&loops, "branch"), ["one", "first", "two", "other"]);
    assert_eq!(seen(&loops, "1b"), ["one", "anew"]);
    // Also if they are given together with what they were run instead of.
    let mut parents = loops[..4].to_vec();
    parents.push(Arc::clone(&loops[5]));
    let all = ["one", "first", "two", "better", "three", "third"];
    assert_eq!(words(View::of(&parents).messages()), all);
    assert_eq!(before(&loops, &loops[3]), Some(&"1".into()));
    assert_eq!(before(&loops, &loops[5]), Some(&"2c".into()));
    assert_eq!(before(&loops, &loops[6]), None);
}

// proves: UP-35, LOOP-54
#[test]
fn refused_and_aborted_loops_are_not_seen() {
    let off_chain = |id: &str, status| {
        let talk = Talk::of(id).user("bad").answer("refused", &[]);
        Arc::new(LoopRecord {
            on_chain: false,
            status,
            outcome: Some(Outcome::Stopped(TurnStop::InvalidInput)),
            ..record(id, Some("1"), talk)
        })
    };
    let loops = [
        exchange("1", None, "one", "first"),
        off_chain("2", LoopStatus::Rejected),
        off_chain("3", LoopStatus::Aborted),
        exchange("4", Some("3"), "four", "fourth"),
    ];
    assert_eq!(seen(&loops, "3"), ["one", "first"]);
    assert_eq!(seen(&loops, "4"), ["one", "first", "four", "fourth"]);
}

#[test]
fn a_circle_of_parents_has_an_end() {
    let one = exchange("1", Some("2"), "one", "first");
    let mut two = Arc::unwrap_or_clone(exchange("2", Some("1"), "two", "second"));
    two.on_chain = false;
    let loops = [one, Arc::new(two)];
    assert_eq!(seen(&loops, "1"), ["one", "first"]);
    let loops = [
        again("1", "2", "one", "first"),
        again("2", "1", "two", "second"),
    ];
    assert_eq!(chain(&loops, Some(&"1".into())).len(), 2);
}
