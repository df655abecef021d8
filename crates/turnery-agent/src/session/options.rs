//! Defines session options and per-prompt overrides.

use crate::{
    code_mode::Protocol, custom_command::CustomCommand, finish::FinishRule, hooks::Hooks,
    sink::PromptSinks,
};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use turnery_engine::{Limits, LoopId};
use turnery_models::{ModelInfo, ModelName, Thinking};
use turnery_store::QueuedPrompt;
use turnery_tools::{Mode, TraceContext};

/// Current options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Permission mode.
    pub mode: Mode,
    /// Current model.
    pub model: Arc<ModelInfo>,
    /// Thinking level.
    pub thinking: Thinking,
    /// How the model acts.
    pub protocol: Protocol,
    /// One sentence for the user on how commands are sandboxed, or that they are not.
    pub sandbox: Arc<str>,
    /// Slash commands that expand to prompt text.
    pub custom_commands: Arc<[CustomCommand]>,
}

impl SessionOptions {
    /// Expands a text that begins with a slash command; `None` if it does not.
    #[must_use]
    pub fn expand_command(&self, text: &str) -> Option<String> {
        let rest = text.strip_prefix('/')?;
        let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let slash = self
            .custom_commands
            .iter()
            .find(|slash| slash.name == name)?;
        Some(slash.expand(args))
    }
}

/// Options of one prompt. Defaults to the session's settings.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    /// Cancels this prompt (LASH-91).
    pub cancel: CancellationToken,
    /// Arbitrary value of the caller, stored with each loop (LOOP-28).
    pub metadata: Option<Value>,
    /// Model to use instead of the session's.
    pub model: Option<ModelName>,
    /// How the model acts, instead of the session's way.
    pub protocol: Option<Protocol>,
    /// Thinking level to use instead of the session's (LOOP-44).
    pub thinking: Option<Thinking>,
    /// Sampling temperature to use instead of the agent's (LOOP-43).
    pub temperature: Option<f32>,
    /// Limits of the prompt.
    pub limits: Option<Limits>,
    /// Grants one extra turn at the turn limit, for a final text answer (C-4).
    pub forced_reply: Option<bool>,
    /// How the prompt may end: with prose, or with a value.
    pub finish: FinishRule,
    /// Receive the activities of the prompt.
    pub sinks: PromptSinks,
    /// Hooks that run after the session's.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// Loop of the parent session whose tool call starts this prompt, if any (LOOP-24).
    pub spawned_by: Option<LoopId>,
    /// If true, a cancel before the prompt begins leaves nothing behind
    /// ([`PromptError::Withdrawn`](crate::PromptError::Withdrawn)), not even a cancelled loop.
    pub discard_if_not_started: bool,
    /// Prompt of the store that this one is. It runs under the id of that prompt, and only if nobody has run it
    /// ([`PromptError::AlreadyRun`](crate::PromptError::AlreadyRun)); then it leaves the queue.
    pub queued: Option<Arc<QueuedPrompt>>,
    /// Trace context of the client, passed on to the servers that tool calls contact (EXT-6).
    pub trace: TraceContext,
}

impl PromptOptions {
    /// Creates options with a cancel token.
    #[must_use]
    pub fn cancelled_by(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..Self::default()
        }
    }
}
