//! Runs one input on one connection, in virtual time, with a client that responds at random.

use super::mutation::FuzzRng;
use crate::harness::{Judge, TestEnv};
use serde_json::{Value, json};
use std::{cell::Cell, sync::Once, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe,
    sync::watch,
};
use turnery_acp::{Input, Output, ServeOptions, serve};

/// Time the client waits for a session before continuing without one, and for its last prompt.
const CLIENT_WAIT: Duration = Duration::from_millis(50);

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Outcome of an input.
pub(super) struct FuzzOutcome {
    pub(super) lines: usize,
    /// Kinds of output lines.
    pub(super) line_kinds: Vec<String>,
}

/// Counts the panics of each thread: the agent catches its own, but they are still findings.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            before(panic);
        }));
    });
}

pub(super) fn run_input(seed: u64, input: &[u8]) -> Result<FuzzOutcome, String> {
    watch_panics();
    let before = PANICS.get();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let played = runtime.block_on(run_connection(seed, input))?;
    drop(runtime);
    match PANICS.get() - before {
        0 => Ok(played),
        _ => Err("it panicked".to_owned()),
    }
}

/// Creates an environment in which some answers are calls; one needs permission, and one ends only when
/// cancelled.
fn fuzz_env() -> TestEnv {
    let call = |name: &str| json!({"steps": [{"tool_call": {"name": name, "args": {}}}]});
    TestEnv::new(json!([
        {"steps": [{"text": ["a ", "b"]}]},
        call("change"),
        {"steps": [{"text": "c"}, {"delay_ms": 5}, {"tool_call": {"name": "look", "args": {}}}]},
        call("hang"),
    ]))
}

async fn run_connection(seed: u64, input: &[u8]) -> Result<FuzzOutcome, String> {
    let world = fuzz_env();
    let (to_agent, agent_input) = pipe::pipe().expect("a pipe");
    let (agent_output, from_agent) = pipe::pipe().expect("a pipe");
    let options = ServeOptions {
        v2: seed.is_multiple_of(2),
        drain: seed.is_multiple_of(3),
        ..ServeOptions::default()
    };
    let agent = world.agent();
    let served = serve(
        agent,
        Input::Pipe(agent_input),
        Output::Pipe(agent_output),
        options,
    );
    let (session, made) = watch::channel(None);
    let client = FuzzClient {
        judge: Judge::for_random_requests(),
        to_agent: Some(to_agent),
        rng: FuzzRng::new(seed),
        session,
        lines: 0,
        line_kinds: Vec::new(),
    };
    let cwd = world.cwd().display().to_string();
    let client = client.run(input, &cwd, from_agent, made);
    // A real clock detects hangs: this one may run far ahead while a child of another test holds a copy of the
    // pipe between fork and exec.
    let (reason, played) = tokio::join!(Box::pin(served), Box::pin(client));
    reason.map_err(|error| error.to_string())?;
    played
}

struct FuzzClient {
    judge: Judge,
    to_agent: Option<pipe::Sender>,
    rng: FuzzRng,
    session: watch::Sender<Option<String>>,
    lines: usize,
    line_kinds: Vec<String>,
}

impl FuzzClient {
    /// Writes the input, with folder and session filled in, and responds to requests until the agent closes
    /// its output.
    async fn run(
        mut self,
        input: &[u8],
        cwd: &str,
        from_agent: pipe::Receiver,
        made: watch::Receiver<Option<String>>,
    ) -> Result<FuzzOutcome, String> {
        let text = replace_bytes(input, b"FOLDER", cwd.as_bytes());
        let mut parts = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec);
        let mut lines = BufReader::new(from_agent).lines();
        let mut pause = Box::pin(tokio::time::sleep(Duration::ZERO));
        let mut part: Option<Vec<u8>> = parts.next();
        loop {
            tokio::select! {
                biased;
                line = lines.next_line() => match line.map_err(|error| error.to_string())? {
                    Some(line) => {
                        self.receive(&line).await?;
                        if part.is_some() && made.borrow().is_some() {
                            pause = Box::pin(tokio::time::sleep(Duration::ZERO));
                        }
                    }
                    None => break,
                },
                () = &mut pause, if self.to_agent.is_some() => {
                    let id = made.borrow().clone();
                    match part.take() {
                        Some(bytes) => {
                            let bytes = replace_bytes(&bytes, b"SESSION", id.as_deref().unwrap_or("s").as_bytes());
                            self.write(&bytes).await;
                            part = parts.next();
                            let needs = part.as_ref().is_some_and(|part| find_bytes(part, b"SESSION").is_some());
                            let wait = match needs && id.is_none() || part.is_none() || self.rng.below(4) == 0 {
                                true => CLIENT_WAIT,
                                false => Duration::ZERO,
                            };
                            pause = Box::pin(tokio::time::sleep(wait));
                        }
                        None => {
                            self.judge.client_closed();
                            self.to_agent = None;
                        }
                    }
                }
            }
        }
        self.judge.agent_closed()?;
        Ok(FuzzOutcome {
            lines: self.lines,
            line_kinds: self.line_kinds,
        })
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Some(to_agent) = &mut self.to_agent else {
            return;
        };
        self.judge.client_wrote(bytes);
        // Ignored: an agent that has ended owes nothing for unread input.
        let _ = to_agent.write_all(bytes).await;
    }

    async fn receive(&mut self, line: &str) -> Result<(), String> {
        let message = self.judge.agent_wrote(line)?;
        self.lines += 1;
        self.line_kinds.push(line_kind(&message));
        if message["error"]["message"] == "The agent failed while handling the request" {
            return Err(format!("it broke: {line}"));
        }
        if let Some(id) = message["result"]["sessionId"].as_str() {
            self.session.send_replace(Some(id.to_owned()));
        }
        if message["method"].is_string() && message.get("id").is_some() {
            let chosen = message["params"]["options"][self.rng.below(5)]["optionId"].clone();
            let result = match self.rng.below(6) {
                0 => return Ok(()),
                1 => json!({"outcome": {"outcome": "cancelled"}}),
                2 => json!(null),
                _ => json!({"outcome": {"outcome": "selected", "optionId": chosen}}),
            };
            let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            // On its own line, wherever the input stands.
            self.write(format!("\n{reply}\n").as_bytes()).await;
        }
        Ok(())
    }
}

/// Returns the kind of a line, without parts that differ between runs.
fn line_kind(message: &Value) -> String {
    let update = &message["params"]["update"];
    let error = &message["error"];
    let mut keys: Vec<&String> = message["result"]
        .as_object()
        .map_or(Vec::new(), |members| members.keys().collect());
    keys.sort();
    let details = error["data"]["details"].as_str().unwrap_or_default();
    let words = details.split(|c: char| !c.is_ascii_alphabetic());
    let words: Vec<&str> = words.filter(|word| word.len() > 2).take(8).collect();
    format!(
        "{} {} {} {} {keys:?} {} {words:?}",
        message["method"],
        update["sessionUpdate"],
        update["status"],
        error["code"],
        message["result"]["stopReason"],
    )
}

fn find_bytes(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|part| part == word)
}

fn replace_bytes(text: &[u8], word: &[u8], by: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut out = Vec::new();
    while let Some(at) = find_bytes(rest, word) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(by);
        rest = &rest[at + word.len()..];
    }
    out.extend_from_slice(rest);
    out
}
