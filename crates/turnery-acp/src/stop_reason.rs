//! Maps the outcome of a prompt to a stop reason or an error.

use crate::{
    notices::turnery_meta,
    response_usage,
    rpc_error::{AUTH_REQUIRED, INTERNAL_ERROR, RpcError},
};
use agent_client_protocol_schema::v1::{Meta, PromptResponse, StopReason};
use serde_json::{Value, json};
use std::borrow::Cow;
use turnery_agent::{PromptError, PromptResult, UsageRow};
use turnery_engine::{
    CommitError, LimitKind, ModelErrorKind, Outcome, OutcomeDetail, TurnFinish, TurnStop, Usage,
};

/// Length to which a cause is cut. Unit: characters.
const REASON_LIMIT: usize = 600;

/// Returns the response to a prompt. The protocol has five stop reasons; the exact outcome is in
/// `_meta.turnery`, or in `data` of an error. `usage` is true if the client supports usage in the response.
pub(crate) fn to_prompt_response(
    result: &PromptResult,
    usage: bool,
) -> Result<PromptResponse, RpcError> {
    let meta = outcome_meta(result);
    match stop_reason_or_error(&result.outcome, result.detail.as_ref()) {
        Ok(reason) => {
            let answer = PromptResponse::new(reason).meta(meta);
            Ok(match usage {
                true => response_usage::with_usage(answer, result),
                false => answer,
            })
        }
        Err(fault) => Err(fault.with_data("_meta", remove_detail(meta))),
    }
}

/// Removes the detail from the `_meta` that accompanies an error, whose message already contains it.
pub(crate) fn remove_detail(mut meta: Meta) -> Meta {
    let ours = meta.get_mut("turnery").and_then(Value::as_object_mut);
    let _ = ours.and_then(|ours| ours.remove("detail"));
    meta
}

/// Returns the stop reason of a prompt, for every front end; `None` if the protocol reports the outcome as an
/// error. The only table of this kind (ACP-41 to ACP-46).
#[must_use]
pub fn stop_reason(result: &PromptResult) -> Option<StopReason> {
    stop_reason_or_error(&result.outcome, result.detail.as_ref()).ok()
}

/// Maps an outcome to a stop reason or an error. A cancel before the commit is an outcome of its own, decided
/// by the engine.
pub(crate) fn stop_reason_or_error(
    outcome: &Outcome,
    detail: Option<&OutcomeDetail>,
) -> Result<StopReason, RpcError> {
    match outcome {
        // A final answer after a limit ends with the stop reason of that limit (C-4).
        Outcome::Finished(
            TurnFinish::AssistantMessage { .. }
            | TurnFinish::FinalValue { .. }
            | TurnFinish::ToolValue { .. },
        ) => Ok(match detail {
            Some(OutcomeDetail::Limit { kind, .. }) => limit_stop_reason(*kind),
            Some(
                OutcomeDetail::Provider { .. }
                | OutcomeDetail::Refusal
                | OutcomeDetail::Rejection { .. }
                | OutcomeDetail::Runtime { .. }
                | OutcomeDetail::Continued { .. },
            )
            | None => StopReason::EndTurn,
        }),
        Outcome::FrameSwitch { .. } => Err(runtime_error("The next frame was not run")),
        Outcome::Stopped(stop) => match stop {
            TurnStop::Cancelled => Ok(StopReason::Cancelled),
            TurnStop::InvalidInput => match detail {
                Some(OutcomeDetail::Rejection { .. }) => Ok(StopReason::Refusal),
                Some(
                    OutcomeDetail::Limit { .. }
                    | OutcomeDetail::Provider { .. }
                    | OutcomeDetail::Refusal
                    | OutcomeDetail::Runtime { .. }
                    | OutcomeDetail::Continued { .. },
                )
                | None => Err(RpcError::invalid_params(
                    "The prompt holds nothing that a model could be given: send some text.",
                )),
            },
            TurnStop::Incomplete => Ok(StopReason::MaxTokens),
            TurnStop::ProviderError => match detail {
                Some(OutcomeDetail::Provider { kind, message }) => match kind {
                    ModelErrorKind::ContextOverflow | ModelErrorKind::AnswerLimit => {
                        Ok(StopReason::MaxTokens)
                    }
                    ModelErrorKind::Network
                    | ModelErrorKind::Protocol
                    | ModelErrorKind::Unfinished
                    | ModelErrorKind::RateLimit
                    | ModelErrorKind::Overloaded
                    | ModelErrorKind::Auth
                    | ModelErrorKind::BadRequest
                    | ModelErrorKind::Timeout => Err(provider_error(*kind, message)),
                },
                Some(OutcomeDetail::Refusal) => Ok(StopReason::Refusal),
                Some(
                    OutcomeDetail::Limit { .. }
                    | OutcomeDetail::Rejection { .. }
                    | OutcomeDetail::Runtime { .. }
                    | OutcomeDetail::Continued { .. },
                )
                | None => Err(provider_error(
                    ModelErrorKind::Protocol,
                    "the cause is unknown",
                )),
            },
            TurnStop::MaxTurns => match detail {
                Some(OutcomeDetail::Limit { kind, .. }) => Ok(limit_stop_reason(*kind)),
                Some(
                    OutcomeDetail::Provider { .. }
                    | OutcomeDetail::Refusal
                    | OutcomeDetail::Rejection { .. }
                    | OutcomeDetail::Runtime { .. }
                    | OutcomeDetail::Continued { .. },
                )
                | None => Ok(StopReason::MaxTurnRequests),
            },
            TurnStop::ToolFailure => Err(RpcError::internal(
                "tool_failure",
                "A tool failed and the prompt cannot continue",
                format!(
                    "{}. Look at the failed call, then prompt again.",
                    detail_text(detail)
                ),
                false,
            )),
            TurnStop::PluginAbort => Ok(StopReason::Refusal),
            TurnStop::RuntimeError => Err(runtime_error(&detail_text(detail))),
            TurnStop::SubmittedError { .. } | TurnStop::ToolError { .. } => Ok(StopReason::EndTurn),
        },
    }
}

fn limit_stop_reason(kind: LimitKind) -> StopReason {
    match kind {
        LimitKind::Tokens | LimitKind::Answer => StopReason::MaxTokens,
        LimitKind::Turns | LimitKind::Duration | LimitKind::Cost => StopReason::MaxTurnRequests,
    }
}

/// Returns the message of the engine or tool, without its full stop.
fn detail_text(detail: Option<&OutcomeDetail>) -> Cow<'_, str> {
    let message = detail.and_then(OutcomeDetail::message);
    shorten_reason(message.unwrap_or("The cause is unknown"))
}

/// Shortens a cause and removes its full stop.
fn shorten_reason(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches('.');
    match text.char_indices().nth(REASON_LIMIT) {
        None => text.into(),
        Some((end, _)) => format!("{}\u{2026}", &text[..end]).into(),
    }
}

/// Converts the error of a prompt that stored nothing (row 16).
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
        PromptError::Withdrawn => ("withdrawn", "The prompt was withdrawn", true),
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
    let fault = match kind {
        ModelErrorKind::Auth => RpcError::new(AUTH_REQUIRED, what, format!("{reason}. {details}")),
        ModelErrorKind::Network
        | ModelErrorKind::Protocol
        | ModelErrorKind::Unfinished
        | ModelErrorKind::RateLimit
        | ModelErrorKind::Overloaded
        | ModelErrorKind::ContextOverflow
        | ModelErrorKind::BadRequest
        | ModelErrorKind::Timeout
        | ModelErrorKind::AnswerLimit => {
            let what = if reason.is_empty() {
                what.into()
            } else {
                reason
            };
            RpcError::from_message(INTERNAL_ERROR, format!("{what}. {details}"))
        }
    };
    fault
        .with_data("kind", "provider_error")
        .with_data("retryable", kind.is_retryable())
        .with_data("fault", serde_json::to_value(kind).unwrap_or_default())
}

/// Returns the exact outcome. Values and texts are omitted: they were already shown.
fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Finished(finish) => match finish {
            TurnFinish::AssistantMessage { .. } => "finished.assistant_message",
            TurnFinish::FinalValue { .. } => "finished.final_value",
            TurnFinish::ToolValue { .. } => "finished.tool_value",
        },
        Outcome::FrameSwitch { .. } => "frame_switch",
        Outcome::Stopped(stop) => match stop {
            TurnStop::Cancelled => "stopped.cancelled",
            TurnStop::InvalidInput => "stopped.invalid_input",
            TurnStop::Incomplete => "stopped.incomplete",
            TurnStop::ProviderError => "stopped.provider_error",
            TurnStop::MaxTurns => "stopped.max_turns",
            TurnStop::ToolFailure => "stopped.tool_failure",
            TurnStop::PluginAbort => "stopped.plugin_abort",
            TurnStop::RuntimeError => "stopped.runtime_error",
            TurnStop::SubmittedError { .. } => "stopped.submitted_error",
            TurnStop::ToolError { .. } => "stopped.tool_error",
        },
    }
}

/// Returns what the stop reason omits: the outcome, its class (who can fix it) and the usage.
pub(crate) fn outcome_meta(result: &PromptResult) -> Meta {
    let mut members = json!({"outcome": outcome_name(&result.outcome)});
    if let Outcome::Stopped(stop) = &result.outcome {
        members["class"] = json!(stop.class());
    }
    if let Some(detail) = &result.detail {
        members["detail"] = json!(detail);
    }
    if result.usage != Usage::default() {
        members["usage"] = json!(result.usage);
    }
    let children = result.children_usage();
    if !children.is_empty() {
        let row =
            |sum: &UsageRow| json!({"source": sum.source, "model": sum.model, "usage": sum.usage});
        members["childrenUsage"] = children.iter().map(row).collect();
    }
    let total = result.usage_report().total();
    if total != result.usage && total != Usage::default() {
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
