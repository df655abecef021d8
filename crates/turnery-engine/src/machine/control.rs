//! Control: a tool decides about the loop that called it (UP-21, C-5).

use super::Loop;
use super::batch::Batch;
use super::opening::{Next, Opening};
use crate::{Detail, EventKind, FrameId, LoopId, Outcome, ToolControl, TurnFinish, TurnStop};

const NO_FRAME: &str =
    "this prompt has opened as many frames as one may; send another prompt to go on";

/// The frame that a loop opens: `{loop_id}.f`. A loop opens one at most, so the id is unique, and a
/// replay opens the same.
fn frame_of(loop_id: &LoopId) -> FrameId {
    FrameId::from(format!("{loop_id}.f"))
}

impl Loop {
    /// All calls of the turn have ended: what comes next? The first in call order decides; without
    /// any the model is called again. A value is shown inside the turn (LASH-10, LASH-11). What is
    /// decided so is the end: no checkpoint is asked, and what waits to be heard is given back. Fails
    /// with what cannot be done.
    pub(super) fn decide(&mut self, batch: &mut Batch) -> Result<Next, String> {
        let outranked = self.halt.is_some_and(|halt| !halt.is_time_up());
        let deciding = if faulty!(self, LastControlWins) {
            batch.controls.pop_last()
        } else {
            batch.controls.pop_first()
        };
        let Some((at, (control, message))) = deciding.filter(|_| !outranked) else {
            return Ok(Next::Turn(Opening::continuation(None)));
        };
        let tool_name = batch.call(at).name.clone();
        let stopped = |stop| Next::End(Outcome::Stopped(stop), None);
        Ok(match control {
            ToolControl::Finish(value) => {
                self.mint.emit(EventKind::ToolValue {
                    tool_name: tool_name.clone(),
                    value: value.clone(),
                });
                let finish = TurnFinish::ToolValue { tool_name, value };
                Next::End(Outcome::Finished(finish), None)
            }
            ToolControl::Submit(value) => {
                if !faulty!(self, ForgetValue) {
                    let value = value.clone();
                    self.mint.emit(EventKind::FinalValue { value });
                }
                Next::End(Outcome::Finished(TurnFinish::FinalValue { value }), None)
            }
            ToolControl::Fail => {
                let message = format!("{tool_name}: {message}");
                let detail = Some(Detail::Runtime { message });
                Next::End(Outcome::Stopped(TurnStop::ToolFailure), detail)
            }
            ToolControl::SubmitError(value) => stopped(TurnStop::SubmittedError { value }),
            ToolControl::FailWith(value) => stopped(TurnStop::ToolError { tool_name, value }),
            ToolControl::SwitchFrame { .. } if !self.spec.may_switch => {
                return Err(format!("{tool_name}: {NO_FRAME}"));
            }
            ToolControl::SwitchFrame { task } => {
                let frame_id = frame_of(&self.spec.loop_id).to_string();
                Next::End(Outcome::FrameSwitch { frame_id, task }, None)
            }
        })
    }
}
