//! Defines the settings of a session, read from the user's and the project's configuration.

use crate::{
    code_mode::Protocol,
    custom_command::CustomCommand,
    effect_handler::EffectHandler,
    finish::FinalAnswerFormat,
    hooks::{DEFAULT_HOOK_TIMEOUT, Hooks},
};
use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};
use turnery_engine::{
    CompactionSettings, Limits, Price, QueueMode, parallel_group::DEFAULT_AGENT_ID,
};
use turnery_models::{ModelName, Thinking};
use turnery_tools::{EffectPolicy, GuardedPaths, McpServer, Mode, Rule, SandboxSettings};

/// Settings of one session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Id of the agent in the records of its loops (LOOP-14). A sub-agent's is that of its parent, a slash and the
    /// name of the tool that called it: `turnery/task`.
    pub agent_id: Arc<str>,
    /// Initial model.
    pub model: ModelName,
    /// Initial permission mode.
    pub mode: Mode,
    /// Sandbox for commands.
    pub sandbox: SandboxSettings,
    /// Allow rules.
    pub allow: Vec<Rule>,
    /// Deny rules; they take precedence.
    pub deny: Vec<Rule>,
    /// Files and folders (with their contents) that no mode changes without asking: the host's own
    /// configuration.
    pub guarded: GuardedPaths,
    /// Limits of a prompt, across its frames, candidates, judge, summaries and sub-agents. Tokens and cost
    /// may be exceeded by the responses in flight when the limit is reached. A cost limit rejects models
    /// without a known price.
    pub limits: Limits,
    /// Thinking level.
    pub thinking: Thinking,
    /// Sampling temperature; `None` uses the provider's default (LOOP-43).
    pub temperature: Option<f32>,
    /// How the model acts, unless a prompt sets another way.
    pub protocol: Protocol,
    /// System prompt; the host includes the contents of AGENTS.md files itself.
    pub system: Arc<str>,
    /// Grants one extra turn without tools at the turn limit, for a final text answer, once per prompt (C-4).
    /// The outcome still reports the limit.
    pub forced_reply: bool,
    /// Usual form of final values; `None` is Markdown in a session of the user, and plain data in a sub-agent's.
    pub final_answer_format: Option<FinalAnswerFormat>,
    /// Context usage at which older messages are summarized. Unit: percent; 0 disables it.
    pub compact_at: u8,
    /// Which messages stay verbatim, and how long the summary may be (UP-11).
    pub compaction: CompactionSettings,
    /// Maximum number of concurrent tool calls, among those that may run in parallel.
    pub parallel_tools: NonZeroUsize,
    /// How many steering messages are delivered at once (UP-5).
    pub steering: QueueMode,
    /// How many follow-ups are delivered at once (UP-5).
    pub follow_ups: QueueMode,
    /// Token price for the cost limit, used if the model registry knows no price for the model.
    pub price: Option<Price>,
    /// Stores the streaming deltas of messages and tool output with each loop (LOOP-81). They are not
    /// replayed when the session is loaded.
    pub keep_streaming: bool,
    /// MCP servers of every session.
    pub mcp_servers: Vec<McpServer>,
    /// Hooks of every prompt, in call order.
    pub hooks: Vec<Arc<dyn Hooks>>,
    /// Time limit of each hook call.
    pub hook_timeout: Duration,
    /// Receives the effects of tools after the commit of their loop. With `None`, none are stored for delivery.
    pub effect_handler: Option<Arc<dyn EffectHandler>>,
    /// Effects that the handler receives, of those that the policies of the toolbox keep (UP-22).
    pub effect_policy: EffectPolicy,
    /// If true, sessions run prompts that other hosts have queued in the store while the session was in use, after
    /// their own, unless their client accepts only its own prompts
    /// ([`Outbox::shows_other_prompts`](crate::Outbox::shows_other_prompts)). Nobody receives the results.
    pub runs_queued_prompts: bool,
    /// Slash commands that expand to prompt text.
    pub custom_commands: Arc<[CustomCommand]>,
}

impl Settings {
    /// Creates default settings for a model and a system prompt.
    #[must_use]
    pub fn new(model: ModelName, system: impl Into<Arc<str>>) -> Self {
        const DEFAULT_PARALLEL_TOOLS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);
        Self {
            agent_id: DEFAULT_AGENT_ID.into(),
            model,
            mode: Mode::default(),
            sandbox: SandboxSettings::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            guarded: GuardedPaths::default(),
            limits: Limits::default(),
            thinking: Thinking::Default,
            temperature: None,
            protocol: Protocol::default(),
            system: system.into(),
            forced_reply: true,
            final_answer_format: None,
            compact_at: 85,
            compaction: CompactionSettings::default(),
            parallel_tools: DEFAULT_PARALLEL_TOOLS,
            steering: QueueMode::default(),
            follow_ups: QueueMode::default(),
            price: None,
            keep_streaming: false,
            mcp_servers: Vec::new(),
            hooks: Vec::new(),
            hook_timeout: DEFAULT_HOOK_TIMEOUT,
            effect_handler: None,
            effect_policy: EffectPolicy::default(),
            runs_queued_prompts: false,
            custom_commands: Arc::new([CustomCommand::init()]),
        }
    }
}

/// Reads the settings of a project. Called when a session is created or opened.
pub trait SettingsResolver: Send + Sync + 'static {
    /// Returns the settings for a session in `roots`, the working directory first. Reads files; must not
    /// block for long.
    fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError>;

    /// Returns the default model of a session, if it is known without reading files. Called before a session
    /// exists.
    fn default_model(&self) -> Option<ModelName> {
        None
    }
}

/// Uses the same settings in every folder.
impl SettingsResolver for Settings {
    fn settings(&self, _roots: &[PathBuf]) -> Result<Settings, SettingsError> {
        Ok(self.clone())
    }

    fn default_model(&self) -> Option<ModelName> {
        Some(self.model.clone())
    }
}

/// Error of reading the configuration: file, line and the nearest valid key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);
