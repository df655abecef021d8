//! Runs hooks one at a time and applies their verdicts (D-9, D-10, C-26, C-28).
//!
//! Hooks that run before an action can veto it; verdicts of hooks that run after an action are ignored. After
//! a halt no more hooks run before actions, and those after actions may use the grace period, so that every
//! started turn gets its `AfterTurn` (R1).

use super::pending_turn::{NextStep, PendingTurn};
use super::stage::{CompactionReason, LoopFailure, PendingHook};
use super::{Effect, Loop, Stage};
use crate::{HookRequest, HookVerdict, Outcome, TurnStop};
use std::mem;

impl Loop {
    /// Returns true if a hook after an action should run.
    pub(super) fn should_notify_hook(&self, wanted: bool) -> bool {
        wanted && !self.is_grace_over
    }

    pub(super) fn ask_hook(&mut self, hook: HookRequest, pending: PendingHook) {
        self.push_effect(Effect::RunHook(hook));
        self.stage = Stage::AwaitingHook(Box::new(pending));
        if self.halt.is_some() {
            self.start_grace();
        }
    }

    /// Handles the verdict of a hook.
    pub(super) fn handle_hook_verdict(&mut self, verdict: HookVerdict) {
        match mem::replace(&mut self.stage, Stage::Finished) {
            Stage::AwaitingHook(pending) => self.resume_after_hook(*pending, verdict),
            Stage::RunningCalls(batch) => self.handle_call_hook_verdict(batch, verdict),
            other => self.stage = other,
        }
    }

    /// Continues with the verdict; one that does not apply to the hook counts as `Continue`.
    fn resume_after_hook(&mut self, pending: PendingHook, verdict: HookVerdict) {
        match (pending, verdict) {
            (PendingHook::Prompt(prompt), verdict) => self.handle_prompt_verdict(prompt, verdict),
            (PendingHook::Queued(content, filtering), verdict) => {
                self.handle_queued_verdict(content, verdict, filtering);
            }
            (PendingHook::BeforeTurn(turn), HookVerdict::Stop(reason)) => {
                self.abandon_turn(turn);
                self.abort_by_hook(reason);
            }
            (PendingHook::BeforeTurn(turn), _) => self.begin_turn(turn),
            (PendingHook::AfterTurn(next), _) => self.continue_with(next),
            (PendingHook::OnError(failure), _) => self.end_failed_loop(failure),
            (
                PendingHook::BeforeCompaction(CompactionReason::Standalone),
                HookVerdict::Stop(why),
            ) => {
                self.abort_by_hook(why);
            }
            (PendingHook::BeforeCompaction(reason), HookVerdict::Stop(why)) => {
                self.resume_without_compaction(reason, why);
            }
            (PendingHook::BeforeCompaction(reason), _) => self.start_compaction(reason),
            (PendingHook::AfterCompaction(reason), _) => self.resume_after_compaction(reason),
            (PendingHook::Checkpoint(_), HookVerdict::Stop(reason)) => self.abort_by_hook(reason),
            (PendingHook::Checkpoint(_), HookVerdict::Inject(content)) if !content.is_empty() => {
                self.continue_with(NextStep::Turn(PendingTurn::continuation(Some(
                    content.into(),
                ))));
            }
            (PendingHook::Checkpoint(text), _) => self.continue_with(NextStep::ModelDone {
                text,
                checkpoint_passed: true,
            }),
        }
    }

    /// Stops the loop after a veto (C-26).
    fn abort_by_hook(&mut self, reason: String) {
        self.commit(Outcome::Stopped(TurnStop::PluginAbort { reason }));
    }

    /// Runs the error hook, if there is one, then ends the failed loop (C-28).
    pub(super) fn fail_loop(&mut self, failure: LoopFailure) {
        let message = failure.stop.describe().into_owned();
        if faulty!(ReportErrorTwice) {
            let message = message.clone();
            self.push_effect(Effect::RunHook(HookRequest::OnError { message }));
            self.push_effect(Effect::CancelHook);
        }
        if self.should_notify_hook(self.spec.hooks.on_error) && !faulty!(ForgetOnError) {
            self.ask_hook(
                HookRequest::OnError { message },
                PendingHook::OnError(failure),
            );
        } else {
            self.end_failed_loop(failure);
        }
    }

    fn end_failed_loop(&mut self, failure: LoopFailure) {
        let next = NextStep::EndLoop(Outcome::Stopped(failure.stop));
        if self.emitter.turn_index.is_some() {
            self.finish_turn(failure.usage, failure.tool_results, next);
        } else {
            self.continue_with(next);
        }
    }

    /// Continues a halted loop without the verdict of the pending hook.
    pub(super) fn resume_without_hook(&mut self, pending: PendingHook) {
        match pending {
            PendingHook::Prompt(_) | PendingHook::Checkpoint(_) => self.stop_before_next_turn(),
            PendingHook::Queued(content, filtering) => {
                self.abandon_filtering(content, filtering);
                self.stop_before_next_turn();
            }
            PendingHook::BeforeTurn(turn) => {
                self.abandon_turn(turn);
                self.stop_before_next_turn();
            }
            PendingHook::AfterTurn(next) => self.continue_with(next),
            PendingHook::OnError(failure) => self.end_failed_loop(failure),
            PendingHook::BeforeCompaction(_) | PendingHook::AfterCompaction(_) => {
                self.abandon_model_call()
            }
        }
    }

    /// Ends a loop that was halted or has reached a limit, in place of its next turn. No hook, model call or
    /// tool call may be pending.
    pub(super) fn stop_before_next_turn(&mut self) {
        self.continue_with(NextStep::Turn(PendingTurn::continuation(None)));
    }
}
