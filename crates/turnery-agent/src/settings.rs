//! Settings: what holds for one session, read from the configuration of the user and of the project.

use std::{path::PathBuf, sync::Arc};
use turnery_engine::Limits;
use turnery_models::{ModelName, Thinking};
use turnery_tools::{Mode, Rule};

/// What holds for one session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model to begin with.
    pub model: ModelName,
    /// How freely the agent may act at first.
    pub mode: Mode,
    /// Rules that allow.
    pub allow: Vec<Rule>,
    /// Rules that deny; they win.
    pub deny: Vec<Rule>,
    /// When a loop stops by itself.
    pub limits: Limits,
    /// How much the model is to think.
    pub thinking: Thinking,
    /// The system prompt: who the agent is, then the AGENTS.md files of the roots.
    pub system: Arc<str>,
}

/// Reads the settings of a project. Called when a session is made or opened.
pub trait Projects: Send + Sync + 'static {
    /// The settings for a session in `roots`, the working directory first. Reads files; must not block for long.
    fn settings(&self, roots: &[PathBuf]) -> Result<Settings, SettingsError>;
}

/// A configuration that cannot be read: file, line, and the nearest valid key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);
