//! Spec: what a loop is started with.

use crate::{
    AnswerLimits, ConfigSnapshot, Content, ContextSize, ContinuationKind, Frame, FrameId, HookSet,
    LoopId, PromptId, SessionId, TurnTrigger, Usage,
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
    /// When to stop.
    pub limits: Limits,
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
    /// What tokens cost, where a limit of money is set.
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

/// When a loop stops by itself (UP-1). All but `answer` are compared with `>=`, before each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of ordinary turns.
    pub turns: u32,
    /// Tokens, in and out, but for those read from a cache or written to one ([`Usage::fresh`](crate::Usage::fresh)).
    pub tokens: u64,
    /// Wall-clock time. The host also feeds [`Input::TimeUp`](super::Input::TimeUp) when it passes in mid-turn.
    pub duration: Duration,
    /// Money, if the price is known. Unit: millionths.
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
