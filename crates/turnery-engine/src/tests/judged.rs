//! Judged: the oracle itself is put to the test with streams that are wrong in one place.

use super::fixture::prompt;
use super::script::{Script, allow, asking, calls, ended, prose, text, verdict};
use crate::{Event, EventKind, Input, ToolEnvelope, Verdict, oracle};

fn stream() -> Vec<Event> {
    let mut script = Script::start(prompt());
    script.feed_all([text(0, "x"), calls(&["a", "b"]), asking("a"), allow("a")]);
    script.feed(Input::Printed {
        call_id: "a".into(),
        text: "out".to_owned(),
    });
    script.feed(ended("a", ToolEnvelope::text("r")));
    script.feed(verdict("b", Verdict::Deny("no".to_owned())));
    script.feed_all([prose("done"), Input::Committed]);
    script.shown
}

fn renumber(events: &mut [Event]) {
    for (seq, event) in (0..).zip(events) {
        event.seq = seq;
    }
}

/// Events that may be there any number of times.
fn is_optional(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::Delta { .. } | EventKind::ToolExecutionOutput { .. }
    )
}

#[test]
fn every_missing_event_is_noticed() {
    let whole = stream();
    assert_eq!(oracle::check(&whole), Ok(()));
    // A loop that was lost has no LoopEnd, and that is no fault (R4).
    for missing in 0..whole.len() - 1 {
        let mut cut = whole.clone();
        let event = cut.remove(missing);
        renumber(&mut cut);
        let verdict = oracle::check(&cut);
        assert_eq!(verdict.is_ok(), is_optional(&event), "without {event:?}");
    }
}

#[test]
fn every_doubled_event_is_noticed() {
    let whole = stream();
    for doubled in 0..whole.len() {
        let mut long = whole.clone();
        let event = long[doubled].clone();
        long.insert(doubled, event.clone());
        renumber(&mut long);
        let verdict = oracle::check(&long);
        assert_eq!(verdict.is_ok(), is_optional(&event), "twice {event:?}");
    }
}

/// R1, R2: only fragments of one bracket may change places with each other.
#[test]
fn every_swap_is_noticed() {
    let whole = stream();
    for first in 0..whole.len() - 1 {
        let mut swapped = whole.clone();
        swapped.swap(first, first + 1);
        renumber(&mut swapped);
        assert!(oracle::check(&swapped).is_err(), "{:?}", whole[first]);
    }
}

/// LOOP-80: a gap is a fault in a live stream and none in a stored one.
#[test]
fn gaps_are_for_stored_streams() {
    let mut events = stream();
    events.retain(|event| !is_optional(event));
    assert_eq!(oracle::check_stored(&events), Ok(()));
    assert!(oracle::check(&events).is_err());
}
