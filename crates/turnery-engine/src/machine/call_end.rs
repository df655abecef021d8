//! Emits the start and end events of tool calls, and builds their results for the model (R2).

use super::Loop;
use super::call_batch::{CallBatch, CallDecision, CallPhase, CallResult};
use crate::{Disposition, EventKind, HookRequest, ToolEnvelope, ToolErrorKind, tool_message};

/// Result of a call, and how the call ended.
pub(super) struct CallEnd {
    envelope: ToolEnvelope,
    was_executed: bool,
}

impl CallEnd {
    pub(super) fn executed(envelope: ToolEnvelope) -> Self {
        Self {
            envelope,
            was_executed: true,
        }
    }

    pub(super) fn not_executed(envelope: ToolEnvelope) -> Self {
        Self {
            envelope,
            was_executed: false,
        }
    }

    fn disposition(&self) -> Disposition {
        let kind = self.envelope.result.as_ref().err().map(|f| f.kind);
        match (self.was_executed, kind) {
            (_, Some(ToolErrorKind::Cancelled)) => Disposition::Cancelled,
            (_, Some(ToolErrorKind::Timeout)) => Disposition::TimedOut,
            (true, _) => Disposition::Executed,
            (false, Some(ToolErrorKind::NotFound)) => Disposition::NotFound,
            (false, Some(ToolErrorKind::Denied)) => Disposition::Denied,
            (false, None | Some(ToolErrorKind::Skipped)) => Disposition::Skipped,
            (
                false,
                Some(
                    ToolErrorKind::Validation
                    | ToolErrorKind::Exception
                    | ToolErrorKind::ExecutionError,
                ),
            ) => Disposition::Invalid,
        }
    }
}

impl Loop {
    pub(super) fn emit_execution_start(&mut self, batch: &CallBatch, at: usize, runs: bool) {
        let call = batch.call(at);
        self.emitter.emit(EventKind::ToolExecutionStart {
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            runs,
        });
    }

    /// Ends a call; no other function does. Its result is held back until the calls before it have theirs
    /// (R3).
    pub(super) fn end_call(&mut self, batch: &mut CallBatch, at: usize, closing: CallEnd) {
        if !closing.was_executed && !faulty!(OmitStartOfSkippedCall) {
            self.emit_execution_start(batch, at, false);
        }
        let disposition = closing.disposition();
        let call = batch.call(at);
        let call_id = call.call_id.clone();
        let tool_name = call.name.clone();
        let message = tool_message(call_id.clone(), tool_name.clone(), &closing.envelope);
        if let Some(control) = &closing.envelope.control {
            // A decision of a nested call precedes that of its parent.
            batch.controls.entry(at).or_insert_with(|| CallDecision {
                control: control.as_ref().clone(),
                tool_name: tool_name.clone(),
                text: message.text(),
            });
        }
        let should_notify = closing.was_executed && self.spec.hooks.after_tool;
        let ended = CallPhase::Ended {
            hook: should_notify.then(|| {
                Box::new(HookRequest::AfterTool {
                    call_id: call_id.clone(),
                    tool_name: tool_name.clone(),
                    envelope: Box::new(closing.envelope.clone()),
                })
            }),
            result: Box::new(match batch.outer {
                Some(_) if !faulty!(DeliverNestedResultToModel) => {
                    CallResult::Nested(closing.envelope.clone())
                }
                _ => CallResult::Message(message),
            }),
        };
        let is_dropped = faulty!(DropResultOnDeny) && disposition == Disposition::Denied;
        batch.set_phase(
            at,
            if is_dropped {
                CallPhase::Delivered
            } else {
                ended
            },
        );
        self.emitter.emit(EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            child_loop_id: closing.envelope.child_loop_id.clone(),
            envelope: closing.envelope,
            disposition,
        });
    }
}
