//! Terminals of the client: real processes, whose output the agent reads, waits for, ends and gives back.

use super::process::{MARK, begin};
use crate::pace::Pace;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    sync::{mpsc, watch},
};

/// How long the output of a process that has ended is read on.
const REST: Duration = Duration::from_millis(100);
/// Answers that wait to be sent.
const WAITING: usize = 64;
/// So much is kept of an output that has no limit of its own. Unit: bytes.
const KEPT: usize = 16 << 20;

/// Where the processes of a case run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Names all processes of the case.
    pub(crate) mark: String,
}

/// All terminals of a client.
pub(crate) struct Terminals {
    pub(crate) place: Place,
    open: BTreeMap<String, Terminal>,
    made: usize,
    ended: mpsc::Sender<Value>,
    answers: mpsc::Receiver<Value>,
}

struct Terminal {
    group: Option<Pid>,
    output: Arc<Mutex<Output>>,
    exit: watch::Receiver<Option<Value>>,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    is_truncated: bool,
}

/// Why a request cannot be served: code and message.
pub(crate) type Refusal = (i64, String);

impl Default for Terminals {
    fn default() -> Self {
        let (ended, answers) = mpsc::channel(WAITING);
        Self {
            place: Place::default(),
            open: BTreeMap::new(),
            made: 0,
            ended,
            answers,
        }
    }
}

impl Terminals {
    /// Answer a request; `None`: when its process has ended.
    pub(crate) fn answer(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
    ) -> Result<Option<Value>, Refusal> {
        if method == "terminal/create" {
            return self.create(params).map(Some);
        }
        let name = params["terminalId"].as_str().unwrap_or_default();
        let Some(terminal) = self.open.get(name) else {
            return Err((-32602, format!("there is no terminal {name:?}")));
        };
        Ok(Some(match method {
            "terminal/output" => terminal.output(),
            "terminal/kill" => {
                terminal.kill();
                json!({})
            }
            "terminal/release" => {
                self.open.remove(name);
                json!({})
            }
            "terminal/wait_for_exit" => {
                self.wait(id.clone(), terminal.exit.clone());
                return Ok(None);
            }
            other => return Err((-32601, format!("there is no {other}"))),
        }))
    }

    /// The next answer of a request that had to wait.
    pub(crate) async fn later(&mut self) -> Value {
        match self.answers.recv().await {
            Some(answer) => answer,
            // The sender lives as long as this.
            None => std::future::pending().await,
        }
    }

    /// End all of them.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    fn create(&mut self, params: &Value) -> Result<Value, Refusal> {
        let command = params["command"].as_str().unwrap_or_default();
        let arguments = params["args"].as_array().into_iter().flatten();
        let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
        // As editors do: a line without arguments is a line of shell.
        let mut process = if arguments.is_empty() {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]);
            shell
        } else {
            let mut process = Command::new(command);
            process.args(arguments);
            process
        };
        let cwd = params["cwd"].as_str().map(PathBuf::from);
        process
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.place.home)
            .env(MARK, &self.place.mark)
            .current_dir(cwd.as_ref().unwrap_or(&self.place.cwd))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for variable in params["env"].as_array().into_iter().flatten() {
            if let (Some(name), Some(value)) =
                (variable["name"].as_str(), variable["value"].as_str())
            {
                process.env(name, value);
            }
        }
        let mut child = begin(&mut process)
            .map_err(|error| (-32603, format!("{command} does not start: {error}")))?;
        let limit = params["outputByteLimit"].as_u64();
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let output = Arc::new(Mutex::new(Output {
            limit: limit.unwrap_or(KEPT).min(KEPT),
            ..Output::default()
        }));
        let pipes = (child.stdout.take(), child.stderr.take());
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (exit, exited) = watch::channel(None);
        tokio::spawn(run(child, pipes, Arc::clone(&output), exit));
        self.made += 1;
        let name = format!("terminal-{}", self.made);
        let terminal = Terminal {
            group,
            output,
            exit: exited,
        };
        self.open.insert(name.clone(), terminal);
        Ok(json!({"terminalId": name}))
    }

    fn wait(&self, id: Value, mut exit: watch::Receiver<Option<Value>>) {
        let ended = self.ended.clone();
        tokio::spawn(async move {
            let exit = match exit.wait_for(Option::is_some).await {
                Ok(exit) => exit.clone().unwrap_or_default(),
                Err(_) => json!({}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": exit});
            // Nobody waits any more once the case is over.
            let _ = ended.send(answer).await;
        });
    }
}

impl Terminal {
    fn output(&self) -> Value {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = json!({
            "output": String::from_utf8_lossy(&output.bytes),
            "truncated": output.is_truncated,
        });
        if let Some(exit) = &*self.exit.borrow() {
            answer["exitStatus"] = exit.clone();
        }
        answer
    }

    fn kill(&self) {
        let runs = self.exit.borrow().is_none();
        if let Some(group) = self.group.filter(|_| runs) {
            // It may have ended just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Read a process to its end.
async fn run<O: AsyncRead + Unpin, E: AsyncRead + Unpin>(
    mut child: Child,
    (stdout, stderr): (Option<O>, Option<E>),
    output: Arc<Mutex<Output>>,
    exit: watch::Sender<Option<Value>>,
) {
    let reads = async {
        tokio::join!(keep(stdout, &output), keep(stderr, &output));
    };
    tokio::pin!(reads);
    let mut has_read = false;
    let status = tokio::select! {
        () = &mut reads => { has_read = true; child.wait().await }
        status = child.wait() => status,
    };
    // What it wrote before its end is in the pipes by now; a child that it left behind is not waited for.
    if !has_read {
        tokio::select! {
            biased;
            () = &mut reads => {}
            _ = Pace::Fair.timeout(REST, std::future::pending::<()>()) => {}
        }
    }
    exit.send_replace(Some(told(status.ok())));
}

async fn keep(pipe: Option<impl AsyncRead + Unpin>, output: &Mutex<Output>) {
    let Some(mut pipe) = pipe else { return };
    let mut bytes = [0; 8192];
    while let Ok(length @ 1..) = pipe.read(&mut bytes).await {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.add(&bytes[..length]);
    }
}

impl Output {
    /// The end is kept, from the beginning of a character on.
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let mut excess = self.bytes.len().saturating_sub(self.limit);
        if excess == 0 {
            return;
        }
        self.is_truncated = true;
        let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
        while self.bytes.get(excess).is_some_and(is_inside) {
            excess += 1;
        }
        self.bytes.drain(..excess);
    }
}

fn told(status: Option<ExitStatus>) -> Value {
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    let signal = signal.map(|signal| match signal {
        9 => "SIGKILL".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => other.to_string(),
    });
    json!({"exitCode": code, "signal": signal})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_output_is_kept_from_a_whole_character_on() {
        let mut output = Output {
            limit: 4,
            ..Output::default()
        };
        output.add(b"abcd");
        assert!(!output.is_truncated);
        output.add("é".as_bytes());
        assert_eq!(
            (&*output.bytes, output.is_truncated),
            ("cdé".as_bytes(), true)
        );
        output.add(b"xyz");
        assert_eq!(output.bytes, b"xyz");
    }

    #[tokio::test]
    async fn a_command_runs_to_its_end_and_its_output_can_be_read() {
        let mut terminals = Terminals::default();
        terminals.place.cwd = std::env::temp_dir();
        let id = json!(7);
        let params = json!({"command": "sh", "args": ["-c", "echo $A; echo b >&2; exit 3"],
            "env": [{"name": "A", "value": "a"}]});
        let made = terminals.answer("terminal/create", &id, &params).unwrap();
        assert_eq!(made, Some(json!({"terminalId": "terminal-1"})));
        let params = json!({"terminalId": "terminal-1"});
        let wait = terminals.answer("terminal/wait_for_exit", &id, &params);
        assert_eq!(wait, Ok(None));
        let exit = json!({"exitCode": 3, "signal": null});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": exit});
        assert_eq!(terminals.later().await, answer);
        let output = terminals.answer("terminal/output", &id, &params).unwrap();
        let mut output = output.unwrap();
        let text = output["output"].take();
        let text = text.as_str().unwrap();
        assert!(text == "a\nb\n" || text == "b\na\n", "{text}");
        assert_eq!(
            output,
            json!({"output": null, "truncated": false, "exitStatus": exit})
        );
        let release = terminals.answer("terminal/release", &id, &params);
        assert_eq!(release, Ok(Some(json!({}))));
        let gone = terminals.answer("terminal/output", &id, &params);
        assert_eq!(gone.unwrap_err().0, -32602);
    }

    #[tokio::test]
    async fn a_command_is_killed_and_says_so() {
        let mut terminals = Terminals::default();
        terminals.place.cwd = std::env::temp_dir();
        let id = json!(1);
        let params = json!({"command": "sleep 1000"});
        terminals.answer("terminal/create", &id, &params).unwrap();
        let params = json!({"terminalId": "terminal-1"});
        terminals
            .answer("terminal/wait_for_exit", &id, &params)
            .unwrap();
        terminals.answer("terminal/kill", &id, &params).unwrap();
        let exit = json!({"exitCode": null, "signal": "SIGKILL"});
        assert_eq!(terminals.later().await["result"], exit);
    }
}
