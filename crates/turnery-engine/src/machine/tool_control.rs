//! Applies the decisions of tools about the loop that called them (UP-21, C-5).

use super::Loop;
use super::call_batch::{CallBatch, CallDecision};
use super::pending_turn::{NextStep, PendingTurn};
use crate::{EventKind, FrameId, LoopId, Outcome, ToolControl, TurnFinish, TurnStop};
use serde_json::Value;

const FRAME_LIMIT_REACHED: &str =
    "this prompt has opened as many frames as one may; send another prompt to go on";

/// Returns the id of the frame that a loop opens: `{loop_id}.f`. Unique, because a loop opens at most one,
/// and the same in a replay.
fn frame_id_opened_by(loop_id: &LoopId) -> FrameId {
    FrameId::from(format!("{loop_id}.f"))
}

impl Loop {
    /// Decides the next step after all calls of a turn. The first decision in call order wins; without any
    /// the model is called again. Final values are shown inside the turn (LASH-10, LASH-11). A decision is
    /// final: no checkpoint runs, and queued messages are returned. Fails if the decision cannot be carried
    /// out.
    pub(super) fn decide_next(&mut self, batch: &mut CallBatch) -> Result<NextStep, String> {
        let outranked = self.halt.is_some_and(|halt| !halt.is_time_up());
        let deciding = if faulty!(LastControlWins) {
            batch.controls.pop_last()
        } else {
            batch.controls.pop_first()
        };
        let Some((_, decision)) = deciding.filter(|_| !outranked) else {
            return Ok(NextStep::Turn(PendingTurn::continuation(None)));
        };
        let CallDecision {
            control,
            tool_name,
            text,
        } = decision;
        let stopped = |stop| NextStep::EndLoop(Outcome::Stopped(stop));
        Ok(match control {
            ToolControl::Finish(value) => {
                self.emitter.emit(EventKind::ToolValue {
                    tool_name: tool_name.clone(),
                    value: value.clone(),
                });
                let finish = TurnFinish::ToolValue { tool_name, value };
                NextStep::EndLoop(Outcome::Finished(finish, None))
            }
            ToolControl::Submit(value) => self.submit(value),
            ToolControl::Fail => stopped(TurnStop::ToolFailure {
                message: format!("{tool_name}: {text}"),
            }),
            ToolControl::SubmitError(value) => stopped(TurnStop::SubmittedError { value }),
            ToolControl::FailWith(value) => stopped(TurnStop::ToolError { tool_name, value }),
            ToolControl::SwitchFrame { .. } if !self.spec.can_switch_frame => {
                return Err(format!("{tool_name}: {FRAME_LIMIT_REACHED}"));
            }
            ToolControl::SwitchFrame { task } => {
                let frame_id = frame_id_opened_by(&self.spec.loop_id).to_string();
                NextStep::EndLoop(Outcome::FrameSwitch { frame_id, task })
            }
        })
    }

    /// Shows a final value of the model, which ends the loop (LASH-10).
    pub(super) fn submit(&mut self, value: Value) -> NextStep {
        if !faulty!(ForgetValue) {
            let value = value.clone();
            self.emitter.emit(EventKind::FinalValue { value });
        }
        NextStep::EndLoop(Outcome::Finished(TurnFinish::FinalValue { value }, None))
    }
}
