//! Requests compaction of history when the next request would fill the model's context (UP-10, TURN-58).

use super::pending_turn::{NextStep, PendingTurn, TurnNotice};
use super::stage::{CompactionReason, LoopFailure, PendingHook};
use super::{Effect, Loop, ResponseDraft, Stage};
use crate::{
    CompactionBlock, ContextSize, EventKind, HookRequest, MessageStop, ModelError, Outcome,
    TurnFinish, TurnStop, Usage,
};
use std::mem;

impl Loop {
    /// Compacts if the context is full, then calls the model; called after the inputs were added (TURN-57).
    pub(super) fn compact_if_full(&mut self) {
        let has_overflowed = self.gauge.take_overflow();
        if has_overflowed || self.gauge.is_full(&self.spec.context) {
            self.request_compaction(CompactionReason::ContextFull { has_overflowed });
        } else {
            self.call_model();
        }
    }

    /// Handles a context overflow before any output was shown: compacts once per turn, else fails.
    pub(super) fn handle_overflow(&mut self, error: ModelError) {
        if self.spec.context.compact_at == 0 || self.gauge.attempted {
            return self.fail_without_draft(error);
        }
        self.request_compaction(CompactionReason::Overflow(error));
    }

    /// Handles a context overflow that was noticed within or after a response: keeps what was shown, and compacts at the
    /// start of another turn, once per loop.
    pub(super) fn handle_overflow_in_response(&mut self, draft: ResponseDraft, error: ModelError) {
        if self.spec.context.compact_at == 0 || !self.gauge.note_overflow() {
            return self.fail_draft(draft, error);
        }
        self.settle_draft(draft, MessageStop::Length, Some(error.message));
        let turn = PendingTurn::with_notice(TurnNotice::Overflow);
        self.finish_turn(None, Vec::new(), NextStep::Turn(turn));
    }

    /// Starts a compaction, after its `BeforeCompaction` hook if one is installed.
    pub(super) fn request_compaction(&mut self, reason: CompactionReason) {
        if self.spec.hooks.compaction {
            let hook = HookRequest::BeforeCompaction(self.gauge.size);
            self.ask_hook(hook, PendingHook::BeforeCompaction(reason));
        } else {
            self.start_compaction(reason);
        }
    }

    pub(super) fn start_compaction(&mut self, reason: CompactionReason) {
        if self.is_budget_spent() {
            return self.abandon_model_call();
        }
        let before = self.gauge.size;
        self.gauge.attempted = true;
        self.emitter.emit(EventKind::CompactionStarted { before });
        let has_overflowed = match &reason {
            CompactionReason::ContextFull { has_overflowed } => *has_overflowed,
            CompactionReason::Overflow(_) => true,
            CompactionReason::Standalone => false,
        };
        self.push_effect(Effect::Compact {
            before,
            has_overflowed,
        });
        self.stage = Stage::Compacting(Box::new(reason));
    }

    /// Handles the result of a compaction. After a failure the context is unchanged.
    pub(super) fn handle_compaction(
        &mut self,
        block: Result<CompactionBlock, String>,
        after: ContextSize,
        usage: Option<Usage>,
    ) {
        let Some(reason) = self.take_compaction() else {
            return;
        };
        let before = self.gauge.size;
        match block {
            Ok(block) => {
                self.end_compaction(Ok(block), after, usage);
                if self.should_notify_hook(self.spec.hooks.compaction) {
                    let hook = HookRequest::AfterCompaction { before, after };
                    self.ask_hook(hook, PendingHook::AfterCompaction(reason));
                } else {
                    self.resume_after_compaction(reason);
                }
            }
            Err(why) => {
                self.end_compaction(Err(why.clone()), before, usage);
                self.resume_without_compaction(reason, why);
            }
        }
    }

    /// Ends a compaction; no other function does.
    fn end_compaction(
        &mut self,
        block: Result<CompactionBlock, String>,
        after: ContextSize,
        usage: Option<Usage>,
    ) {
        self.gauge.set_compacted_size(after);
        if let Some(usage) = usage {
            self.own_spending.add_usage(&usage, self.spec.price);
        }
        let (block, failure) = match block {
            Ok(block) => (Some(block), None),
            Err(why) => (None, Some(why)),
        };
        if faulty!(OmitCompactionEnd) {
            return;
        }
        self.emitter.emit(EventKind::CompactionEnded {
            block,
            after,
            failure,
            usage,
        });
    }

    pub(super) fn resume_after_compaction(&mut self, reason: CompactionReason) {
        match reason {
            CompactionReason::ContextFull { .. } => self.call_model(),
            CompactionReason::Overflow(error) => {
                self.failed_attempts += 1;
                self.emitter.emit(EventKind::ModelRetried {
                    attempt: self.failed_attempts,
                    error,
                    wait_ms: 0,
                });
                self.call_model();
            }
            CompactionReason::Standalone => {
                let ContextSize { tokens, messages } = self.gauge.size;
                let text = format!(
                    "History was summarised: about {tokens} tokens in {messages} messages are left."
                );
                let finish = TurnFinish::AssistantMessage { text: text.into() };
                self.commit(Outcome::Finished(finish, None));
            }
        }
    }

    /// Continues after a hook vetoed the compaction or the summary failed.
    pub(super) fn resume_without_compaction(&mut self, reason: CompactionReason, why: String) {
        match reason {
            CompactionReason::ContextFull { .. } => self.call_model(),
            CompactionReason::Overflow(error) => self.fail_without_draft(error),
            CompactionReason::Standalone => {
                let stop = TurnStop::RuntimeError { message: why };
                self.fail_loop(LoopFailure::without_calls(stop, None));
            }
        }
    }

    /// Stops a running compaction. The caller sets the next stage.
    pub(super) fn stop_compaction(&mut self, why: String) {
        if !faulty!(ForgetStopCompaction) {
            self.push_effect(Effect::StopCompaction);
        }
        self.end_compaction(Err(why), self.gauge.size, None);
    }

    fn take_compaction(&mut self) -> Option<CompactionReason> {
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::Compacting(reason) => Some(*reason),
            other => {
                self.stage = other;
                None
            }
        }
    }
}
