//! Maps the outcome of a prompt to a stop reason or an error.

use crate::{
    server::rpc_error::{AUTH_REQUIRED, INTERNAL_ERROR, RpcError},
    view::meta::{turnery_meta, usage_rows},
};
use agent_client_protocol_schema::v1::{Meta, StopReason};
use serde_json::{Value, json};
use std::borrow::Cow;
use turnery_agent::{PromptError, PromptResult};
use turnery_engine::{
    CommitError, EndKind, ModelErrorKind, Outcome, ProviderFailure, TurnStop, Usage,
};

/// Length to which a cause is cut. Unit: characters.
const REASON_LIMIT: usize = 600;

/// Removes the detail from the `_meta` that accompanies an error, whose message already contains it.
pub(crate) fn remove_detail(mut meta: Meta) -> Meta {
    let ours = meta.get_mut("turnery").and_then(Value::as_object_mut);
    let _ = ours.and_then(|ours| ours.remove("detail"));
    meta
}

/// Maps an outcome to a stop reason or an error. A cancel before the commit is an outcome of its own, decided
/// by the engine.
pub(crate) fn stop_reason_or_error(outcome: &Outcome) -> Result<StopReason, RpcError> {
    match outcome.report().end {
        EndKind::EndTurn => Ok(StopReason::EndTurn),
        EndKind::MaxTokens => Ok(StopReason::MaxTokens),
        EndKind::MaxTurnRequests => Ok(StopReason::MaxTurnRequests),
        EndKind::Refusal => Ok(StopReason::Refusal),
        EndKind::Cancelled => Ok(StopReason::Cancelled),
        EndKind::Error => Err(outcome_error(outcome)),
    }
}

/// Returns the protocol's name of the stop reason; `None` for a failure.
#[must_use]
pub const fn stop_reason_name(end: EndKind) -> Option<&'static str> {
    match end {
        EndKind::EndTurn => Some("end_turn"),
        EndKind::MaxTokens => Some("max_tokens"),
        EndKind::MaxTurnRequests => Some("max_turn_requests"),
        EndKind::Refusal => Some("refusal"),
        EndKind::Cancelled => Some("cancelled"),
        EndKind::Error => None,
    }
}

/// Converts the outcome of a failed prompt.
fn outcome_error(outcome: &Outcome) -> RpcError {
    match outcome {
        Outcome::Stopped(TurnStop::ProviderError(ProviderFailure::Failed { kind, message })) => {
            provider_error(*kind, message)
        }
        Outcome::Stopped(TurnStop::ToolFailure { message }) => RpcError::internal(
            "tool_failure",
            "A tool failed and the prompt cannot continue",
            format!(
                "{}. Look at the failed call, then prompt again.",
                shorten_reason(message)
            ),
            false,
        ),
        Outcome::FrameSwitch { .. } => runtime_error("The next frame was not run"),
        Outcome::Finished(..) | Outcome::Stopped(_) => {
            let message = outcome.report().message.unwrap_or_default();
            runtime_error(&shorten_reason(&message))
        }
    }
}

/// Shortens a cause and removes its full stop.
fn shorten_reason(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches('.');
    match text.char_indices().nth(REASON_LIMIT) {
        None => text.into(),
        Some((end, _)) => format!("{}\u{2026}", &text[..end]).into(),
    }
}

/// Converts the error of a prompt that stored nothing.
pub(crate) fn prompt_error(error: &PromptError) -> RpcError {
    let (kind, what, retryable) = match error {
        PromptError::Busy { .. } => ("session_busy", "The session is busy", true),
        PromptError::Lost(CommitError::LaneLost) => (
            "lane_lost",
            "The session was taken over by another process",
            true,
        ),
        PromptError::Lost(CommitError::HeadConflict) => (
            "commit_conflict",
            "The session has changed in the meantime",
            true,
        ),
        PromptError::Lost(CommitError::Store(_)) => {
            ("store", "The prompt could not be stored", false)
        }
        PromptError::Model(_) => ("unknown_model", "There is no such model", false),
        PromptError::Price(_) => ("unknown_price", "The cost limit cannot be enforced", false),
        PromptError::Continue(_) => (
            "cannot_continue",
            "The session cannot continue like this",
            false,
        ),
        PromptError::Candidate { .. } | PromptError::EmptyJudgeCommand => (
            "invalid_candidate",
            "The candidates cannot run like this",
            false,
        ),
        PromptError::Folders(_) => (
            "candidate_folders",
            "The candidates' folders could not be made",
            false,
        ),
        PromptError::NoInterpreter => ("no_interpreter", "Code mode is not available here", false),
        PromptError::Withdrawn => ("withdrawn", "The prompt was withdrawn", true),
        PromptError::AlreadyRun => ("already_run", "The prompt was run already", false),
        PromptError::Server(_) => ("mcp_prompt", "The prompt could not be written", true),
    };
    RpcError::internal(kind, what, error.to_string(), retryable)
}

fn runtime_error(text: &str) -> RpcError {
    RpcError::internal(
        "runtime_error",
        "The prompt could not continue",
        format!("{text}. Prompt again, or choose another model."),
        false,
    )
}

/// Converts a provider's error. Only errors that a login would cure become authentication errors (RPC-22,
/// G-11).
fn provider_error(kind: ModelErrorKind, message: &str) -> RpcError {
    let (what, details) = match kind {
        ModelErrorKind::Network => (
            "The model cannot be reached",
            "Check the network, then prompt again.",
        ),
        ModelErrorKind::Protocol | ModelErrorKind::Unfinished => {
            ("The model's response was cut off", "Prompt again.")
        }
        ModelErrorKind::RateLimit => (
            "The model's provider is limiting requests",
            "Wait a little, then prompt again.",
        ),
        ModelErrorKind::Overloaded => (
            "The model's provider is overloaded or broken",
            "Wait a little, then prompt again, or choose another model.",
        ),
        ModelErrorKind::Auth => (
            "Authentication required",
            "Run `turnery login` in a terminal to enter a new key, or choose another model.",
        ),
        ModelErrorKind::ContextOverflow => (
            "The conversation is too long for the model",
            "Begin a new session, or choose another model.",
        ),
        ModelErrorKind::BadRequest => (
            "The model's provider refuses the request",
            "Choose another model, or begin a new session.",
        ),
        ModelErrorKind::Timeout => (
            "The model stopped responding",
            "Prompt again, or choose another model.",
        ),
        ModelErrorKind::AnswerLimit => (
            "The model's answer is too long",
            "Ask for less, or choose another model.",
        ),
    };
    let reason = shorten_reason(message);
    let error = if kind == ModelErrorKind::Auth {
        RpcError::new(AUTH_REQUIRED, what, format!("{reason}. {details}"))
    } else {
        let what = if reason.is_empty() { what } else { &reason };
        RpcError::from_message(INTERNAL_ERROR, format!("{what}. {details}"))
    };
    error
        .with_data("kind", "provider_error")
        .with_data("retryable", kind.is_retryable())
        .with_data("fault", serde_json::to_value(kind).unwrap_or_default())
}

/// Returns what the stop reason omits: the outcome, its class (who can fix it) and the usage.
pub(crate) fn outcome_meta(result: &PromptResult) -> Meta {
    // Texts are omitted: they were already shown.
    let report = result.outcome.report();
    let mut members = json!({"outcome": report.exact});
    if let Some(class) = report.class {
        members["class"] = json!(class);
    }
    if let Some(detail) = result.outcome.stored_detail() {
        members["detail"] = detail;
    }
    if let Some(value) = result.outcome.value() {
        members["value"] = value.clone();
    }
    if result.usage != Usage::default() {
        members["usage"] = json!(result.usage);
    }
    let children = result.children_usage();
    if !children.is_empty() {
        members["childrenUsage"] = usage_rows(&children);
    }
    let total = result.total_usage();
    if total != result.usage {
        members["totalUsage"] = json!(total);
    }
    let loops: Vec<_> = result.loop_ids().collect();
    if !loops.is_empty() {
        members["loopIds"] = json!(loops);
    }
    if !result.is_stored {
        members["stored"] = json!(false);
    }
    let issues: Vec<_> = result.issues().collect();
    if !issues.is_empty() {
        members["issues"] = json!(issues);
    }
    turnery_meta(members)
}
