//! Terminals: shell commands in terminals that the client lends and shows.

use crate::{
    peer::{Peer, PeerError},
    quirks::Quirks,
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
use turnery_tools::{TerminalFault, TerminalRun, Terminals};

/// The terminals of one session.
pub(crate) struct ClientTerminals {
    peer: Arc<Peer>,
    session_id: SessionId,
    quirks: Quirks,
    /// The client said that it has some, and then that it does not know how to make one.
    absent: AtomicBool,
}

/// The parameters of all methods but `terminal/create`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Which {
    session_id: String,
    terminal_id: String,
}

#[derive(Deserialize)]
struct Output {
    output: String,
    #[serde(default)]
    truncated: bool,
    #[serde(default, rename = "exitStatus")]
    exit: Option<Exit>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exit {
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    signal: Option<String>,
}

impl Exit {
    fn says_something(&self) -> bool {
        self.exit_code.is_some() || self.signal.is_some()
    }
}

/// A terminal that was created. Dropping it releases it, whatever happened in between, the end of the
/// connection included (TERM-2); the client kills what still runs in it.
struct Lent {
    peer: Arc<Peer>,
    which: Which,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.peer.tell("terminal/release", &self.which);
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
    ) -> BoxFuture<'a, Result<TerminalRun, TerminalFault>> {
        Box::pin(async move {
            if self.absent.load(Ordering::Relaxed) {
                return Err(TerminalFault::Absent);
            }
            let created = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(not_opened("the client has not answered")),
                created = self.create(command, cwd, environment, output_limit) => created,
            };
            let lent = match created {
                Ok(lent) => lent,
                Err(error) if error.is_unknown_method() => {
                    self.absent.store(true, Ordering::Relaxed);
                    return Err(TerminalFault::Absent);
                }
                Err(error) => {
                    let why = format!("the client's terminal could not be opened: {error}");
                    return Err(not_opened(why));
                }
            };
            let _ = started.send(lent.which.terminal_id.clone()).await;
            let ran = lent.follow(&cancel).await;
            ran.map_err(|error| TerminalFault::Lost(error.to_string()))
        })
    }
}

/// The shell that commands are judged as, or `sh` where it is not installed.
fn shell() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_bash = std::env::split_paths(&path).any(|folder| folder.join("bash").is_file());
    if has_bash { "bash" } else { "sh" }
}

fn not_opened(why: impl Into<String>) -> TerminalFault {
    TerminalFault::NotOpened(why.into())
}

impl ClientTerminals {
    pub(crate) fn new(peer: Arc<Peer>, session_id: SessionId, quirks: Quirks) -> Self {
        Self {
            peer,
            session_id,
            quirks,
            absent: AtomicBool::new(false),
        }
    }

    /// Asks for a shell that runs the line. A client that joins arguments without quotes gives the line to a
    /// shell of its own, so it gets nothing but the line.
    ///
    /// A task of its own waits for the terminal: it is released even if it comes after the call was cancelled.
    async fn create(
        &self,
        command: &str,
        cwd: &Path,
        environment: &[(String, String)],
        limit: u64,
    ) -> Result<Lent, PeerError> {
        let session_id = self.session_id.to_string();
        let request = match self.quirks.joins_terminal_args {
            true => CreateTerminalRequest::new(session_id, command),
            false => {
                let args = vec!["-c".to_owned(), command.to_owned()];
                CreateTerminalRequest::new(session_id, shell()).args(args)
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
            let lent = reply.map(|reply| Lent {
                which: Which {
                    session_id,
                    terminal_id: reply.terminal_id.to_string(),
                },
                peer,
            });
            let _ = sender.send(lent);
        });
        receiver.await.unwrap_or(Err(PeerError::Gone))
    }
}

impl Lent {
    /// Wait for the command's end, or end it; then get what it printed (TERM-4).
    async fn follow(&self, cancel: &CancellationToken) -> Result<TerminalRun, PeerError> {
        let mut waited = Exit::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => self.peer.command("terminal/kill", &self.which).await?,
            exit = self.peer.request("terminal/wait_for_exit", &self.which) => waited = exit?,
        }
        let output: Output = match self.peer.request("terminal/output", &self.which).await {
            // How it ended counts, also without what it printed.
            Err(error) if waited.says_something() => Output {
                output: format!("[the client does not say what the command printed: {error}]"),
                truncated: false,
                exit: None,
            },
            output => output?,
        };
        // Each may know what the other does not: an exit status may be there and hold nothing.
        let shown = output.exit.unwrap_or_default();
        let known = [waited, shown].into_iter().find(Exit::says_something);
        let exit = known.unwrap_or_default();
        Ok(TerminalRun {
            output: output.output,
            truncated: output.truncated,
            exit_code: exit.exit_code,
            signal: exit.signal,
        })
    }
}
