//! Decides whether a turn starts, with which inputs, and what follows it (TURN-26, TURN-31, TURN-68, UP-7).

use super::Loop;
use super::pending_turn::{InputFiltering, NextStep, PendingTurn, QueuedMessage, TurnNotice};
use super::stage::{LoopFailure, PendingHook};
use crate::{
    Content, ContinuationKind, EventKind, HookRequest, HookVerdict, Outcome, ResponseText,
    Termination, TurnFinish, TurnStop, TurnTrigger, message::join_text,
};
use std::collections::VecDeque;

/// Maximum number of reminders in a row that a task ends only with a value (UP-33). A model that ignores them gets no
/// further call.
const MAX_REMINDERS: u32 = 2;

/// Length of a response that is quoted in an error. Unit: bytes.
const MAX_QUOTE_BYTES: usize = 300;

impl Loop {
    /// Starts the loop with its prompt, after the input filter.
    pub(super) fn start_prompt(&mut self) {
        let prompt = std::mem::take(&mut self.spec.input);
        if prompt.is_empty() {
            self.start_first_turn(None);
        } else if self.spec.hooks.input {
            let hook = input_hook_request(&prompt);
            self.ask_hook(hook, PendingHook::Prompt(prompt));
        } else {
            self.start_first_turn(Some(prompt.into()));
        }
    }

    /// Starts the first turn with its trigger (TURN-16 to TURN-22).
    fn start_first_turn(&mut self, prompt: Option<QueuedMessage>) {
        let trigger = match self.spec.continuation_kind {
            ContinuationKind::Initial => self.spec.trigger,
            ContinuationKind::Branch => TurnTrigger::Branch,
            ContinuationKind::Default | ContinuationKind::Rerun | ContinuationKind::Compaction => {
                TurnTrigger::Continuation
            }
        };
        self.continue_with(NextStep::Turn(PendingTurn {
            trigger,
            prompt,
            queued: Vec::new(),
            notice: None,
        }));
    }

    /// Handles the filter verdict on the prompt: a rejection ends the loop (C-7).
    pub(super) fn handle_prompt_verdict(&mut self, prompt: Vec<Content>, verdict: HookVerdict) {
        match apply_filter_verdict(prompt, verdict) {
            Ok(message) => self.start_first_turn(Some(message)),
            Err(reason) => {
                self.emitter.emit(EventKind::InputRejected {
                    reason: reason.clone(),
                });
                self.commit(Outcome::Stopped(TurnStop::InvalidInput { reason }));
            }
        }
    }

    /// Continues with the next step, unless the loop is halted. A time limit reached when nothing is left to
    /// do has no effect (C-4).
    pub(super) fn continue_with(&mut self, next: NextStep) {
        match (self.halt, next) {
            (Some(halt), NextStep::Turn(_)) => self.end_halted_loop(halt),
            (
                Some(halt),
                NextStep::ModelDone {
                    checkpoint_passed: false,
                    ..
                },
            ) if self.spec.hooks.checkpoint || self.requires_finish() => {
                self.end_halted_loop(halt);
            }
            (Some(halt), next) if !halt.is_time_up() => {
                drop(next);
                self.end_halted_loop(halt);
            }
            (_, NextStep::EndLoop(outcome)) => self.commit(outcome),
            (_, NextStep::ResponseTooLarge(text)) => self.stop_at_response_limit(text),
            (None, NextStep::Turn(turn)) => {
                if let Some(limit) = self.reached_limit() {
                    return self.stop_at_limit(limit, turn);
                }
                let mut waiting = self
                    .spec
                    .steering
                    .take_from(&mut self.input_queues.steering);
                if faulty!(DeliverFollowUpsEarly) {
                    waiting.extend(
                        self.spec
                            .follow_ups
                            .take_from(&mut self.input_queues.follow_ups),
                    );
                }
                self.filter_pending(InputFiltering {
                    fallback: NextStep::Turn(turn),
                    accepted: Vec::new(),
                    pending: waiting,
                });
            }
            (
                halt,
                NextStep::ModelDone {
                    text,
                    checkpoint_passed: checked,
                },
            ) => {
                self.handle_model_done(text, checked, halt.is_none());
            }
        }
    }

    pub(super) fn requires_finish(&self) -> bool {
        self.spec.termination == Termination::FinishRequired
    }

    /// Delivers steering, then runs the checkpoint, then delivers follow-ups; finishes if there are none. If a decision
    /// is required, reminds the model instead.
    fn handle_model_done(&mut self, text: ResponseText, checked: bool, may_go_on: bool) {
        let accepts_input = may_go_on && self.reached_limit().is_none();
        let mut waiting = VecDeque::new();
        if accepts_input {
            waiting = self
                .spec
                .steering
                .take_from(&mut self.input_queues.steering);
        }
        if waiting.is_empty() && self.requires_finish() && !faulty!(AcceptProse) {
            if self.reminder_count == MAX_REMINDERS {
                let message = describe_prose(&text);
                let stop = TurnStop::RuntimeError { message };
                return self.fail_loop(LoopFailure::without_calls(stop, None));
            }
            self.reminder_count += 1;
            return self.continue_with(NextStep::Turn(PendingTurn::with_notice(
                TurnNotice::FinishRequired,
            )));
        }
        if waiting.is_empty() && !checked && self.spec.hooks.checkpoint {
            return self.ask_hook(HookRequest::Checkpoint, PendingHook::Checkpoint(text));
        }
        if waiting.is_empty() && accepts_input {
            waiting = self
                .spec
                .follow_ups
                .take_from(&mut self.input_queues.follow_ups);
        }
        if waiting.is_empty() {
            let finish = TurnFinish::AssistantMessage { text };
            return self.commit(Outcome::Finished(finish, None));
        }
        self.filter_pending(InputFiltering {
            fallback: NextStep::ModelDone {
                text,
                checkpoint_passed: checked,
            },
            accepted: Vec::new(),
            pending: waiting,
        });
    }

    /// Runs the input filter for each pending message, then starts the turn.
    fn filter_pending(&mut self, mut filtering: InputFiltering) {
        while let Some(content) = filtering.pending.pop_front() {
            if self.spec.hooks.input {
                let hook = input_hook_request(&content);
                return self.ask_hook(hook, PendingHook::Queued(content, filtering));
            }
            filtering.accepted.push(content.into());
        }
        match filtering.fallback {
            NextStep::Turn(mut turn) => {
                turn.queued = filtering.accepted;
                self.claim_turn(turn);
            }
            next => {
                // The model is done, so a limit reached by now does not stop the loop (C-4).
                if self.reached_limit().is_some() {
                    self.return_messages(std::mem::take(&mut filtering.accepted));
                }
                if filtering.accepted.is_empty() {
                    return self.continue_with(next);
                }
                let mut turn = PendingTurn::continuation(None);
                turn.queued = filtering.accepted;
                self.claim_turn(turn);
            }
        }
    }

    /// Handles the filter verdict on a steering or follow-up message: a rejection drops only this message
    /// (C-7, D-7).
    pub(super) fn handle_queued_verdict(
        &mut self,
        content: Vec<Content>,
        verdict: HookVerdict,
        mut filtering: InputFiltering,
    ) {
        match apply_filter_verdict(content, verdict) {
            Ok(message) => filtering.accepted.push(message),
            Err(reason) => self.emitter.emit(EventKind::InputRejected { reason }),
        }
        self.filter_pending(filtering);
    }

    /// Claims a turn of the prompt's limit, which other loops may have used up while the filter ran.
    fn claim_turn(&mut self, mut turn: PendingTurn) {
        if let Some(limit) = self.reached_limit() {
            self.return_messages(std::mem::take(&mut turn.queued));
            return self.stop_at_limit(limit, turn);
        }
        self.own_spending.turns += 1;
        self.ask_before_turn_hook(turn);
    }

    pub(super) fn ask_before_turn_hook(&mut self, turn: PendingTurn) {
        if self.spec.hooks.before_turn {
            let turn_index = self.turn_count;
            self.ask_hook(
                HookRequest::BeforeTurn { turn_index },
                PendingHook::BeforeTurn(turn),
            );
        } else {
            self.begin_turn(turn);
        }
    }

    /// Abandons a turn before its start: the turn is not counted, and its user messages are returned.
    pub(super) fn abandon_turn(&mut self, turn: PendingTurn) {
        let is_counted = self.last_reply_limit.is_none() || self.spec.loop_turn_limit.is_some();
        self.own_spending.turns = self.own_spending.turns.saturating_sub(is_counted.into());
        self.return_messages(turn.queued);
    }

    fn return_messages(&mut self, messages: Vec<QueuedMessage>) {
        for message in messages {
            self.return_undelivered(message.content);
        }
    }

    /// Abandons a turn during input filtering and returns its user messages.
    pub(super) fn abandon_filtering(&mut self, content: Vec<Content>, filtering: InputFiltering) {
        self.return_messages(filtering.accepted);
        self.return_undelivered(content);
        for content in filtering.pending {
            self.return_undelivered(content);
        }
    }
}

/// Returns the error of a model that ignores the reminders.
fn describe_prose(text: &str) -> String {
    let text = text.trim();
    let quoted = text.get(..text.floor_char_boundary(MAX_QUOTE_BYTES));
    let quoted = quoted.unwrap_or_default();
    let ellipsis = if quoted.len() < text.len() { "…" } else { "" };
    format!(
        "the model answered with text {} times, although the task ends only with a value that it submits by \
         calling `finish`; its last answer: \"{quoted}{ellipsis}\"; try another model, or the other protocol \
         (tools or code)",
        MAX_REMINDERS + 1
    )
}

fn input_hook_request(content: &[Content]) -> HookRequest {
    HookRequest::Input {
        text: join_text(content),
    }
}

fn apply_filter_verdict(
    content: Vec<Content>,
    verdict: HookVerdict,
) -> Result<QueuedMessage, String> {
    match verdict {
        HookVerdict::Continue | HookVerdict::Inject(_) => Ok(content.into()),
        HookVerdict::Warn(warning) => Ok(QueuedMessage {
            content,
            warning: Some(warning),
        }),
        HookVerdict::Stop(reason) => Err(reason),
    }
}
