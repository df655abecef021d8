//! Measures the first page of `session/list` over the wire, with many sessions in a database on the disk:
//! `cargo run --release -p turnery-acp --example session_list [SESSIONS]`.

#[path = "support/pipes.rs"]
mod pipes;

use pipes::serve_over_pipes;
use serde_json::{Value, json};
use std::{
    error::Error,
    io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use turnery_agent::{Agent, Settings};
use turnery_models::ModelRegistry;
use turnery_store::{NewSession, SqliteStore, Store as _, now};
use turnery_tools::Toolbox;

type BenchResult<T = ()> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 200;

/// Number of folders that the sessions are spread over.
const FOLDERS: u64 = 50;

fn main() -> BenchResult {
    let count = std::env::args().nth(1).map_or(Ok(10_000), |n| n.parse())?;
    // In the working directory, since a temporary folder may not be on a disk.
    let folder = tempfile::tempdir_in(".")?;
    let root = folder.path().canonicalize()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(fill(&root, count))?;

    let mut client = BenchClient::connect(&root)?;
    client.request("initialize", &json!({"protocolVersion": 1}))?;
    let cwd = root.join("0");
    let mut out = std::io::stdout().lock();
    for (name, params) in [
        ("all folders", json!({})),
        ("one folder", json!({"cwd": cwd})),
    ] {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let page = client.request("session/list", &params)?;
            times.push(began.elapsed());
            if page["sessions"].as_array().is_none_or(Vec::is_empty) {
                return Err("an empty page".into());
            }
        }
        let first = times[0];
        times.sort_unstable();
        let (median, late): (Duration, _) = (times[ROUNDS / 2], times[ROUNDS * 9 / 10]);
        writeln!(
            out,
            "{count} sessions, {name}: median {median:.2?}, 9 of 10 below {late:.2?}, the first {first:.2?}"
        )?;
    }
    Ok(())
}

/// Stores `count` sessions whose order by time differs from their order by id.
async fn fill(root: &Path, count: u64) -> BenchResult {
    let store = SqliteStore::open(root.join("sessions.db"));
    for number in 0..count {
        let new = NewSession {
            id: format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into(),
            cwd: root.join((number % FOLDERS).to_string()),
            folder: None,
            roots: Vec::new(),
            model: "offline".to_owned(),
            mode: "ask".to_owned(),
            at: now(),
            spawned_by: None,
        };
        store.create(new).await?;
    }
    Ok(())
}

/// A client with one connection.
struct BenchClient {
    input: PipeWriter,
    output: BufReader<PipeReader>,
}

impl BenchClient {
    fn connect(root: &Path) -> BenchResult<Self> {
        let (input, output, _) = serve_over_pipes(agent(root.join("sessions.db"))?)?;
        Ok(Self {
            input,
            output: BufReader::new(output),
        })
    }

    fn request(&mut self, method: &str, params: &Value) -> BenchResult<Value> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let mut response: Value = serde_json::from_str(&line)?;
        match response.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(format!("{method}: {response}").into()),
        }
    }
}

fn agent(database: PathBuf) -> BenchResult<Agent> {
    Ok(Agent::new(
        Arc::new(SqliteStore::open(database)),
        Arc::new(ModelRegistry::new(Vec::new())),
        Toolbox::coding(),
        Arc::new(Settings::new("offline".parse()?, "You are a benchmark.")),
    ))
}
