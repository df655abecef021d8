//! Shares the limits of a prompt among its frames, candidates, judge and child sessions at any depth.
//!
//! The account holds their total spending. A loop reserves a turn and begins it in one step, so turn limits
//! are exact. The cost of a response is known only at its end: tokens and money may be exceeded by the
//! responses in flight when the limit is reached, one for each concurrent loop.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use turnery_engine::{
    Effect, Input, Limits, Loop, LoopSpec, Price, ReachedLimit, Spending, Timestamp, Usage,
};

/// Maximum number of messages that a prompt may send with the `notify` tool.
pub(crate) const MAX_NOTIFICATIONS: u32 = 10;

/// Budget of a prompt, as seen by one part of it. Clones share the account.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) limits: Limits,
    /// Maximum number of turns of this part; `None` for no limit of its own.
    turn_limit: Option<u32>,
    /// Time used by the prompt before the current loop of this part.
    elapsed: Duration,
    /// Spending of the whole prompt, except time.
    account: Arc<Mutex<Spending>>,
    /// Number of messages that the whole prompt has sent to the user.
    notifications: Arc<AtomicU32>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            turn_limit: None,
            elapsed: Duration::ZERO,
            account: Arc::default(),
            notifications: Arc::default(),
        }
    }

    /// Returns the budget of a child session that begins now and takes at most `turns`.
    pub(crate) fn for_child(&self, turns: u32, elapsed: Duration) -> Self {
        Self {
            turn_limit: Some(turns),
            elapsed,
            ..self.clone()
        }
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.limits.duration.saturating_sub(self.elapsed)
    }

    /// Advances the prompt's clock.
    pub(crate) fn add_time(&mut self, time: Duration) {
        self.elapsed = self.elapsed.saturating_add(time);
    }

    /// Records the end of a loop of this part, and the prompt's clock at that time.
    pub(crate) fn end_loop(&mut self, elapsed: Duration, turns: usize) {
        self.elapsed = elapsed;
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        self.turn_limit = self.turn_limit.map(|most| most.saturating_sub(turns));
    }

    /// Returns the number of turns that the whole prompt has begun.
    pub(crate) fn turns_taken(&self) -> u32 {
        self.account().turns
    }

    pub(crate) fn reached_limit(&self) -> Option<ReachedLimit> {
        self.limits
            .reached_limit(&self.spending_with_time(&self.account()))
    }

    /// Returns the token or cost limit that is exceeded, if any.
    pub(crate) fn exceeded_limit(&self) -> Option<ReachedLimit> {
        self.limits.exceeded_limit(&self.account())
    }

    /// Returns the time limit, for a deadline that has passed.
    pub(crate) fn duration_limit(&self) -> ReachedLimit {
        let spending = Spending {
            time: self.limits.duration,
            ..Spending::default()
        };
        self.limits.duration_limit(&spending)
    }

    /// Takes a turn for a model call outside the loops.
    pub(crate) fn take_turn(&self) -> Result<(), ReachedLimit> {
        let mut account = self.account();
        match self
            .limits
            .reached_limit(&self.spending_with_time(&account))
        {
            Some(limit) => Err(limit),
            None => {
                account.turns = account.turns.saturating_add(1);
                Ok(())
            }
        }
    }

    /// Counts a message to the user; false if the prompt may send no more.
    pub(crate) fn take_notification(&self) -> bool {
        let order = Ordering::Relaxed;
        let count = |sent| (sent < MAX_NOTIFICATIONS).then_some(sent + 1);
        self.notifications.fetch_update(order, order, count).is_ok()
    }

    /// Adds the usage of a model call outside the loops.
    pub(crate) fn add_call_usage(&self, usage: &Usage, price: Option<Price>) {
        self.account().add_usage(usage, price);
    }

    /// Sets the limits and spending in the spec of a loop.
    pub(crate) fn apply_to_spec(&self, spec: LoopSpec) -> LoopSpec {
        LoopSpec {
            limits: self.limits,
            loop_turn_limit: self.turn_limit,
            other_spending: self.spending_with_time(&self.account()),
            ..spec
        }
    }

    /// Starts a loop, which may take its first turn at once.
    pub(crate) fn start_loop(&self, spec: LoopSpec, now: Timestamp, out: &mut Vec<Effect>) -> Loop {
        let mut account = self.account();
        let spec = LoopSpec {
            other_spending: self.spending_with_time(&account),
            ..spec
        };
        let machine = Loop::start(spec, now, out);
        *account = add_spending(*account, machine.spending());
        machine
    }

    /// Feeds an input to a loop and tells it the spending of all others, which is locked meanwhile.
    pub(crate) fn feed_loop(
        &self,
        machine: &mut Loop,
        now: Timestamp,
        input: Input,
        out: &mut Vec<Effect>,
    ) {
        let mut account = self.account();
        let others = account.minus(machine.spending());
        machine.handle_input(
            now,
            Input::OtherSpending(self.spending_with_time(&others)),
            out,
        );
        machine.handle_input(now, input, out);
        // A turn that a hook rejected is given back.
        *account = add_spending(others, machine.spending());
    }

    /// Returns the spending with the time of this part.
    fn spending_with_time(&self, account: &Spending) -> Spending {
        Spending {
            time: self.elapsed,
            ..*account
        }
    }

    fn account(&self) -> MutexGuard<'_, Spending> {
        // The numbers are consistent even after a panic.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds spending to the account. Time passes for all parts at once, so it is not part of the account.
fn add_spending(account: Spending, spent: Spending) -> Spending {
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
        CallAnnouncement, CallId, Content, ModelStop, Response, TextValue, ToolCall, ToolEnvelope,
        Verdict,
    };
    use turnery_models::{Model as _, OfflineModel, Thinking};

    fn tool_call_inputs() -> [Input; 3] {
        let call_id = CallId::from("c");
        let call = ToolCall::new(call_id.clone(), "look", serde_json::json!({}));
        let response = Response {
            content: vec![Content::ToolCall(call)],
            stop: ModelStop::ToolUse,
            raw_stop: None,
            usage: None,
            model: "m".to_owned(),
            provider: "p".to_owned(),
            tool_results: Vec::new(),
            request: None,
        };
        [
            Input::ModelAnswered {
                response,
                calls: vec![CallAnnouncement::default()],
                value: TextValue::Absent,
            },
            Input::Verdict {
                call_id: call_id.clone(),
                verdict: Verdict::Allow,
            },
            Input::ToolEnded {
                call_id,
                envelope: ToolEnvelope::text("x"),
            },
        ]
    }

    /// Threads race for the last turns; no turn is taken twice.
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
                let config = OfflineModel::default()
                    .info()
                    .snapshot(Thinking::Default, None);
                let input = vec![Content::text("go")];
                let ids = ("s".into(), "s.m.1".into(), "p".into());
                let spec = LoopSpec::for_prompt(ids.0, ids.1, ids.2, config, input);
                let (now, mut out) = (Timestamp::default(), Vec::new());
                start.wait();
                let mut machine = budget.start_loop(budget.apply_to_spec(spec), now, &mut out);
                for input in [tool_call_inputs(), tool_call_inputs()].concat() {
                    budget.feed_loop(&mut machine, now, input, &mut out);
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
