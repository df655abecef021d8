//! Spec: what a loop is started with.

use crate::{
    AnswerLimits, ConfigSnapshot, Content, ContextSize, ContinuationKind, Detail, Frame, FrameId,
    HookSet, LimitKind, LoopId, PromptId, SessionId, TurnTrigger, Usage,
};
use serde_json::Value;
use std::time::Duration;

/// What a loop is to do, and within which limits.
#[derive(Clone, Debug)]
pub struct LoopSpec {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// Its own id.
    pub loop_id: LoopId,
    /// The agent that runs it.
    pub agent_id: String,
    /// The host request that it serves.
    pub prompt_id: PromptId,
    /// The loop before it.
    pub parent_loop_id: Option<LoopId>,
    /// How it follows from that.
    pub continuation_kind: ContinuationKind,
    /// What causes its first turn.
    pub trigger: TurnTrigger,
    /// The model's identity.
    pub config: ConfigSnapshot,
    /// The prompt: content of the user message; empty for a continuation without one.
    pub input: Vec<Content>,
    /// When to stop: limits of the whole prompt, which the loop shares with all that works for it.
    pub limits: Limits,
    /// What the rest of the prompt has spent so far. What it spends from now on comes with
    /// [`Input::OtherSpending`](super::Input::OtherSpending).
    pub elsewhere: Spending,
    /// Number of turns of this loop alone, whatever the prompt has left; none for no such limit.
    pub own_turns: Option<u32>,
    /// Tells a rerun or a branch from others of the same parent (UP-16).
    pub tag: Option<String>,
    /// Whatever the caller wants to find again (LOOP-28).
    pub metadata: Option<Value>,
    /// The frame that it runs in; none is the session's first.
    pub frame_id: Option<FrameId>,
    /// That frame, if this loop is its first.
    pub frame: Option<Frame>,
    /// The loops that are tried beside each other, this one among them; none if it runs alone (LOOP-70).
    pub group: Vec<LoopId>,
    /// Whether a tool may open another frame (UP-31); else asking for one is an error.
    pub may_switch: bool,
    /// Who wants to be asked.
    pub hooks: HookSet,
    /// At the limit of turns, one more without tools for an answer in prose (C-4).
    pub forced_reply: bool,
    /// How many steering messages are heard at once.
    pub steering: QueueMode,
    /// How many follow-ups are heard at once.
    pub follow_ups: QueueMode,
    /// How many calls may run at the same time, of those announced as parallel (C-6); 1 is one after the other.
    pub parallel: usize,
    /// How full the context is, and when to compact it.
    pub context: Context,
    /// What tokens cost, where a limit of money is set. Another model comes with
    /// [`Input::Price`](super::Input::Price).
    pub price: Option<Price>,
}

impl LoopSpec {
    /// A new prompt with nothing special about it.
    #[must_use]
    pub fn prompt(
        session_id: SessionId,
        loop_id: LoopId,
        prompt_id: PromptId,
        config: ConfigSnapshot,
        input: Vec<Content>,
    ) -> Self {
        Self {
            session_id,
            loop_id,
            agent_id: crate::group::AGENT.to_owned(),
            prompt_id,
            parent_loop_id: None,
            continuation_kind: ContinuationKind::Initial,
            trigger: TurnTrigger::User,
            config,
            input,
            limits: Limits::default(),
            elsewhere: Spending::default(),
            own_turns: None,
            tag: None,
            metadata: None,
            frame_id: None,
            frame: None,
            group: Vec::new(),
            may_switch: true,
            hooks: HookSet::default(),
            forced_reply: false,
            steering: QueueMode::default(),
            follow_ups: QueueMode::default(),
            parallel: 8,
            context: Context::default(),
            price: None,
        }
    }
}

/// How many waiting messages a loop takes at once (UP-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// One.
    #[default]
    OneAtATime,
    /// All.
    All,
}

/// How full the model's context is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// What the first request holds, its input included.
    pub size: ContextSize,
    /// What the model takes at most; none is not known, and then nothing is compacted by itself.
    pub window: Option<u64>,
    /// Compact once the context is this full. Unit: percent of the window; 0 never does.
    pub compact_at: u8,
}

/// What a million tokens cost. Unit: millionths of whatever money the limit is in.
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
}

/// When a prompt stops by itself (UP-1). All but `answer` are compared with `>=`, before each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of ordinary turns; the last reply comes on top (C-4).
    pub turns: u32,
    /// Tokens, in and out, but for those read from a cache or written to one ([`Usage::fresh`](crate::Usage::fresh)).
    pub tokens: u64,
    /// Wall-clock time. The host also feeds [`Input::TimeUp`](super::Input::TimeUp) when it passes in mid-turn.
    pub duration: Duration,
    /// Money, as far as the price is known: the host refuses models without one. Unit: millionths.
    pub cost: Option<u64>,
    /// Size of one answer. Compared with `>` while it streams.
    pub answer: AnswerLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 50,
            tokens: 1_000_000,
            duration: Duration::from_secs(600),
            cost: None,
            answer: AnswerLimits::default(),
        }
    }
}

/// What counts against [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Number of ordinary turns that were begun.
    pub turns: u32,
    /// Tokens, as [`Limits::tokens`] counts them.
    pub tokens: u64,
    /// Wall-clock time, without the time that a person took to answer.
    pub time: Duration,
    /// Money, as far as the price is known. Unit: millionths.
    pub cost: u64,
    /// Whether the one last reply of the prompt has been asked for (C-4).
    pub last_reply: bool,
}

impl Spending {
    /// Adds an answer of the model.
    pub fn add_answer(&mut self, usage: &Usage, price: Option<Price>) {
        self.tokens = self.tokens.saturating_add(usage.fresh());
        let cost = price.map_or(0, |price| price.of(usage));
        self.cost = self.cost.saturating_add(cost);
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            time: self.time.saturating_add(other.time),
            cost: self.cost.saturating_add(other.cost),
            last_reply: self.last_reply || other.last_reply,
        }
    }

    /// What this has beyond `part`.
    #[must_use]
    pub fn minus(self, part: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(part.turns),
            tokens: self.tokens.saturating_sub(part.tokens),
            time: self.time.saturating_sub(part.time),
            cost: self.cost.saturating_sub(part.cost),
            last_reply: self.last_reply && !part.last_reply,
        }
    }
}

impl Limits {
    /// The limit that forbids anything more, and its sentence.
    #[must_use]
    pub fn reached(&self, spending: &Spending) -> Option<Detail> {
        if spending.turns >= self.turns {
            return Some(turns_reached(spending.turns, self.turns));
        }
        self.reached_besides_turns(spending)
    }

    /// The same, whatever the number of turns.
    #[must_use]
    pub fn reached_besides_turns(&self, spending: &Spending) -> Option<Detail> {
        if spending.tokens >= self.tokens {
            Some(tokens_reached(spending.tokens, self.tokens))
        } else if spending.time >= self.duration {
            Some(self.time_up(spending))
        } else {
            let most = self.cost.filter(|most| spending.cost >= *most);
            most.map(|most| cost_reached(spending.cost, most))
        }
    }

    /// The limit of tokens or money that more was spent than, and its sentence.
    #[must_use]
    pub fn passed(&self, spending: &Spending) -> Option<Detail> {
        if spending.tokens > self.tokens {
            return Some(tokens_reached(spending.tokens, self.tokens));
        }
        let most = self.cost.filter(|most| spending.cost > *most);
        most.map(|most| cost_reached(spending.cost, most))
    }

    /// The limit of time, for a clock that says so.
    #[must_use]
    pub fn time_up(&self, spending: &Spending) -> Detail {
        let (time, most) = (spending.time.as_secs(), self.duration.as_secs());
        Detail::Limit {
            kind: LimitKind::Duration,
            text: format!("Max duration reached ({time}s/{most}s)"),
        }
    }
}

/// The limit of turns.
pub(super) fn turns_reached(turns: u32, most: u32) -> Detail {
    Detail::Limit {
        kind: LimitKind::Turns,
        text: format!("Max turns reached ({turns}/{most})"),
    }
}

fn tokens_reached(tokens: u64, most: u64) -> Detail {
    Detail::Limit {
        kind: LimitKind::Tokens,
        text: format!("Max tokens reached ({tokens}/{most})"),
    }
}

fn cost_reached(cost: u64, most: u64) -> Detail {
    Detail::Limit {
        kind: LimitKind::Cost,
        text: format!("Max cost reached ({}/{})", money(cost), money(most)),
    }
}

/// Millionths as a number with two decimals, or with all of them below one.
fn money(millionths: u64) -> String {
    let (whole, part) = (millionths / 1_000_000, millionths % 1_000_000);
    let cents = part / 10_000;
    match (whole, part % 10_000) {
        (0, 1..) => format!("0.{part:06}").trim_end_matches('0').to_owned(),
        _ => format!("{whole}.{cents:02}"),
    }
}

impl Price {
    /// What this much costs, in millionths, rounded up.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> u64 {
        let parts = [
            (self.input, usage.input),
            (self.output, usage.output),
            (self.cache_read, usage.cache_read),
            (self.cache_write, usage.cache_write),
        ];
        let sum: u128 = parts
            .iter()
            .map(|(price, tokens)| u128::from(*price) * u128::from(*tokens))
            .sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}
