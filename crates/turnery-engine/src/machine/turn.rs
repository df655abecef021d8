//! Runs a turn: emits its inputs, calls the model, and handles the response.

use super::pending_turn::{NextStep, PendingTurn, TurnNotice};
use super::stage::{LoopFailure, PendingHook};
use super::{CallAnnouncement, CallBatch, Effect, Loop, ResponseDraft, Stage, TextValue};
use crate::{
    EventKind, HookRequest, LlmMessage, Message, MessageId, MessageStop, ModelDelta, ModelError,
    ModelErrorKind, ModelStop, Outcome, ProviderFailure, Response, ResponseLimitError,
    ResponseSize, ResponseText, ToolChoice, TurnStop, Usage,
};
use std::{mem, sync::Arc};

const EMPTY_RESPONSE: &str =
    "the model gave an empty answer; send the prompt again, or choose another model";

const FINISH_REMINDER: &str = "A reply in prose does not end this task. Call `finish` with the result, or \
    `submit_error` if there can be none.";

const VALUE_REJECTED: &str = " The value in your reply does not fit its schema either:\n";

const OVERFLOW_NOTICE: &str =
    "The context window was full, so your reply was cut off. Go on with the task.";

const LAST_REPLY_NOTICE: &str =
    "No tool can be used any more. Reply now in prose, from what you know so far.";

impl Loop {
    /// Starts a turn, after all checks and hooks have passed.
    pub(super) fn begin_turn(&mut self, turn: PendingTurn) {
        self.emitter.turn_index = Some(self.turn_count);
        self.turn_count += 1;
        self.failed_attempts = 0;
        self.gauge.begin_turn();
        self.emitter.emit(EventKind::TurnStart {
            trigger: turn.trigger,
        });
        if self.last_reply_limit.is_some() {
            let text = LAST_REPLY_NOTICE.to_owned();
            self.emit_message(Message::System { text });
        }
        for text in mem::take(&mut self.spec.notices) {
            self.emit_message(Message::System { text });
        }
        self.was_reminded = turn.notice == Some(TurnNotice::FinishRequired);
        let rejection = self.value_rejection.take();
        let notice = match turn.notice {
            Some(TurnNotice::FinishRequired) if faulty!(ForgetReminder) => None,
            Some(TurnNotice::FinishRequired) => Some(match rejection {
                Some(reasons) => format!("{FINISH_REMINDER}{VALUE_REJECTED}{reasons}"),
                None => FINISH_REMINDER.to_owned(),
            }),
            Some(TurnNotice::Overflow) => Some(OVERFLOW_NOTICE.to_owned()),
            None => None,
        };
        if let Some(text) = notice {
            self.emit_message(Message::System { text });
        }
        if let Some(message) = turn.prompt {
            let content = message.into_content();
            self.emit_message(Message::User { content });
        }
        for message in turn.queued {
            let content = message.into_content();
            self.emit_message(Message::User { content });
        }
        self.compact_if_full();
    }

    pub(super) fn call_model(&mut self) {
        if self.is_budget_spent() {
            // A summary or a hook since the limit check may have used up the budget.
            return self.abandon_model_call();
        }
        if let Some(turn_index) = self.emitter.turn_index {
            let tool_choice = match self.last_reply_limit {
                Some(_) => ToolChoice::None,
                None if self.was_reminded => ToolChoice::Required,
                None => ToolChoice::Auto,
            };
            self.push_effect(Effect::CallModel {
                turn_index,
                tool_choice,
            });
            self.stage = Stage::AwaitingModel(ResponseDraft::default());
        }
    }

    /// Emits a fragment at once (D-1). The first one starts the message.
    pub(super) fn handle_delta(&mut self, delta: ModelDelta) {
        let Stage::AwaitingModel(draft) = &mut self.stage else {
            return;
        };
        draft.add(&delta);
        let message_id = draft
            .message_id
            .get_or_insert_with(|| self.emitter.start_message())
            .clone();
        let size = draft.size();
        self.emitter.emit(EventKind::Delta { message_id, delta });
        if let Err(exceeded) = self.check_response_size(size) {
            self.stop_oversized_response(exceeded);
        }
    }

    fn check_response_size(&self, size: ResponseSize) -> Result<(), ResponseLimitError> {
        if faulty!(IgnoreResponseLimit) {
            return Ok(());
        }
        size.check(&self.spec.limits.response)
    }

    /// Stops a streaming response that exceeds a limit; output already shown is kept (UP-1).
    fn stop_oversized_response(&mut self, exceeded: ResponseLimitError) {
        let Some(draft) = self.take_draft() else {
            return;
        };
        self.push_effect(Effect::StopModel);
        self.end_oversized_response(draft, exceeded.to_string());
    }

    /// Ends the turn of an oversized response. Its calls do not run, because they may be incomplete.
    fn end_oversized_response(&mut self, draft: ResponseDraft, text: String) {
        let kept = match faulty!(DropCutOffResponse) {
            true => draft.without_content(),
            false => draft,
        };
        self.settle_draft(kept, MessageStop::Length, None);
        self.finish_turn(None, Vec::new(), NextStep::ResponseTooLarge(text));
    }

    /// Reports that the model is silent.
    pub(super) fn handle_silence(&mut self, silent_ms: u64, is_connected: bool) {
        if matches!(self.stage, Stage::AwaitingModel(_)) {
            self.emitter.emit(EventKind::ModelSilent {
                silent_ms,
                is_connected,
            });
        }
    }

    /// Reports a failed attempt, of which nothing was shown (R9).
    pub(super) fn handle_retry(&mut self, attempt: u32, error: ModelError, wait_ms: u64) {
        if let Stage::AwaitingModel(draft) = &self.stage
            && draft.message_id.is_none()
        {
            self.failed_attempts = attempt;
            self.emitter.emit(EventKind::ModelRetried {
                attempt,
                error,
                wait_ms,
            });
        }
    }

    /// Handles the complete response, which replaces the draft.
    pub(super) fn handle_response(
        &mut self,
        mut response: Response,
        announced: Vec<CallAnnouncement>,
        value: TextValue,
    ) {
        // Free the draft of a long response before the response itself is shared.
        let Some(ResponseDraft { message_id, .. }) = self.take_draft() else {
            return;
        };
        let exceeded = self
            .check_response_size(ResponseSize::of_response(&response))
            .err();
        if exceeded.is_some() && !faulty!(RunCallsOfOversizedResponse) {
            // `settled` then drops the calls, which will have no results.
            response.stop = ModelStop::Length;
        }
        if !faulty!(KeepIncompleteCalls) {
            response = response.settled();
        }
        let usage = response.usage;
        let next = match response.stop {
            ModelStop::Length => match exceeded {
                Some(exceeded) => NextStep::ResponseTooLarge(exceeded.to_string()),
                None => NextStep::EndLoop(Outcome::Stopped(TurnStop::Incomplete)),
            },
            ModelStop::Refusal => {
                let stop = TurnStop::ProviderError(ProviderFailure::Refused);
                NextStep::EndLoop(Outcome::Stopped(stop))
            }
            ModelStop::EndTurn | ModelStop::ToolUse if response.needs_tools() => {
                self.reminder_count = 0;
                let calls = response.calls().cloned().collect();
                self.settle_response(message_id, response.into_assistant_message());
                return self.start_calls(CallBatch::new(calls, usage, &announced), announced);
            }
            ModelStop::EndTurn | ModelStop::ToolUse => {
                // After tool results, an empty response is valid (UP-34).
                if response.is_text_empty() && !self.is_after_result {
                    return self.fail_empty_response(message_id, response);
                }
                let message = self.settle_response(message_id, response.into_assistant_message());
                let next = match value {
                    TextValue::Accepted(value) if self.requires_finish() => self.submit(value),
                    value => {
                        self.value_rejection = match value {
                            TextValue::Rejected(reasons) => Some(reasons),
                            TextValue::Absent | TextValue::Accepted(_) => None,
                        };
                        NextStep::ModelDone {
                            text: ResponseText::from_message(message),
                            checkpoint_passed: false,
                        }
                    }
                };
                return self.finish_turn(usage, Vec::new(), next);
            }
        };
        self.settle_response(message_id, response.into_assistant_message());
        self.finish_turn(usage, Vec::new(), next);
    }

    /// Fails the loop because of an empty response, as a provider error.
    fn fail_empty_response(&mut self, message_id: Option<MessageId>, response: Response) {
        let stop = TurnStop::ProviderError(ProviderFailure::Failed {
            kind: ModelErrorKind::Protocol,
            message: EMPTY_RESPONSE.to_owned(),
        });
        let failure = LoopFailure::without_calls(stop, response.usage);
        let message = Message::Assistant {
            content: response.content,
            stop: MessageStop::Error,
            model: response.model,
            provider: response.provider,
            usage: response.usage,
            error: Some(EMPTY_RESPONSE.to_owned()),
            request: response.request,
        };
        self.settle_response(message_id, message);
        self.fail_loop(failure);
    }

    /// Handles a model call that failed after all retries.
    pub(super) fn handle_model_error(&mut self, error: ModelError) {
        let Some(draft) = self.take_draft() else {
            return;
        };
        if error.kind == ModelErrorKind::ContextOverflow {
            return match draft.message_id {
                None => self.handle_overflow(error),
                Some(_) => self.handle_overflow_in_response(draft, error),
            };
        }
        if error.kind == ModelErrorKind::AnswerLimit {
            return self.end_oversized_response(draft, error.message);
        }
        self.fail_draft(draft, error);
    }

    /// Fails the loop when nothing of the response was shown.
    pub(super) fn fail_without_draft(&mut self, error: ModelError) {
        self.fail_draft(ResponseDraft::default(), error);
    }

    /// Fails the loop and keeps the output already shown. A response without an end marker counts as an
    /// engine error, not a provider error (LASH-25, C-31).
    pub(super) fn fail_draft(&mut self, draft: ResponseDraft, error: ModelError) {
        self.settle_draft(draft, MessageStop::Error, Some(error.message.clone()));
        let message = error.message;
        let stop = match error.kind {
            ModelErrorKind::Unfinished => TurnStop::RuntimeError { message },
            kind => TurnStop::ProviderError(ProviderFailure::Failed { kind, message }),
        };
        self.fail_loop(LoopFailure::without_calls(stop, None));
    }

    /// Ends the message of a response that broke off, without its unfinished calls.
    pub(super) fn settle_draft(
        &mut self,
        draft: ResponseDraft,
        stop: MessageStop,
        error: Option<String>,
    ) {
        let message_id = draft.message_id.clone();
        let message = Message::Assistant {
            content: draft.into_content(),
            stop,
            model: self.spec.config.model.clone(),
            provider: self.spec.config.provider.clone(),
            usage: None,
            error,
            request: None,
        };
        self.settle_response(message_id, message);
    }

    /// Emits `MessageEnd` and the turn's only `UsageReported` (I4).
    fn settle_response(
        &mut self,
        message_id: Option<MessageId>,
        message: Message,
    ) -> Arc<LlmMessage> {
        let message_id = message_id.unwrap_or_else(|| self.emitter.start_message());
        let usage = message.usage();
        self.gauge.add(&message);
        let message = self.emitter.end_message(message_id, message);
        if let Some(usage) = usage {
            self.usage += usage;
            self.own_spending.add_usage(&usage, self.spec.price);
            self.gauge.set_measured(&usage);
        }
        let kind = EventKind::UsageReported {
            usage: if faulty!(UsageZeroForUnknown) {
                Some(usage.unwrap_or_default())
            } else {
                usage
            },
            cumulative: self.usage,
        };
        self.emitter.emit(kind);
        message
    }

    /// Emits a complete message.
    pub(super) fn emit_message(&mut self, message: Message) -> MessageId {
        self.is_after_result = matches!(message, Message::ToolResult { .. });
        self.gauge.add(&message);
        let message_id = self.emitter.start_message();
        self.emitter.end_message(message_id.clone(), message);
        message_id
    }

    /// Ends the turn; no other function does.
    pub(super) fn finish_turn(
        &mut self,
        usage: Option<Usage>,
        tool_results: Vec<MessageId>,
        next: NextStep,
    ) {
        self.emitter.emit(EventKind::TurnEnd {
            usage,
            tool_results,
        });
        let turn_index = self.emitter.turn_index.take().unwrap_or_default();
        let next = self.after_last_reply(next);
        if self.should_notify_hook(self.spec.hooks.after_turn) {
            let hook = HookRequest::AfterTurn { turn_index, usage };
            self.ask_hook(hook, PendingHook::AfterTurn(next));
        } else {
            self.continue_with(next);
        }
    }

    /// Takes the draft if a model call is running. The caller sets the next stage.
    pub(super) fn take_draft(&mut self) -> Option<ResponseDraft> {
        let Stage::AwaitingModel(draft) = &mut self.stage else {
            return None;
        };
        let draft = mem::take(draft);
        self.stage = Stage::Finished;
        Some(draft)
    }
}
