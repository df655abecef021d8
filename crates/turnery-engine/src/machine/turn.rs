//! Turn: one call of the model and what came of it.

use super::{Announced, Batch, Draft, Effect, Loop, Stage};
use crate::{
    Content, Detail, EventKind, FaultKind, Message, MessageId, MessageStop, ModelDelta, ModelFault,
    ModelStop, Outcome, Response, Timestamp, TurnFinish, TurnStop, TurnTrigger, Usage,
};

const EMPTY_ANSWER: &str =
    "the model gave an empty answer; send the prompt again, or choose another model";

impl Loop {
    /// Begin a turn, unless a limit forbids it: a turn that cannot run leaves no trace (TURN-68).
    pub(super) fn next_turn(
        &mut self,
        now: Timestamp,
        trigger: TurnTrigger,
        input: Vec<Content>,
        out: &mut Vec<Effect>,
    ) {
        if let Some(limit) = self.limit_reached(now) {
            return self.stop_at_limit(now, limit, out);
        }
        let turn_index = self.turns;
        self.turns += 1;
        self.mint.turn_index = Some(turn_index);
        self.mint.emit(now, EventKind::TurnStart { trigger }, out);
        if !input.is_empty() {
            self.mint.say(now, Message::User { content: input }, out);
        }
        let message_id = self.mint.open_message(now, out);
        out.push(Effect::CallModel {
            turn_index,
            tools: true,
        });
        self.stage = Stage::Modelling(Draft::new(message_id));
    }

    /// Show a fragment at once (D-1).
    pub(super) fn delta(&mut self, now: Timestamp, delta: ModelDelta, out: &mut Vec<Effect>) {
        let Stage::Modelling(draft) = &mut self.stage else {
            return;
        };
        draft.add(&delta);
        let message_id = draft.message_id.clone();
        self.mint
            .emit(now, EventKind::Delta { message_id, delta }, out);
    }

    /// Say that an attempt failed; nothing of it was shown (R9).
    pub(super) fn retried(
        &mut self,
        now: Timestamp,
        attempt: u32,
        fault: ModelFault,
        wait_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        match &self.stage {
            Stage::Modelling(draft) if draft.is_empty() => {
                let kind = EventKind::ModelRetried {
                    attempt,
                    fault,
                    wait_ms,
                };
                self.mint.emit(now, kind, out);
            }
            Stage::Modelling(_) | Stage::Calling(_) | Stage::Committing(_) | Stage::Over => {}
        }
    }

    /// Tell a person, while there is somewhere to tell it.
    pub(super) fn noticed(&mut self, now: Timestamp, text: String, out: &mut Vec<Effect>) {
        if !self.is_sealed() {
            self.mint.emit(now, EventKind::Issue { text }, out);
        }
    }

    /// The settled answer replaces the draft.
    pub(super) fn answered(
        &mut self,
        now: Timestamp,
        mut response: Response,
        announced: Vec<Announced>,
        out: &mut Vec<Effect>,
    ) {
        let Some(Draft { message_id, .. }) = self.take_draft() else {
            return;
        };
        if !faulty!(self, KeepBrokenCalls) {
            response = response.settled();
        }
        let usage = response.usage;
        let (outcome, detail) = match response.stop {
            ModelStop::Length => (Outcome::Stopped(TurnStop::Incomplete), None),
            ModelStop::Refusal => {
                let outcome = Outcome::Stopped(TurnStop::ProviderError);
                (outcome, Some(Detail::Refusal))
            }
            ModelStop::EndTurn | ModelStop::ToolUse if response.needs_tools() => {
                let calls = response.calls().cloned().collect();
                self.settle_answer(now, message_id, response.into_assistant_message(), out);
                return self.start_calls(now, Batch::new(calls, usage), announced, out);
            }
            ModelStop::EndTurn | ModelStop::ToolUse => {
                let text = response.text();
                // After a tool round trip, silence is an answer (UP-34).
                if text.is_empty() && self.turns == 1 {
                    return self.empty_answer(now, message_id, response, out);
                }
                let finish = TurnFinish::AssistantMessage { text };
                (Outcome::Finished(finish), None)
            }
        };
        self.settle_answer(now, message_id, response.into_assistant_message(), out);
        self.close_turn(now, usage, Vec::new(), out);
        self.commit(now, outcome, detail, out);
    }

    /// An answer that says nothing is the provider's failure.
    fn empty_answer(
        &mut self,
        now: Timestamp,
        message_id: MessageId,
        response: Response,
        out: &mut Vec<Effect>,
    ) {
        let usage = response.usage;
        let message = Message::Assistant {
            content: response.content,
            stop: MessageStop::Error,
            model: response.model,
            provider: response.provider,
            usage,
            error: Some(EMPTY_ANSWER.to_owned()),
        };
        self.settle_answer(now, message_id, message, out);
        self.close_turn(now, usage, Vec::new(), out);
        let detail = Detail::Provider {
            kind: FaultKind::Protocol,
            message: EMPTY_ANSWER.to_owned(),
        };
        let outcome = Outcome::Stopped(TurnStop::ProviderError);
        self.commit(now, outcome, Some(detail), out);
    }

    /// What the client has seen stays; the loop stops.
    pub(super) fn model_failed(
        &mut self,
        now: Timestamp,
        fault: ModelFault,
        out: &mut Vec<Effect>,
    ) {
        let Some(draft) = self.take_draft() else {
            return;
        };
        let error = Some(fault.message.clone());
        self.settle_draft(now, draft, MessageStop::Error, error, out);
        let detail = Detail::Provider {
            kind: fault.kind,
            message: fault.message,
        };
        let outcome = Outcome::Stopped(TurnStop::ProviderError);
        self.commit(now, outcome, Some(detail), out);
    }

    /// Settle an answer that broke off, and end its turn: no call of it was whole.
    pub(super) fn settle_draft(
        &mut self,
        now: Timestamp,
        draft: Draft,
        stop: MessageStop,
        error: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        let message_id = draft.message_id.clone();
        let message = Message::Assistant {
            content: draft.into_content(),
            stop,
            model: self.spec.config.model.clone(),
            provider: self.spec.config.provider.clone(),
            usage: None,
            error,
        };
        self.settle_answer(now, message_id, message, out);
        self.close_turn(now, None, Vec::new(), out);
    }

    /// `MessageEnd` and the turn's only `UsageReported` (I4).
    fn settle_answer(
        &mut self,
        now: Timestamp,
        message_id: MessageId,
        message: Message,
        out: &mut Vec<Effect>,
    ) {
        let usage = message.usage();
        self.mint.settle(now, message_id, message, out);
        if let Some(usage) = usage {
            self.usage += usage;
        }
        let kind = EventKind::UsageReported {
            usage: if faulty!(self, UsageZeroForUnknown) {
                Some(usage.unwrap_or_default())
            } else {
                usage
            },
            cumulative: self.usage,
        };
        self.mint.emit(now, kind, out);
    }

    /// The only place where a turn ends.
    pub(super) fn close_turn(
        &mut self,
        now: Timestamp,
        usage: Option<Usage>,
        tool_results: Vec<MessageId>,
        out: &mut Vec<Effect>,
    ) {
        let kind = EventKind::TurnEnd {
            usage,
            tool_results,
        };
        self.mint.emit(now, kind, out);
        self.mint.turn_index = None;
    }
}
