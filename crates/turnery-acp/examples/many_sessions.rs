//! Prompts many open sessions at once and compares the time with the same number of prompts to one session:
//! `cargo run --release -p turnery-acp --example many_sessions [SESSIONS]`.
//!
//! Ideally a thousand sessions cost as much as a thousand prompts to one session: one thread does the work,
//! and the model answers at once. Memory and descriptors are those of this process, which is also the client.

#[path = "support/pipes.rs"]
mod pipes;

use pipes::serve_over_pipes;
use serde_json::{Value, json};
use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader, PipeWriter, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};
use turnery_agent::{Agent, Settings};
use turnery_models::ModelRegistry;
use turnery_store::SqliteStore;
use turnery_tools::Toolbox;

type BenchResult<T = ()> = Result<T, Box<dyn Error>>;

/// Maximum wait for the next response before the agent counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(120);

fn main() -> BenchResult {
    let count = std::env::args().nth(1).map_or(Ok(1_000), |n| n.parse())?;
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let mut client = BenchClient::connect(folder.path().canonicalize()?)?;
    let before = ProcessUsage::now();
    let sessions = client.open(count)?;
    let opened = ProcessUsage::now();

    // The same number of prompts to one session, one after the other.
    let began = Instant::now();
    for _ in 0..count {
        client.prompt(&sessions[..1])?;
    }
    let ideal = began.elapsed();

    let began = Instant::now();
    client.prompt(&sessions)?;
    let took = began.elapsed();
    let after = ProcessUsage::now();

    let mut out = std::io::stdout().lock();
    writeln!(out, "{count} prompts to one session: {ideal:.0?}")?;
    writeln!(
        out,
        "one prompt to each of {count} sessions, at once: {took:.0?} ({:.2} of it)",
        took.as_secs_f64() / ideal.as_secs_f64()
    )?;
    for (name, at) in [
        ("at first", before),
        ("all open", opened),
        ("all prompted", after),
    ] {
        writeln!(
            out,
            "{name}: {} KiB of memory, {} descriptors, {} threads",
            at.memory, at.descriptors, at.threads
        )?;
    }
    Ok(())
}

/// Resources that this process uses; zero where `/proc` does not tell.
struct ProcessUsage {
    /// Resident memory. Unit: KiB.
    memory: u64,
    descriptors: usize,
    threads: usize,
}

impl ProcessUsage {
    fn now() -> Self {
        let count = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Self {
            memory: memory.unwrap_or(0),
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }
}

/// Client with one connection to the agent.
struct BenchClient {
    input: PipeWriter,
    answers: mpsc::Receiver<Value>,
    folder: PathBuf,
    next_id: u64,
}

impl BenchClient {
    fn connect(folder: PathBuf) -> BenchResult<Self> {
        let (input, output, _) = serve_over_pipes(agent(&folder)?)?;
        let (sender, answers) = mpsc::sync_channel(4096);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if line.starts_with(r#"{"jsonrpc":"2.0","id":"#)
                    && let Ok(answer) = serde_json::from_str(&line)
                {
                    let _ = sender.send(answer);
                }
            }
        });
        let mut client = Self {
            input,
            answers,
            folder,
            next_id: 0,
        };
        client.request("initialize", [json!({"protocolVersion": 1})])?;
        Ok(client)
    }

    /// Sends one request for each of `params`, then waits for all answers.
    fn request(
        &mut self,
        method: &str,
        params: impl IntoIterator<Item = Value>,
    ) -> BenchResult<Vec<Value>> {
        let first = self.next_id;
        let mut lines = String::new();
        for params in params {
            self.next_id += 1;
            let id = self.next_id;
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            lines.push_str(&format!("{request}\n"));
        }
        self.input.write_all(lines.as_bytes())?;
        let mut answers = Vec::new();
        for _ in first..self.next_id {
            let answer = self.answers.recv_timeout(HANG_TIMEOUT)?;
            if answer["error"].is_object() {
                return Err(format!("{method}: {answer}").into());
            }
            answers.push(answer["result"].clone());
        }
        Ok(answers)
    }

    fn open(&mut self, count: usize) -> BenchResult<Vec<String>> {
        let new = json!({"cwd": self.folder, "mcpServers": []});
        let made = self.request("session/new", std::iter::repeat_n(new, count))?;
        let id = |made: &Value| made["sessionId"].as_str().map(str::to_owned);
        let ids: Option<_> = made.iter().map(id).collect();
        ids.ok_or_else(|| "a session without an id".into())
    }

    fn prompt(&mut self, sessions: &[String]) -> BenchResult {
        let text = json!([{"type": "text", "text": "hi"}]);
        let prompts = sessions
            .iter()
            .map(|id| json!({"sessionId": id, "prompt": text}));
        for answer in self.request("session/prompt", prompts)? {
            if answer["stopReason"] != "end_turn" {
                return Err(format!("a prompt ended with {answer}").into());
            }
        }
        Ok(())
    }
}

/// Creates an agent whose model immediately answers with a few words, and whose store is on disk.
fn agent(folder: &Path) -> BenchResult<Agent> {
    let scenario = folder.join("scenario.json");
    let answers =
        json!({"repeat": true, "answers": [{"steps": [{"text": "a few words", "chunks": 3}]}]});
    fs::write(&scenario, answers.to_string())?;
    let model = format!("scripted:{}", scenario.display());
    let store = SqliteStore::open(folder.join("sessions.db"));
    Ok(Agent::new(
        Arc::new(store),
        Arc::new(ModelRegistry::new(Vec::new())),
        Toolbox::coding(),
        Arc::new(Settings::new(model.parse()?, "You are a benchmark.")),
    ))
}
