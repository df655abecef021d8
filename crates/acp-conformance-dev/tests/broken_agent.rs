//! Tests of the broken agent as a process: without a fault, it passes on every byte of the agent behind it.

use acp_conformance_dev::{broken_agent::read_recordings, faults::Direction};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

struct Proxy {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

/// Starts a shell script behind the proxy.
fn start_proxy(options: &[&str], script: &str) -> Proxy {
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-broken-agent"))
        .args(options)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the proxy starts");
    Proxy {
        stdin: child.stdin.take(),
        stdout: child.stdout.take().map(BufReader::new),
        child,
    }
}

impl Proxy {
    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).expect("it reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let stdout = self.stdout.as_mut().expect("stdout is open");
        stdout.read_line(&mut line).expect("a line");
        line
    }

    /// Closes stdin and returns the remaining output.
    fn rest(&mut self) -> Vec<u8> {
        self.stdin = None;
        let mut rest = Vec::new();
        let stdout = self.stdout.as_mut().expect("stdout is open");
        stdout.read_to_end(&mut rest).expect("it speaks");
        rest
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

/// Waits until no process has this id.
fn wait_until_gone(pid: &str) {
    let pid = Pid::from_raw(pid.trim().parse().expect("an id")).expect("an id");
    while test_kill_process(pid).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn bytes_end_and_status_pass_through() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300_001).collect();
    for options in [&[][..], &["--fault", "cancel_lost"][..]] {
        let mut proxy = start_proxy(options, "cat; exit 3");
        let mut stdin = proxy.stdin.take().expect("stdin");
        let sent = bytes.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&sent));
        assert_eq!(proxy.rest(), bytes, "{options:?}");
        writer.join().expect("it writes").expect("it is read");
        assert_eq!(proxy.code(), Some(3));
    }
}

#[test]
fn partial_line_passes_at_once() {
    let mut proxy = start_proxy(&[], "head -c 3; exit 0");
    proxy.write(b"abc");
    let mut three = [0; 3];
    let stdout = proxy.stdout.as_mut().expect("stdout");
    stdout.read_exact(&mut three).expect("three bytes");
    assert_eq!(&three, b"abc");
    assert_eq!(proxy.code(), Some(0));
}

#[test]
fn sigterm_is_forwarded_and_signal_exit_reported() {
    let script = "trap 'echo told; exit 4' TERM; echo ready; while :; do read x || exit 9; done";
    let mut proxy = start_proxy(&[], script);
    assert_eq!(proxy.line(), "ready\n");
    kill_process(proxy.pid(), Signal::TERM).expect("it is there");
    // A shell that waits in `read` handles the signal at the next line at the latest; one that handled it
    // earlier is gone and reads no line.
    let _ = proxy
        .stdin
        .as_mut()
        .expect("stdin is open")
        .write_all(b"\n");
    assert_eq!(proxy.line(), "told\n");
    assert_eq!(proxy.code(), Some(4));

    let mut proxy = start_proxy(&[], "kill -KILL $$");
    assert_eq!(proxy.code(), Some(128 + 9));
}

#[test]
fn agent_dies_with_the_proxy() {
    let mut proxy = start_proxy(
        &[],
        "echo $$; while read x; do :; done; while :; do :; done",
    );
    let agent = proxy.line();
    proxy.child.kill().expect("it is there");
    proxy.child.wait().expect("it ends");
    wait_until_gone(&agent);
}

#[test]
fn agent_gets_sigpipe_when_client_stops_reading() {
    let mut proxy = start_proxy(&[], "read x; while echo x; do :; done");
    drop(proxy.stdout.take());
    proxy.write(b"go\n");
    // SIGPIPE killed the proxy.
    assert_eq!(proxy.code(), Some(128 + 13));
}

#[test]
fn agent_can_outlive_its_stdout() {
    let script = "read x; echo one; echo two; echo three; read y; exit 7";
    let mut proxy = start_proxy(&["--fault", "outlives_its_stdout"], script);
    drop(proxy.stdout.take());
    proxy.write(b"go\nstop\n");
    assert_eq!(proxy.code(), Some(7));
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#;
const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}"#;
const PROMPT: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[]}}\n";

#[test]
fn fault_changes_messages() {
    let script = format!("read x; echo '{UPDATE}'; echo '{ANSWER}'; read x");
    let mut proxy = start_proxy(&["--fault", "late_update"], &script);
    proxy.write(PROMPT);
    assert_eq!(proxy.line().trim_end(), ANSWER);
    assert!(proxy.line().contains("agent_message_chunk"));
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(1));
}

#[test]
fn injected_lines_keep_their_order() {
    let mut proxy = start_proxy(&["--fault", "idle_cancel_poisons"], "cat");
    let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    proxy.write(&[cancel.as_bytes(), b"\n", PROMPT, b"a line\n"].concat());
    assert_eq!(proxy.line().trim_end(), cancel);
    assert_eq!(proxy.line().as_bytes(), PROMPT);
    assert_eq!(proxy.line().trim_end(), cancel);
    assert_eq!(proxy.line(), "a line\n");
}

#[test]
fn unknown_fault_is_reported() {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-broken-agent"))
        .args(["--fault", "nonsense", "--", "cat"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nonsense"));
}

#[test]
fn messages_are_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let mut proxy = start_proxy(
        &["--record", &path],
        "read x; echo \"heard $x\"; cat >/dev/null; echo",
    );
    proxy.write(b"one\n");
    assert_eq!(proxy.line(), "heard one\n");
    proxy.write(b"two");
    assert_eq!(proxy.rest(), b"\n");
    proxy.code();
    let recorded = read_recordings(folder.path()).expect("a recording");
    assert_eq!(recorded.len(), 1);
    let of = |way| {
        let lines = recorded[0].iter().filter(move |(to, _)| *to == way);
        lines.map(|(_, line)| line.as_slice()).collect::<Vec<_>>()
    };
    assert_eq!(of(Direction::ToClient), [&b"heard one\n"[..], b"\n"]);
    assert_eq!(of(Direction::ToAgent).first(), Some(&&b"one\n"[..]));
}

#[test]
fn process_faults_affect_start_and_exit() {
    let mut proxy = start_proxy(&["--fault", "banner"], "cat");
    assert_eq!(proxy.line(), "Welcome to the broken agent!\n");
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(0));

    let mut proxy = start_proxy(&["--fault", "farewell_on_stdout"], "cat");
    proxy.write(b"hi\n");
    assert_eq!(proxy.rest(), b"hi\nGoodbye!\n");
    assert_eq!(proxy.code(), Some(0));

    let mut proxy = start_proxy(&["--fault", "exit_status_1"], "cat");
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(1));

    let mut proxy = start_proxy(&["--fault", "terminal_needed"], "cat");
    proxy.write(b"hi\n");
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(0));

    let mut proxy = start_proxy(
        &["--fault", "end_kills_at_once"],
        "while read x; do :; done; while :; do :; done",
    );
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(0));
}

#[test]
fn process_fault_can_prevent_exit() {
    let mut proxy = start_proxy(&["--fault", "stays_after_eof"], "echo $$; cat");
    let agent = proxy.line();
    proxy.stdin = None;
    wait_until_gone(&agent);
    assert_eq!(proxy.child.try_wait().expect("it can be asked"), None);
    proxy.child.kill().expect("it is there");
    proxy.child.wait().expect("it ends");

    let script = "trap 'echo told' TERM; echo ready; while read x; do echo \"$x\"; done";
    let mut proxy = start_proxy(&["--fault", "deaf_to_sigterm"], script);
    assert_eq!(proxy.line(), "ready\n");
    kill_process(proxy.pid(), Signal::TERM).expect("it is there");
    proxy.write(b"still here\n");
    assert_eq!(proxy.line(), "still here\n");
    proxy.child.kill().expect("it is there");
    proxy.child.wait().expect("it ends");
}

#[test]
fn process_fault_can_leave_a_child() {
    let mark = format!("BROKEN_AGENT_TEST={}", std::process::id());
    let (name, value) = mark.split_once('=').expect("a name");
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-broken-agent"))
        .args(["--fault", "child_left_behind", "--", "true"])
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    // A child in the middle of `exec` has no environment for a moment: poll until it has one.
    let begun = std::time::Instant::now();
    let left = loop {
        let left = processes_with_variable(mark.as_bytes());
        if !left.is_empty() {
            break left;
        }
        assert!(begun.elapsed().as_secs() < 60, "nothing is left behind");
        std::thread::yield_now();
    };
    assert_eq!(left.len(), 1);
    kill_process(left[0], Signal::KILL).expect("it is there");
}

/// Lists the processes with this variable in their environment.
fn processes_with_variable(mark: &[u8]) -> Vec<Pid> {
    std::fs::read_dir("/proc")
        .expect("processes")
        .filter_map(|process| {
            let process = process.ok()?;
            let pid: i32 = process.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(process.path().join("environ")).ok()?;
            let ours = environment.split(|b| *b == 0).any(|v| v == mark);
            ours.then(|| Pid::from_raw(pid))?
        })
        .collect()
}
