//! Defines the hidden subcommands that every program needs that plays cases: the runner starts its own program
//! with them.

use crate::{cleanup_guard, mcp_server};
use clap::Subcommand;
use std::{io, path::PathBuf};

/// Subcommand that the runner starts its own program with.
#[derive(Debug, Subcommand)]
pub enum HelperCommand {
    /// Run the MCP server that cases give to agents; it logs its input.
    #[command(hide = true)]
    McpServer {
        /// Log file.
        log: PathBuf,
        /// Arguments to log.
        words: Vec<String>,
    },
    /// Wait until stdin is closed, then end the processes that run in a folder of cases, and remove the
    /// folder.
    #[command(hide = true)]
    Guard {
        /// Folder of the cases.
        folder: PathBuf,
    },
}

impl HelperCommand {
    /// Runs the command until stdin ends, or until nobody reads its output.
    ///
    /// # Errors
    /// If a stream or the log cannot be read or written.
    pub fn run(&self) -> io::Result<()> {
        let done = match self {
            Self::McpServer { log, words } => {
                mcp_server::serve(log, words, io::stdin().lock(), io::stdout().lock())
            }
            Self::Guard { folder } => cleanup_guard::wait_and_clean_up(folder),
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}
