//! Kills the agent with SIGKILL repeatedly, and counts the processes that outlive it: `cargo build -p turnery
//! && cargo run -p turnery --example kills [KILLS]`.
//!
//! Each agent runs a command and an MCP server that start processes in every possible way: in the background,
//! in new sessions, after a double fork, with an empty environment. A third of the agents is killed once all
//! processes run, a third while the command starts, a third while the server starts. A process counts as left
//! behind if its working directory is still the agent's project. Fails if any process is left behind.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, FileType, Mode, mknodat},
    process::{Pid, Signal, kill_process},
};
use serde_json::{Value, json};
use std::{
    error::Error,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

type ExampleResult<T = ()> = Result<T, Box<dyn Error>>;

const KILLS: u64 = 1000;
/// Shell commands that leave processes behind.
const FUGITIVES: &str = include_str!("../tests/cli/fugitives.sh");
/// An MCP server that ignores the end of input and signals.
const SERVER: &str = include_str!("../tests/cli/stubborn_server.sh");
/// Number of processes of the command and the server that report their start.
const PROCESS_COUNT: usize = 14;
/// Timeout; exceeded only by processes that are left behind.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Upper bound of the delay of an early kill. Unit: milliseconds.
const EARLY_KILL_MS: u64 = 200;

/// When an agent is killed.
enum KillMoment {
    AllRun,
    AfterPrompt(Duration),
    AfterNewSession(Duration),
}

impl KillMoment {
    fn for_round(round: u64) -> Self {
        let delay = Duration::from_millis(round * 37 % EARLY_KILL_MS);
        match round % 3 {
            0 => Self::AllRun,
            1 => Self::AfterPrompt(delay),
            _ => Self::AfterNewSession(delay),
        }
    }
}

fn main() -> ExampleResult<ExitCode> {
    let kills = std::env::args().nth(1).map_or(Ok(KILLS), |n| n.parse())?;
    let examples = std::env::current_exe()?;
    let turnery = examples.parent().and_then(Path::parent);
    let turnery = turnery.ok_or("no folder")?.join("turnery");
    if !turnery.exists() {
        return Err(format!("{} is not there: build it first", turnery.display()).into());
    }
    let mut out = io::stdout();
    let mut times = Vec::new();
    let mut orphans = 0;
    for round in 0..kills {
        let (time, left) = kill_once(&turnery, &KillMoment::for_round(round))?;
        for process in &left {
            writeln!(out, "left by kill {round}: {process}")?;
        }
        times.push(time);
        orphans += left.len();
    }
    times.sort_unstable();
    let milliseconds = |time: Option<&Duration>| time.map_or(0.0, |time| 1e3 * time.as_secs_f64());
    writeln!(
        out,
        "{kills} kills, {orphans} orphans; until the last process was gone: median {:.0} ms, longest {:.0} ms",
        milliseconds(times.get(times.len() / 2)),
        milliseconds(times.last()),
    )?;
    Ok(match orphans {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Returns the time from an agent's kill to the end of all its processes, and those left after [`TIMEOUT`].
fn kill_once(turnery: &Path, moment: &KillMoment) -> ExampleResult<(Duration, Vec<String>)> {
    let home = TempDir::new()?;
    let project = home.path().canonicalize()?.join("project");
    fs::create_dir(&project)?;
    let lifeline = project.join("lifeline");
    mknodat(CWD, &lifeline, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    let holder = File::options().read(true).write(true).open(&lifeline)?;
    let mut reader = File::open(&lifeline)?;
    let mut agent = Agent::start(turnery, home.path(), &project)?;
    agent.run_until(moment)?;
    if matches!(moment, KillMoment::AllRun) {
        let since = Instant::now();
        let mut running = 0;
        while running < PROCESS_COUNT {
            match read_with_timeout(&mut reader, since)? {
                Some(count) => running += count,
                None => return Err("its processes do not start".into()),
            }
        }
    }
    drop(holder);
    let since = Instant::now();
    agent.child.kill()?;
    agent.child.wait()?;
    while read_with_timeout(&mut reader, since)?.is_some_and(|count| count > 0) {}
    let mut left = processes_in(&project);
    while !left.is_empty() && since.elapsed() < TIMEOUT {
        thread::sleep(Duration::from_millis(1));
        left = processes_in(&project);
    }
    let time = since.elapsed();
    let mut named = Vec::new();
    for pid in left {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        named.push(format!("{pid} {command}"));
        if let Some(pid) = Pid::from_raw(pid) {
            // An error means that the process has already ended.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    Ok((time, named))
}

/// Reads available bytes; returns 0 at the end of the pipe and `None` after the timeout.
fn read_with_timeout(reader: &mut File, since: Instant) -> ExampleResult<Option<usize>> {
    let rest = TIMEOUT.saturating_sub(since.elapsed());
    let rest = Timespec::try_from(rest)?;
    let mut ready = [PollFd::new(reader, PollFlags::IN)];
    if poll(&mut ready, Some(&rest))? == 0 {
        return Ok(None);
    }
    Ok(Some(reader.read(&mut [0; 64])?))
}

/// Returns the ids of processes whose working directory is in `folder`.
fn processes_in(folder: &Path) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let is_inside = |pid: &i32| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    };
    processes.filter_map(pid).filter(is_inside).collect()
}

struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    project: PathBuf,
    server: PathBuf,
}

impl Agent {
    fn start(turnery: &Path, home: &Path, project: &Path) -> ExampleResult<Self> {
        let command = format!("exec 9>lifeline\n{FUGITIVES}\nprintf u >&9; wait");
        let call = json!({"tool_call": {"name": "shell", "args": {"command": command}}});
        let scenario = home.join("scenario.json");
        fs::write(
            &scenario,
            json!({"answers": [{"steps": [call]}]}).to_string(),
        )?;
        let server = home.join("server.sh");
        fs::write(&server, format!("exec 9>lifeline\n{FUGITIVES}\n{SERVER}"))?;
        let mut child = Command::new(turnery)
            .args(["acp", "--mode", "auto", "--model"])
            .arg(format!("scripted:{}", scenario.display()))
            .current_dir(project)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("TURNERY_HOME", home.join("turnery"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            input: child.stdin.take().ok_or("no input")?,
            output: BufReader::new(child.stdout.take().ok_or("no output")?),
            child,
            project: project.to_owned(),
            server,
        })
    }

    fn run_until(&mut self, moment: &KillMoment) -> ExampleResult {
        self.send(0, "initialize", &json!({"protocolVersion": 1}))?;
        self.receive(0)?;
        let server = json!({"name": "s", "command": "/bin/sh", "args": [self.server], "env": []});
        let params = json!({"cwd": self.project, "mcpServers": [server]});
        self.send(1, "session/new", &params)?;
        if let KillMoment::AfterNewSession(delay) = moment {
            thread::sleep(*delay);
            return Ok(());
        }
        let made = self.receive(1)?;
        let text = [json!({"type": "text", "text": "go"})];
        let params = json!({"sessionId": made["result"]["sessionId"], "prompt": text});
        self.send(2, "session/prompt", &params)?;
        if let KillMoment::AfterPrompt(delay) = moment {
            thread::sleep(*delay);
        }
        Ok(())
    }

    fn send(&mut self, id: u64, method: &str, params: &Value) -> ExampleResult {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{request}")?;
        Ok(())
    }

    /// Returns the response to request `id`; skips all messages before it.
    fn receive(&mut self, id: u64) -> ExampleResult<Value> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the agent has ended".into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }
}
