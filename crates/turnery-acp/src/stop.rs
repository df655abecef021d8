//! Stop: what came of a prompt, as the wire says it (engine.md, section 7).

use crate::fault::{AUTH_REQUIRED, Fault};
use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use serde_json::{Map, Value, json};
use turnery_agent::{PromptError, PromptResult};
use turnery_engine::{
    CommitFault, Detail, FaultKind, LimitKind, Outcome, TurnFinish, TurnStop, Usage,
};

/// The answer to a prompt. Five words for the ends there are; the exact one is in `_meta.turnery`.
pub(crate) fn to_wire(result: &PromptResult) -> Result<PromptResponse, Fault> {
    let detail = result.detail.as_ref();
    let reason = match &result.outcome {
        Outcome::Finished(_) => StopReason::EndTurn,
        Outcome::FrameSwitch { .. } => {
            return Err(runtime("the next frame was not run", &result.outcome));
        }
        Outcome::Stopped(stop) => match stop {
            TurnStop::Cancelled => StopReason::Cancelled,
            TurnStop::InvalidInput => match detail {
                Some(Detail::Rejection { .. }) => StopReason::Refusal,
                _ => {
                    return Err(Fault::params(
                        "The prompt holds nothing that a model could be given: send some text.",
                    )
                    .with("outcome", name(&result.outcome)));
                }
            },
            TurnStop::Incomplete => StopReason::MaxTokens,
            TurnStop::ProviderError => match detail {
                Some(Detail::Provider {
                    kind: FaultKind::ContextOverflow,
                    ..
                }) => StopReason::MaxTokens,
                Some(Detail::Refusal) => StopReason::Refusal,
                Some(Detail::Provider { kind, message }) => {
                    return Err(provider(*kind, message).with("outcome", name(&result.outcome)));
                }
                _ => {
                    return Err(
                        provider(FaultKind::Protocol, "the model could not be reached")
                            .with("outcome", name(&result.outcome)),
                    );
                }
            },
            TurnStop::MaxTurns => match detail {
                Some(Detail::Limit {
                    kind: LimitKind::Tokens,
                    ..
                }) => StopReason::MaxTokens,
                _ => StopReason::MaxTurnRequests,
            },
            TurnStop::ToolFailure => {
                return Err(Fault::internal(
                    "tool_failure",
                    "A tool failed and the prompt cannot go on",
                    "Look at the failed call, then prompt again.",
                    false,
                )
                .with("outcome", name(&result.outcome)));
            }
            TurnStop::PluginAbort => StopReason::Refusal,
            TurnStop::RuntimeError => {
                let text = match detail {
                    Some(Detail::Runtime { message }) => message.as_str(),
                    _ => "no cause is known",
                };
                return Err(runtime(text, &result.outcome));
            }
            TurnStop::SubmittedError { .. } | TurnStop::ToolError { .. } => StopReason::EndTurn,
        },
    };
    Ok(PromptResponse::new(reason).meta(meta(result)))
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
    };
    Fault::internal(kind, what, error.to_string(), retryable)
}

fn runtime(text: &str, outcome: &Outcome) -> Fault {
    Fault::internal(
        "runtime_error",
        "The agent broke",
        format!("{text}. The same prompt is unlikely to help; please report it."),
        false,
    )
    .with("outcome", name(outcome))
}

/// A provider's failure. Only what a login would cure is an authentication error (RPC-22, G-11).
fn provider(kind: FaultKind, message: &str) -> Fault {
    let (what, details) = match kind {
        FaultKind::Network => (
            "The model cannot be reached",
            "Check the network, then prompt again.",
        ),
        FaultKind::Protocol => ("The model's answer broke off", "Prompt again."),
        FaultKind::RateLimit => (
            "The model's provider has had too many requests",
            "Wait a little, then prompt again.",
        ),
        FaultKind::Overloaded => (
            "The model's provider is overloaded or broken",
            "Wait a little, then prompt again, or choose another model.",
        ),
        FaultKind::Auth => (
            "The model's provider does not accept the key",
            "Set a valid key, or choose another model.",
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
    };
    let details = format!("{}. {details}", message.trim_end_matches('.'));
    let fault = match kind {
        FaultKind::Auth => Fault::new(AUTH_REQUIRED, what, details),
        FaultKind::Network
        | FaultKind::Protocol
        | FaultKind::RateLimit
        | FaultKind::Overloaded
        | FaultKind::ContextOverflow
        | FaultKind::BadRequest
        | FaultKind::Timeout => {
            Fault::internal("provider_error", what, details, kind.is_retryable())
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

fn meta(result: &PromptResult) -> Map<String, Value> {
    let mut turnery = Map::new();
    turnery.insert("outcome".to_owned(), name(&result.outcome).into());
    if let Some(detail) = result
        .detail
        .as_ref()
        .and_then(|d| serde_json::to_value(d).ok())
    {
        turnery.insert("detail".to_owned(), detail);
    }
    if result.usage != Usage::default() {
        turnery.insert("usage".to_owned(), json!(result.usage));
    }
    Map::from_iter([("turnery".to_owned(), Value::Object(turnery))])
}
