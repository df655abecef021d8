//! Limits: when a loop stops by itself, and what it says then (UP-1, UP-2, C-4).

use super::Loop;
use super::opening::{Next, Opening};
use crate::{Detail, LimitKind, Limits, Message, Outcome, TurnFinish, TurnStop, Usage};
use std::time::Duration;

impl Loop {
    /// The limit that forbids another turn, if any (TURN-68).
    pub(super) fn limit_reached(&self) -> Option<LimitKind> {
        if self.turns >= self.spec.limits.turns {
            return Some(LimitKind::Turns);
        }
        self.spent()
    }

    /// The same, whatever the number of turns.
    fn spent(&self) -> Option<LimitKind> {
        let limits = &self.spec.limits;
        if self.tokens() >= limits.tokens {
            Some(LimitKind::Tokens)
        } else if self.elapsed() >= limits.duration {
            Some(LimitKind::Duration)
        } else if limits.cost.is_some_and(|most| self.cost() >= most) {
            Some(LimitKind::Cost)
        } else {
            None
        }
    }

    /// Say so in a message outside any turn (TURN-69, D-12), and stop (TURN-70), but for one last
    /// reply where the host wants one.
    pub(super) fn stop_at_limit(&mut self, kind: LimitKind) {
        if let Some(limit) = self.last_reply.take() {
            // It has been said; the reply to it was halted before it began.
            return self.commit(Outcome::Stopped(TurnStop::MaxTurns), Some(limit));
        }
        let limits = &self.spec.limits;
        let text = match kind {
            LimitKind::Turns => format!("Max turns reached ({}/{})", self.turns, limits.turns),
            LimitKind::Tokens => {
                format!("Max tokens reached ({}/{})", self.tokens(), limits.tokens)
            }
            LimitKind::Duration => format!(
                "Max duration reached ({}s/{}s)",
                self.elapsed().as_secs(),
                limits.duration.as_secs()
            ),
            LimitKind::Answer => "Max answer size reached".to_owned(),
            LimitKind::Cost => format!(
                "Max cost reached ({}/{})",
                money(self.cost()),
                money(limits.cost.unwrap_or_default())
            ),
        };
        self.say_limit(&text);
        let detail = Detail::Limit { kind, text };
        if kind == LimitKind::Turns && self.spec.forced_reply && self.spent().is_none() {
            self.last_reply = Some(detail);
            return self.before_turn(Opening::continuation(None));
        }
        self.commit(Outcome::Stopped(TurnStop::MaxTurns), Some(detail));
    }

    /// Stop because an answer exceeds its bound: say so in a message outside any turn (TURN-69).
    pub(super) fn stop_at_answer_limit(&mut self, text: String) {
        self.say_limit(&text);
        let kind = LimitKind::Answer;
        let detail = Detail::Limit { kind, text };
        self.commit(Outcome::Stopped(TurnStop::MaxTurns), Some(detail));
    }

    fn say_limit(&mut self, text: &str) {
        self.say(Message::System {
            text: format!("[Agent stopped: {text}]"),
        });
    }

    /// After the last reply there is nothing more: prose is a finish, all else is the limit (C-4).
    pub(super) fn after_last_reply(&mut self, next: Next) -> Next {
        let Some(limit) = self.last_reply.take() else {
            return next;
        };
        match next {
            Next::Rest { text, .. } if !text.is_empty() => Next::End(
                Outcome::Finished(TurnFinish::AssistantMessage { text }),
                None,
            ),
            Next::Rest { .. } | Next::Turn(_) | Next::Overrun(_) | Next::End(..) => {
                Next::End(Outcome::Stopped(TurnStop::MaxTurns), Some(limit))
            }
        }
    }

    /// What the loop may still spend, by what it has been told so far. Turns that have begun are spent.
    #[must_use]
    pub fn left(&self) -> Limits {
        let limits = &self.spec.limits;
        Limits {
            turns: limits.turns.saturating_sub(self.turns),
            tokens: limits.tokens.saturating_sub(self.tokens()),
            duration: limits.duration.saturating_sub(self.elapsed()),
            cost: limits.cost.map(|most| most.saturating_sub(self.cost())),
            answer: limits.answer,
        }
    }

    /// What counts against the limits of tokens and of money: all turns so far, and all child sessions.
    fn counted(&self) -> Usage {
        let mut sum = self.usage;
        for child in &self.children {
            sum += child.cumulative;
        }
        sum
    }

    fn tokens(&self) -> u64 {
        self.counted().fresh()
    }

    /// What that costs, in millionths; 0 without a price.
    fn cost(&self) -> u64 {
        let price = self.spec.price;
        price.map_or(0, |price| price.of(&self.counted()))
    }

    /// Without the time that a person took to answer. Zero when the wall clock was set back.
    fn elapsed(&self) -> Duration {
        (self.mint.now - self.counts_from)
            .to_std()
            .unwrap_or_default()
    }
}

/// Millionths as a number with two decimals, cut off.
fn money(millionths: u64) -> String {
    format!(
        "{}.{:02}",
        millionths / 1_000_000,
        millionths / 10_000 % 100
    )
}
