//! Stop reasons: whatever ends a prompt, its answer is one of five words or an error (ACP-41).

use crate::stop::to_wire;
use serde_json::json;
use std::collections::BTreeSet;
use turnery_agent::PromptResult;
use turnery_engine::{Detail, FaultKind, LimitKind, Outcome, TurnFinish, TurnStop, Usage};

/// Every outcome there is.
fn outcomes() -> Vec<Outcome> {
    let value = json!("v");
    let stops = [
        TurnStop::Cancelled,
        TurnStop::InvalidInput,
        TurnStop::Incomplete,
        TurnStop::ProviderError,
        TurnStop::MaxTurns,
        TurnStop::ToolFailure,
        TurnStop::PluginAbort,
        TurnStop::RuntimeError,
        TurnStop::SubmittedError {
            value: value.clone(),
        },
        TurnStop::ToolError {
            tool_name: "t".to_owned(),
            value: value.clone(),
        },
    ];
    let mut outcomes: Vec<Outcome> = stops.into_iter().map(Outcome::Stopped).collect();
    outcomes.extend([
        Outcome::Finished(TurnFinish::AssistantMessage {
            text: "x".to_owned(),
        }),
        Outcome::Finished(TurnFinish::FinalValue {
            value: value.clone(),
        }),
        Outcome::Finished(TurnFinish::ToolValue {
            tool_name: "t".to_owned(),
            value,
        }),
    ]);
    outcomes
}

/// Details of all sorts, fitting or not.
fn details() -> Vec<Option<Detail>> {
    let text = || "text".to_owned();
    let limit = |kind| Detail::Limit { kind, text: text() };
    let provider = |kind| Detail::Provider {
        kind,
        message: text(),
    };
    vec![
        None,
        Some(limit(LimitKind::Turns)),
        Some(limit(LimitKind::Tokens)),
        Some(limit(LimitKind::Duration)),
        Some(provider(FaultKind::ContextOverflow)),
        Some(provider(FaultKind::Network)),
        Some(Detail::Refusal),
        Some(Detail::Rejection { reason: text() }),
        Some(Detail::Runtime { message: text() }),
    ]
}

// proves: ACP-41
#[test]
fn there_are_exactly_five_and_each_is_reached() {
    let mut words = BTreeSet::new();
    for outcome in outcomes() {
        for detail in details() {
            let result = PromptResult {
                outcome: outcome.clone(),
                detail,
                usage: Usage::default(),
            };
            if let Ok(response) = to_wire(&result) {
                let word = json!(response)["stopReason"].clone();
                words.insert(word.as_str().unwrap().to_owned());
            }
        }
    }
    let five = [
        "cancelled",
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
    ];
    assert!(words.iter().eq(five), "{words:?}");
}

// proves: ACP-46
#[test]
fn only_a_cancel_is_called_cancelled() {
    for outcome in outcomes() {
        for detail in details() {
            let result = PromptResult {
                outcome: outcome.clone(),
                detail,
                usage: Usage::default(),
            };
            let word = to_wire(&result)
                .ok()
                .map(|r| json!(r)["stopReason"].clone());
            let is_cancel = outcome == Outcome::Stopped(TurnStop::Cancelled);
            assert_eq!(word == Some(json!("cancelled")), is_cancel, "{outcome:?}");
        }
    }
}
