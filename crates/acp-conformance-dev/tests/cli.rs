//! Tests of the command line: messages and exit codes.

use std::process::{Command, Output};

/// Runs the command; returns the exit code, stdout and stderr.
fn run_cli(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance-dev"));
    let Output {
        status,
        stdout,
        stderr,
    } = command.args(arguments).output().expect("the runner");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn mutations_need_no_case_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-conformance-dev"));
    command.args(["mutations", "--agent", "false", "--only", "banner"]);
    let output = command
        .current_dir(folder.path())
        .output()
        .expect("the runner");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The command gets as far as the agent, which does not speak the protocol.
    let why = "acp-conformance-dev: the agent does not answer `initialize`: ";
    assert!(stderr.starts_with(why), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn unknown_fault_or_profile_is_an_error() {
    let mutations = |only: &str| run_cli(&["mutations", "--agent", "cat", "--only", only]);
    let (code, stdout, stderr) = mutations("banner,line_limit_64_kb");
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let why = "acp-conformance-dev: \"line_limit_64_kb\" is no fault; there is line_limit_64_kib";
    assert!(stderr.starts_with(why), "{stderr}");
    let scratch = tempfile::tempdir().expect("a folder");
    let (code, _, stderr) = run_cli(&[
        "scoreboard",
        "--scratch",
        scratch.path().to_str().expect("UTF-8"),
        "--only",
        "gemini-cli,turnry",
    ]);
    let why = "acp-conformance-dev: \"turnry\" is no profile; there is turnery";
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with(why), "{stderr}");
}
