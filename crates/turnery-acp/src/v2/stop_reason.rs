//! Reports the end of a prompt. A failure before its message is part of the conversation is the response to
//! the request; later ones are part of the idle state (V2-5).

use crate::{
    server::rpc_error::{REQUEST_CANCELLED, RpcError},
    view::stop_reason,
};
use agent_client_protocol_schema::{
    v1,
    v2::{Error, ErrorStopReason, IdleStateUpdate, StopReason},
};
use turnery_agent::{PromptError, PromptResult};

/// Encodes the idle state after a prompt, with the stop reason and, in `_meta`, the exact outcome.
pub(super) fn encode_idle_state(end: &Result<PromptResult, PromptError>) -> IdleStateUpdate {
    let idle = IdleStateUpdate::new();
    match end {
        Ok(result) => {
            let meta = stop_reason::outcome_meta(result);
            let (reason, meta) = match stop_reason::stop_reason_or_error(&result.outcome) {
                Ok(reason) => (encode_stop_reason(reason), meta),
                Err(fault) => (error_stop_reason(fault), stop_reason::remove_detail(meta)),
            };
            idle.stop_reason(reason).meta(meta)
        }
        Err(PromptError::Withdrawn) => idle.stop_reason(StopReason::Cancelled),
        Err(error) => idle.stop_reason(error_stop_reason(stop_reason::prompt_error(error))),
    }
}

/// Returns the idle state after a command without a prompt.
pub(super) fn idle_after_command() -> IdleStateUpdate {
    IdleStateUpdate::new().stop_reason(StopReason::EndTurn)
}

/// Returns the error response to a prompt whose message never became part of the conversation.
pub(super) fn not_inserted_error(end: Result<PromptResult, PromptError>) -> RpcError {
    match end {
        Ok(result) => match stop_reason::stop_reason_or_error(&result.outcome) {
            Ok(v1::StopReason::Cancelled) => cancelled_error(),
            Ok(_) => {
                let said = match &result.outcome {
                    turnery_engine::Outcome::Stopped(stop) => stop.describe().into_owned(),
                    turnery_engine::Outcome::Finished(..)
                    | turnery_engine::Outcome::FrameSwitch { .. } => "it ended at once".to_owned(),
                };
                let details = format!("{}. Say something else.", said.trim_end_matches('.'));
                RpcError::internal("refused", "The prompt was refused", details, false)
            }
            Err(fault) => fault,
        },
        Err(PromptError::Withdrawn) => cancelled_error(),
        Err(error) => stop_reason::prompt_error(&error),
    }
}

/// Returns the error of a held prompt that was cancelled (V2-7).
fn cancelled_error() -> RpcError {
    RpcError::new(
        REQUEST_CANCELLED,
        "The prompt was cancelled before it began",
        "It is not part of the conversation.",
    )
}

fn error_stop_reason(fault: RpcError) -> StopReason {
    StopReason::Error(ErrorStopReason::new().error(Error::from(fault)))
}

fn encode_stop_reason(reason: v1::StopReason) -> StopReason {
    match reason {
        v1::StopReason::MaxTokens => StopReason::MaxTokens,
        v1::StopReason::MaxTurnRequests => StopReason::MaxTurnRequests,
        v1::StopReason::Refusal => StopReason::Refusal,
        v1::StopReason::Cancelled => StopReason::Cancelled,
        // `EndTurn` is the only other reason; the enum is non-exhaustive.
        _ => StopReason::EndTurn,
    }
}
