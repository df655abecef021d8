//! Checks that the outcome matches the events before it (LASH-3 to LASH-27).

use super::{LimitState, Oracle, ensure::ensure, turn_progress::FinalValue};
use crate::{ContinuationKind, MessageStop, Outcome, TurnFinish, TurnStop};

impl Oracle {
    /// Checks the outcome against the last response, the final value, the limit and the rejection.
    pub(super) fn check_outcome(
        &self,
        outcome: &Outcome,
        rejection: Option<&String>,
    ) -> Result<(), String> {
        let rejected = matches!(outcome, Outcome::Stopped(TurnStop::InvalidInput { .. }));
        ensure(rejection.is_some() == rejected, || {
            format!("LOOP-53: rejection {rejection:?} with {outcome:?}")
        })?;
        let by_filter = self.rejected_inputs.iter().eq(rejection) && self.message_ids.is_empty();
        ensure(!rejected || by_filter, || {
            format!(
                "C-7: {rejection:?}, but refused was {:?}",
                self.rejected_inputs
            )
        })?;
        let shown = match outcome {
            Outcome::Finished(TurnFinish::FinalValue { value }, _) => {
                Some(FinalValue::Submitted(value.clone()))
            }
            Outcome::Finished(TurnFinish::ToolValue { tool_name, value }, _) => {
                Some(FinalValue::Tool(tool_name.clone(), value.clone()))
            }
            Outcome::Finished(TurnFinish::AssistantMessage { .. }, _)
            | Outcome::FrameSwitch { .. }
            | Outcome::Stopped(_) => None,
        };
        let cancelled = *outcome == Outcome::Stopped(TurnStop::Cancelled);
        ensure(shown == self.final_value || cancelled, || {
            format!("LASH-119: shown was {:?}, {outcome:?}", self.final_value)
        })?;
        ensure(self.fits_last_stop(outcome), || {
            format!(
                "C-2: {outcome:?} after a message that stopped with {:?}, limit {:?}",
                self.last_stop, self.limit_state
            )
        })
    }

    fn fits_last_stop(&self, outcome: &Outcome) -> bool {
        use MessageStop::{Aborted, Error, GuardRail, Length, Stop, ToolUse};
        let last = self.last_stop;
        let by_itself = self.limit_state != LimitState::Reached;
        if self.continuation_kind == ContinuationKind::Compaction {
            return match outcome {
                Outcome::Finished(TurnFinish::AssistantMessage { .. }, _) => {
                    self.compaction_succeeded == Some(true)
                }
                Outcome::Stopped(TurnStop::RuntimeError { .. }) => {
                    self.compaction_succeeded == Some(false)
                }
                Outcome::Stopped(TurnStop::MaxTurns(_)) => self.limit_state == LimitState::Reached,
                Outcome::Stopped(stop) => {
                    matches!(stop, TurnStop::Cancelled | TurnStop::PluginAbort { .. })
                }
                Outcome::Finished(..) | Outcome::FrameSwitch { .. } => false,
            };
        }
        match outcome {
            Outcome::Finished(TurnFinish::AssistantMessage { .. }, _) => {
                last == Some(Stop) && by_itself
            }
            // The value is submitted by a call, or is the text.
            Outcome::Finished(TurnFinish::FinalValue { .. }, _) => {
                matches!(last, Some(ToolUse | Stop)) && by_itself
            }
            Outcome::Finished(TurnFinish::ToolValue { .. }, _) | Outcome::FrameSwitch { .. } => {
                last == Some(ToolUse) && by_itself
            }
            Outcome::Stopped(stop) => match stop {
                TurnStop::Incomplete => last == Some(Length) && by_itself,
                TurnStop::ProviderError(_) => matches!(last, Some(Error | GuardRail)) && by_itself,
                TurnStop::MaxTurns(_) => match self.limit_state {
                    LimitState::NotReached => false,
                    // `Length` is for oversized responses.
                    LimitState::Reached => {
                        matches!(last, None | Some(Aborted | ToolUse | Stop | Length))
                    }
                    LimitState::ReplyStarted => true,
                },
                TurnStop::ToolFailure { .. }
                | TurnStop::SubmittedError { .. }
                | TurnStop::ToolError { .. } => last == Some(ToolUse) && by_itself,
                TurnStop::Cancelled
                | TurnStop::InvalidInput { .. }
                | TurnStop::PluginAbort { .. }
                | TurnStop::RuntimeError { .. } => true,
            },
        }
    }
}
