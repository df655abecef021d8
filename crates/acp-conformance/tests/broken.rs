//! The broken agent as a process: without a fault it is the agent behind it, to the byte.

use acp_conformance::{broken::recordings, faults::Way};
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

/// Start a shell script behind the proxy.
fn start(options: &[&str], script: &str) -> Proxy {
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

    /// Close its stdin and hear it out.
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

/// Wait until no process has this id.
fn gone(pid: &str) {
    let pid = Pid::from_raw(pid.trim().parse().expect("an id")).expect("an id");
    while test_kill_process(pid).is_ok() {
        std::thread::yield_now();
    }
}

#[test]
fn every_byte_passes_and_so_do_the_end_and_the_status() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300_001).collect();
    for options in [&[][..], &["--fault", "cancel_lost"][..]] {
        let mut proxy = start(options, "cat; exit 3");
        let mut stdin = proxy.stdin.take().expect("stdin");
        let sent = bytes.clone();
        let writer = std::thread::spawn(move || stdin.write_all(&sent));
        assert_eq!(proxy.rest(), bytes, "{options:?}");
        writer.join().expect("it writes").expect("it is read");
        assert_eq!(proxy.code(), Some(3));
    }
}

#[test]
fn a_part_of_a_line_passes_at_once() {
    let mut proxy = start(&[], "head -c 3; exit 0");
    proxy.write(b"abc");
    let mut three = [0; 3];
    let stdout = proxy.stdout.as_mut().expect("stdout");
    stdout.read_exact(&mut three).expect("three bytes");
    assert_eq!(&three, b"abc");
    assert_eq!(proxy.code(), Some(0));
}

#[test]
fn sigterm_is_handed_on_and_a_death_by_a_signal_is_told() {
    let script = "trap 'echo told; exit 4' TERM; echo ready; while :; do read x || exit 9; done";
    let mut proxy = start(&[], script);
    assert_eq!(proxy.line(), "ready\n");
    kill_process(proxy.pid(), Signal::TERM).expect("it is there");
    // A shell that waits in `read` hears of it at the next line at the latest; one that heard of
    // it before is gone and reads no line.
    let _ = proxy
        .stdin
        .as_mut()
        .expect("stdin is open")
        .write_all(b"\n");
    assert_eq!(proxy.line(), "told\n");
    assert_eq!(proxy.code(), Some(4));

    let mut proxy = start(&[], "kill -KILL $$");
    assert_eq!(proxy.code(), Some(128 + 9));
}

#[test]
fn the_agent_dies_with_the_proxy() {
    let mut proxy = start(
        &[],
        "echo $$; while read x; do :; done; while :; do :; done",
    );
    let agent = proxy.line();
    proxy.child.kill().expect("it is there");
    proxy.child.wait().expect("it ends");
    gone(&agent);
}

#[test]
fn an_agent_that_nobody_hears_is_told_so() {
    let mut proxy = start(&[], "read x; while echo x; do :; done");
    drop(proxy.stdout.take());
    proxy.write(b"go\n");
    // It was killed by SIGPIPE.
    assert_eq!(proxy.code(), Some(128 + 13));
}

#[test]
fn an_agent_can_go_on_when_nobody_hears_it() {
    let script = "read x; echo one; echo two; echo three; read y; exit 7";
    let mut proxy = start(&["--fault", "outlives_its_stdout"], script);
    drop(proxy.stdout.take());
    proxy.write(b"go\nstop\n");
    assert_eq!(proxy.code(), Some(7));
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#;
const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}"#;
const PROMPT: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[]}}\n";

#[test]
fn a_fault_sits_between() {
    let script = format!("read x; echo '{UPDATE}'; echo '{ANSWER}'; read x");
    let mut proxy = start(&["--fault", "late_update"], &script);
    proxy.write(PROMPT);
    assert_eq!(proxy.line().trim_end(), ANSWER);
    assert!(proxy.line().contains("agent_message_chunk"));
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(1));
}

#[test]
fn lines_written_together_arrive_in_order_with_what_the_fault_adds() {
    let mut proxy = start(&["--fault", "idle_cancel_poisons"], "cat");
    let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    proxy.write(&[cancel.as_bytes(), b"\n", PROMPT, b"a line\n"].concat());
    assert_eq!(proxy.line().trim_end(), cancel);
    assert_eq!(proxy.line().as_bytes(), PROMPT);
    assert_eq!(proxy.line().trim_end(), cancel);
    assert_eq!(proxy.line(), "a line\n");
}

#[test]
fn an_unknown_fault_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-broken-agent"))
        .args(["--fault", "nonsense", "--", "cat"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nonsense"));
}

#[test]
fn what_passed_is_written_down() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let mut proxy = start(
        &["--record", &path],
        "read x; echo \"heard $x\"; cat >/dev/null; echo",
    );
    proxy.write(b"one\n");
    assert_eq!(proxy.line(), "heard one\n");
    proxy.write(b"two");
    assert_eq!(proxy.rest(), b"\n");
    proxy.code();
    let recorded = recordings(folder.path()).expect("a recording");
    assert_eq!(recorded.len(), 1);
    let of = |way| {
        let lines = recorded[0].iter().filter(move |(to, _)| *to == way);
        lines.map(|(_, line)| line.as_slice()).collect::<Vec<_>>()
    };
    assert_eq!(of(Way::ToClient), [&b"heard one\n"[..], b"\n"]);
    assert_eq!(of(Way::ToAgent).first(), Some(&&b"one\n"[..]));
}

#[test]
fn processes_can_begin_and_end_wrongly() {
    let mut proxy = start(&["--fault", "banner"], "cat");
    assert_eq!(proxy.line(), "Welcome to the broken agent!\n");
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(0));

    let mut proxy = start(&["--fault", "farewell_on_stdout"], "cat");
    proxy.write(b"hi\n");
    assert_eq!(proxy.rest(), b"hi\nGoodbye!\n");
    assert_eq!(proxy.code(), Some(0));

    let mut proxy = start(&["--fault", "exit_status_1"], "cat");
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(1));

    let mut proxy = start(
        &["--fault", "end_kills_at_once"],
        "while read x; do :; done; while :; do :; done",
    );
    assert_eq!(proxy.rest(), b"");
    assert_eq!(proxy.code(), Some(0));
}

#[test]
fn a_process_can_stay_when_it_should_go() {
    let mut proxy = start(&["--fault", "stays_after_eof"], "echo $$; cat");
    let agent = proxy.line();
    proxy.stdin = None;
    gone(&agent);
    assert_eq!(proxy.child.try_wait().expect("it can be asked"), None);
    proxy.child.kill().expect("it is there");
    proxy.child.wait().expect("it ends");

    let script = "trap 'echo told' TERM; echo ready; while read x; do echo \"$x\"; done";
    let mut proxy = start(&["--fault", "deaf_to_sigterm"], script);
    assert_eq!(proxy.line(), "ready\n");
    kill_process(proxy.pid(), Signal::TERM).expect("it is there");
    proxy.write(b"still here\n");
    assert_eq!(proxy.line(), "still here\n");
    proxy.child.kill().expect("it is there");
    proxy.child.wait().expect("it ends");
}

#[test]
fn a_child_can_be_left_behind() {
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
    // A child in the middle of `exec` has no environment for a moment: look until it has one.
    let begun = std::time::Instant::now();
    let left = loop {
        let left = marked(mark.as_bytes());
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
fn marked(mark: &[u8]) -> Vec<Pid> {
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
