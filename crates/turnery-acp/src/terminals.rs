//! Terminals: shell commands in terminals that the client lends and shows.

use crate::peer::{Peer, PeerError};
use agent_client_protocol_schema::v1::{CreateTerminalRequest, CreateTerminalResponse};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{path::Path, sync::Arc};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use turnery_engine::SessionId;
use turnery_tools::{TerminalRun, Terminals};

/// The terminals of one session.
pub(crate) struct ClientTerminals {
    pub(crate) peer: Arc<Peer>,
    pub(crate) session_id: SessionId,
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
        output_limit: u64,
        started: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<TerminalRun, String>> {
        Box::pin(async move {
            let created = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err("cancelled before the command ran".to_owned()),
                created = self.create(command, cwd, output_limit) => created,
            };
            let lent = created
                .map_err(|error| format!("the client's terminal could not be opened: {error}"))?;
            let _ = started.send(lent.which.terminal_id.clone()).await;
            lent.follow(&cancel)
                .await
                .map_err(|error| error.to_string())
        })
    }
}

impl ClientTerminals {
    /// The whole line goes into `command`: clients hand it to a shell, and some forget to quote
    /// `args`. A task of its own waits for the terminal, so that one which comes after nobody wants
    /// it any more is released all the same.
    async fn create(&self, command: &str, cwd: &Path, limit: u64) -> Result<Lent, PeerError> {
        let request = CreateTerminalRequest::new(self.session_id.to_string(), command)
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
        let mut exit = Exit::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => self.peer.command("terminal/kill", &self.which).await?,
            waited = self.peer.request("terminal/wait_for_exit", &self.which) => exit = waited?,
        }
        let output: Output = self.peer.request("terminal/output", &self.which).await?;
        let exit = output.exit.unwrap_or(exit);
        Ok(TerminalRun {
            output: output.output,
            truncated: output.truncated,
            exit_code: exit.exit_code,
            signal: exit.signal,
        })
    }
}
