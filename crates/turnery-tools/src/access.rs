//! Describes what a call accesses.

use std::path::PathBuf;

/// Access that a call needs; the policy decides on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Accesses nothing outside the conversation.
    Nothing,
    /// Reads these files or folders. Absolute, inside the roots; a file called through links is listed under
    /// each of its names, the resolved one first.
    Read(Vec<PathBuf>),
    /// Changes these files. Absolute, inside the roots; a file called through links is listed under each of
    /// its names, the resolved one first.
    Edit(Vec<PathBuf>),
    /// Runs a shell command.
    Run {
        /// The whole command line.
        command: String,
        /// Working directory of the command.
        cwd: PathBuf,
    },
    /// Runs a shell command outside the sandbox although one is in use; the user is always asked.
    RunOutside {
        /// The whole command line.
        command: String,
        /// Working directory of the command.
        cwd: PathBuf,
    },
    /// Calls a tool of an external MCP server, whose effects are unknown.
    Server {
        /// Rule pattern that covers all tools of the server, for example `mcp__github`.
        all: String,
        /// The server declares the tool read-only.
        is_read_only: bool,
        /// The server declares the tool destructive.
        is_destructive: bool,
    },
}
