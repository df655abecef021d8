//! Closing: how the bracket of a call opens and closes, and what the model is told (R2).

use super::calls::Batch;
use super::{Effect, Loop};
use crate::{Disposition, EventKind, FailureKind, Timestamp, ToolCall, ToolEnvelope, tool_message};

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
    pub(super) fn open_bracket(
        &mut self,
        now: Timestamp,
        call: &ToolCall,
        runs: bool,
        out: &mut Vec<Effect>,
    ) {
        let kind = EventKind::ToolExecutionStart {
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            runs,
        };
        self.mint.emit(now, kind, out);
    }

    /// The only place where a call ends: its bracket, then its result for the model.
    pub(super) fn close_call(
        &mut self,
        now: Timestamp,
        batch: &mut Batch,
        call: ToolCall,
        closing: Closing,
        out: &mut Vec<Effect>,
    ) {
        if !closing.ran {
            self.open_bracket(now, &call, false, out);
        }
        let disposition = closing.disposition();
        let result = tool_message(call.call_id.clone(), call.name.clone(), &closing.envelope);
        let kind = EventKind::ToolExecutionEnd {
            call_id: call.call_id,
            tool_name: call.name,
            child_loop_id: closing.envelope.child_loop_id.clone(),
            envelope: closing.envelope,
            disposition,
        };
        self.mint.emit(now, kind, out);
        if faulty!(self, DropResultOnDeny) && disposition == Disposition::Denied {
            return;
        }
        let message_id = self.mint.say(now, result, out);
        batch.results.push(message_id);
    }
}
