//! Spec: what a loop is started with.

use crate::{ConfigSnapshot, Content, ContinuationKind, LoopId, PromptId, SessionId, TurnTrigger};
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
}

/// When a loop stops by itself (UP-1). All compared with `>=`, before each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of ordinary turns.
    pub turns: u32,
    /// Tokens, in and out, but for those read from a cache ([`Usage::fresh`](crate::Usage::fresh)).
    pub tokens: u64,
    /// Wall-clock time. The host also feeds [`Input::TimeUp`](super::Input::TimeUp) when it passes in mid-turn.
    pub duration: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 50,
            tokens: 1_000_000,
            duration: Duration::from_secs(600),
        }
    }
}
