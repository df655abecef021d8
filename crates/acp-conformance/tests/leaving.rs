//! However the runner ends, its agents end with it, and its folders go.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// An agent that hears neither the end of its stdin nor a polite signal. It says in a pipe that it has begun, and
/// holds that open as long as it lives, as does a child in a session of its own.
const DEAF: &str =
    "exec 3>PIPE; trap '' TERM INT HUP; echo begun >&3; setsid sleep 1000 & exec sleep 1001";

struct Left {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    /// What the runner left in its folder for temporary things.
    folders: Vec<String>,
}

/// Start the runner, end it like this as soon as its agent has begun, and wait until the agent is gone.
fn ended_by(end: &dyn Fn(&Child)) -> Left {
    let top = tempfile::tempdir().expect("a folder");
    let (pipe, tmp) = (top.path().join("pipe"), top.path().join("tmp"));
    fs::create_dir(&tmp).expect("a folder");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let script = DEAF.replace("PIPE", &pipe.display().to_string());
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
    // The pipe ends when nobody who could write to it is alive, and stderr when nobody clears up any more.
    agent.read_to_string(&mut line).expect("the agent's end");
    let mut left = Left {
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
fn on_a_signal_the_runner_clears_up_and_says_which_it_was() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let left = ended_by(&|runner| signal(name, runner));
        assert_eq!(left.status.code(), Some(code), "{name}: {}", left.stderr);
        assert_eq!(left.folders, [""; 0], "{name}");
        // A run that was cut off says nothing of the agent.
        let said = format!("acp-conformance: ended by SIG{name}; no report was written\n");
        assert_eq!((left.stdout, left.stderr), (String::new(), said));
    }
}

#[test]
fn a_runner_that_is_killed_leaves_nothing_behind() {
    let left = ended_by(&|runner| signal("KILL", runner));
    assert_eq!(left.status.signal(), Some(9));
    assert_eq!(left.folders, [""; 0], "{}", left.stderr);
}
