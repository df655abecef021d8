//! Tests that the agents and folders of a runner are gone however the runner ends.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// Agent that ignores the end of stdin and polite signals. It reports its start through a pipe and holds the
/// pipe open while it lives, as does a child in another session.
const DEAF_AGENT: &str =
    "exec 3>PIPE; trap '' TERM INT HUP; echo begun >&3; setsid sleep 1000 & exec sleep 1001";

struct RunnerExit {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    /// Folders that the runner left in its temporary folder.
    folders: Vec<String>,
}

/// Starts the runner, calls `end` once the agent has started, and waits until the agent is gone.
fn run_until_ended_by(end: &dyn Fn(&Child)) -> RunnerExit {
    let top = tempfile::tempdir().expect("a folder");
    let (pipe, tmp) = (top.path().join("pipe"), top.path().join("tmp"));
    fs::create_dir(&tmp).expect("a folder");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let script = DEAF_AGENT.replace("PIPE", &pipe.display().to_string());
    let mut runner = Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .args(["run", "--patience", "600", "--", "sh", "-c", &script])
        .env("TMPDIR", &tmp)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the runner");
    let mut agent = BufReader::new(File::open(&pipe).expect("the agent has begun"));
    let mut line = String::new();
    agent.read_line(&mut line).expect("a line");
    assert_eq!((line.as_str(), names(&tmp).len()), ("begun\n", 1));

    end(&runner);
    let status = runner.wait().expect("its end");
    // The pipe ends when no writer is alive, and stderr when the cleanup is over.
    agent.read_to_string(&mut line).expect("the agent's end");
    let mut left = RunnerExit {
        status,
        stdout: String::new(),
        stderr: String::new(),
        folders: Vec::new(),
    };
    let (stdout, stderr) = (runner.stdout.as_mut(), runner.stderr.as_mut());
    let stdout = stdout.expect("stdout").read_to_string(&mut left.stdout);
    let stderr = stderr.expect("stderr").read_to_string(&mut left.stderr);
    stdout.and(stderr).expect("its words");
    left.folders = names(&tmp);
    left
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

fn signal(name: &str, runner: &Child) {
    let id = runner.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &id]).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn signalled_runner_cleans_up_and_names_the_signal() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let left = run_until_ended_by(&|runner| signal(name, runner));
        assert_eq!(left.status.code(), Some(code), "{name}: {}", left.stderr);
        assert_eq!(left.folders, [""; 0], "{name}");
        // An interrupted run says nothing about the agent.
        let said = format!("acp-conformance: ended by SIG{name}; no report was written\n");
        assert_eq!((left.stdout, left.stderr), (String::new(), said));
    }
}

#[test]
fn killed_runner_leaves_nothing_behind() {
    let left = run_until_ended_by(&|runner| signal("KILL", runner));
    assert_eq!(left.status.signal(), Some(9));
    assert_eq!(left.folders, [""; 0], "{}", left.stderr);
}
