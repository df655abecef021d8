//! Runs a server as a process in its own group, which ends with its session.

use super::{
    client_handler::McpClientHandler,
    errors,
    line_limit::LineLimitReader,
    secrets::ServerSecrets,
    transport::{ConnectedClient, Transport, initialize},
};
use crate::{
    grace,
    processes::{FinishedTree, ProcessTree, ProgramSpec, StopReport},
    shell::{AnsiStripper, inherited_env, strip_relative_paths},
};
use futures_util::future::BoxFuture;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader},
    net::unix::pipe,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

/// A longer message is not read; the call that it answers fails. Unit: bytes.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// A longer line on stderr is cut. Unit: bytes.
const MAX_STDERR_LINE: u64 = 4096;
/// Maximum length of the last stderr line in an error. Unit: bytes.
const MAX_REPORTED_LINE: usize = 300;
/// Time for a server to exit after its stdin is closed, before it is terminated.
const STDIN_CLOSE_GRACE: Duration = Duration::from_millis(250);
/// Time to wait for the exit of a server that has closed its stdout.
const EXIT_TIMEOUT: Duration = Duration::from_millis(250);

/// A server to be started as a process.
pub(super) struct StdioTransport {
    pub(super) server: Arc<str>,
    pub(super) command: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    /// Variables that the server does not inherit.
    pub(super) hidden_env: Arc<[String]>,
    pub(super) secrets: ServerSecrets,
}

impl Transport for StdioTransport {
    fn connect(&self, handler: McpClientHandler) -> BoxFuture<'_, Result<ConnectedClient, String>> {
        Box::pin(async move {
            let (process, stdin, stdout) = self.start().await?;
            let stdout = LineLimitReader::new(stdout, MAX_MESSAGE_BYTES);
            let transport =
                AsyncRwTransport::new(stdout, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
            match initialize(handler, transport).await {
                Ok(service) => Ok(ConnectedClient {
                    service,
                    process: Some(process),
                }),
                Err(why) => Err(process.describe_exit(why).await),
            }
        })
    }
}

impl StdioTransport {
    /// Starts the process. It inherits only the pipes, and no key that was not given for it (MCP-5).
    async fn start(&self) -> Result<(ServerProcess, pipe::Sender, pipe::Receiver), String> {
        let mut environment = inherited_env(&self.hidden_env);
        strip_relative_paths(&mut environment);
        let given = self.env.iter();
        environment.extend(given.map(|(name, value)| (name.into(), value.into())));
        let started = ProcessTree::spawn_piped(ProgramSpec {
            program: self.command.clone().into(),
            args: self.args.iter().map(Into::into).collect(),
            working_directory: self.cwd.clone(),
            environment,
            confinement: None,
        })
        .await;
        let (tree, pipes) = started.map_err(|error| errors::describe_spawn_error(error.kind()))?;
        let last_line = Arc::<Mutex<String>>::default();
        let drain = log_stderr(
            pipes.stderr,
            Arc::clone(&self.server),
            self.secrets.clone(),
            Arc::clone(&last_line),
        );
        let drain = AbortOnDropHandle::new(tokio::spawn(drain));
        Ok((
            ServerProcess {
                tree,
                stderr_task: drain,
                last_line,
            },
            pipes.stdin,
            pipes.stdout,
        ))
    }
}

/// Reads the server's stderr into the log, so that the server never blocks on it.
async fn log_stderr(
    stderr: impl AsyncRead + Unpin,
    server: Arc<str>,
    secrets: ServerSecrets,
    last_line: Arc<Mutex<String>>,
) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut next = (&mut stderr).take(MAX_STDERR_LINE);
        if !matches!(next.read_until(b'\n', &mut line).await, Ok(1..)) {
            return;
        }
        let said = secrets.redact(AnsiStripper::strip(&line).trim());
        if said.is_empty() {
            continue;
        }
        tracing::debug!(%server, "{said}");
        let cut = said.floor_char_boundary(MAX_REPORTED_LINE);
        said[..cut].clone_into(&mut last_line.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A running server. Dropping it kills the server and all its descendants.
pub(super) struct ServerProcess {
    tree: ProcessTree,
    stderr_task: AbortOnDropHandle<()>,
    last_line: Arc<Mutex<String>>,
}

impl ServerProcess {
    /// Waits until the server has exited. If its supervisor was killed, kills the server's processes. Cancel
    /// safe.
    pub(super) async fn wait_exit(&mut self) {
        // An error of the operating system also means that the server cannot be used.
        let _ = self.tree.wait_exit().await;
    }

    /// Ends the server, whose stdin is closed already: terminates it, then kills its process group.
    pub(super) async fn shut_down(mut self) {
        if timeout(STDIN_CLOSE_GRACE, self.tree.wait_exit())
            .await
            .is_err()
        {
            self.tree.request_stop();
            let left = grace::COMMAND.saturating_sub(STDIN_CLOSE_GRACE);
            let _ = timeout(left, self.tree.wait_exit()).await;
        }
        if let Ok(finished) = self.tree.finish().await {
            log_remaining(&finished);
        }
    }

    /// Kills what is left of a server that failed, and returns `why` with how it exited and its last line on
    /// stderr.
    pub(super) async fn describe_exit(mut self, why: String) -> String {
        let ended = timeout(EXIT_TIMEOUT, self.tree.wait_exit()).await;
        // The last line may still be in the pipe, which other processes may hold open.
        let _ = timeout(EXIT_TIMEOUT, &mut self.stderr_task).await;
        let said = match &**self
            .last_line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            "" => String::new(),
            said => format!("; the last line on its stderr was {said:?}"),
        };
        let status = match ended {
            Ok(Ok(())) => self.tree.finish().await.ok().and_then(|finished| {
                log_remaining(&finished);
                finished.status
            }),
            Ok(Err(_)) | Err(_) => None,
        };
        match status {
            Some(status) => format!("{why} ({status}){said}"),
            None => format!("{why}{said}"),
        }
    }
}

/// Logs which processes of a server have not ended yet.
fn log_remaining(finished: &FinishedTree) {
    if let StopReport::Remaining(processes) = &finished.stopped {
        for process in processes {
            tracing::warn!("process {process}, started by an MCP server, has not ended yet");
        }
    }
}
