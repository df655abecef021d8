//! Wire: how long a client waits until a session is open, over real pipes.

use super::Ran;
use serde_json::{Value, json};
use std::{
    io::{PipeReader, PipeWriter, Read, Write as _, pipe},
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tokio::net::unix::pipe::{Receiver, Sender};
use turnery_acp::{Input, Output, ServeOptions, serve};
use turnery_agent::Agent;
use turnery_engine::SessionId;

/// What a client waited for, and what it read meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) method: &'static str,
    pub(crate) took: Duration,
    /// Updates before the answer.
    pub(crate) updates: usize,
    /// Of them, in bytes.
    pub(crate) bytes: usize,
}

/// Open the session once with each method, by agents that know nothing of it yet.
pub(crate) fn open(agent: impl Fn() -> Agent, id: &SessionId, cwd: &Path) -> Ran<[Opening; 2]> {
    let opening = |method| Client::connect(agent())?.open(method, id, cwd);
    Ok([opening("session/resume")?, opening("session/load")?])
}

/// The other end of the pipes.
struct Client {
    input: PipeWriter,
    output: PipeReader,
    served: JoinHandle<std::io::Result<()>>,
}

impl Client {
    fn connect(agent: Agent) -> Ran<Self> {
        let (theirs_in, input) = pipe()?;
        let (output, theirs_out) = pipe()?;
        // As the binary does: one thread, and pipes that do not block.
        let served = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let input = Input::Pipe(Receiver::from_owned_fd(OwnedFd::from(theirs_in))?);
                let output = Output::Pipe(Sender::from_owned_fd(OwnedFd::from(theirs_out))?);
                let agent = Arc::new(agent);
                serve(agent, input, output, ServeOptions::default()).await?;
                Ok(())
            })
        });
        let mut client = Self {
            input,
            output,
            served,
        };
        client.ask("initialize", &json!({"protocolVersion": 1}))?;
        Ok(client)
    }

    fn open(mut self, method: &'static str, id: &SessionId, cwd: &Path) -> Ran<Opening> {
        let begun = Instant::now();
        let folder = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        let (updates, bytes) = self.ask(method, &folder)?;
        let took = begun.elapsed();
        drop(self.input);
        self.served
            .join()
            .map_err(|_| "the connection panicked")??;
        Ok(Opening {
            method,
            took,
            updates,
            bytes,
        })
    }

    /// Ask, and read up to the answer: how many lines came before it, and how many bytes.
    fn ask(&mut self, method: &str, params: &Value) -> Ran<(usize, usize)> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}")?;
        let (mut lines, mut bytes) = (0, 0);
        let mut block = vec![0; 64 << 10];
        let mut line = Vec::new();
        loop {
            let read = self.output.read(&mut block)?;
            if read == 0 {
                return Err("the agent hung up".into());
            }
            for piece in block[..read].split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(piece);
                if line.last() != Some(&b'\n') {
                    continue;
                }
                // Only updates are not looked into: a client has its own way with those.
                if line.starts_with(br#"{"jsonrpc":"2.0","method":"#) {
                    (lines, bytes) = (lines + 1, bytes + line.len());
                    line.clear();
                    continue;
                }
                let answer: Value = serde_json::from_slice(&line)?;
                return match answer.get("result") {
                    Some(_) => Ok((lines, bytes)),
                    None => Err(format!("{method} was refused: {answer}").into()),
                };
            }
        }
    }
}
