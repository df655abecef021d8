//! Tests that usage of child sessions counts against the limits of the loop, and nowhere else.

use super::fixtures::spec_with_limits;
use super::harness::{
    LoopHarness, allow, child_usage, model_answered, text_answer, tool_call, tool_ended,
};
use crate::{
    Input, LimitKind, Limits, LoopFinish, LoopSpec, ModelStop, Outcome, Price, ReachedLimit,
    ToolEnvelope, Usage,
};

fn child_output(session: &str, output: u64) -> Input {
    let cumulative = Usage {
        output,
        ..Usage::default()
    };
    child_usage("a", session, None, cumulative)
}

/// Returns a loop whose first turn takes 11 tokens, and whose only call has two child sessions, with 60 and
/// 29 tokens.
fn after_children(limits: Limits) -> LoopHarness {
    let price = Price {
        input: 10_000_000_000,
        output: 10_000_000_000,
        ..Price::default()
    };
    let mut script = LoopHarness::start(LoopSpec {
        price: Some(price),
        ..spec_with_limits(limits)
    });
    script.feed_all([
        model_answered(vec![tool_call("a")], ModelStop::ToolUse, Some((10, 1))),
        allow("a"),
        child_output("one", 40),
        child_output("two", 29),
        child_output("one", 60),
    ]);
    script
}

fn limited(tokens: u64, cost: u64) -> Limits {
    Limits {
        tokens,
        cost: Some(cost),
        ..Limits::default()
    }
}

// proves: C-17
#[test]
fn child_usage_counts_against_limits_not_own_usage() {
    let cases = [
        (
            limited(100, 9_000_000),
            LimitKind::Tokens,
            "Max tokens reached (100/100)",
        ),
        (
            limited(900, 1_000_000),
            LimitKind::Cost,
            "Max cost reached (1.00/1.00)",
        ),
    ];
    for (limits, kind, text) in cases {
        let mut script = after_children(limits);
        script.feed_all([tool_ended("a", ToolEnvelope::text("x")), Input::Committed]);
        let Some(LoopFinish::Committed { outcome, usage }) = script.finish.clone() else {
            panic!("not done: {:?}", script.finish);
        };
        let text = text.to_owned();
        assert_eq!(outcome.limit(), Some(&ReachedLimit { kind, text }));
        assert_eq!((usage.input, usage.output), (10, 1));
    }
    // The last response takes seven tokens.
    let mut script = after_children(limited(107, 1_070_000));
    script.feed_all([
        tool_ended("a", ToolEnvelope::text("x")),
        text_answer("done"),
        Input::Committed,
    ]);
    assert!(matches!(
        script.finish,
        Some(LoopFinish::Committed {
            outcome: Outcome::Finished(_, None),
            ..
        })
    ));
}
