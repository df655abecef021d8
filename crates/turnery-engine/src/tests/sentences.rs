//! Sentences: why a loop was stopped, as a person reads it.

use crate::{Detail, FaultKind, LimitKind, LoopId, TurnStop};
use serde_json::json;

#[test]
fn what_is_known_beside_a_stop_is_what_is_said_of_it() {
    let text = || "what is known".to_owned();
    let known = [
        Detail::Limit {
            kind: LimitKind::Cost,
            text: text(),
        },
        Detail::Provider {
            kind: FaultKind::Auth,
            message: text(),
        },
        Detail::Rejection { reason: text() },
        Detail::Runtime { message: text() },
    ];
    for detail in &known {
        assert_eq!(TurnStop::Cancelled.sentence(Some(detail)), "what is known");
    }
    assert_eq!(
        TurnStop::ProviderError.sentence(Some(&Detail::Refusal)),
        "the model refused to answer"
    );
}

#[test]
fn a_stop_of_which_nothing_else_is_known_speaks_for_itself() {
    let value = json!("no such order");
    let tool_name = "order".to_owned();
    let stops = [
        (TurnStop::Cancelled, "cancelled"),
        (
            TurnStop::Incomplete,
            "the answer was cut off at the model's output limit",
        ),
        (
            TurnStop::SubmittedError {
                value: value.clone(),
            },
            "no such order",
        ),
        (TurnStop::ToolError { tool_name, value }, "no such order"),
        (TurnStop::MaxTurns, "the prompt ended early (limit reached)"),
        (
            TurnStop::RuntimeError,
            "the prompt ended early (runtime error)",
        ),
    ];
    let elsewhere = Detail::Continued {
        loop_id: LoopId::from("s.m.2"),
    };
    for (stop, said) in stops {
        assert_eq!(stop.sentence(None), said);
        assert_eq!(stop.sentence(Some(&elsewhere)), said);
    }
}
