//! Limits: when a loop stops by itself, and what it says then (UP-1, UP-2, C-4).
//!
//! The limits are those of the prompt. A loop counts its own turns, answers and summaries, and those of
//! child sessions that it is told of; the host tells it what the rest of the prompt has spent.

use super::Loop;
use super::opening::{Next, Opening};
use super::spec::turns_reached;
use crate::{Detail, LimitKind, Message, Outcome, Spending, TurnFinish, TurnStop, Usage};
use std::time::Duration;

impl Loop {
    /// The limit that forbids another turn, if any (TURN-68).
    pub(super) fn limit_reached(&self) -> Option<Detail> {
        match self.spec.own_turns {
            Some(most) if self.own.turns >= most => Some(turns_reached(self.own.turns, most)),
            Some(_) | None => self.spec.limits.reached(&self.spending_of_prompt()),
        }
    }

    /// Whether a call of the model is beyond the limits, however many turns are left.
    pub(super) fn is_spent(&self) -> bool {
        let spending = self.spending_of_prompt();
        let reached = self.spec.limits.reached_besides_turns(&spending);
        reached.is_some()
    }

    /// Say so in a message outside any turn (TURN-69, D-12), and stop (TURN-70), but for one last
    /// reply where the host wants one.
    pub(super) fn stop_at_limit(&mut self, limit: Detail, opening: Opening) {
        if let Some(limit) = self.last_reply.take() {
            // It has been said; the reply to it was halted before it began.
            return self.commit(Outcome::Stopped(TurnStop::MaxTurns), Some(limit));
        }
        self.say_limit(&limit);
        if self.may_reply(&limit) {
            if self.spec.own_turns.is_none() {
                self.own.last_reply = true;
            } else {
                self.own.turns += 1;
            }
            self.last_reply = Some(limit);
            return self.ask_before_turn(opening);
        }
        self.commit(Outcome::Stopped(TurnStop::MaxTurns), Some(limit));
    }

    /// Whether the model may reply once more. A loop with a limit of turns of its own does so in an
    /// ordinary turn of its prompt; else there is one reply for the whole prompt, beyond its turns.
    fn may_reply(&self, limit: &Detail) -> bool {
        let by_turns = matches!(
            limit,
            Detail::Limit {
                kind: LimitKind::Turns,
                ..
            }
        );
        let has_room = match self.spec.own_turns {
            Some(_) => {
                let reached = self.spec.limits.reached(&self.spending_of_prompt());
                reached.is_none()
            }
            None => !self.elsewhere.last_reply && !self.is_spent(),
        };
        by_turns && self.spec.forced_reply && has_room
    }

    /// The time is up, says the host's clock.
    pub(super) fn stop_at_time(&mut self) {
        let limit = self.spec.limits.time_up(&self.spending_of_prompt());
        self.stop_at_limit(limit, Opening::continuation(None));
    }

    /// Stop because an answer exceeds its bound: say so in a message outside any turn (TURN-69).
    pub(super) fn stop_at_answer_limit(&mut self, text: String) {
        let kind = LimitKind::Answer;
        let limit = Detail::Limit { kind, text };
        self.say_limit(&limit);
        self.commit(Outcome::Stopped(TurnStop::MaxTurns), Some(limit));
    }

    fn say_limit(&mut self, limit: &Detail) {
        let text = limit.sentence().unwrap_or_default();
        self.say(Message::System {
            text: format!("[Agent stopped: {text}]"),
        });
    }

    /// The limit that the last answer passed, if the loop came to its end with it all the same: it is reported,
    /// and changes nothing else (C-4).
    pub(super) fn limit_passed_by(&self, outcome: &Outcome) -> Option<Detail> {
        match outcome {
            Outcome::Finished(_) => self.spec.limits.passed(&self.spending_of_prompt()),
            Outcome::FrameSwitch { .. } | Outcome::Stopped(_) => None,
        }
    }

    /// After the last reply there is nothing more: prose is a finish, all else is the limit (C-4). The
    /// limit is reported with either.
    pub(super) fn after_last_reply(&mut self, next: Next) -> Next {
        let Some(limit) = self.last_reply.take() else {
            return next;
        };
        let outcome = match next {
            Next::Rest { text, .. } if !text.is_empty() => {
                Outcome::Finished(TurnFinish::AssistantMessage { text })
            }
            Next::Rest { .. } | Next::Turn(_) | Next::Overrun(_) | Next::End(..) => {
                Outcome::Stopped(TurnStop::MaxTurns)
            }
        };
        Next::End(outcome, Some(limit))
    }

    /// What the loop and its child sessions have spent, as far as it has been told.
    #[must_use]
    pub fn spending(&self) -> Spending {
        let mut spending = Spending {
            time: self.elapsed(),
            ..self.own
        };
        let mut children = Usage::default();
        for child in &self.children {
            children += child.cumulative;
        }
        spending.add_answer(&children, self.spec.price);
        spending
    }

    /// The same with the rest of its prompt: what is compared with the limits.
    #[must_use]
    pub fn spending_of_prompt(&self) -> Spending {
        self.spending().plus(self.elsewhere)
    }

    /// Without the time that a person took to answer. Zero when the wall clock was set back.
    fn elapsed(&self) -> Duration {
        (self.mint.now - self.counts_from)
            .to_std()
            .unwrap_or_default()
    }
}
