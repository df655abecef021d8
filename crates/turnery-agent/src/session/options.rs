//! Options: how a session is set, and what may be different for one prompt.

use crate::{CancellationToken, Hooks, Slash};
use serde_json::Value;
use std::sync::Arc;
use turnery_engine::{Limits, LoopId};
use turnery_models::{ModelInfo, ModelName, Thinking};
use turnery_tools::{Mode, TraceContext};

/// How the session is set, and what it may be set to.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// How freely the agent acts.
    pub mode: Mode,
    /// `provider/model` in use.
    pub model: String,
    /// Models to offer; the one in use is among them.
    pub models: Vec<ModelInfo>,
    /// How much the model is to think.
    pub thinking: Thinking,
    /// How commands are confined, or that they are not: one sentence for people.
    pub sandbox: Arc<str>,
    /// Commands that are text for a prompt.
    pub slashes: Arc<[Slash]>,
}

impl SessionOptions {
    /// What is to be said to the model for a text that begins with one of those commands; `None` if it
    /// begins with none.
    #[must_use]
    pub fn filled(&self, text: &str) -> Option<String> {
        let rest = text.strip_prefix('/')?;
        let (name, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let slash = self.slashes.iter().find(|slash| slash.name == name)?;
        Some(slash.fill(args))
    }
}

/// What is different for one prompt. By default nothing is: then the session's settings hold.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    /// Cancels this prompt (LASH-91).
    pub cancel: CancellationToken,
    /// Whatever the caller wants to find again, kept with each of its loops (LOOP-28).
    pub metadata: Option<Value>,
    /// The model to use.
    pub model: Option<ModelName>,
    /// When it stops by itself.
    pub limits: Option<Limits>,
    /// Whether the prompt gets one turn more at its limit of turns, for an answer in prose (C-4).
    pub forced_reply: Option<bool>,
    /// Asked after those of the session.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// The loop of another session whose tool call makes this prompt, if one does (LOOP-24).
    pub spawned_by: Option<LoopId>,
    /// Whether a cancel that comes before the prompt has begun leaves nothing of it behind
    /// ([`PromptError::Withdrawn`](crate::PromptError::Withdrawn)), not even a loop that says so.
    pub withdrawable: bool,
    /// Where the prompt stands in its client's traces; goes to servers that its calls ask (EXT-6).
    pub trace: TraceContext,
}

impl PromptOptions {
    /// Nothing but a token that cancels the prompt.
    #[must_use]
    pub fn cancelled_by(cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..Self::default()
        }
    }
}
