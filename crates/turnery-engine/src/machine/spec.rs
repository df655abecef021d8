//! Parameters of a loop: its spec, limits, spending and prices.

use crate::{
    ConfigSnapshot, Content, ContextSize, ContinuationKind, Frame, FrameId, HookSet, LimitKind,
    LoopId, PromptId, ReachedLimit, ResponseLimits, SessionId, TurnTrigger, Usage,
};
use serde_json::Value;
use std::time::Duration;

/// Parameters of a loop.
#[derive(Clone, Debug)]
pub struct LoopSpec {
    /// Session of the loop.
    pub session_id: SessionId,
    /// Loop id.
    pub loop_id: LoopId,
    /// Agent that runs the loop.
    pub agent_id: String,
    /// Host request that the loop serves.
    pub prompt_id: PromptId,
    /// Preceding loop.
    pub parent_loop_id: Option<LoopId>,
    /// How the loop continues from its parent.
    pub continuation_kind: ContinuationKind,
    /// Cause of the first turn of an initial loop.
    pub trigger: TurnTrigger,
    /// Model configuration.
    pub config: ConfigSnapshot,
    /// Content of the user message; empty for a continuation without a prompt.
    pub input: Vec<Content>,
    /// Notices to the model that precede the input; they stay in the conversation.
    pub notices: Vec<String>,
    /// Limits of the whole prompt, shared with everything that works on it.
    pub limits: Limits,
    /// Spending of the rest of the prompt so far. Updated with
    /// [`Input::OtherSpending`](super::Input::OtherSpending).
    pub other_spending: Spending,
    /// Turn limit of this loop alone; `None` for no limit other than the prompt's.
    pub loop_turn_limit: Option<u32>,
    /// Distinguishes a rerun or branch from its siblings (UP-16).
    pub tag: Option<String>,
    /// Caller-defined data (LOOP-28).
    pub metadata: Option<Value>,
    /// Frame of the loop; `None` is the first frame of the session.
    pub frame_id: Option<FrameId>,
    /// The frame itself, if this loop is the first in it.
    pub frame: Option<Frame>,
    /// All loops of the parallel group, including this one; empty if the loop runs alone (LOOP-70).
    pub parallel_group: Vec<LoopId>,
    /// True if a tool may open a new frame (UP-31); otherwise such a request is an error.
    pub can_switch_frame: bool,
    /// Installed hooks.
    pub hooks: HookSet,
    /// True if the model gets one more reply without tools at the turn limit (C-4).
    pub forced_reply: bool,
    /// How the loop may end once the model is done.
    pub termination: Termination,
    /// Delivery of queued steering messages.
    pub steering: QueueMode,
    /// Delivery of queued follow-up messages.
    pub follow_ups: QueueMode,
    /// Maximum number of calls announced as parallel that run at the same time (C-6); 1 runs them in
    /// sequence.
    pub max_parallel_calls: usize,
    /// Size of the context, and when to compact it.
    pub context: ContextBudget,
    /// Price of tokens, if there is a cost limit. Changed with
    /// [`Input::PriceChanged`](super::Input::PriceChanged).
    pub price: Option<Price>,
}

impl LoopSpec {
    /// Creates the spec of a new prompt with default settings.
    #[must_use]
    pub fn for_prompt(
        session_id: SessionId,
        loop_id: LoopId,
        prompt_id: PromptId,
        config: ConfigSnapshot,
        input: Vec<Content>,
    ) -> Self {
        Self {
            session_id,
            loop_id,
            agent_id: crate::parallel_group::DEFAULT_AGENT_ID.to_owned(),
            prompt_id,
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            trigger: TurnTrigger::User,
            config,
            input,
            notices: Vec::new(),
            limits: Limits::default(),
            other_spending: Spending::default(),
            loop_turn_limit: None,
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
            parallel_group: Vec::new(),
            can_switch_frame: true,
            hooks: HookSet::default(),
            forced_reply: false,
            termination: Termination::default(),
            steering: QueueMode::default(),
            follow_ups: QueueMode::default(),
            max_parallel_calls: 8,
            context: ContextBudget::default(),
            price: None,
        }
    }
}

/// How a loop may end once the model is done (LASH-113).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Termination {
    /// Text without calls is the answer (LASH-115).
    #[default]
    Natural,
    /// Only a value or another decision of a tool ends the loop, such as a submitted value (LASH-114). Text without
    /// calls is followed by a reminder and another turn, unless the host finds the value in it; after two reminders in
    /// a row the loop fails. No last reply is requested at the turn limit.
    FinishRequired,
}

/// Number of queued messages that a loop takes at once (UP-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// One message.
    #[default]
    OneAtATime,
    /// All messages.
    All,
}

/// Size of the model's context, and when to compact it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextBudget {
    /// Size of a request before the loop adds its input.
    pub size: ContextSize,
    /// Context window of the model. Unit: tokens. `None` if unknown, which disables automatic compaction.
    pub window: Option<u64>,
    /// Compaction threshold. Unit: percent of the window; 0 disables compaction.
    pub compact_at: u8,
}

/// Price per million tokens. Unit: millionths of the currency of the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Uncached input.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Prices of requests with a long input, by rising [`PriceTier::above`].
    pub tiers: &'static [PriceTier],
}

/// Price of a request whose input exceeds a size. Units: as in [`Price`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriceTier {
    /// Input of the request, cached input included, that must be exceeded. Unit: tokens.
    pub above: u64,
    /// Uncached input.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
}

/// Limits of a prompt (UP-1). All except `response` are compared with `>=`, before each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of ordinary turns, not counting the additional reply after this limit
    /// ([`LoopSpec::forced_reply`], C-4).
    pub turns: u32,
    /// Input and output tokens without cached ones (see [`Usage::uncached`](crate::Usage::uncached)).
    pub tokens: u64,
    /// Wall-clock time. The host sends [`Input::TimeUp`](super::Input::TimeUp) if the limit is reached during
    /// a turn.
    pub duration: Duration,
    /// Cost; hosts with this limit reject models without a known price. Unit: millionths.
    pub cost: Option<u64>,
    /// Size of one response. Compared with `>` while the response streams.
    pub response: ResponseLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 50,
            tokens: 1_000_000,
            duration: Duration::from_secs(600),
            cost: None,
            response: ResponseLimits::default(),
        }
    }
}

/// Spending that counts against [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Number of ordinary turns started.
    pub turns: u32,
    /// Tokens, as [`Limits::tokens`] counts them.
    pub tokens: u64,
    /// Wall-clock time without the time spent waiting for the user.
    pub time: Duration,
    /// Cost, as far as prices are known. Unit: millionths.
    pub cost: u64,
    /// True if the last reply of the prompt was requested (C-4).
    pub forced_reply_used: bool,
}

impl Spending {
    /// Adds the usage of a model call.
    pub fn add_usage(&mut self, usage: &Usage, price: Option<Price>) {
        self.tokens = self.tokens.saturating_add(usage.uncached());
        let cost = price.map_or(0, |price| price.cost_of(usage));
        self.cost = self.cost.saturating_add(cost);
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            time: self.time.saturating_add(other.time),
            cost: self.cost.saturating_add(other.cost),
            forced_reply_used: self.forced_reply_used || other.forced_reply_used,
        }
    }

    /// Returns the difference to `part`.
    #[must_use]
    pub fn minus(self, part: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(part.turns),
            tokens: self.tokens.saturating_sub(part.tokens),
            time: self.time.saturating_sub(part.time),
            cost: self.cost.saturating_sub(part.cost),
            forced_reply_used: self.forced_reply_used && !part.forced_reply_used,
        }
    }
}

impl Limits {
    /// Returns the limit that prevents further work, with its message.
    #[must_use]
    pub fn reached_limit(&self, spending: &Spending) -> Option<ReachedLimit> {
        if spending.turns >= self.turns {
            return Some(turn_limit(spending.turns, self.turns));
        }
        self.reached_limit_except_turns(spending)
    }

    /// Like `reached_limit`, but ignores the turn limit.
    #[must_use]
    pub fn reached_limit_except_turns(&self, spending: &Spending) -> Option<ReachedLimit> {
        if spending.tokens >= self.tokens {
            Some(token_limit(spending.tokens, self.tokens))
        } else if spending.time >= self.duration {
            Some(self.duration_limit(spending))
        } else {
            let most = self.cost.filter(|most| spending.cost >= *most);
            most.map(|most| cost_limit(spending.cost, most))
        }
    }

    /// Returns the token or cost limit that was exceeded, with its message.
    #[must_use]
    pub fn exceeded_limit(&self, spending: &Spending) -> Option<ReachedLimit> {
        if spending.tokens > self.tokens {
            return Some(token_limit(spending.tokens, self.tokens));
        }
        let most = self.cost.filter(|most| spending.cost > *most);
        most.map(|most| cost_limit(spending.cost, most))
    }

    /// Returns the time limit with its message, whether or not it is reached.
    #[must_use]
    pub fn duration_limit(&self, spending: &Spending) -> ReachedLimit {
        let (time, most) = (spending.time.as_secs(), self.duration.as_secs());
        let text = format!("Max duration reached ({time}s/{most}s)");
        let kind = LimitKind::Duration;
        ReachedLimit { kind, text }
    }
}

/// Returns the turn limit with its message.
pub(super) fn turn_limit(turns: u32, most: u32) -> ReachedLimit {
    ReachedLimit {
        kind: LimitKind::Turns,
        text: format!("Max turns reached ({turns}/{most})"),
    }
}

fn token_limit(tokens: u64, most: u64) -> ReachedLimit {
    ReachedLimit {
        kind: LimitKind::Tokens,
        text: format!("Max tokens reached ({tokens}/{most})"),
    }
}

fn cost_limit(cost: u64, most: u64) -> ReachedLimit {
    ReachedLimit {
        kind: LimitKind::Cost,
        text: format!(
            "Max cost reached ({}/{})",
            format_millionths(cost),
            format_millionths(most)
        ),
    }
}

/// Formats millionths with two decimals, or with all of them if below one.
fn format_millionths(millionths: u64) -> String {
    let (whole, part) = (millionths / 1_000_000, millionths % 1_000_000);
    let cents = part / 10_000;
    match (whole, part % 10_000) {
        (0, 1..) => format!("0.{part:06}").trim_end_matches('0').to_owned(),
        _ => format!("{whole}.{cents:02}"),
    }
}

impl Price {
    /// Returns the cost of the `usage` of one request, rounded up. The size of its input selects the tier. Unit:
    /// millionths.
    #[must_use]
    pub fn cost_of(&self, usage: &Usage) -> u64 {
        let input = usage.context_tokens().saturating_sub(usage.output);
        let tier = self.tiers.iter().rfind(|tier| input > tier.above);
        let rates = tier.map_or(
            [self.input, self.output, self.cache_read, self.cache_write],
            |it| [it.input, it.output, it.cache_read, it.cache_write],
        );
        let tokens = [
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
        ];
        let sum: u128 = rates
            .iter()
            .zip(tokens)
            .map(|(rate, tokens)| u128::from(*rate) * u128::from(tokens))
            .sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Returns the price without tiers, for the sum of several requests, whose sizes are unknown.
    #[must_use]
    pub fn without_tiers(self) -> Self {
        Self { tiers: &[], ..self }
    }
}
