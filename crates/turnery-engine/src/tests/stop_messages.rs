//! Tests of the user-facing descriptions of stops.

use crate::{LimitKind, LoopId, ModelErrorKind, OutcomeDetail, TurnStop};
use serde_json::json;

#[test]
fn stop_message_comes_from_detail() {
    let text = || "what is known".to_owned();
    let known = [
        OutcomeDetail::Limit {
            kind: LimitKind::Cost,
            text: text(),
        },
        OutcomeDetail::Provider {
            kind: ModelErrorKind::Auth,
            message: text(),
        },
        OutcomeDetail::Rejection { reason: text() },
        OutcomeDetail::Runtime { message: text() },
    ];
    for detail in &known {
        assert_eq!(TurnStop::Cancelled.describe(Some(detail)), "what is known");
    }
    assert_eq!(
        TurnStop::ProviderError.describe(Some(&OutcomeDetail::Refusal)),
        "the model refused to answer"
    );
}

#[test]
fn stop_message_without_detail() {
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
    let elsewhere = OutcomeDetail::Continued {
        loop_id: LoopId::from("s.m.2"),
    };
    for (stop, said) in stops {
        assert_eq!(stop.describe(None), said);
        assert_eq!(stop.describe(Some(&elsewhere)), said);
    }
}
