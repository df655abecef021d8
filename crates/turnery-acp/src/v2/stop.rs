//! Stop: what came of a prompt. Before its message is part of the conversation, a failure is the answer
//! to the request; after that, it is told with the state (V2-5).

use crate::{
    fault::{CANCELLED, Fault},
    stop,
};
use agent_client_protocol_schema::{
    v1,
    v2::{Error, ErrorStopReason, IdleStateUpdate, StopReason},
};
use turnery_agent::{PromptError, PromptResult};

/// The state after a prompt: why it stopped, and in `_meta` the exact outcome.
pub(super) fn to_wire(end: &Result<PromptResult, PromptError>) -> IdleStateUpdate {
    let idle = IdleStateUpdate::new();
    match end {
        Ok(result) => {
            let meta = stop::exactly(result);
            let (reason, meta) = match stop::reason(&result.outcome, result.detail.as_ref()) {
                Ok(reason) => (word(reason), meta),
                Err(fault) => (failed(fault), stop::without_detail(meta)),
            };
            idle.stop_reason(reason).meta(meta)
        }
        Err(PromptError::Withdrawn) => idle.stop_reason(StopReason::Cancelled),
        Err(error) => idle.stop_reason(failed(stop::not_stored(error))),
    }
}

/// The state after a command that needed no work.
pub(super) fn command_done() -> IdleStateUpdate {
    IdleStateUpdate::new().stop_reason(StopReason::EndTurn)
}

/// The answer to a prompt whose message never became part of the conversation.
pub(super) fn not_inserted(end: Result<PromptResult, PromptError>) -> Fault {
    match end {
        Ok(result) => match stop::reason(&result.outcome, result.detail.as_ref()) {
            Ok(v1::StopReason::Cancelled) => withdrawn(),
            Ok(_) => {
                let said = match &result.outcome {
                    turnery_engine::Outcome::Stopped(stop) => {
                        stop.sentence(result.detail.as_ref()).into_owned()
                    }
                    turnery_engine::Outcome::Finished(_)
                    | turnery_engine::Outcome::FrameSwitch { .. } => "it ended at once".to_owned(),
                };
                let details = format!("{}. Say something else.", said.trim_end_matches('.'));
                Fault::internal("refused", "The prompt was refused", details, false)
            }
            Err(fault) => fault,
        },
        Err(PromptError::Withdrawn) => withdrawn(),
        Err(error) => stop::not_stored(&error),
    }
}

/// A held prompt was taken back (V2-7).
fn withdrawn() -> Fault {
    Fault::new(
        CANCELLED,
        "The prompt was cancelled before it began",
        "Nothing of it is part of the conversation.",
    )
}

fn failed(fault: Fault) -> StopReason {
    StopReason::Error(ErrorStopReason::new().error(Error::from(fault)))
}

fn word(reason: v1::StopReason) -> StopReason {
    match reason {
        v1::StopReason::MaxTokens => StopReason::MaxTokens,
        v1::StopReason::MaxTurnRequests => StopReason::MaxTurnRequests,
        v1::StopReason::Refusal => StopReason::Refusal,
        v1::StopReason::Cancelled => StopReason::Cancelled,
        // The only other one; that enum is not ours and may grow.
        _ => StopReason::EndTurn,
    }
}
