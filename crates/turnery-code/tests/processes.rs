//! Worker processes: cancelled blocks, killed workers, and what is left of them.
//!
//! The tests look at the children of this process, so they run one after the other.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use futures_util::future::BoxFuture;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::json;
use std::{
    fs,
    future::pending,
    io::{Read as _, Write as _},
    process::{Command, Stdio, id},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{Mutex, MutexGuard, oneshot};
use turnery_code::{CallReply, CodeCall, CodeEnd, CodeHost, CodeLimits, CodeOutput, CodeSession};

const WORKER: &str = env!("CARGO_BIN_EXE_turnery-code-worker");
/// Time limit for what must happen at once.
const DEADLINE: Duration = Duration::from_secs(10);

/// Holds back the other tests.
async fn begin() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::const_new(());
    let guard = RUNNING.lock().await;
    turnery_code::use_worker(WORKER);
    assert_eq!(children(), Vec::<i32>::new());
    guard
}

/// Returns the children of this process, zombies included.
fn children() -> Vec<i32> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Ok(pid) = name.to_str().unwrap().parse() else {
            continue;
        };
        // A process may end while it is looked at.
        if let Some([parent, _]) = stat(pid)
            && parent == i32::try_from(id()).unwrap()
        {
            children.push(pid);
        }
    }
    children
}

/// Returns parent and process group of a process.
fn stat(pid: i32) -> Option<[i32; 2]> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(1);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}

/// Returns the only worker.
fn worker() -> i32 {
    let children = children();
    let [pid] = children[..] else {
        panic!("{children:?}");
    };
    pid
}

/// Waits until all workers are gone and reaped.
fn wait_until_childless() {
    let begin = Instant::now();
    while !children().is_empty() {
        assert!(begin.elapsed() < DEADLINE, "{:?}", children());
        thread::yield_now();
    }
}

/// Host that reports once that the code has printed something or called a function. Functions never return.
struct Signaller(Option<oneshot::Sender<()>>);

impl Signaller {
    fn signal(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.send(()).unwrap();
        }
    }
}

impl CodeHost for Signaller {
    fn call<'a>(&'a mut self, _calls: Vec<CodeCall>) -> BoxFuture<'a, CallReply> {
        self.signal();
        Box::pin(pending())
    }

    fn print(&mut self, _text: &str) {
        self.signal();
    }
}

async fn run(session: &mut CodeSession, code: &str) -> CodeOutput {
    session.run(code, &[], &mut Signaller(None)).await
}

async fn check_value(session: &mut CodeSession, code: &str, expected: serde_json::Value) {
    let output = run(session, code).await;
    assert_eq!(output.end, CodeEnd::Completed);
    assert_eq!(output.value, Some(expected));
}

/// Runs code until it prints something or calls a function, then drops the block.
async fn run_until_signal(session: &mut CodeSession, code: &str) {
    let (sender, receiver) = oneshot::channel();
    let mut host = Signaller(Some(sender));
    let functions = ["hang".to_owned()];
    tokio::select! {
        output = session.run(code, &functions, &mut host) => panic!("{output:?}"),
        signal = receiver => signal.unwrap(),
    }
}

#[tokio::test]
async fn session_starts_no_process_before_its_first_block() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    assert_eq!(children(), Vec::<i32>::new());
    run(&mut session, "1").await;
    let first = worker();
    run(&mut session, "2").await;
    assert_eq!(worker(), first);
    drop(session);
    wait_until_childless();
}

#[tokio::test]
async fn dropped_block_kills_the_worker_and_the_next_continues() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    run(&mut session, "x = 1").await;
    for code in [
        "x = 2\nprint('started')\nwhile True:\n    pass",
        "x = 2\nhang()",
        "x = 2\nawait hang()",
    ] {
        let before = worker();
        run_until_signal(&mut session, code).await;
        wait_until_childless();
        check_value(&mut session, "x", json!(1)).await;
        assert_ne!(worker(), before);
    }
    drop(session);
    wait_until_childless();
}

/// A suspended session has no process, unless its variables are in none but it.
#[tokio::test]
async fn suspended_session_has_no_process() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    run(&mut session, "x = 1").await;
    session.suspend();
    wait_until_childless();
    check_value(&mut session, "x", json!(1)).await;
    // Larger than any snapshot that is kept.
    run(&mut session, "big = 'y' * 40_000_000").await;
    let before = worker();
    session.suspend();
    check_value(&mut session, "len(big)", json!(40_000_000)).await;
    assert_eq!(worker(), before);
    drop(session);
    wait_until_childless();
}

/// The kernel refuses the worker's threads nearly all calls.
#[tokio::test]
async fn system_calls_of_all_threads_are_filtered() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    run(&mut session, "x = 1").await;
    let threads = fs::read_dir(format!("/proc/{}/task", worker())).unwrap();
    let modes: Vec<String> = threads
        .map(|thread| {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let mode = status
                .lines()
                .find_map(|line| line.strip_prefix("Seccomp:"));
            mode.unwrap_or_default().trim().to_owned()
        })
        .collect();
    assert_eq!(modes, ["2"; 3]);
    drop(session);
    wait_until_childless();
}

#[tokio::test]
async fn worker_killed_in_a_block_is_replaced() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    run(&mut session, "x = 1").await;
    let pid = Pid::from_raw(worker()).unwrap();
    let (sender, receiver) = oneshot::channel();
    let mut host = Signaller(Some(sender));
    let code = "x = 2\nprint('started')\nwhile True:\n    pass";
    let kill = async {
        receiver.await.unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    };
    let (output, ()) = futures_util::future::join(session.run(code, &[], &mut host), kill).await;
    let reason = "the interpreter failed: it was ended by signal 9".to_owned();
    assert_eq!(output.end, CodeEnd::WorkerFailed(reason));
    assert_eq!(output.text, "started\n");
    check_value(&mut session, "x", json!(1)).await;
    drop(session);
    wait_until_childless();
}

#[tokio::test]
async fn worker_killed_between_blocks_is_replaced() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    run(&mut session, "x = 1").await;
    let pid = Pid::from_raw(worker()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    // Waits for its end without reaping it.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), options).unwrap();
    check_value(&mut session, "x", json!(1)).await;
    drop(session);
    wait_until_childless();
}

#[tokio::test]
async fn stopped_block_leaves_no_process() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits {
        computing_time: Duration::from_millis(100),
        ..CodeLimits::default()
    });
    for code in ["while True:\n    pass", "'a' * 10**10"] {
        let output = run(&mut session, code).await;
        assert!(matches!(output.end, CodeEnd::Stopped(_)), "{output:?}");
        wait_until_childless();
    }
}

#[tokio::test]
async fn worker_has_no_environment_and_its_own_group() {
    let _guard = begin().await;
    let mut session = CodeSession::new(CodeLimits::default());
    run(&mut session, "1").await;
    let pid = worker();
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"");
    assert_eq!(stat(pid).unwrap()[1], pid);
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..]
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(limit("Max core file size"), "0");
    assert_eq!(limit("Max open files"), "0");
    let address_space: u64 = limit("Max address space").parse().unwrap();
    assert!(address_space < 1 << 30, "{address_space}");
    drop(session);
    wait_until_childless();
}

#[tokio::test]
async fn worker_ends_when_the_host_is_gone() {
    let _guard = begin().await;
    let mut child = Command::new(WORKER)
        .arg("--turnery-code-worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let start = json!({"Start": {
        "memory_bytes": 1 << 28, "recursion_depth": 100, "snapshot_bytes": 1000, "has_snapshot": false
    }});
    let code = "print('a' * 100_000)\nwhile True:\n    pass";
    let block = json!({"Run": {"code": code, "functions": []}});
    for message in [start, block] {
        let content = message.to_string();
        let length = u32::try_from(content.len()).unwrap();
        input.write_all(b"M").unwrap();
        input.write_all(&length.to_le_bytes()).unwrap();
        input.write_all(content.as_bytes()).unwrap();
    }
    // "Ready" and the first printed text: the block runs.
    output.read_exact(&mut [0; 1000]).unwrap();
    drop(input);
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(child.wait().unwrap().code()).unwrap());
    assert_eq!(receiver.recv_timeout(DEADLINE), Ok(Some(0)));
    drop(output);
}
