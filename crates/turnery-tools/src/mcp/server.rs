//! Configuration of a server, as the client or the user gave it. Values may be secrets: they are not in
//! `Debug` nor anywhere else where they could be read (MCP-5).

use std::{fmt, path::PathBuf, time::Duration};

/// Configuration of one MCP server.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Name for display.
    pub name: String,
    /// Transport of the server.
    pub transport: McpTransport,
    /// Time limit of a tool call; two minutes if `None`.
    pub timeout: Option<Duration>,
}

/// Transport of a server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A process, over its stdin and stdout.
    Stdio {
        /// The program.
        command: PathBuf,
        /// Its arguments, in order.
        args: Vec<String>,
        /// Variables added to the inherited ones, in order.
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        /// URL of the server.
        url: String,
        /// Headers sent with every request, in order.
        headers: Vec<(String, String)>,
    },
    /// The configuration is unusable, for this reason.
    Unusable(String),
}

impl McpTransport {
    /// Returns the texts in which the configuration may name files that a process runs.
    pub(super) fn words(&self) -> Vec<&str> {
        match self {
            Self::Stdio { command, args, env } => {
                let values = env.iter().map(|(_, value)| value.as_str());
                let args = args.iter().map(String::as_str);
                command
                    .to_str()
                    .into_iter()
                    .chain(args)
                    .chain(values)
                    .collect()
            }
            Self::Http { .. } | Self::Unusable(_) => Vec::new(),
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
            Self::Unusable(_) => "Unusable",
        })
    }
}
