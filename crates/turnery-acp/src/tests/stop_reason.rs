//! Tests how outcomes of a prompt become stop reasons, error responses and `_meta`.

use crate::{
    server::rpc_error::RpcError, v1::prompt_response::to_prompt_response,
    view::stop_reason::prompt_error,
};
use agent_client_protocol_schema::{v1::PromptResponse, v2};
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_agent::{ContinueError, PromptError, PromptResult, UnknownPriceError};
use turnery_engine::{
    ChildUsage, CommitError, LimitKind, LoopId, LoopRecord, ModelErrorKind, Outcome,
    ProviderFailure, ReachedLimit, SessionId, Timestamp, TurnFinish, TurnStop, Usage,
};

/// Returns the stop reason, or the error's code, kind and `retryable`; and the outcome's `_meta`.
fn response_summary(outcome: &Outcome) -> (String, Value) {
    match to_prompt_response(&PromptResult::new(outcome.clone()), false) {
        Ok(response) => {
            let answer = json!(response);
            let reason = answer["stopReason"].as_str().unwrap().to_owned();
            (reason, answer["_meta"]["turnery"].clone())
        }
        Err(fault) => {
            let error = ErrorObjectOwned::from(fault);
            let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
            assert!(data["details"].as_str().unwrap().ends_with('.'), "{data}");
            assert!(!data["details"].as_str().unwrap().contains(".."), "{data}");
            assert!(!error.message().is_empty());
            let kind = data["kind"].as_str().unwrap_or("-");
            let retryable = data["retryable"].as_bool();
            let retryable = retryable.map_or("-".to_owned(), |yes| yes.to_string());
            (
                format!("{} {kind} {retryable}", error.code()),
                data["_meta"]["turnery"].clone(),
            )
        }
    }
}

fn finished(finish: TurnFinish) -> Outcome {
    Outcome::Finished(finish, None)
}

fn finished_at_limit(kind: LimitKind) -> Outcome {
    Outcome::Finished(assistant_message(), Some(limit(kind)))
}

fn stopped(stop: TurnStop) -> Outcome {
    Outcome::Stopped(stop)
}

fn assistant_message() -> TurnFinish {
    TurnFinish::AssistantMessage { text: "x".into() }
}

fn tool_name() -> String {
    "t".to_owned()
}

fn frame_switch() -> Outcome {
    Outcome::FrameSwitch {
        frame_id: "f".to_owned(),
        task: "t".to_owned(),
    }
}

fn provider_error(kind: ModelErrorKind) -> Outcome {
    let message = "503 from the provider.".to_owned();
    stopped(TurnStop::ProviderError(ProviderFailure::Failed {
        kind,
        message,
    }))
}

fn refused() -> Outcome {
    stopped(TurnStop::ProviderError(ProviderFailure::Refused))
}

fn limit(kind: LimitKind) -> ReachedLimit {
    let text = "limit".to_owned();
    ReachedLimit { kind, text }
}

fn max_turns(kind: LimitKind) -> Outcome {
    stopped(TurnStop::MaxTurns(limit(kind)))
}

fn message() -> String {
    "it broke.".to_owned()
}

/// OutcomeRow of the outcome table: its number, the outcome, true if that has details, the expected stop reason or
/// error, the exact outcome in `_meta`, and its class.
type OutcomeRow = (
    &'static str,
    Outcome,
    bool,
    &'static str,
    &'static str,
    Option<&'static str>,
);

#[rustfmt::skip]
fn rows() -> Vec<OutcomeRow> {
    use ModelErrorKind as F;
    use TurnFinish::{FinalValue, ToolValue};
    use TurnStop as S;
    let value = || json!(1);
    vec![
        ("1", finished(assistant_message()), false, "end_turn", "finished.assistant_message", None),
        ("1, 9a", finished_at_limit(LimitKind::Turns), true, "max_turn_requests", "finished.assistant_message", None),
        ("1, 9a", finished_at_limit(LimitKind::Cost), true, "max_turn_requests", "finished.assistant_message", None),
        ("1, 9b", finished_at_limit(LimitKind::Tokens), true, "max_tokens", "finished.assistant_message", None),
        ("2", finished(FinalValue { value: value() }), false, "end_turn", "finished.final_value", None),
        ("3", finished(ToolValue { tool_name: tool_name(), value: value() }), false, "end_turn", "finished.tool_value", None),
        ("4", frame_switch(), false, "-32603 runtime_error false", "frame_switch", None),
        ("5", stopped(S::Cancelled), false, "cancelled", "stopped.cancelled", Some("host")),
        ("6a", stopped(S::InvalidInput { reason: message() }), true, "refusal", "stopped.invalid_input", Some("host")),
        ("7", stopped(S::Incomplete), false, "max_tokens", "stopped.incomplete", Some("provider")),
        ("8a", provider_error(F::ContextOverflow), true, "max_tokens", "stopped.provider_error", Some("provider")),
        ("8b", refused(), true, "refusal", "stopped.provider_error", Some("provider")),
        ("8c", provider_error(F::Network), true, "-32603 provider_error true", "stopped.provider_error", Some("provider")),
        ("8c", provider_error(F::Protocol), true, "-32603 provider_error true", "stopped.provider_error", Some("provider")),
        ("8c", provider_error(F::RateLimit), true, "-32603 provider_error true", "stopped.provider_error", Some("provider")),
        ("8c", provider_error(F::Overloaded), true, "-32603 provider_error true", "stopped.provider_error", Some("provider")),
        ("8c", provider_error(F::Timeout), true, "-32603 provider_error true", "stopped.provider_error", Some("provider")),
        ("8c", provider_error(F::BadRequest), true, "-32603 provider_error false", "stopped.provider_error", Some("provider")),
        // RPC-22, G-11: only errors that a login cures are authentication errors.
        ("8c", provider_error(F::Auth), true, "-32000 provider_error false", "stopped.provider_error", Some("provider")),
        ("9a", max_turns(LimitKind::Turns), true, "max_turn_requests", "stopped.max_turns", Some("runtime")),
        ("9a", max_turns(LimitKind::Duration), true, "max_turn_requests", "stopped.max_turns", Some("runtime")),
        ("9a", max_turns(LimitKind::Cost), true, "max_turn_requests", "stopped.max_turns", Some("runtime")),
        ("9b", max_turns(LimitKind::Tokens), true, "max_tokens", "stopped.max_turns", Some("runtime")),
        ("9c", max_turns(LimitKind::Answer), true, "max_tokens", "stopped.max_turns", Some("runtime")),
        ("10", stopped(S::ToolFailure { message: message() }), true, "-32603 tool_failure false", "stopped.tool_failure", Some("runtime")),
        ("11, 12", stopped(S::PluginAbort { reason: message() }), true, "refusal", "stopped.plugin_abort", Some("runtime")),
        ("13", stopped(S::RuntimeError { message: message() }), true, "-32603 runtime_error false", "stopped.runtime_error", Some("fatal")),
        ("14", stopped(S::SubmittedError { value: value() }), false, "end_turn", "stopped.submitted_error", Some("rlm")),
        ("15", stopped(S::ToolError { tool_name: tool_name(), value: value() }), false, "end_turn", "stopped.tool_error", Some("rlm")),
    ]
}

// proves: ACP-41, ACP-42, ACP-43, ACP-44, ACP-45, ACP-46, C-2, LASH-14, LASH-28, PROMPT-5, RPC-22, UP-39, G-11, C-7
#[test]
fn outcome_table_maps_to_stop_reasons() {
    for (row, outcome, has_detail, expected, exact, class) in rows() {
        let (answer, meta) = response_summary(&outcome);
        assert_eq!(answer, expected, "row {row}");
        assert_eq!(meta["outcome"], exact, "row {row}");
        assert_eq!(meta["class"].as_str(), class, "row {row}");
        // An error has the detail in its message.
        let has_detail = has_detail && !expected.starts_with('-');
        assert_eq!(meta.get("detail").is_some(), has_detail, "row {row}");
    }
}

/// Many clients show only the message of an error.
// proves: THEME-11
#[test]
fn error_message_holds_the_cause() {
    let error = |stop| {
        let fault = to_prompt_response(&PromptResult::new(stopped(stop)), false).unwrap_err();
        json!(ErrorObjectOwned::from(fault))
    };
    let refused = |kind, message: String| {
        error(TurnStop::ProviderError(ProviderFailure::Failed {
            kind,
            message,
        }))
    };
    let said = "openai answered 400: no such parameter".to_owned();
    let told = refused(ModelErrorKind::BadRequest, said.clone());
    assert_eq!(
        told["message"],
        "openai answered 400: no such parameter. Choose another model, or begin a new session."
    );
    assert_eq!(told["code"], -32603);
    let meta = json!({"turnery": {"outcome": "stopped.provider_error", "class": "provider"}});
    assert_eq!(
        told["data"],
        json!({
            "details": "openai answered 400: no such parameter. Choose another model, or begin a new session.",
            "kind": "provider_error",
            "retryable": false,
            "fault": "bad_request",
            "_meta": meta,
        })
    );
    let told = refused(ModelErrorKind::Auth, said);
    let shown = told["message"].as_str().unwrap();
    assert!(
        shown.starts_with("Authentication required: openai answered 400"),
        "{shown}"
    );
    let told = error(TurnStop::RuntimeError { message: message() });
    assert_eq!(
        told["message"],
        "The prompt could not continue: it broke. Prompt again, or choose another model."
    );
    let told = refused(ModelErrorKind::BadRequest, "x".repeat(100_000));
    assert!(told.to_string().len() < 2000, "{}", told.to_string().len());
}

/// An error may quote a provider, which may send anything.
#[test]
fn hidden_characters_in_error_are_visible() {
    let fault = || RpcError::internal("k", "A\u{202e}", "b\u{1b}[2J\u{7} end", false);
    let expected = json!({
        "code": -32603,
        "message": "A⟨U+202E⟩: b⟨U+001B⟩[2J⟨U+0007⟩ end",
        "data": {"details": "b⟨U+001B⟩[2J⟨U+0007⟩ end", "kind": "k", "retryable": false},
    });
    assert_eq!(json!(ErrorObjectOwned::from(fault())), expected);
    assert_eq!(json!(v2::Error::from(fault())), expected);
}

/// A stored outcome keeps to the responses of its kind, whatever detail is stored with it: a cancel is
/// `cancelled`, a limit is no refusal, and an end with a value or text is no error.
// proves: ACP-46, ACP-53, PROMPT-5, RPC-22, CANCEL-4, CANCEL-11, G-3
#[test]
fn any_detail_yields_an_allowed_stop_reason() {
    let details = [
        Value::Null,
        json!({"limit": {"kind": "turns", "text": "limit"}}),
        json!({"limit": {"kind": "tokens", "text": "limit"}}),
        json!({"provider": {"kind": "network", "message": "503 from the provider."}}),
        json!({"provider": {"kind": "context_overflow", "message": "503 from the provider."}}),
        json!("refusal"),
        json!({"rejection": {"reason": "r"}}),
        json!({"runtime": {"message": "it broke."}}),
        json!({"continued": {"loop_id": "s.m.2"}}),
    ];
    let may = [
        (
            "finished.assistant_message",
            "end_turn max_turn_requests max_tokens",
        ),
        (
            "finished.final_value",
            "end_turn max_turn_requests max_tokens",
        ),
        (
            "finished.tool_value",
            "end_turn max_turn_requests max_tokens",
        ),
        ("frame_switch", "-32603"),
        ("stopped.cancelled", "cancelled"),
        ("stopped.invalid_input", "refusal"),
        ("stopped.incomplete", "max_tokens"),
        ("stopped.provider_error", "max_tokens refusal -32603 -32000"),
        ("stopped.max_turns", "max_turn_requests max_tokens"),
        ("stopped.tool_failure", "-32603"),
        ("stopped.plugin_abort", "refusal"),
        ("stopped.runtime_error", "-32603"),
        ("stopped.submitted_error", "end_turn"),
        ("stopped.tool_error", "end_turn"),
    ];
    for (_, outcome, ..) in rows() {
        for detail in &details {
            let mut stored = json!(outcome);
            stored["detail"] = detail.clone();
            let read: Outcome = serde_json::from_value(stored).unwrap();
            let (answer, meta) = response_summary(&read);
            let exact = meta["outcome"].as_str().unwrap();
            let (_, allowed) = may.iter().find(|(name, _)| *name == exact).unwrap();
            let word = answer.split(' ').next().unwrap();
            assert!(
                allowed.split(' ').any(|one| one == word),
                "{exact} with {detail:?} is {answer}"
            );
        }
    }
}

/// A prompt that was not run or not stored is answered with an error that says why and whether to retry.
// proves: LASH-33, LASH-34
#[test]
fn prompt_error_has_kind_and_retryable() {
    let rows = [
        (
            PromptError::Busy {
                holder: "pid 1".to_owned(),
            },
            "session_busy",
            true,
        ),
        (PromptError::Lost(CommitError::LaneLost), "lane_lost", true),
        (
            PromptError::Lost(CommitError::HeadConflict),
            "commit_conflict",
            true,
        ),
        (
            PromptError::Lost(CommitError::Store("disk full".to_owned())),
            "store",
            false,
        ),
        (
            PromptError::Price(UnknownPriceError {
                model: "puppet/one".parse().unwrap(),
            }),
            "unknown_price",
            false,
        ),
        (
            PromptError::Continue(ContinueError::Answered),
            "cannot_continue",
            false,
        ),
        (
            PromptError::Candidate {
                number: 1,
                reason: "no".to_owned(),
            },
            "invalid_candidate",
            false,
        ),
        (PromptError::EmptyJudgeCommand, "invalid_candidate", false),
        (
            PromptError::Folders(turnery_tools::CandidateFoldersError::TooLarge),
            "candidate_folders",
            false,
        ),
    ];
    for (error, kind, retryable) in rows {
        let error = ErrorObjectOwned::from(prompt_error(&error));
        let data: Value = serde_json::from_str(error.data().unwrap().get()).unwrap();
        assert_eq!(error.code(), -32603);
        assert_eq!(
            (&data["kind"], &data["retryable"]),
            (&json!(kind), &json!(retryable))
        );
    }
}

#[test]
fn exact_outcome_is_in_meta() {
    let mut result = PromptResult::new(max_turns(LimitKind::Turns));
    result.usage.input = 7;
    let response = json!(to_prompt_response(&result, false).unwrap());
    let expected = json!({
        "stopReason": "max_turn_requests",
        "_meta": {"turnery": {
            "outcome": "stopped.max_turns",
            "class": "runtime",
            "detail": {"limit": {"kind": "turns", "text": "limit"}},
            "usage": {"input": 7, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0,
                "total_tokens": 7},
        }},
    });
    assert_eq!(response, expected);
    let typed: PromptResponse = serde_json::from_value(response.clone()).unwrap();
    assert_eq!(json!(typed), response);
}

// proves: CANCEL-3
#[test]
fn cancelled_unstored_prompt_says_so_in_meta() {
    let mut result = PromptResult::new(stopped(TurnStop::Cancelled));
    result.is_stored = false;
    let response = json!(to_prompt_response(&result, false).unwrap());
    assert_eq!(response["stopReason"], "cancelled");
    assert_eq!(response["_meta"]["turnery"]["stored"], json!(false));
}

/// Usage is reported with child sessions separate, and loops by id; the total leaves out the summaries.
// proves: I7, LASH-103, LASH-104
#[test]
fn prompt_usage_is_in_meta() {
    let spent = |input| Usage {
        input,
        ..Usage::default()
    };
    let child = |session: &str, cumulative| ChildUsage {
        session_id: SessionId::from(session),
        source: "subagent".to_owned(),
        model: "a/b".to_owned(),
        iteration: 0,
        usage: None,
        cumulative: spent(cumulative),
    };
    let mut record = LoopRecord::new_running(
        SessionId::from("s"),
        LoopId::from("s.m.1"),
        "a".to_owned(),
        Timestamp::default(),
    );
    record.children_usage = vec![child("s2", 3), child("s3", 4)];
    record.usage = spent(7);
    record.compaction_usage = Some(spent(2));
    record.issues = vec!["A hook failed.".to_owned()];
    let mut result = PromptResult::new(finished(assistant_message()));
    result.usage = spent(7);
    result.loops = vec![Arc::new(record)];
    let response = json!(to_prompt_response(&result, false).unwrap());
    let tokens = |n: u64| {
        json!({"input": n, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0,
        "total_tokens": n})
    };
    assert_eq!(
        response["_meta"]["turnery"],
        json!({
            "outcome": "finished.assistant_message",
            "usage": tokens(7),
            "childrenUsage": [{"source": "subagent", "model": "a/b", "usage": tokens(7)}],
            "totalUsage": tokens(14),
            "loopIds": ["s.m.1"],
            "issues": ["A hook failed."],
        })
    );
}
