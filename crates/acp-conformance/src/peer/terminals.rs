//! Terminals of the client: real processes that the agent can read, await, kill and release.

use super::process::{MARK_VARIABLE, spawn_child};
use crate::suite_clock::SuiteClock;
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

/// Time for reading the remaining output after a process has ended.
const OUTPUT_GRACE: Duration = Duration::from_millis(100);
/// Capacity of the queue of delayed responses.
const MAX_PENDING_RESPONSES: usize = 64;
/// Output limit for terminals without their own limit. Unit: bytes.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// Environment in which the processes of a case run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessContext {
    pub(crate) home: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Value of [`MARK_VARIABLE`] in the environment of all processes of the case, by which they are found
    /// and killed.
    pub(crate) mark: String,
}

/// All terminals of a client.
pub(crate) struct ClientTerminals {
    pub(crate) context: ProcessContext,
    terminals: BTreeMap<String, Terminal>,
    created_count: usize,
    response_sender: mpsc::Sender<Value>,
    responses: mpsc::Receiver<Value>,
}

struct Terminal {
    group: Option<Pid>,
    output: Arc<Mutex<TerminalOutput>>,
    exit: watch::Receiver<Option<Value>>,
}

#[derive(Default)]
struct TerminalOutput {
    bytes: Vec<u8>,
    limit: usize,
    is_truncated: bool,
}

/// Error of a request that cannot be served: code and message.
pub(crate) type RequestError = (i64, String);

impl Default for ClientTerminals {
    fn default() -> Self {
        let (ended, answers) = mpsc::channel(MAX_PENDING_RESPONSES);
        Self {
            context: ProcessContext::default(),
            terminals: BTreeMap::new(),
            created_count: 0,
            response_sender: ended,
            responses: answers,
        }
    }
}

impl ClientTerminals {
    /// Answers a request; `None` if the response follows when the process ends.
    pub(crate) fn handle_request(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
    ) -> Result<Option<Value>, RequestError> {
        if method == "terminal/create" {
            return self.create(params).map(Some);
        }
        let name = params["terminalId"].as_str().unwrap_or_default();
        let Some(terminal) = self.terminals.get(name) else {
            return Err((-32602, format!("there is no terminal {name:?}")));
        };
        Ok(Some(match method {
            "terminal/output" => terminal.output_response(),
            "terminal/kill" => {
                terminal.kill();
                json!({})
            }
            "terminal/release" => {
                self.terminals.remove(name);
                json!({})
            }
            "terminal/wait_for_exit" => {
                self.respond_on_exit(id.clone(), terminal.exit.clone());
                return Ok(None);
            }
            other => return Err((-32601, format!("there is no {other}"))),
        }))
    }

    /// Waits for the next delayed response.
    pub(crate) async fn next_delayed_response(&mut self) -> Value {
        match self.responses.recv().await {
            Some(answer) => answer,
            // The sender lives as long as `self`.
            None => std::future::pending().await,
        }
    }

    /// Ends all terminals.
    pub(crate) fn kill_all(&mut self) {
        self.terminals.clear();
    }

    fn create(&mut self, params: &Value) -> Result<Value, RequestError> {
        let command = params["command"].as_str().unwrap_or_default();
        let arguments = params["args"].as_array().into_iter().flatten();
        let arguments: Vec<&str> = arguments.filter_map(Value::as_str).collect();
        // Like editors, run a command without arguments as a shell line.
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
            .env("HOME", &self.context.home)
            .env(MARK_VARIABLE, &self.context.mark)
            .current_dir(cwd.as_ref().unwrap_or(&self.context.cwd))
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
        let mut child = spawn_child(&mut process)
            .map_err(|error| (-32603, format!("{command} does not start: {error}")))?;
        let limit = params["outputByteLimit"].as_u64();
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let output = Arc::new(Mutex::new(TerminalOutput {
            limit: limit.unwrap_or(MAX_OUTPUT_BYTES).min(MAX_OUTPUT_BYTES),
            ..TerminalOutput::default()
        }));
        let pipes = (child.stdout.take(), child.stderr.take());
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (exit, exited) = watch::channel(None);
        tokio::spawn(run_to_end(child, pipes, Arc::clone(&output), exit));
        self.created_count += 1;
        let name = format!("terminal-{}", self.created_count);
        let terminal = Terminal {
            group,
            output,
            exit: exited,
        };
        self.terminals.insert(name.clone(), terminal);
        Ok(json!({"terminalId": name}))
    }

    fn respond_on_exit(&self, id: Value, mut exit: watch::Receiver<Option<Value>>) {
        let ended = self.response_sender.clone();
        tokio::spawn(async move {
            let exit = match exit.wait_for(Option::is_some).await {
                Ok(exit) => exit.clone().unwrap_or_default(),
                Err(_) => json!({}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": exit});
            // The receiver is gone once the case is over.
            let _ = ended.send(answer).await;
        });
    }
}

impl Terminal {
    fn output_response(&self) -> Value {
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
            // The process may have just ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads the output of a process until the process ends.
async fn run_to_end<O: AsyncRead + Unpin, E: AsyncRead + Unpin>(
    mut child: Child,
    (stdout, stderr): (Option<O>, Option<E>),
    output: Arc<Mutex<TerminalOutput>>,
    exit: watch::Sender<Option<Value>>,
) {
    let reads = async {
        tokio::join!(
            collect_output(stdout, &output),
            collect_output(stderr, &output)
        );
    };
    tokio::pin!(reads);
    let mut has_read = false;
    let status = tokio::select! {
        () = &mut reads => { has_read = true; child.wait().await }
        status = child.wait() => status,
    };
    // Output written before the end is in the pipes by now; children left behind are not awaited.
    if !has_read {
        tokio::select! {
            biased;
            () = &mut reads => {}
            _ = SuiteClock::Fair.timeout(OUTPUT_GRACE, std::future::pending::<()>()) => {}
        }
    }
    exit.send_replace(Some(exit_status_json(status.ok())));
}

async fn collect_output(pipe: Option<impl AsyncRead + Unpin>, output: &Mutex<TerminalOutput>) {
    let Some(mut pipe) = pipe else { return };
    let mut bytes = [0; 8192];
    while let Ok(length @ 1..) = pipe.read(&mut bytes).await {
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.append(&bytes[..length]);
    }
}

impl TerminalOutput {
    /// Appends output and drops its beginning if it is too long, up to a character boundary.
    fn append(&mut self, bytes: &[u8]) {
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

fn exit_status_json(status: Option<ExitStatus>) -> Value {
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
    fn truncated_output_starts_at_a_character() {
        let mut output = TerminalOutput {
            limit: 4,
            ..TerminalOutput::default()
        };
        output.append(b"abcd");
        assert!(!output.is_truncated);
        output.append("é".as_bytes());
        assert_eq!(
            (&*output.bytes, output.is_truncated),
            ("cdé".as_bytes(), true)
        );
        output.append(b"xyz");
        assert_eq!(output.bytes, b"xyz");
    }

    #[tokio::test]
    async fn output_is_readable_after_exit() {
        let mut terminals = ClientTerminals::default();
        terminals.context.cwd = std::env::temp_dir();
        let id = json!(7);
        let params = json!({"command": "sh", "args": ["-c", "echo $A; echo b >&2; exit 3"],
            "env": [{"name": "A", "value": "a"}]});
        let made = terminals
            .handle_request("terminal/create", &id, &params)
            .unwrap();
        assert_eq!(made, Some(json!({"terminalId": "terminal-1"})));
        let params = json!({"terminalId": "terminal-1"});
        let wait = terminals.handle_request("terminal/wait_for_exit", &id, &params);
        assert_eq!(wait, Ok(None));
        let exit = json!({"exitCode": 3, "signal": null});
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": exit});
        assert_eq!(terminals.next_delayed_response().await, answer);
        let output = terminals
            .handle_request("terminal/output", &id, &params)
            .unwrap();
        let mut output = output.unwrap();
        let text = output["output"].take();
        let text = text.as_str().unwrap();
        assert!(text == "a\nb\n" || text == "b\na\n", "{text}");
        assert_eq!(
            output,
            json!({"output": null, "truncated": false, "exitStatus": exit})
        );
        let release = terminals.handle_request("terminal/release", &id, &params);
        assert_eq!(release, Ok(Some(json!({}))));
        let gone = terminals.handle_request("terminal/output", &id, &params);
        assert_eq!(gone.unwrap_err().0, -32602);
    }

    #[tokio::test]
    async fn killed_command_reports_its_signal() {
        let mut terminals = ClientTerminals::default();
        terminals.context.cwd = std::env::temp_dir();
        let id = json!(1);
        let params = json!({"command": "sleep 1000"});
        terminals
            .handle_request("terminal/create", &id, &params)
            .unwrap();
        let params = json!({"terminalId": "terminal-1"});
        terminals
            .handle_request("terminal/wait_for_exit", &id, &params)
            .unwrap();
        terminals
            .handle_request("terminal/kill", &id, &params)
            .unwrap();
        let exit = json!({"exitCode": null, "signal": "SIGKILL"});
        assert_eq!(terminals.next_delayed_response().await["result"], exit);
    }
}
