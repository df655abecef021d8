//! Child: a server that is a process of ours, in a group of its own, which ends with its session.

use super::{
    fault,
    line_limit::LineLimit,
    reach::{Reach, Reached, shake_hands},
    secrets::Secrets,
    told::Told,
};
use crate::{
    grace,
    processes::{FinishedTree, ProcessTree, ProgramSpec, StopReport},
    shell::{Plain, inherited, leave_out_relative},
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

/// A longer message of a server is not read; a call that it answers fails. Unit: bytes.
const LONGEST_MESSAGE: usize = 32 << 20;
/// A longer line on stderr is cut. Unit: bytes.
const LONGEST_LINE: u64 = 4096;
/// What of the last line on stderr is told to people. Unit: bytes.
const LAST_WORDS: usize = 300;
/// How long a server may take to end by itself once its input is closed, before it is asked to.
const POLITE: Duration = Duration::from_millis(250);
/// How long the end of one that has closed its output is waited for.
const BURIAL: Duration = Duration::from_millis(250);

/// A server to be started.
pub(super) struct Child {
    pub(super) server: Arc<str>,
    pub(super) command: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    /// Inherited variables that it does not get to see.
    pub(super) hidden_env: Arc<[String]>,
    pub(super) secrets: Secrets,
}

impl Reach for Child {
    fn reach(&self, told: Told) -> BoxFuture<'_, Result<Reached, String>> {
        Box::pin(async move {
            let (process, stdin, stdout) = self.start().await?;
            let stdout = LineLimit::new(stdout, LONGEST_MESSAGE);
            let transport =
                AsyncRwTransport::new(stdout, stdin).with_max_line_length(LONGEST_MESSAGE);
            match shake_hands(told, transport).await {
                Ok(service) => Ok(Reached {
                    service,
                    process: Some(process),
                }),
                Err(why) => Err(process.dies_of(why).await),
            }
        })
    }
}

impl Child {
    /// Nothing but the pipes is inherited of ours, and no key that was not given for it (MCP-5).
    async fn start(&self) -> Result<(Process, pipe::Sender, pipe::Receiver), String> {
        let mut environment = inherited(&self.hidden_env);
        leave_out_relative(&mut environment);
        let given = self.env.iter();
        environment.extend(given.map(|(name, value)| (name.into(), value.into())));
        let started = ProcessTree::spawn_piped(ProgramSpec {
            program: self.command.clone().into(),
            args: self.args.iter().map(Into::into).collect(),
            folder: self.cwd.clone(),
            environment,
            confinement: None,
        })
        .await;
        let (tree, pipes) = started.map_err(|error| fault::of_spawn(error.kind()))?;
        let last = Arc::<Mutex<String>>::default();
        let drain = drain(
            pipes.stderr,
            Arc::clone(&self.server),
            self.secrets.clone(),
            Arc::clone(&last),
        );
        let drain = AbortOnDropHandle::new(tokio::spawn(drain));
        Ok((Process { tree, drain, last }, pipes.stdin, pipes.stdout))
    }
}

/// Read what a server says to people, so that it never waits for us: to the log, for those who want it.
async fn drain(
    stderr: impl AsyncRead + Unpin,
    server: Arc<str>,
    secrets: Secrets,
    last: Arc<Mutex<String>>,
) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut next = (&mut stderr).take(LONGEST_LINE);
        if !matches!(next.read_until(b'\n', &mut line).await, Ok(1..)) {
            return;
        }
        let said = secrets.hide(Plain::whole(&line).trim());
        if said.is_empty() {
            continue;
        }
        tracing::debug!(%server, "{said}");
        let cut = said.floor_char_boundary(LAST_WORDS);
        said[..cut].clone_into(&mut last.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A running server. Dropping it kills it, and all that it started.
pub(super) struct Process {
    tree: ProcessTree,
    drain: AbortOnDropHandle<()>,
    last: Arc<Mutex<String>>,
}

impl Process {
    /// Waits until the server has ended, or was killed since its supervisor had been. Cancel safe.
    pub(super) async fn wait_exit(&mut self) {
        // A broken system has no server either.
        let _ = self.tree.wait_exit().await;
    }

    /// End it: its input is closed already. Two tiers: asked first, then killed with its group.
    pub(super) async fn end(mut self) {
        if timeout(POLITE, self.tree.wait_exit()).await.is_err() {
            self.tree.request_stop();
            let left = grace::COMMAND.saturating_sub(POLITE);
            let _ = timeout(left, self.tree.wait_exit()).await;
        }
        if let Ok(finished) = self.tree.finish().await {
            tell_remaining(&finished);
        }
    }

    /// Why it is gone, given that it does not answer any more: how it ended, and its last words.
    pub(super) async fn dies_of(mut self, why: String) -> String {
        let ended = timeout(BURIAL, self.tree.wait_exit()).await;
        // Its last words may still be in the pipe, which others may hold open.
        let _ = timeout(BURIAL, &mut self.drain).await;
        let said = match &**self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            "" => String::new(),
            said => format!("; the last that it said is {said:?}"),
        };
        let status = match ended {
            Ok(Ok(())) => self.tree.finish().await.ok().and_then(|finished| {
                tell_remaining(&finished);
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
fn tell_remaining(finished: &FinishedTree) {
    if let StopReport::Remaining(processes) = &finished.stopped {
        for process in processes {
            tracing::warn!("process {process}, started by an MCP server, has not ended yet");
        }
    }
}
