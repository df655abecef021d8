//! Tests of the chain: which loops lead to the tip.

use super::{exchange, record};
use crate::{
    LoopRecord, LoopStatus, Outcome, TurnStop,
    context::{View, chain},
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

// proves: UP-12, LOOP-86, LOOP-87
#[test]
fn branches_not_chosen_and_runs_tried_again_are_not_seen() {
    let loops = [
        exchange("1", None, "one", "first"),
        exchange("2", Some("1"), "two", "bad"),
        exchange("again", Some("1"), "two", "better"),
        exchange("branch", Some("1"), "two", "other"),
        exchange("3", Some("again"), "three", "third"),
    ];
    assert_eq!(
        seen(&loops, "3"),
        ["one", "first", "two", "better", "three", "third"]
    );
    assert_eq!(seen(&loops, "branch"), ["one", "first", "two", "other"]);
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
}
