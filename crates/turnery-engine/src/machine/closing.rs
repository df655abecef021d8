//! Closing: how the bracket of a call opens and closes, and what the model is told (R2).

use super::Loop;
use super::batch::{Batch, Phase};
use crate::{Disposition, EventKind, FailureKind, Hook, ToolEnvelope, tool_message};

/// What is known of a call at its end.
pub(super) struct Closing {
    envelope: ToolEnvelope,
    ran: bool,
}

impl Closing {
    pub(super) fn ran(envelope: ToolEnvelope) -> Self {
        Self {
            envelope,
            ran: true,
        }
    }

    pub(super) fn unrun(envelope: ToolEnvelope) -> Self {
        Self {
            envelope,
            ran: false,
        }
    }

    fn disposition(&self) -> Disposition {
        let kind = self.envelope.result.as_ref().err().map(|f| f.kind);
        match (self.ran, kind) {
            (_, Some(FailureKind::Cancelled)) => Disposition::Cancelled,
            (_, Some(FailureKind::Timeout)) => Disposition::TimedOut,
            (true, _) => Disposition::Executed,
            (false, Some(FailureKind::NotFound)) => Disposition::NotFound,
            (false, Some(FailureKind::Denied)) => Disposition::Denied,
            (false, None | Some(FailureKind::Skipped)) => Disposition::Skipped,
            (
                false,
                Some(
                    FailureKind::Validation | FailureKind::Exception | FailureKind::ExecutionError,
                ),
            ) => Disposition::Invalid,
        }
    }
}

impl Loop {
    pub(super) fn open_bracket(&mut self, batch: &Batch, at: usize, runs: bool) {
        let call = batch.call(at);
        self.mint.emit(EventKind::ToolExecutionStart {
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            runs,
        });
    }

    /// The only place where a call ends. Its result waits for those of the calls before it (R3).
    pub(super) fn close_call(&mut self, batch: &mut Batch, at: usize, closing: Closing) {
        if !closing.ran && !faulty!(self, SkipWithoutBracket) {
            self.open_bracket(batch, at, false);
        }
        let disposition = closing.disposition();
        let call = batch.call(at);
        let call_id = call.call_id.clone();
        let tool_name = call.name.clone();
        let message = tool_message(call_id.clone(), tool_name.clone(), &closing.envelope);
        if let Some(control) = &closing.envelope.control {
            let control = (control.as_ref().clone(), message.text());
            batch.controls.insert(at, control);
        }
        let told = closing.ran && self.spec.hooks.after_tool;
        let ended = Phase::Ended {
            hook: told.then(|| {
                Box::new(Hook::AfterTool {
                    call_id: call_id.clone(),
                    tool_name: tool_name.clone(),
                    envelope: Box::new(closing.envelope.clone()),
                })
            }),
            message: Box::new(message),
        };
        let is_dropped = faulty!(self, DropResultOnDeny) && disposition == Disposition::Denied;
        batch.set_phase(at, if is_dropped { Phase::Told } else { ended });
        self.mint.emit(EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            child_loop_id: closing.envelope.child_loop_id.clone(),
            envelope: closing.envelope,
            disposition,
        });
    }
}
