//! Measures over real pipes how long a client waits until a session is open.

use super::{BenchResult, pipes::serve_over_pipes};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _},
    path::Path,
    thread::JoinHandle,
    time::{Duration, Instant},
};
use turnery_agent::Agent;
use turnery_engine::SessionId;

/// Waiting time of a client, and what it read meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenTiming {
    pub(crate) method: &'static str,
    pub(crate) took: Duration,
    /// Number of updates before the response.
    pub(crate) updates: usize,
    /// Size of these updates. Unit: bytes.
    pub(crate) bytes: usize,
}

/// Measures opening the session with `session/resume` and with `session/load`, each on a fresh agent.
pub(crate) fn measure_opening(
    agent: impl Fn() -> Agent,
    id: &SessionId,
    cwd: &Path,
) -> BenchResult<[OpenTiming; 2]> {
    let opening = |method| BenchClient::connect(agent())?.open(method, id, cwd);
    Ok([opening("session/resume")?, opening("session/load")?])
}

/// Client at the other end of the pipes.
struct BenchClient {
    input: PipeWriter,
    output: BufReader<PipeReader>,
    served: JoinHandle<std::io::Result<()>>,
}

impl BenchClient {
    fn connect(agent: Agent) -> BenchResult<Self> {
        let (input, output, served) = serve_over_pipes(agent)?;
        let mut client = Self {
            input,
            output: BufReader::with_capacity(64 << 10, output),
            served,
        };
        client.request("initialize", &json!({"protocolVersion": 1}))?;
        Ok(client)
    }

    fn open(mut self, method: &'static str, id: &SessionId, cwd: &Path) -> BenchResult<OpenTiming> {
        let begun = Instant::now();
        let folder = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        let (updates, bytes) = self.request(method, &folder)?;
        let took = begun.elapsed();
        drop(self.input);
        self.served
            .join()
            .map_err(|_| "the connection panicked")??;
        Ok(OpenTiming {
            method,
            took,
            updates,
            bytes,
        })
    }

    /// Sends a request and reads up to its response; returns number and size of the lines before it.
    fn request(&mut self, method: &str, params: &Value) -> BenchResult<(usize, usize)> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}")?;
        let (mut lines, mut bytes) = (0, 0);
        let mut line = Vec::new();
        while self.output.read_until(b'\n', &mut line)? > 0 {
            // Updates are not parsed: their cost depends on the client.
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
        Err("the agent hung up".into())
    }
}
