//! Runs shell commands in terminals of the client.

use crate::client::{
    peer::{Peer, PeerError},
    quirks::ClientQuirks,
};
use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, EnvVariable,
};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use turnery_engine::SessionId;
use turnery_tools::{TerminalCommandOutput, TerminalError, Terminals};

/// Client terminals of one session.
pub(crate) struct ClientTerminals {
    peer: Arc<Peer>,
    session_id: SessionId,
    quirks: ClientQuirks,
    /// True once the client, despite declaring terminals, did not know `terminal/create`.
    is_unsupported: AtomicBool,
}

/// Parameters of all methods except `terminal/create`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TerminalParams {
    session_id: String,
    terminal_id: String,
}

#[derive(Deserialize)]
struct TerminalOutput {
    output: String,
    #[serde(default)]
    truncated: bool,
    #[serde(default, rename = "exitStatus")]
    exit: Option<TerminalExit>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminalExit {
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    signal: Option<String>,
}

impl TerminalExit {
    fn is_known(&self) -> bool {
        self.exit_code.is_some() || self.signal.is_some()
    }
}

/// Terminal created by the client. Dropping it releases it on every path, including the end of the connection
/// (TERM-2); the client kills whatever still runs in it.
struct OpenTerminal {
    peer: Arc<Peer>,
    which: TerminalParams,
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        self.peer.request_detached("terminal/release", &self.which);
    }
}

impl Terminals for ClientTerminals {
    fn run<'a>(
        &'a self,
        command: &'a str,
        cwd: &'a Path,
        environment: &'a [(String, String)],
        output_limit: u64,
        started: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<TerminalCommandOutput, TerminalError>> {
        Box::pin(async move {
            if self.is_unsupported.load(Ordering::Relaxed) {
                return Err(TerminalError::Unsupported);
            }
            let created = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(not_opened_error("the client has not answered")),
                created = self.create(command, cwd, environment, output_limit) => created,
            };
            let terminal = match created {
                Ok(terminal) => terminal,
                Err(error) if error.is_unknown_method() => {
                    self.is_unsupported.store(true, Ordering::Relaxed);
                    return Err(TerminalError::Unsupported);
                }
                Err(error) => {
                    let why = format!("the client's terminal could not be opened: {error}");
                    return Err(not_opened_error(why));
                }
            };
            let _ = started.send(terminal.which.terminal_id.clone()).await;
            let ran = terminal.wait_for_exit(&cancel).await;
            ran.map_err(|error| TerminalError::UnknownOutcome(error.to_string()))
        })
    }
}

/// Returns `bash`, which the permission policy parses commands as, or `sh` if bash is not installed.
fn shell_program() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_bash = std::env::split_paths(&path).any(|folder| folder.join("bash").is_file());
    if has_bash { "bash" } else { "sh" }
}

fn not_opened_error(why: impl Into<String>) -> TerminalError {
    TerminalError::NotOpened(why.into())
}

impl ClientTerminals {
    pub(crate) fn new(peer: Arc<Peer>, session_id: SessionId, quirks: ClientQuirks) -> Self {
        Self {
            peer,
            session_id,
            quirks,
            is_unsupported: AtomicBool::new(false),
        }
    }

    /// Requests a terminal with a shell that runs the command line. Clients that join arguments without quotes
    /// pass the line to their own shell, so they get only the line.
    ///
    /// A spawned task waits for the response, so that a terminal created after the call was cancelled is still
    /// released.
    async fn create(
        &self,
        command: &str,
        cwd: &Path,
        environment: &[(String, String)],
        limit: u64,
    ) -> Result<OpenTerminal, PeerError> {
        let session_id = self.session_id.to_string();
        let request = match self.quirks.joins_terminal_args {
            true => CreateTerminalRequest::new(session_id, command),
            false => {
                let args = vec!["-c".to_owned(), command.to_owned()];
                CreateTerminalRequest::new(session_id, shell_program()).args(args)
            }
        };
        let variable = |(name, value): &(String, String)| EnvVariable::new(name, value);
        let request = request
            .env(environment.iter().map(variable).collect())
            .cwd(cwd.to_owned())
            .output_byte_limit(limit);
        let peer = Arc::clone(&self.peer);
        let session_id = self.session_id.to_string();
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let reply: Result<CreateTerminalResponse, _> =
                peer.request("terminal/create", &request).await;
            let terminal = reply.map(|reply| OpenTerminal {
                which: TerminalParams {
                    session_id,
                    terminal_id: reply.terminal_id.to_string(),
                },
                peer,
            });
            let _ = sender.send(terminal);
        });
        receiver.await.unwrap_or(Err(PeerError::Disconnected))
    }
}

impl OpenTerminal {
    /// Waits until the command exits, or kills it; then reads its output (TERM-4).
    async fn wait_for_exit(
        &self,
        cancel: &CancellationToken,
    ) -> Result<TerminalCommandOutput, PeerError> {
        let mut waited = TerminalExit::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => self.peer.request_unit("terminal/kill", &self.which).await?,
            exit = self.peer.request("terminal/wait_for_exit", &self.which) => waited = exit?,
        }
        let output: TerminalOutput = match self.peer.request("terminal/output", &self.which).await {
            // The exit status counts even without the output.
            Err(error) if waited.is_known() => TerminalOutput {
                output: format!("[the client does not say what the command printed: {error}]"),
                truncated: false,
                exit: None,
            },
            output => output?,
        };
        // Either response may lack the exit status, or hold an empty one.
        let shown = output.exit.unwrap_or_default();
        let known = [waited, shown].into_iter().find(TerminalExit::is_known);
        let exit = known.unwrap_or_default();
        Ok(TerminalCommandOutput {
            output: output.output,
            truncated: output.truncated,
            exit_code: exit.exit_code,
            signal: exit.signal,
        })
    }
}
