//! Kinds: how a loop follows from another decides what causes its first turn (TURN-15 to TURN-22).

use super::fixture::prompt;
use super::script::{Script, allow, calls, ended, prose};
use crate::{ContinuationKind, Input, LoopSpec, ToolEnvelope, TurnTrigger};

// proves: TURN-15, TURN-16, TURN-17, TURN-18, TURN-20, TURN-21, TURN-22, TURN-30
#[test]
fn the_kind_decides_the_first_trigger() {
    use ContinuationKind::{Branch, Default, Initial, Rerun};
    let cases = [
        (Initial, TurnTrigger::User, "turn begins User"),
        (Initial, TurnTrigger::SubAgent, "turn begins SubAgent"),
        (Default, TurnTrigger::User, "turn begins Continuation"),
        (Rerun, TurnTrigger::User, "turn begins Continuation"),
        (Branch, TurnTrigger::User, "turn begins Branch"),
    ];
    for (continuation_kind, trigger, line) in cases {
        let spec = LoopSpec {
            continuation_kind,
            trigger,
            input: Vec::new(),
            ..prompt()
        };
        let mut script = Script::start(spec);
        let expected = ["loop begins", line, "> call model 0"];
        assert_eq!(script.lines(), expected, "TURN-30: no input, no message");
        script.feed_all([calls(&["a"]), allow("a")]);
        script.feed_all([ended("a", ToolEnvelope::text("x")), prose("y")]);
        let later = "turn begins Continuation".to_owned();
        assert!(script.lines().contains(&later), "TURN-22");
        script.feed(Input::Committed);
        script.lines();
    }
}
