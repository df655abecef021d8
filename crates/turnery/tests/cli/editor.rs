//! Test editor: an ACP client of a `turnery acp` process.

use crate::home::{Home, wait_with_output};
use acp_conformance::oracle::{Oracle, OutputEnding, Violation};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ioctl_fionread},
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::{Value, json};
use std::{
    fs,
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
};

/// Timeout after which a test counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Capacity of a pipe. Unit: bytes.
const PIPE_CAPACITY: u64 = 64 << 10;

pub(crate) struct Editor {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: Option<BufReader<ChildStdout>>,
    /// Taken by a test that never reads it.
    pub(crate) stderr: Option<ChildStderr>,
    /// All messages of the agent, in order.
    pub(crate) said: Vec<Value>,
    oracle: Oracle,
    /// Written text that has no line end yet.
    partial_line: String,
}

/// Returns parameters of the prompt "go".
pub(crate) fn prompt_params(session: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
}

/// End of the agent process.
#[derive(Debug)]
pub(crate) struct EditorExit {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// All messages of the agent, from the first to the last.
    pub(crate) said: Vec<Value>,
    /// Time from the end of input, or the signal, to the end of the process.
    pub(crate) took: Duration,
}

impl EditorExit {
    /// Returns the only response to request `id`.
    pub(crate) fn response(&self, id: u64) -> &Value {
        let fits = |message: &&Value| message.get("method").is_none() && message["id"] == id;
        let answers: Vec<&Value> = self.said.iter().filter(fits).collect();
        assert_eq!(answers.len(), 1, "answers to {id}: {answers:?}");
        answers[0]
    }
}

impl Editor {
    pub(crate) fn spawn(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = home.command(args);
        for (name, value) in variables {
            command.env(name, value);
        }
        Self::spawn_command(command)
    }

    /// Starts an editor whose agent is `command`.
    pub(crate) fn spawn_command(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
        Self {
            input: child.stdin.take(),
            output: child.stdout.take().map(BufReader::new),
            stderr: child.stderr.take(),
            said: Vec::new(),
            oracle: Oracle::default(),
            partial_line: String::new(),
            child,
        }
    }

    /// Starts an editor with a new session.
    pub(crate) async fn with_session(home: &Home, args: &[&str]) -> (Self, String) {
        let mut editor = Self::spawn(home, args, &[]);
        editor.initialize().await;
        let id = editor.new_session(&home.project_folder()).await;
        (editor, id)
    }

    /// Returns the names of the pipes to and from turnery, which are the same at both ends.
    pub(crate) fn pipe_names(&self) -> [String; 2] {
        let input = self.input.as_ref().expect("open").as_raw_fd();
        let output = self.output.as_ref().expect("open").get_ref().as_raw_fd();
        [input, output].map(|end| {
            let name = fs::read_link(format!("/proc/self/fd/{end}")).expect("open");
            name.display().to_string()
        })
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write_raw(&format!("{message}\n")).await;
    }

    pub(crate) async fn write_raw(&mut self, text: &str) {
        self.partial_line.push_str(text);
        while let Some((line, rest)) = self.partial_line.split_once('\n') {
            self.oracle.on_sent_line(line);
            self.partial_line = rest.to_owned();
        }
        let input = self.input.as_mut().expect("open");
        let written = tokio::time::timeout(TIMEOUT, input.write_all(text.as_bytes())).await;
        written.expect("it reads").expect("sent");
    }

    /// Reads the next message and hands it to the oracle; returns `None` at the end.
    pub(crate) async fn next_message(&mut self) -> Option<Value> {
        let mut line = String::new();
        let output = self.output.as_mut().expect("open");
        let read = tokio::time::timeout(TIMEOUT, output.read_line(&mut line)).await;
        if read.expect("it says something").expect("UTF-8") == 0 {
            return None;
        }
        assert!(line.ends_with('\n'), "a whole line: {line}");
        let violations = self.oracle.on_received_line(line.as_bytes());
        assert_eq!(violations, [] as [Violation; 0], "{line}");
        let message: Value = serde_json::from_str(&line).expect("JSON");
        self.said.push(message.clone());
        Some(message)
    }

    /// Waits for the next message that `fits`.
    pub(crate) async fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next_message().await.expect("it still talks");
            if fits(&message) {
                return message;
            }
        }
    }

    pub(crate) async fn send_request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    /// Sends a request and waits for its response.
    pub(crate) async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send_request(id, method, params).await;
        self.wait_for(|message| message["id"] == id).await
    }

    /// Sends the prompt "go".
    pub(crate) async fn send_prompt(&mut self, id: u64, session: &str) {
        let params = prompt_params(session);
        self.send_request(id, "session/prompt", params).await;
    }

    /// Sends the prompt "go" and waits for its response.
    pub(crate) async fn prompt(&mut self, id: u64, session: &str) -> Value {
        self.send_prompt(id, session).await;
        self.wait_for(|message| message["id"] == id).await
    }

    pub(crate) async fn initialize(&mut self) -> Value {
        self.request(0, "initialize", json!({"protocolVersion": 1}))
            .await
    }

    pub(crate) async fn new_session(&mut self, cwd: &Path) -> String {
        let params = json!({"cwd": cwd, "mcpServers": []});
        let made = self.request(1, "session/new", params).await;
        let id = made["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// Waits until the agent is blocked: the unread pipe is full and the agent uses no more CPU time. Polls,
    /// since no event reports this state. A full pipe of small lines holds less than its capacity.
    pub(crate) async fn wait_until_blocked(&self) {
        let output = self.output.as_ref().expect("open").get_ref();
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let since = Instant::now();
        let mut before = Vec::new();
        loop {
            looks.tick().await;
            assert!(since.elapsed() < TIMEOUT, "it does not rest");
            let is_full = ioctl_fionread(output).expect("a pipe") >= PIPE_CAPACITY / 2;
            let now = self.cpu_ticks();
            before.push(now);
            let rested = before.iter().rev().take_while(|time| **time == now).count();
            if is_full && rested > 4 {
                return;
            }
        }
    }

    /// Returns the CPU time used so far. Unit: ticks.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let id = self.child.id().expect("running");
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("running");
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let fields = rest.split_whitespace().skip(11).take(2);
        fields
            .map(|field| field.parse::<u64>().expect("ticks"))
            .sum()
    }

    /// Returns how often the runtime's threads have gone to sleep so far: once per wake-up.
    pub(crate) fn context_switches(&self) -> u64 {
        let id = self.child.id().expect("running");
        let threads = fs::read_dir(format!("/proc/{id}/task")).expect("running");
        let status = |thread: std::io::Result<fs::DirEntry>| {
            fs::read_to_string(thread.ok()?.path().join("status")).ok()
        };
        let of_the_runtime = threads.filter_map(status).filter_map(|status| {
            status.strip_prefix("Name:\tagent\n")?;
            let mut lines = status.lines();
            let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line?.trim().parse::<u64>().ok()
        });
        let woken = of_the_runtime.sum();
        assert!(woken > 0, "no thread of the runtime is found");
        woken
    }

    /// Returns the resident memory. Unit: bytes.
    pub(crate) fn resident_memory(&self) -> u64 {
        let id = self.child.id().expect("running");
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("running");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.expect("VmRSS").trim().trim_end_matches(" kB");
        kib.parse::<u64>().expect("a number") << 10
    }

    /// Closes the agent's input and reads to the end.
    pub(crate) async fn close_input(mut self) -> EditorExit {
        self.input = None;
        self.wait_for_exit().await
    }

    /// Kills the agent while responses are pending; returns all its messages.
    pub(crate) async fn kill(mut self) -> Vec<Value> {
        self.child.kill().await.expect("it runs");
        while self.next_message().await.is_some() {}
        self.said
    }

    /// Reads to the end of the agent's output.
    pub(crate) async fn wait_for_exit(mut self) -> EditorExit {
        let since = Instant::now();
        if self.output.is_some() {
            while self.next_message().await.is_some() {}
            if !self.partial_line.is_empty() {
                self.oracle.on_sent_line(&self.partial_line);
            }
            let violations = self.oracle.on_output_end(OutputEnding::Eof);
            assert_eq!(violations, [] as [Violation; 0], "all is answered");
        }
        let Self {
            mut child,
            stderr,
            said,
            ..
        } = self;
        let waited = tokio::time::timeout(TIMEOUT, child.wait()).await;
        let took = since.elapsed();
        let mut told = String::new();
        if let Some(mut stderr) = stderr {
            stderr.read_to_string(&mut told).await.expect("UTF-8");
        }
        let done = wait_with_output(child).await;
        assert_eq!(done.code, waited.expect("ended").expect("waited").code());
        EditorExit {
            code: done.code,
            stderr: told,
            said,
            took,
        }
    }
}

/// A process that turnery has started, identified by its pid file.
pub(crate) struct StartedProcess(OwnedFd);

impl StartedProcess {
    pub(crate) fn from_pid_file(path: &Path) -> Self {
        Self::try_from_pid_file(path).expect("it runs")
    }

    /// Returns the process, or `None` if it has ended.
    pub(crate) fn try_from_pid_file(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).expect("its number");
        let pid = text.trim().parse().ok().and_then(Pid::from_raw);
        match pidfd_open(pid.expect("a number"), PidfdFlags::empty()) {
            Ok(fd) => Some(Self(fd)),
            Err(Errno::SRCH) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Waits for the process to end.
    pub(crate) fn wait_for_exit(self) {
        let bound = Timespec {
            tv_sec: 120,
            tv_nsec: 0,
        };
        let mut ended = [PollFd::new(&self.0, PollFlags::IN)];
        assert_eq!(
            poll(&mut ended, Some(&bound)).expect("polls"),
            1,
            "it lives"
        );
    }
}
