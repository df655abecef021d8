//! Defines what a session is opened with, and the errors of opening.

use crate::{finish::FinalAnswerFormat, settings::SettingsError};
use std::path::PathBuf;
use turnery_engine::SessionId;
use turnery_store::StoreError;
use turnery_tools::{McpServer, PathError};

/// Folders, MCP servers and instructions with which a session is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Working directory: absolute, must exist. Empty for a session without a folder, whose tools can access
    /// no files.
    pub cwd: PathBuf,
    /// Additional roots: absolute, must exist.
    pub roots: Vec<PathBuf>,
    /// MCP servers of the client, connected while the session is open (MCP-7). A server hides one of the same
    /// name in the settings.
    pub mcp: Vec<McpServer>,
    /// Instructions of the client, combined with the system prompt from the settings.
    pub instructions: Option<Instructions>,
    /// Usual form of final values, if not that of the settings (LASH-121).
    pub final_answer_format: Option<FinalAnswerFormat>,
}

/// System prompt supplied by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Appends the text to the default system prompt.
    Append(String),
    /// Replaces the default system prompt.
    Override(String),
}

impl Instructions {
    pub(super) fn apply_to(&self, own: &str) -> String {
        match self {
            Self::Append(text) => format!("{own}\n\n{text}"),
            Self::Override(text) => text.clone(),
        }
    }
}

impl OpenRequest {
    /// Creates a request for one folder, without MCP servers or instructions.
    #[must_use]
    pub fn folder(cwd: PathBuf) -> Self {
        Self {
            cwd,
            roots: Vec::new(),
            mcp: Vec::new(),
            instructions: None,
            final_answer_format: None,
        }
    }

    /// Creates a request without a folder, MCP servers or instructions.
    #[must_use]
    pub fn without_folder() -> Self {
        Self::folder(PathBuf::new())
    }

    pub(super) fn has_folder(&self) -> bool {
        !self.cwd.as_os_str().is_empty()
    }
}

/// Error of creating or opening a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The id cannot be that of a session.
    #[error(
        "{0:?} is not a session id: use at least one character, and no dots, spaces or control characters"
    )]
    InvalidId(SessionId),
    /// A folder is not absolute, does not exist or cannot be read.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The session was created in another folder (G-24).
    #[error("session {session} belongs to {expected}; open it there")]
    OtherFolder {
        /// The session.
        session: SessionId,
        /// Folder of the session.
        expected: PathBuf,
    },
    /// The session's folder now resolves to another location, for example through a symlink.
    #[error(
        "session {session} belongs to {expected}, but {requested} leads to {found} now: put the folder back in its \
         place, or begin a new session"
    )]
    FolderLeadsElsewhere {
        /// The session.
        session: SessionId,
        /// Folder of the session.
        expected: PathBuf,
        /// Requested path.
        requested: PathBuf,
        /// Location that the path resolves to now.
        found: PathBuf,
    },
    /// The configuration cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The configured model does not exist.
    #[error(transparent)]
    Model(#[from] turnery_models::UnknownModelError),
    /// The selected model needs an API key and none is configured (AUTH-6).
    #[error(transparent)]
    Key(#[from] turnery_models::MissingKeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
