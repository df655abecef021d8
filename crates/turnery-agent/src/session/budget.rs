//! Shares the limits of a prompt between all that works for it: the loops of its frames, its candidates,
//! their judge, and child sessions, however deep.
//!
//! The account holds what all of them have spent. A loop takes its turn from the account in the same step
//! in which it begins the turn, so turns are exact. What an answer costs is known only at its end: tokens and
//! money are exceeded by no more than the answers that are under way when the limit is reached, one for each
//! loop that works beside others.

use super::Task;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use turnery_engine::{
    Detail, Effect, Input, Limits, Loop, LoopSpec, Price, Spending, Timestamp, Usage,
};
use turnery_models::{Catalogue, Model, ModelName};

/// A model without a known price, in a prompt with a limit of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no price is known for {model}, so the cost limit cannot be enforced: say what a million of its \
     tokens cost in config.toml ([models.\"{model}\"] price = {{ input = 3.0, output = 15.0 }}), \
     choose another model, or leave out the limit (--max-cost, limits.cost)"
)]
pub struct UnknownPrice {
    /// The model.
    pub model: ModelName,
}

/// The price of a model's tokens, as a limit of money needs it. The offline model costs nothing.
pub fn known_price(models: &Catalogue, name: &ModelName) -> Result<Price, UnknownPrice> {
    let price = match name.provider.as_str() {
        "offline" => Some(Price::default()),
        _ => models.price(name),
    };
    let model = name.clone();
    price.ok_or(UnknownPrice { model })
}

/// What a prompt may spend, as one part of it sees it. Clones share the account.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    /// Number of turns that this part may take at most; none for no limit of its own.
    own_turns: Option<u32>,
    /// Time that the prompt had used up when this part began.
    elapsed: Duration,
    /// Spending of the whole prompt, but for the time.
    account: Arc<Mutex<Spending>>,
}

impl Budget {
    /// The budget of a prompt that has spent nothing.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            own_turns: None,
            elapsed: Duration::ZERO,
            account: Arc::default(),
        }
    }

    /// The budget of a child session that begins now and takes at most `turns`.
    pub(crate) fn for_child(&self, turns: u32, elapsed: Duration) -> Self {
        Self {
            own_turns: Some(turns),
            elapsed,
            ..self.clone()
        }
    }

    /// Time that is left to this part.
    pub(crate) fn time_left(&self) -> Duration {
        self.limits.duration.saturating_sub(self.elapsed)
    }

    /// Moves the prompt's clock.
    pub(crate) fn add_time(&mut self, time: Duration) {
        self.elapsed = self.elapsed.saturating_add(time);
    }

    /// Takes note of a loop of this part that is over, and of the prompt's clock then.
    pub(crate) fn end_loop(&mut self, elapsed: Duration, turns: usize) {
        self.elapsed = elapsed;
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        self.own_turns = self.own_turns.map(|most| most.saturating_sub(turns));
    }

    /// Number of turns that the whole prompt has begun.
    pub(crate) fn turns(&self) -> u32 {
        self.account().turns
    }

    /// The limit that is reached, if one is.
    pub(crate) fn reached(&self) -> Option<Detail> {
        self.limits.reached(&self.spending(&self.account()))
    }

    /// The limit of tokens or money that more was spent than, if there is one.
    pub(crate) fn passed(&self) -> Option<Detail> {
        self.limits.passed(&self.account())
    }

    /// The limit of time, for a clock that has run out.
    pub(crate) fn time_up(&self) -> Detail {
        let spending = Spending {
            time: self.limits.duration,
            ..Spending::default()
        };
        self.limits.time_up(&spending)
    }

    /// Takes a turn for a question beside the loops.
    pub(crate) fn take_turn(&self) -> Result<(), Detail> {
        let mut account = self.account();
        match self.limits.reached(&self.spending(&account)) {
            Some(limit) => Err(limit),
            None => {
                account.turns = account.turns.saturating_add(1);
                Ok(())
            }
        }
    }

    /// Adds the answer to such a question.
    pub(crate) fn add_answer(&self, usage: &Usage, price: Option<Price>) {
        self.account().add_answer(usage, price);
    }

    /// Completes what a loop of this part starts with.
    pub(crate) fn specify(&self, spec: LoopSpec) -> LoopSpec {
        LoopSpec {
            limits: self.limits,
            own_turns: self.own_turns,
            elsewhere: self.spending(&self.account()),
            ..spec
        }
    }

    /// Starts a loop, which may take its first turn at once.
    pub(crate) fn start(&self, spec: LoopSpec, now: Timestamp, out: &mut Vec<Effect>) -> Loop {
        let mut account = self.account();
        let spec = LoopSpec {
            elsewhere: self.spending(&account),
            ..spec
        };
        let machine = Loop::start(spec, now, out);
        *account = charged(*account, machine.spending());
        machine
    }

    /// Feeds a loop, which knows then what the others have spent. Nobody else spends meanwhile.
    pub(crate) fn feed(
        &self,
        machine: &mut Loop,
        now: Timestamp,
        input: Input,
        out: &mut Vec<Effect>,
    ) {
        let mut account = self.account();
        let others = account.minus(machine.spending());
        machine.on(now, Input::OtherSpending(self.spending(&others)), out);
        machine.on(now, input, out);
        // A turn that a hook refused is given back.
        *account = charged(others, machine.spending());
    }

    /// Spending with the time of this part.
    fn spending(&self, account: &Spending) -> Spending {
        Spending {
            time: self.elapsed,
            ..*account
        }
    }

    fn account(&self) -> MutexGuard<'_, Spending> {
        // Numbers are whole whoever panicked.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    /// The price of a model's tokens, if it is known.
    pub(super) fn price(&self, model: &dyn Model) -> Option<Price> {
        let known = known_price(&self.models, &model.info().name);
        known.ok().or(self.settings.price)
    }

    /// The same; an error where money is limited and the price is not known.
    pub(super) fn price_within(
        &self,
        limits: &Limits,
        model: &dyn Model,
    ) -> Result<Option<Price>, UnknownPrice> {
        match self.price(model) {
            None if limits.cost.is_some() => {
                let model = model.info().name.clone();
                Err(UnknownPrice { model })
            }
            price => Ok(price),
        }
    }
}

/// The account with what was spent now. Time passes for all at once, so it is no part of it.
fn charged(account: Spending, spent: Spending) -> Spending {
    Spending {
        time: Duration::ZERO,
        ..account.plus(spent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::Barrier, thread};
    use turnery_engine::{
        Announced, CallId, Content, ModelStop, Response, ToolCall, ToolEnvelope, Verdict,
    };
    use turnery_models::{Offline, Thinking};

    fn a_call() -> [Input; 3] {
        let call_id = CallId::from("c");
        let call = ToolCall {
            call_id: call_id.clone(),
            name: "look".to_owned(),
            args: Arc::new(serde_json::json!({})),
        };
        let response = Response {
            content: vec![Content::ToolCall(call)],
            stop: ModelStop::ToolUse,
            raw_stop: None,
            usage: None,
            model: "m".to_owned(),
            provider: "p".to_owned(),
            tool_results: Vec::new(),
        };
        [
            Input::Answered {
                response,
                calls: vec![Announced::default()],
            },
            Input::Verdict {
                call_id: call_id.clone(),
                verdict: Verdict::Allow,
            },
            Input::Ended {
                call_id,
                envelope: ToolEnvelope::text("x"),
            },
        ]
    }

    /// Threads race for the last turns: none is taken twice.
    // proves: UP-1
    #[test]
    fn each_turn_is_taken_once() {
        for _ in 0..300 {
            let budget = Budget::new(Limits {
                turns: 12,
                ..Limits::default()
            });
            let start = Barrier::new(8);
            let race = || {
                let config = Offline::new().info().snapshot(Thinking::Default, None);
                let input = vec![Content::text("go")];
                let ids = ("s".into(), "s.m.1".into(), "p".into());
                let spec = LoopSpec::prompt(ids.0, ids.1, ids.2, config, input);
                let (now, mut out) = (Timestamp::default(), Vec::new());
                start.wait();
                let mut machine = budget.start(budget.specify(spec), now, &mut out);
                for input in [a_call(), a_call()].concat() {
                    budget.feed(&mut machine, now, input, &mut out);
                }
                let calls = |effect: &&Effect| matches!(effect, Effect::CallModel { .. });
                out.iter().filter(calls).count()
            };
            let calls: usize = thread::scope(|scope| {
                let racing: Vec<_> = (0..8).map(|_| scope.spawn(race)).collect();
                racing.into_iter().map(|it| it.join().unwrap()).sum()
            });
            assert_eq!(calls, 12);
        }
    }
}
