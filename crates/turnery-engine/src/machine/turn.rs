//! Turn: one call of the model and what came of it.

use super::hooks::{Failed, Question};
use super::opening::{Next, Opening};
use super::{Announced, Batch, Draft, Effect, Loop, Stage};
use crate::{
    AnswerOverrun, AnswerSize, AnswerText, Detail, EventKind, FaultKind, Hook, LlmMessage, Message,
    MessageId, MessageStop, ModelDelta, ModelFault, ModelStop, Outcome, Response, TurnStop, Usage,
};
use std::{mem, sync::Arc};

const EMPTY_ANSWER: &str =
    "the model gave an empty answer; send the prompt again, or choose another model";

const LAST_REPLY: &str =
    "No tool can be used any more. Reply now in prose, from what you know so far.";

impl Loop {
    /// All that could forbid it has been asked: begin.
    pub(super) fn begin_turn(&mut self, opening: Opening) {
        self.mint.turn_index = Some(self.turns);
        self.turns += 1;
        self.attempts = 0;
        self.gauge.begin_turn();
        self.mint.emit(EventKind::TurnStart {
            trigger: opening.trigger,
        });
        if self.last_reply.is_some() {
            let text = LAST_REPLY.to_owned();
            self.say(Message::System { text });
        }
        let is_first = self.turns == 1;
        let counted = self.gauge.clone();
        if let Some(words) = opening.given {
            let content = words.into_content();
            self.say(Message::User { content });
        }
        if is_first {
            // The host has counted the prompt already.
            self.gauge = counted;
        }
        for words in opening.heard {
            let content = words.into_content();
            self.say(Message::User { content });
        }
        self.make_room();
    }

    pub(super) fn call_model(&mut self) {
        if self.is_spent() {
            // A summary or a hook stood between the limits' word on the turn and its call.
            return self.cut_short();
        }
        if let Some(turn_index) = self.mint.turn_index {
            let tools = self.last_reply.is_none();
            self.give(Effect::CallModel { turn_index, tools });
            self.stage = Stage::Modelling(Draft::default());
        }
    }

    /// Show a fragment at once (D-1). The message begins with the first.
    pub(super) fn delta(&mut self, delta: ModelDelta) {
        let Stage::Modelling(draft) = &mut self.stage else {
            return;
        };
        draft.add(&delta);
        let message_id = draft
            .message_id
            .get_or_insert_with(|| self.mint.open_message())
            .clone();
        let size = draft.size();
        self.mint.emit(EventKind::Delta { message_id, delta });
        if let Err(overrun) = self.within_limits(size) {
            self.overrun(overrun);
        }
    }

    fn within_limits(&self, size: AnswerSize) -> Result<(), AnswerOverrun> {
        if faulty!(self, IgnoreAnswerLimit) {
            return Ok(());
        }
        size.check(&self.spec.limits.answer)
    }

    /// The streaming answer exceeds a bound: it is stopped, and what came of it is kept (UP-1).
    fn overrun(&mut self, overrun: AnswerOverrun) {
        let Some(draft) = self.take_draft() else {
            return;
        };
        self.give(Effect::StopModel);
        self.end_overrun(draft, overrun.to_string());
    }

    /// No call of it is run, for none is known to be whole.
    fn end_overrun(&mut self, draft: Draft, text: String) {
        let kept = match faulty!(self, DropCutAnswer) {
            true => draft.without_content(),
            false => draft,
        };
        self.settle_draft(kept, MessageStop::Length, None);
        self.close_turn(None, Vec::new(), Next::Overrun(text));
    }

    /// Say that the model is silent. This changes nothing.
    pub(super) fn silent(&mut self, silent_ms: u64, is_connected: bool) {
        match &self.stage {
            Stage::Modelling(_) => self.mint.emit(EventKind::ModelSilent {
                silent_ms,
                is_connected,
            }),
            Stage::Asking(_)
            | Stage::Compacting(_)
            | Stage::Calling(_)
            | Stage::Committing(_)
            | Stage::Over => {}
        }
    }

    /// Say that an attempt failed; nothing of it was shown (R9).
    pub(super) fn retried(&mut self, attempt: u32, fault: ModelFault, wait_ms: u64) {
        match &self.stage {
            Stage::Modelling(Draft {
                message_id: None, ..
            }) => {
                self.attempts = attempt;
                self.mint.emit(EventKind::ModelRetried {
                    attempt,
                    fault,
                    wait_ms,
                });
            }
            Stage::Modelling(_)
            | Stage::Asking(_)
            | Stage::Compacting(_)
            | Stage::Calling(_)
            | Stage::Committing(_)
            | Stage::Over => {}
        }
    }

    /// The settled answer replaces the draft.
    pub(super) fn answered(&mut self, mut response: Response, announced: Vec<Announced>) {
        // What was streamed of a long answer is freed before the answer itself is shared out.
        let Some(Draft { message_id, .. }) = self.take_draft() else {
            return;
        };
        let overrun = self.within_limits(AnswerSize::of(&response)).err();
        if overrun.is_some() && !faulty!(self, RunCutCalls) {
            // Settling drops the calls: they will have no results.
            response.stop = ModelStop::Length;
        }
        if !faulty!(self, KeepBrokenCalls) {
            response = response.settled();
        }
        let usage = response.usage;
        let next = match response.stop {
            ModelStop::Length => match overrun {
                Some(overrun) => Next::Overrun(overrun.to_string()),
                None => Next::End(Outcome::Stopped(TurnStop::Incomplete), None),
            },
            ModelStop::Refusal => {
                let outcome = Outcome::Stopped(TurnStop::ProviderError);
                Next::End(outcome, Some(Detail::Refusal))
            }
            ModelStop::EndTurn | ModelStop::ToolUse if response.needs_tools() => {
                let calls = response.calls().cloned().collect();
                self.settle(message_id, response.into_assistant_message());
                return self.start_calls(Batch::new(calls, usage, &announced), announced);
            }
            ModelStop::EndTurn | ModelStop::ToolUse => {
                // After a tool round trip, silence is an answer (UP-34).
                if response.says_nothing() && !self.after_result {
                    return self.empty_answer(message_id, response);
                }
                let message = self.settle(message_id, response.into_assistant_message());
                let next = Next::Rest {
                    text: AnswerText::of(message),
                    checked: false,
                };
                return self.close_turn(usage, Vec::new(), next);
            }
        };
        self.settle(message_id, response.into_assistant_message());
        self.close_turn(usage, Vec::new(), next);
    }

    /// An answer that says nothing is the provider's failure.
    fn empty_answer(&mut self, message_id: Option<MessageId>, response: Response) {
        let failed = Failed {
            usage: response.usage,
            tool_results: Vec::new(),
            outcome: Outcome::Stopped(TurnStop::ProviderError),
            detail: Detail::Provider {
                kind: FaultKind::Protocol,
                message: EMPTY_ANSWER.to_owned(),
            },
        };
        let message = Message::Assistant {
            content: response.content,
            stop: MessageStop::Error,
            model: response.model,
            provider: response.provider,
            usage: response.usage,
            error: Some(EMPTY_ANSWER.to_owned()),
        };
        self.settle(message_id, message);
        self.fail(failed, EMPTY_ANSWER.to_owned());
    }

    /// A model call failed for good.
    pub(super) fn model_failed(&mut self, fault: ModelFault) {
        let Some(draft) = self.take_draft() else {
            return;
        };
        if fault.kind == FaultKind::ContextOverflow && draft.message_id.is_none() {
            return self.overflowed(fault);
        }
        if fault.kind == FaultKind::AnswerLimit {
            return self.end_overrun(draft, fault.message);
        }
        self.draft_failed(draft, fault);
    }

    /// The same when nothing of the answer was shown.
    pub(super) fn answer_failed(&mut self, fault: ModelFault) {
        self.draft_failed(Draft::default(), fault);
    }

    /// What the client has seen stays; the loop stops. An answer of which nobody says that it is whole
    /// is not the provider's failure, but one of ours (LASH-25, C-31).
    fn draft_failed(&mut self, draft: Draft, fault: ModelFault) {
        self.settle_draft(draft, MessageStop::Error, Some(fault.message.clone()));
        let message = fault.message.clone();
        let (stop, detail) = match fault.kind {
            FaultKind::Unfinished => (TurnStop::RuntimeError, Detail::Runtime { message }),
            kind @ (FaultKind::Network
            | FaultKind::Protocol
            | FaultKind::RateLimit
            | FaultKind::Overloaded
            | FaultKind::Auth
            | FaultKind::ContextOverflow
            | FaultKind::BadRequest
            | FaultKind::Timeout
            | FaultKind::AnswerLimit) => {
                let detail = Detail::Provider { kind, message };
                (TurnStop::ProviderError, detail)
            }
        };
        let failed = Failed {
            usage: None,
            tool_results: Vec::new(),
            outcome: Outcome::Stopped(stop),
            detail,
        };
        self.fail(failed, fault.message);
    }

    /// Settle an answer that broke off: no call of it was whole.
    pub(super) fn settle_draft(&mut self, draft: Draft, stop: MessageStop, error: Option<String>) {
        let message_id = draft.message_id.clone();
        let message = Message::Assistant {
            content: draft.into_content(),
            stop,
            model: self.spec.config.model.clone(),
            provider: self.spec.config.provider.clone(),
            usage: None,
            error,
        };
        self.settle(message_id, message);
    }

    /// `MessageEnd` and the turn's only `UsageReported` (I4).
    fn settle(&mut self, message_id: Option<MessageId>, message: Message) -> Arc<LlmMessage> {
        let message_id = message_id.unwrap_or_else(|| self.mint.open_message());
        let usage = message.usage();
        self.gauge.add(&message);
        let message = self.mint.settle(message_id, message);
        if let Some(usage) = usage {
            self.usage += usage;
            self.own.add_answer(&usage, self.spec.price);
            self.gauge.measured(&usage);
        }
        let kind = EventKind::UsageReported {
            usage: if faulty!(self, UsageZeroForUnknown) {
                Some(usage.unwrap_or_default())
            } else {
                usage
            },
            cumulative: self.usage,
        };
        self.mint.emit(kind);
        message
    }

    /// A message that is whole from the start.
    pub(super) fn say(&mut self, message: Message) -> MessageId {
        self.after_result = matches!(message, Message::ToolResult { .. });
        self.gauge.add(&message);
        let message_id = self.mint.open_message();
        self.mint.settle(message_id.clone(), message);
        message_id
    }

    /// The only place where a turn ends.
    pub(super) fn close_turn(
        &mut self,
        usage: Option<Usage>,
        tool_results: Vec<MessageId>,
        next: Next,
    ) {
        self.mint.emit(EventKind::TurnEnd {
            usage,
            tool_results,
        });
        let turn_index = self.mint.turn_index.take().unwrap_or_default();
        let next = self.after_last_reply(next);
        if self.asks_after(self.spec.hooks.after_turn) {
            let hook = Hook::AfterTurn { turn_index, usage };
            self.ask(hook, Question::AfterTurn(next));
        } else {
            self.go_on(next);
        }
    }

    /// The draft, if the model is answering. The caller sets the next stage.
    pub(super) fn take_draft(&mut self) -> Option<Draft> {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Modelling(draft) => Some(draft),
            other => {
                self.stage = other;
                None
            }
        }
    }
}
