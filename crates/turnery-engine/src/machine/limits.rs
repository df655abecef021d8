//! Enforces the limits of a prompt (UP-1, UP-2, C-4).
//!
//! A loop counts its own turns, responses and summaries, and the child sessions reported to it; the host
//! reports the spending of the rest of the prompt.

use super::Loop;
use super::pending_turn::{NextStep, PendingTurn};
use super::spec::turn_limit;
use crate::{
    LimitKind, Message, Outcome, Price, ReachedLimit, Spending, TurnFinish, TurnStop, Usage,
};
use std::time::Duration;

impl Loop {
    /// Returns the limit that prevents another turn, if any (TURN-68).
    pub(super) fn reached_limit(&self) -> Option<ReachedLimit> {
        match self.spec.loop_turn_limit {
            Some(most) if self.own_spending.turns >= most => {
                Some(turn_limit(self.own_spending.turns, most))
            }
            Some(_) | None => self.spec.limits.reached_limit(&self.prompt_spending()),
        }
    }

    /// Returns true if a limit other than the number of turns prevents a model call.
    pub(super) fn is_budget_spent(&self) -> bool {
        let spending = self.prompt_spending();
        let reached = self.spec.limits.reached_limit_except_turns(&spending);
        reached.is_some()
    }

    /// Emits a limit notice outside any turn (TURN-69, D-12) and stops (TURN-70), unless the host allows a
    /// last reply.
    pub(super) fn stop_at_limit(&mut self, limit: ReachedLimit, turn: PendingTurn) {
        if let Some(limit) = self.last_reply_limit.take() {
            // The notice was emitted; the last reply was halted before it began.
            return self.commit(Outcome::Stopped(TurnStop::MaxTurns(limit)));
        }
        self.emit_limit_notice(&limit);
        if self.can_give_last_reply(&limit) {
            if self.spec.loop_turn_limit.is_none() {
                self.own_spending.forced_reply_used = true;
            } else {
                self.own_spending.turns += 1;
            }
            self.last_reply_limit = Some(limit);
            return self.ask_before_turn_hook(turn);
        }
        self.commit(Outcome::Stopped(TurnStop::MaxTurns(limit)));
    }

    /// Returns true if the model may give a last reply. For a loop with its own turn limit that is an
    /// ordinary turn of the prompt; otherwise there is one reply per prompt, beyond its turn limit.
    fn can_give_last_reply(&self, limit: &ReachedLimit) -> bool {
        let by_turns = limit.kind == LimitKind::Turns;
        let has_room = match self.spec.loop_turn_limit {
            Some(_) => {
                let reached = self.spec.limits.reached_limit(&self.prompt_spending());
                reached.is_none()
            }
            None => !self.other_spending.forced_reply_used && !self.is_budget_spent(),
        };
        by_turns && self.spec.forced_reply && !self.requires_finish() && has_room
    }

    /// Stops the loop at its time limit, as reported by the host.
    pub(super) fn stop_at_time_limit(&mut self) {
        let limit = self.spec.limits.duration_limit(&self.prompt_spending());
        self.stop_at_limit(limit, PendingTurn::continuation(None));
    }

    /// Stops the loop because a response is too large, with a limit notice outside any turn (TURN-69).
    pub(super) fn stop_at_response_limit(&mut self, text: String) {
        let kind = LimitKind::Answer;
        let limit = ReachedLimit { kind, text };
        self.emit_limit_notice(&limit);
        self.commit(Outcome::Stopped(TurnStop::MaxTurns(limit)));
    }

    fn emit_limit_notice(&mut self, limit: &ReachedLimit) {
        self.emit_message(Message::System {
            text: format!("[Agent stopped: {}]", limit.text),
        });
    }

    /// Returns the limit exceeded by the last response of a finished loop; reported without changing the
    /// outcome (C-4).
    pub(super) fn exceeded_limit(&self) -> Option<ReachedLimit> {
        self.spec.limits.exceeded_limit(&self.prompt_spending())
    }

    /// Returns the end after a last reply: text finishes the loop, anything else stops it at the limit (C-4).
    /// Both report the limit.
    pub(super) fn after_last_reply(&mut self, next: NextStep) -> NextStep {
        let Some(limit) = self.last_reply_limit.take() else {
            return next;
        };
        let outcome = match next {
            NextStep::ModelDone { text, .. } if !text.is_empty() => {
                Outcome::Finished(TurnFinish::AssistantMessage { text }, Some(limit))
            }
            _ => Outcome::Stopped(TurnStop::MaxTurns(limit)),
        };
        NextStep::EndLoop(outcome)
    }

    /// Returns the reported spending of the loop and its child sessions.
    #[must_use]
    pub fn spending(&self) -> Spending {
        let mut spending = Spending {
            time: self.elapsed(),
            ..self.own_spending
        };
        let mut children = Usage::default();
        for child in &self.children_usage {
            children += child.cumulative;
        }
        spending.add_usage(&children, self.spec.price.map(Price::without_tiers));
        spending
    }

    /// Returns the spending of the whole prompt, which is compared with the limits.
    #[must_use]
    pub fn prompt_spending(&self) -> Spending {
        self.spending().plus(self.other_spending)
    }

    /// Returns the running time without the time spent waiting for the user. Zero if the wall clock was set
    /// back.
    fn elapsed(&self) -> Duration {
        (self.emitter.now - self.time_base)
            .to_std()
            .unwrap_or_default()
    }
}
