//! End: which outcome fits what was seen before it (section 7).

use super::{Limit, Oracle, ensure};
use crate::{ContinuationKind, MessageStop, Outcome, TurnFinish, TurnStop};

/// A value that a turn showed as final.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Submitted(serde_json::Value),
    Tool(String, serde_json::Value),
}

impl Oracle {
    /// The rows that the last answer, the last value, a limit or a refusal decides.
    pub(super) fn fits(&self, outcome: &Outcome, rejection: Option<&String>) -> Result<(), String> {
        let rejected = *outcome == Outcome::Stopped(TurnStop::InvalidInput);
        ensure(rejection.is_some() == rejected, || {
            format!("LOOP-53: rejection {rejection:?} with {outcome:?}")
        })?;
        let by_filter = self.refused.iter().eq(rejection) && self.message_ids.is_empty();
        ensure(!rejected || by_filter, || {
            format!("C-7: {rejection:?}, but refused was {:?}", self.refused)
        })?;
        let shown = match outcome {
            Outcome::Finished(TurnFinish::FinalValue { value }) => {
                Some(Value::Submitted(value.clone()))
            }
            Outcome::Finished(TurnFinish::ToolValue { tool_name, value }) => {
                Some(Value::Tool(tool_name.clone(), value.clone()))
            }
            Outcome::Finished(TurnFinish::AssistantMessage { .. })
            | Outcome::FrameSwitch { .. }
            | Outcome::Stopped(_) => None,
        };
        let cancelled = *outcome == Outcome::Stopped(TurnStop::Cancelled);
        ensure(shown == self.value || cancelled, || {
            format!("LASH-119: shown was {:?}, {outcome:?}", self.value)
        })?;
        ensure(self.fits_last_stop(outcome), || {
            format!(
                "C-2: {outcome:?} after a message that stopped with {:?}, limit {:?}",
                self.last_stop, self.limit
            )
        })
    }

    fn fits_last_stop(&self, outcome: &Outcome) -> bool {
        use MessageStop::{Aborted, Error, GuardRail, Length, Stop, ToolUse};
        let last = self.last_stop;
        let by_itself = self.limit != Limit::Told;
        if self.kind == ContinuationKind::Compaction {
            return match outcome {
                Outcome::Finished(TurnFinish::AssistantMessage { .. }) => {
                    self.compacted == Some(true)
                }
                Outcome::Stopped(TurnStop::RuntimeError) => self.compacted == Some(false),
                Outcome::Stopped(TurnStop::MaxTurns) => self.limit == Limit::Told,
                Outcome::Stopped(stop) => {
                    matches!(stop, TurnStop::Cancelled | TurnStop::PluginAbort)
                }
                Outcome::Finished(_) | Outcome::FrameSwitch { .. } => false,
            };
        }
        match outcome {
            Outcome::Finished(TurnFinish::AssistantMessage { .. }) => {
                last == Some(Stop) && by_itself
            }
            Outcome::Finished(TurnFinish::FinalValue { .. } | TurnFinish::ToolValue { .. })
            | Outcome::FrameSwitch { .. } => last == Some(ToolUse) && by_itself,
            Outcome::Stopped(stop) => match stop {
                TurnStop::Incomplete => last == Some(Length) && by_itself,
                TurnStop::ProviderError => matches!(last, Some(Error | GuardRail)) && by_itself,
                TurnStop::MaxTurns => match self.limit {
                    Limit::Far => false,
                    // `Length` for an answer beyond its bounds.
                    Limit::Told => matches!(last, None | Some(Aborted | ToolUse | Stop | Length)),
                    Limit::Replied => true,
                },
                TurnStop::ToolFailure
                | TurnStop::SubmittedError { .. }
                | TurnStop::ToolError { .. } => last == Some(ToolUse) && by_itself,
                TurnStop::Cancelled
                | TurnStop::InvalidInput
                | TurnStop::PluginAbort
                | TurnStop::RuntimeError => true,
            },
        }
    }
}
