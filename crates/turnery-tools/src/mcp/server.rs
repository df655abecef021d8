//! Server: how a server is reached, as the client or the user gave it. Values may be secrets: they are
//! not in `Debug`, and nowhere else where they could be read (MCP-5).

use std::{fmt, path::PathBuf, time::Duration};

/// One server.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServer {
    /// What people call it.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// How long a call of one of its tools may take; two minutes unless set.
    pub timeout: Option<Duration>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// As a process, over its standard input and output.
    Stdio {
        /// The program.
        command: PathBuf,
        /// Its arguments, in order.
        args: Vec<String>,
        /// Variables that it gets besides the inherited ones, in order.
        env: Vec<(String, String)>,
    },
    /// Over streamable HTTP.
    Http {
        /// Where.
        url: String,
        /// Sent with every request, in order.
        headers: Vec<(String, String)>,
    },
    /// Not at all, and why: what was given for it cannot be used.
    Not(String),
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio { .. } => "Stdio",
            Self::Http { .. } => "Http",
            Self::Not(_) => "Not",
        })
    }
}
