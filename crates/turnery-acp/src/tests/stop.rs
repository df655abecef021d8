//! The outcome table (engine.md, section 7), row by row.

use crate::stop::{not_stored, to_wire};
use agent_client_protocol_schema::v1::PromptResponse;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Value, json};
use turnery_agent::{PromptError, PromptResult};
use turnery_engine::{
    CommitFault, Detail, FaultKind, LimitKind, Outcome, TurnFinish, TurnStop, Usage,
};

fn result(outcome: Outcome, detail: Option<Detail>) -> PromptResult {
    PromptResult {
        outcome,
        detail,
        usage: Usage::default(),
    }
}

/// The stop reason, or the error's code and kind.
fn summary(outcome: Outcome, detail: Option<Detail>) -> String {
    match to_wire(&result(outcome, detail)) {
        Ok(response) => json!(response)["stopReason"].as_str().unwrap().to_owned(),
        Err(fault) => {
            let error = ErrorObjectOwned::from(fault);
            let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
            assert!(data["details"].as_str().unwrap().ends_with('.'), "{data}");
            assert!(!error.message().is_empty());
            format!("{} {} {}", error.code(), data["kind"], data["retryable"])
        }
    }
}

fn stopped(stop: TurnStop, detail: Option<Detail>) -> String {
    summary(Outcome::Stopped(stop), detail)
}

fn provider(kind: FaultKind) -> String {
    let message = "503 from the provider".to_owned();
    stopped(
        TurnStop::ProviderError,
        Some(Detail::Provider { kind, message }),
    )
}

fn limit(kind: LimitKind) -> String {
    let text = "limit".to_owned();
    stopped(TurnStop::MaxTurns, Some(Detail::Limit { kind, text }))
}

// proves: ACP-42, ACP-43, ACP-44, ACP-45, ACP-46, C-2
#[test]
fn every_row_of_the_table() {
    let text = TurnFinish::AssistantMessage {
        text: "x".to_owned(),
    };
    assert_eq!(summary(Outcome::Finished(text), None), "end_turn");
    let value = TurnFinish::FinalValue { value: json!(1) };
    assert_eq!(summary(Outcome::Finished(value), None), "end_turn");
    let value = TurnFinish::ToolValue {
        tool_name: "t".to_owned(),
        value: json!(1),
    };
    assert_eq!(summary(Outcome::Finished(value), None), "end_turn");
    let switch = Outcome::FrameSwitch {
        frame_id: "f".to_owned(),
        task: "t".to_owned(),
    };
    assert_eq!(summary(switch, None), "-32603 \"runtime_error\" false");
    assert_eq!(stopped(TurnStop::Cancelled, None), "cancelled");
    let filtered = Detail::Rejection {
        reason: "r".to_owned(),
    };
    assert_eq!(stopped(TurnStop::InvalidInput, Some(filtered)), "refusal");
    assert_eq!(stopped(TurnStop::InvalidInput, None), "-32602 null null");
    assert_eq!(stopped(TurnStop::Incomplete, None), "max_tokens");
    assert_eq!(provider(FaultKind::ContextOverflow), "max_tokens");
    assert_eq!(
        stopped(TurnStop::ProviderError, Some(Detail::Refusal)),
        "refusal"
    );
    assert_eq!(limit(LimitKind::Turns), "max_turn_requests");
    assert_eq!(limit(LimitKind::Duration), "max_turn_requests");
    assert_eq!(limit(LimitKind::Tokens), "max_tokens");
    assert_eq!(
        stopped(TurnStop::ToolFailure, None),
        "-32603 \"tool_failure\" false"
    );
    assert_eq!(stopped(TurnStop::PluginAbort, None), "refusal");
    assert_eq!(
        stopped(TurnStop::RuntimeError, None),
        "-32603 \"runtime_error\" false"
    );
    assert_eq!(
        stopped(TurnStop::SubmittedError { value: json!(1) }, None),
        "end_turn"
    );
    let error = TurnStop::ToolError {
        tool_name: "t".to_owned(),
        value: json!(1),
    };
    assert_eq!(stopped(error, None), "end_turn");
}

/// RPC-22, G-11: only what a login cures is an authentication error.
#[test]
fn faults_of_the_provider() {
    for kind in [
        FaultKind::Network,
        FaultKind::Protocol,
        FaultKind::RateLimit,
        FaultKind::Overloaded,
        FaultKind::Timeout,
    ] {
        assert_eq!(provider(kind), "-32603 \"provider_error\" true");
    }
    assert_eq!(
        provider(FaultKind::BadRequest),
        "-32603 \"provider_error\" false"
    );
    assert_eq!(provider(FaultKind::Auth), "-32000 \"provider_error\" false");
}

/// Row 16.
// proves: LASH-33, LASH-34
#[test]
fn what_was_not_stored_is_an_error() {
    let rows = [
        (
            PromptError::Busy {
                holder: "pid 1".to_owned(),
            },
            "session_busy",
            true,
        ),
        (PromptError::Lost(CommitFault::LaneLost), "lane_lost", true),
        (
            PromptError::Lost(CommitFault::HeadConflict),
            "commit_conflict",
            true,
        ),
        (
            PromptError::Lost(CommitFault::Store("disk full".to_owned())),
            "store",
            false,
        ),
    ];
    for (error, kind, retryable) in rows {
        let error = ErrorObjectOwned::from(not_stored(&error));
        let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
        assert_eq!(error.code(), -32603);
        assert_eq!(
            (&data["kind"], &data["retryable"]),
            (&json!(kind), &json!(retryable))
        );
    }
}

#[test]
fn the_exact_outcome_is_in_meta() {
    let detail = Detail::Limit {
        kind: LimitKind::Turns,
        text: "Max turns reached (5/5)".to_owned(),
    };
    let mut result = result(Outcome::Stopped(TurnStop::MaxTurns), Some(detail));
    result.usage.input = 7;
    let response = json!(to_wire(&result).unwrap());
    let expected = json!({
        "stopReason": "max_turn_requests",
        "_meta": {"turnery": {
            "outcome": "stopped.max_turns",
            "detail": {"limit": {"kind": "turns", "text": "Max turns reached (5/5)"}},
            "usage": {"input": 7, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0},
        }},
    });
    assert_eq!(response, expected);
    let typed: PromptResponse = serde_json::from_value(response.clone()).unwrap();
    assert_eq!(json!(typed), response);
}
