//! Limits: when a loop stops by itself, and what it says then (UP-1, UP-2).

use super::{Effect, Loop};
use crate::{Detail, LimitKind, Message, Outcome, Timestamp, TurnStop};
use std::time::Duration;

impl Loop {
    /// The limit that forbids another turn, if any (TURN-68).
    pub(super) fn limit_reached(&self, now: Timestamp) -> Option<LimitKind> {
        let limits = &self.spec.limits;
        if self.turns >= limits.turns {
            Some(LimitKind::Turns)
        } else if self.usage.fresh() >= limits.tokens {
            Some(LimitKind::Tokens)
        } else if self.elapsed(now) >= limits.duration {
            Some(LimitKind::Duration)
        } else if limits.cost.is_some_and(|most| self.cost() >= most) {
            Some(LimitKind::Cost)
        } else {
            None
        }
    }

    /// Say so in a message outside any turn (TURN-69, D-12), and stop (TURN-70).
    pub(super) fn stop_at_limit(&mut self, now: Timestamp, kind: LimitKind, out: &mut Vec<Effect>) {
        let limits = &self.spec.limits;
        let text = match kind {
            LimitKind::Turns => format!("Max turns reached ({}/{})", self.turns, limits.turns),
            LimitKind::Tokens => format!(
                "Max tokens reached ({}/{})",
                self.usage.fresh(),
                limits.tokens
            ),
            LimitKind::Duration => format!(
                "Max duration reached ({}s/{}s)",
                self.elapsed(now).as_secs(),
                limits.duration.as_secs()
            ),
            LimitKind::Cost => format!(
                "Max cost reached ({}/{})",
                money(self.cost()),
                money(limits.cost.unwrap_or_default())
            ),
        };
        let notice = Message::System {
            text: format!("[Agent stopped: {text}]"),
        };
        self.mint.say(now, notice, out);
        let outcome = Outcome::Stopped(TurnStop::MaxTurns);
        self.commit(now, outcome, Some(Detail::Limit { kind, text }), out);
    }

    /// What all turns so far cost, in millionths; 0 without a price.
    fn cost(&self) -> u64 {
        self.spec.price.map_or(0, |price| price.of(&self.usage))
    }

    /// Without the time that a person took to answer. Zero when the wall clock was set back.
    fn elapsed(&self, now: Timestamp) -> Duration {
        (now - self.counts_from).to_std().unwrap_or_default()
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
