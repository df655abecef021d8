//! Interface to terminals that the client provides for commands.

use futures_util::future::BoxFuture;
use std::path::Path;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Terminals that the client provides and shows.
pub trait Terminals: Send + Sync {
    /// Runs a shell command line in a client terminal until it exits, with these variables added to its
    /// environment. Sends the terminal's id through `started`. The command is killed when `cancel` fires or
    /// the future is dropped. The terminal is always released.
    fn run<'a>(
        &'a self,
        command: &'a str,
        cwd: &'a Path,
        environment: &'a [(String, String)],
        output_limit: u64,
        started: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<TerminalCommandOutput, TerminalError>>;
}

/// Error of running a command in a client terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TerminalError {
    /// The client has no terminals, despite its capabilities. The command did not run.
    #[error("the client has no terminals")]
    Unsupported,
    /// No terminal could be opened. The command did not run.
    #[error("{0}")]
    NotOpened(String),
    /// The command was started, but its result is unknown.
    #[error("{0}")]
    UnknownOutcome(String),
}

/// Result of a command in a client terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalCommandOutput {
    /// Output of the command, possibly only its end.
    pub output: String,
    /// The beginning of the output is missing.
    pub truncated: bool,
    /// Exit code, if the command exited.
    pub exit_code: Option<i64>,
    /// The signal that terminated the command.
    pub signal: Option<String>,
}
