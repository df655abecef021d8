//! Settings: what holds for one session, read from the configuration of the user and of the project.

use crate::{HOOK_TIME, Hooks, Slash};
use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};
use turnery_engine::{CompactionSettings, Limits, Price, QueueMode};
use turnery_models::{ModelName, Thinking};
use turnery_tools::{GuardedPaths, McpServer, Mode, Rule, SandboxSettings};

/// What holds for one session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model to begin with.
    pub model: ModelName,
    /// How freely the agent may act at first.
    pub mode: Mode,
    /// How commands are confined.
    pub sandbox: SandboxSettings,
    /// Rules that allow.
    pub allow: Vec<Rule>,
    /// Rules that deny; they win.
    pub deny: Vec<Rule>,
    /// Files, or folders with all that is in them, that no mode changes without asking: the host's own configuration.
    pub guarded: GuardedPaths,
    /// When a prompt stops by itself, over all that works for it: its frames, candidates and their judge,
    /// summaries, sub-agents. Tokens and money are exceeded by no more than the answers that are under way
    /// when the limit is reached. A limit of money refuses models without a known price.
    pub limits: Limits,
    /// How much the model is to think.
    pub thinking: Thinking,
    /// Sampling temperature; none leaves it to the provider (LOOP-43).
    pub temperature: Option<f32>,
    /// The system prompt: who the agent is, then the AGENTS.md files of the roots.
    pub system: Arc<str>,
    /// At the limit of turns, one more without tools for an answer in prose, once in a prompt (C-4). The
    /// prompt has reached its limit all the same.
    pub forced_reply: bool,
    /// Summarise older messages once the model's context is this full. Unit: percent; 0 never does.
    pub compact_at: u8,
    /// What stays as it is then, and how long the summary may be (UP-11).
    pub compaction: CompactionSettings,
    /// How many calls may run at once, of those that may run beside others.
    pub parallel_tools: NonZeroUsize,
    /// How many steering messages are heard at once (UP-5).
    pub steering: QueueMode,
    /// How many follow-ups are heard at once (UP-5).
    pub follow_ups: QueueMode,
    /// What tokens cost, unless the catalogue says so for the model: what a limit of money is counted with.
    pub price: Option<Price>,
    /// Keep the fragments of messages and of what calls print with each loop, for whoever wants to see
    /// how they came (LOOP-81). They are not shown again when the session is loaded.
    pub keep_streaming: bool,
    /// MCP servers of every session.
    pub mcp: Vec<McpServer>,
    /// Asked in every prompt, in this order.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// How long each of them may take to answer.
    pub hook_time: Duration,
    /// Commands that are text for a prompt.
    pub slashes: Arc<[Slash]>,
}

impl Settings {
    /// The usual settings, for this model and this system prompt.
    #[must_use]
    pub fn new(model: ModelName, system: impl Into<Arc<str>>) -> Self {
        const FEW: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);
        Self {
            model,
            mode: Mode::default(),
            sandbox: SandboxSettings::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            guarded: GuardedPaths::default(),
            limits: Limits::default(),
            thinking: Thinking::Default,
            temperature: None,
            system: system.into(),
            forced_reply: true,
            compact_at: 85,
            compaction: CompactionSettings::default(),
            parallel_tools: FEW,
            steering: QueueMode::default(),
            follow_ups: QueueMode::default(),
            price: None,
            keep_streaming: false,
            mcp: Vec::new(),
            hooks: Vec::new(),
            hook_time: HOOK_TIME,
            slashes: Arc::new([Slash::init()]),
        }
    }
}

/// Reads the settings of a project. Called when a session is made or opened.
pub trait Projects: Send + Sync + 'static {
    /// The settings for a session in `roots`, the working directory first. Reads files; must not block for long.
    fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError>;

    /// The model of a session where no project names another, if that is known without reading anything.
    /// Asked before there is a session.
    fn usual_model(&self) -> Option<ModelName> {
        None
    }
}

/// The same settings in every folder.
impl Projects for Settings {
    fn settings(&self, _roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        Ok(self.clone())
    }

    fn usual_model(&self) -> Option<ModelName> {
        Some(self.model.clone())
    }
}

/// A configuration that cannot be read: file, line, and the nearest valid key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);
