//! Tests that the continuation kind decides the trigger of the first turn (TURN-15 to TURN-22).

use super::fixtures::prompt_spec;
use super::harness::{LoopHarness, allow, calls_answer, text_answer, tool_ended};
use crate::{ContinuationKind, Input, LoopSpec, ToolEnvelope, TurnTrigger};

// proves: TURN-15, TURN-16, TURN-17, TURN-18, TURN-20, TURN-21, TURN-22, TURN-30
#[test]
fn continuation_kind_decides_first_trigger() {
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
            ..prompt_spec()
        };
        let mut script = LoopHarness::start(spec);
        let expected = ["loop begins", line, "> call model 0"];
        assert_eq!(script.lines(), expected, "TURN-30: no input, no message");
        script.feed_all([calls_answer(&["a"]), allow("a")]);
        script.feed_all([tool_ended("a", ToolEnvelope::text("x")), text_answer("y")]);
        let later = "turn begins Continuation".to_owned();
        assert!(script.lines().contains(&later), "TURN-22");
        script.feed(Input::Committed);
        script.lines();
    }
}
