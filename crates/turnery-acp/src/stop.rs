//! Stop: what came of a prompt, as the wire says it (engine.md, section 7).

use crate::{
    fault::{AUTH_REQUIRED, Fault, INTERNAL},
    news::meta,
    prompt_usage,
};
use agent_client_protocol_schema::v1::{Meta, PromptResponse, StopReason};
use serde_json::{Value, json};
use std::borrow::Cow;
use turnery_agent::{PromptError, PromptResult, UsageRow};
use turnery_engine::{
    CommitFault, Detail, FaultKind, LimitKind, Outcome, TurnFinish, TurnStop, Usage,
};

/// How much of a cause is repeated. Unit: characters.
const LONGEST_REASON: usize = 600;

/// The answer to a prompt. Five words for the ends there are; the exact one is in `_meta.turnery`,
/// which an error carries in its `data`. `usage`: whether the client knows it.
pub(crate) fn to_wire(result: &PromptResult, usage: bool) -> Result<PromptResponse, Fault> {
    let meta = exactly(result);
    match reason(&result.outcome, result.detail.as_ref()) {
        Ok(reason) => {
            let answer = PromptResponse::new(reason).meta(meta);
            Ok(match usage {
                true => prompt_usage::with_usage(answer, result),
                false => answer,
            })
        }
        Err(fault) => Err(fault.with("_meta", without_detail(meta))),
    }
}

/// What goes with an error: its text says the detail already.
pub(crate) fn without_detail(mut meta: Meta) -> Meta {
    let ours = meta.get_mut("turnery").and_then(Value::as_object_mut);
    let _ = ours.and_then(|ours| ours.remove("detail"));
    meta
}

/// The word for how a prompt ended, for every front end; none where the wire has an error for it. The
/// only table of that kind (ACP-41 to ACP-46).
#[must_use]
pub fn stop_reason(result: &PromptResult) -> Option<StopReason> {
    reason(&result.outcome, result.detail.as_ref()).ok()
}

/// The table, in its order. A cancel that came before the commit is an outcome of its own: the engine
/// has decided that already.
pub(crate) fn reason(outcome: &Outcome, detail: Option<&Detail>) -> Result<StopReason, Fault> {
    match outcome {
        // An answer after a limit is the end that the limit made (C-4).
        Outcome::Finished(
            TurnFinish::AssistantMessage { .. }
            | TurnFinish::FinalValue { .. }
            | TurnFinish::ToolValue { .. },
        ) => Ok(match detail {
            Some(Detail::Limit { kind, .. }) => limit(*kind),
            Some(
                Detail::Provider { .. }
                | Detail::Refusal
                | Detail::Rejection { .. }
                | Detail::Runtime { .. }
                | Detail::Continued { .. },
            )
            | None => StopReason::EndTurn,
        }),
        Outcome::FrameSwitch { .. } => Err(runtime("The next frame was not run")),
        Outcome::Stopped(stop) => match stop {
            TurnStop::Cancelled => Ok(StopReason::Cancelled),
            TurnStop::InvalidInput => match detail {
                Some(Detail::Rejection { .. }) => Ok(StopReason::Refusal),
                Some(
                    Detail::Limit { .. }
                    | Detail::Provider { .. }
                    | Detail::Refusal
                    | Detail::Runtime { .. }
                    | Detail::Continued { .. },
                )
                | None => Err(Fault::params(
                    "The prompt holds nothing that a model could be given: send some text.",
                )),
            },
            TurnStop::Incomplete => Ok(StopReason::MaxTokens),
            TurnStop::ProviderError => match detail {
                Some(Detail::Provider { kind, message }) => match kind {
                    FaultKind::ContextOverflow | FaultKind::AnswerLimit => {
                        Ok(StopReason::MaxTokens)
                    }
                    FaultKind::Network
                    | FaultKind::Protocol
                    | FaultKind::Unfinished
                    | FaultKind::RateLimit
                    | FaultKind::Overloaded
                    | FaultKind::Auth
                    | FaultKind::BadRequest
                    | FaultKind::Timeout => Err(provider(*kind, message)),
                },
                Some(Detail::Refusal) => Ok(StopReason::Refusal),
                Some(
                    Detail::Limit { .. }
                    | Detail::Rejection { .. }
                    | Detail::Runtime { .. }
                    | Detail::Continued { .. },
                )
                | None => Err(provider(FaultKind::Protocol, "no cause is known")),
            },
            TurnStop::MaxTurns => match detail {
                Some(Detail::Limit { kind, .. }) => Ok(limit(*kind)),
                Some(
                    Detail::Provider { .. }
                    | Detail::Refusal
                    | Detail::Rejection { .. }
                    | Detail::Runtime { .. }
                    | Detail::Continued { .. },
                )
                | None => Ok(StopReason::MaxTurnRequests),
            },
            TurnStop::ToolFailure => Err(Fault::internal(
                "tool_failure",
                "A tool failed and the prompt cannot go on",
                format!(
                    "{}. Look at the failed call, then prompt again.",
                    text(detail)
                ),
                false,
            )),
            TurnStop::PluginAbort => Ok(StopReason::Refusal),
            TurnStop::RuntimeError => Err(runtime(&text(detail))),
            TurnStop::SubmittedError { .. } | TurnStop::ToolError { .. } => Ok(StopReason::EndTurn),
        },
    }
}

fn limit(kind: LimitKind) -> StopReason {
    match kind {
        LimitKind::Tokens | LimitKind::Answer => StopReason::MaxTokens,
        LimitKind::Turns | LimitKind::Duration | LimitKind::Cost => StopReason::MaxTurnRequests,
    }
}

/// What the engine or a tool said of it, without the full stop.
fn text(detail: Option<&Detail>) -> Cow<'_, str> {
    let said = detail.and_then(Detail::sentence);
    reason_of(said.unwrap_or("No cause is known"))
}

/// A cause, shortened and without the full stop.
fn reason_of(text: &str) -> Cow<'_, str> {
    let text = text.trim_end_matches('.');
    match text.char_indices().nth(LONGEST_REASON) {
        None => text.into(),
        Some((end, _)) => format!("{}\u{2026}", &text[..end]).into(),
    }
}

/// A prompt that left nothing behind (row 16).
pub(crate) fn not_stored(error: &PromptError) -> Fault {
    let (kind, what, retryable) = match error {
        PromptError::Busy { .. } => ("session_busy", "The session is busy", true),
        PromptError::Lost(CommitFault::LaneLost) => (
            "lane_lost",
            "The session was taken over by somebody else",
            true,
        ),
        PromptError::Lost(CommitFault::HeadConflict) => {
            ("commit_conflict", "The session has changed meanwhile", true)
        }
        PromptError::Lost(CommitFault::Store(_)) => {
            ("store", "The prompt could not be stored", false)
        }
        PromptError::Model(_) => ("unknown_model", "There is no such model", false),
        PromptError::Price(_) => ("unknown_price", "The cost limit cannot be enforced", false),
        PromptError::Continue(_) => (
            "cannot_continue",
            "The session cannot go on like that",
            false,
        ),
        PromptError::Withdrawn => ("withdrawn", "The prompt was taken back", true),
        PromptError::Server(_) => ("mcp_prompt", "The prompt could not be written", true),
    };
    Fault::internal(kind, what, error.to_string(), retryable)
}

fn runtime(text: &str) -> Fault {
    Fault::internal(
        "runtime_error",
        "The prompt could not go on",
        format!("{text}. Prompt again, or choose another model."),
        false,
    )
}

/// A provider's failure. Only what a login would cure is an authentication error (RPC-22, G-11).
fn provider(kind: FaultKind, message: &str) -> Fault {
    let (what, details) = match kind {
        FaultKind::Network => (
            "The model cannot be reached",
            "Check the network, then prompt again.",
        ),
        FaultKind::Protocol | FaultKind::Unfinished => {
            ("The model's answer broke off", "Prompt again.")
        }
        FaultKind::RateLimit => (
            "The model's provider has had too many requests",
            "Wait a little, then prompt again.",
        ),
        FaultKind::Overloaded => (
            "The model's provider is overloaded or broken",
            "Wait a little, then prompt again, or choose another model.",
        ),
        FaultKind::Auth => (
            "Authentication required",
            "`turnery login` in a terminal takes a new key; or choose another model.",
        ),
        FaultKind::ContextOverflow => (
            "The conversation is too long for the model",
            "Begin a new session, or choose another model.",
        ),
        FaultKind::BadRequest => (
            "The model's provider refuses the request",
            "Choose another model, or begin a new session.",
        ),
        FaultKind::Timeout => (
            "The model fell silent",
            "Prompt again, or choose another model.",
        ),
        FaultKind::AnswerLimit => (
            "The model's answer is too long",
            "Ask for less, or choose another model.",
        ),
    };
    let reason = reason_of(message);
    let fault = match kind {
        FaultKind::Auth => Fault::new(AUTH_REQUIRED, what, format!("{reason}. {details}")),
        FaultKind::Network
        | FaultKind::Protocol
        | FaultKind::Unfinished
        | FaultKind::RateLimit
        | FaultKind::Overloaded
        | FaultKind::ContextOverflow
        | FaultKind::BadRequest
        | FaultKind::Timeout
        | FaultKind::AnswerLimit => {
            let what = if reason.is_empty() {
                what.into()
            } else {
                reason
            };
            Fault::saying(INTERNAL, format!("{what}. {details}"))
        }
    };
    fault
        .with("kind", "provider_error")
        .with("retryable", kind.is_retryable())
        .with("fault", serde_json::to_value(kind).unwrap_or_default())
}

/// The exact outcome. Values and texts are not repeated: they were shown already.
fn name(outcome: &Outcome) -> &'static str {
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

/// What the five words leave out: the outcome, who may mend it, and what it cost.
pub(crate) fn exactly(result: &PromptResult) -> Meta {
    let mut told = json!({"outcome": name(&result.outcome)});
    if let Outcome::Stopped(stop) = &result.outcome {
        told["class"] = json!(stop.class());
    }
    if let Some(detail) = &result.detail {
        told["detail"] = json!(detail);
    }
    if result.usage != Usage::default() {
        told["usage"] = json!(result.usage);
    }
    let children = result.children_usage();
    if !children.is_empty() {
        let row =
            |sum: &UsageRow| json!({"source": sum.source, "model": sum.model, "usage": sum.usage});
        told["childrenUsage"] = children.iter().map(row).collect();
    }
    let total = result.usage_report().total();
    if total != result.usage && total != Usage::default() {
        told["totalUsage"] = json!(total);
    }
    let loops: Vec<_> = result.loop_ids().collect();
    if !loops.is_empty() {
        told["loopIds"] = json!(loops);
    }
    if !result.is_stored {
        told["stored"] = json!(false);
    }
    let issues: Vec<_> = result.issues().collect();
    if !issues.is_empty() {
        told["issues"] = json!(issues);
    }
    meta(told)
}
