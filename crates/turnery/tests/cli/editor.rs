//! An editor: the other end of `turnery acp`, as a process.

use crate::home::{Home, end};
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
use turnery_acp::witness::Witness;

/// Nothing here takes long; a test that hangs fails.
const BOUND: Duration = Duration::from_secs(120);
/// What a pipe holds.
const PIPE: u64 = 64 << 10;

pub(crate) struct Editor {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: Option<BufReader<ChildStdout>>,
    /// Taken by a test that never reads it.
    pub(crate) stderr: Option<ChildStderr>,
    /// All that was said, line by line.
    pub(crate) said: Vec<Value>,
    witness: Witness,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// All that was said, from the first line to the last.
    pub(crate) said: Vec<Value>,
    /// From the end of input, or the signal, to the end of the process.
    pub(crate) took: Duration,
}

impl Left {
    /// The one answer to a request.
    pub(crate) fn answer(&self, id: u64) -> &Value {
        let fits = |message: &&Value| message.get("method").is_none() && message["id"] == id;
        let answers: Vec<&Value> = self.said.iter().filter(fits).collect();
        assert_eq!(answers.len(), 1, "answers to {id}: {answers:?}");
        answers[0]
    }
}

impl Editor {
    pub(crate) fn open(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = home.command(args);
        for (name, value) in variables {
            command.env(name, value);
        }
        Self::start(command)
    }

    /// Open one whose agent is this command.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
        Self {
            input: child.stdin.take(),
            output: child.stdout.take().map(BufReader::new),
            stderr: child.stderr.take(),
            said: Vec::new(),
            witness: Witness::default(),
            child,
        }
    }

    /// Open one, with a session.
    pub(crate) async fn session(home: &Home, args: &[&str]) -> (Self, String) {
        let mut editor = Self::open(home, args, &[]);
        editor.initialize().await;
        let id = editor.new_session(&home.project()).await;
        (editor, id)
    }

    /// The pipes to and from turnery, as the system names them on both ends.
    pub(crate) fn pipes(&self) -> [String; 2] {
        let input = self.input.as_ref().expect("open").as_raw_fd();
        let output = self.output.as_ref().expect("open").get_ref().as_raw_fd();
        [input, output].map(|end| {
            let name = fs::read_link(format!("/proc/self/fd/{end}")).expect("open");
            name.display().to_string()
        })
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.witness.sent(text.as_bytes());
        let input = self.input.as_mut().expect("open");
        let written = tokio::time::timeout(BOUND, input.write_all(text.as_bytes())).await;
        written.expect("it reads").expect("sent");
    }

    /// The next line, which the witness takes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let output = self.output.as_mut().expect("open");
        let read = tokio::time::timeout(BOUND, output.read_line(&mut line)).await;
        if read.expect("it says something").expect("UTF-8") == 0 {
            return None;
        }
        assert!(line.ends_with('\n'), "a whole line: {line}");
        let message = self.witness.heard(&line);
        let message = message.unwrap_or_else(|complaint| panic!("{complaint}"));
        self.said.push(message.clone());
        Some(message)
    }

    /// The next message that fits.
    pub(crate) async fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("it still talks");
            if fits(&message) {
                return message;
            }
        }
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
    }

    /// The answer to a request.
    pub(crate) async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.ask(id, method, params).await;
        self.wait(|message| message["id"] == id).await
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

    /// Wait until it rests: it has filled the pipe that nobody reads, and computes no more. No event
    /// says so, so this looks until nothing changes.
    pub(crate) async fn until_it_rests(&self) {
        let output = self.output.as_ref().expect("open").get_ref();
        let mut looks = tokio::time::interval(Duration::from_millis(50));
        let since = Instant::now();
        let mut before = Vec::new();
        loop {
            looks.tick().await;
            assert!(since.elapsed() < BOUND, "it does not rest");
            let is_full = ioctl_fionread(output).expect("a pipe") >= PIPE - 4096;
            let now = self.computed();
            before.push(now);
            let rested = before.iter().rev().take_while(|time| **time == now).count();
            if is_full && rested > 4 {
                return;
            }
        }
    }

    /// How much it has computed so far, in ticks.
    pub(crate) fn computed(&self) -> u64 {
        let id = self.child.id().expect("running");
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("running");
        let (_, rest) = stat.rsplit_once(')').expect("a name");
        let fields = rest.split_whitespace().skip(11).take(2);
        fields
            .map(|field| field.parse::<u64>().expect("ticks"))
            .sum()
    }

    /// How often the threads of its runtime have gone to sleep so far: once more each time that something woke one.
    pub(crate) fn woken(&self) -> u64 {
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

    /// The memory that it has now. Unit: bytes.
    pub(crate) fn memory(&self) -> u64 {
        let id = self.child.id().expect("running");
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("running");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.expect("VmRSS").trim().trim_end_matches(" kB");
        kib.parse::<u64>().expect("a number") << 10
    }

    /// End of input; then all that comes, to the end.
    pub(crate) async fn leave(mut self) -> Left {
        self.input = None;
        self.ended().await
    }

    /// The end that comes at once, with answers owed; returns all that was said.
    pub(crate) async fn killed(mut self) -> Vec<Value> {
        self.child.kill().await.expect("it runs");
        while self.next().await.is_some() {}
        self.said
    }

    /// All that comes, to the end.
    pub(crate) async fn ended(mut self) -> Left {
        let since = Instant::now();
        if self.output.is_some() {
            while self.next().await.is_some() {}
            self.witness.closed();
            self.witness.ended().expect("all is answered");
        }
        let Self {
            mut child,
            stderr,
            said,
            ..
        } = self;
        let waited = tokio::time::timeout(BOUND, child.wait()).await;
        let took = since.elapsed();
        let mut told = String::new();
        if let Some(mut stderr) = stderr {
            stderr.read_to_string(&mut told).await.expect("UTF-8");
        }
        let done = end(child).await;
        assert_eq!(done.code, waited.expect("ended").expect("waited").code());
        Left {
            code: done.code,
            stderr: told,
            said,
            took,
        }
    }
}

/// A process that turnery has started, known by the file into which it wrote its number.
pub(crate) struct Started(OwnedFd);

impl Started {
    pub(crate) fn read(path: &Path) -> Self {
        Self::find(path).expect("it runs")
    }

    /// `None` if it has ended.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).expect("its number");
        let pid = text.trim().parse().ok().and_then(Pid::from_raw);
        match pidfd_open(pid.expect("a number"), PidfdFlags::empty()) {
            Ok(fd) => Some(Self(fd)),
            Err(Errno::SRCH) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Wait for its end, which is near.
    pub(crate) fn gone(self) {
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
