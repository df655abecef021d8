//! Children: what they spend counts against the limits of the loop that they work for, and against
//! nothing else of it.

use super::fixture::spec;
use super::script::{Script, allow, answer, call, ended, prose};
use crate::{
    ChildUsage, Detail, Finish, Input, LimitKind, Limits, LoopSpec, ModelStop, Price, ToolEnvelope,
    Usage,
};

fn spent(session: &str, output: u64) -> Input {
    Input::ChildSpent {
        call_id: "a".into(),
        child: ChildUsage {
            session_id: session.into(),
            source: "subagent".to_owned(),
            model: "p/m".to_owned(),
            iteration: 0,
            usage: None,
            cumulative: Usage {
                output,
                ..Usage::default()
            },
        },
    }
}

/// A loop whose first turn takes 11 tokens, and whose one call has two children: with 60 and with 29.
fn after_children(limits: Limits) -> Script {
    let price = Price {
        input: 10_000_000_000,
        output: 10_000_000_000,
        ..Price::default()
    };
    let mut script = Script::start(LoopSpec {
        price: Some(price),
        ..spec(limits)
    });
    script.feed_all([
        answer(vec![call("a")], ModelStop::ToolUse, Some((10, 1))),
        allow("a"),
        spent("one", 40),
        spent("two", 29),
        spent("one", 60),
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
fn what_children_spend_counts_against_the_limits_and_is_not_the_loops_own() {
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
        script.feed_all([ended("a", ToolEnvelope::text("x")), Input::Committed]);
        let Some(Finish::Done { detail, usage, .. }) = script.finish.clone() else {
            panic!("not done: {:?}", script.finish);
        };
        let text = text.to_owned();
        assert_eq!(detail, Some(Detail::Limit { kind, text }));
        assert_eq!((usage.input, usage.output), (10, 1));
    }
    // The last answer takes seven tokens.
    let mut script = after_children(limited(107, 1_070_000));
    script.feed_all([
        ended("a", ToolEnvelope::text("x")),
        prose("done"),
        Input::Committed,
    ]);
    assert!(matches!(
        script.finish,
        Some(Finish::Done { detail: None, .. })
    ));
}
