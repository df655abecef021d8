//! Tests of the user-facing messages of outcomes.

use crate::{
    LimitKind, ModelErrorKind, Outcome, ProviderFailure, ReachedLimit, TurnFinish, TurnStop,
};
use serde_json::json;

#[test]
fn stop_message_is_part_of_the_stop() {
    let text = || "what is known".to_owned();
    let known = [
        TurnStop::MaxTurns(ReachedLimit {
            kind: LimitKind::Cost,
            text: text(),
        }),
        TurnStop::ProviderError(ProviderFailure::Failed {
            kind: ModelErrorKind::Auth,
            message: text(),
        }),
        TurnStop::InvalidInput { reason: text() },
        TurnStop::PluginAbort { reason: text() },
        TurnStop::ToolFailure { message: text() },
        TurnStop::RuntimeError { message: text() },
    ];
    for stop in &known {
        assert_eq!(stop.describe(), "what is known");
    }
    let refused = TurnStop::ProviderError(ProviderFailure::Refused);
    assert_eq!(refused.describe(), "the model refused to answer");
}

#[test]
fn stop_message_without_text() {
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
    ];
    for (stop, said) in stops {
        assert_eq!(stop.describe(), said);
    }
}

#[test]
fn finished_outcome_has_message_only_with_limit() {
    let finished = |limit| {
        let text = "done".into();
        Outcome::Finished(TurnFinish::AssistantMessage { text }, limit)
    };
    assert_eq!(finished(None).report().message, None);
    let text = "Max turns reached (3/3)".to_owned();
    let kind = LimitKind::Turns;
    let limited = finished(Some(ReachedLimit { kind, text }));
    let message = limited.report().message;
    assert_eq!(message.as_deref(), Some("Max turns reached (3/3)"));
}
