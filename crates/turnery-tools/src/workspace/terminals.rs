//! Terminals that the client lends for commands.

use futures_util::future::BoxFuture;
use std::path::Path;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Terminals that the client lends, and shows.
pub trait Terminals: Send + Sync {
    /// Run a shell command line in a terminal of the client's, to its end, with these variables added to its
    /// environment. Reports the terminal's
    /// id through `started`. When `cancel` fires or the future is dropped the command is killed.
    /// The terminal is always released.
    fn run<'a>(
        &'a self,
        command: &'a str,
        cwd: &'a Path,
        environment: &'a [(String, String)],
        output_limit: u64,
        started: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<TerminalRun, TerminalFault>>;
}

/// Why a command did not come to its end in a client's terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TerminalFault {
    /// The client has no terminals, whatever it said. Nothing was run.
    #[error("the client has no terminals")]
    Absent,
    /// There is no terminal for the command, which did not run.
    #[error("{0}")]
    NotOpened(String),
    /// The command was started, and how it ended is not known.
    #[error("{0}")]
    Lost(String),
}

/// How a command in a client's terminal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalRun {
    /// What it printed, perhaps only the end of it.
    pub output: String,
    /// Whether the beginning is missing.
    pub truncated: bool,
    /// Its exit code, if it exited.
    pub exit_code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<String>,
}
