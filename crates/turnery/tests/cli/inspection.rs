//! Other processes of the same user cannot inspect the agent.

use crate::{
    editor::Editor,
    home::{Home, wait_with_output},
};
use rustix::{
    process::geteuid,
    thread::{CapabilitySet, capabilities},
};
use std::{fs, os::unix::fs::chown, process::Stdio};
use tokio::process::Command;

/// User and group that replace root, whose processes may inspect any other.
const NOBODY: u32 = 65_534;

/// Returns true if unconfined processes of this user may inspect the agent although it is undumpable, as root's
/// usually may.
pub(crate) fn may_inspect_all() -> bool {
    capabilities(None).is_ok_and(|it| it.effective.contains(CapabilitySet::SYS_PTRACE))
}

/// Returns the command such that it runs as an ordinary user even if the tests run as root.
fn as_ordinary_user(mut command: Command) -> Command {
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Tries, as an ordinary user, to read the environment of a process and to open its memory; returns stdout
/// and stderr.
async fn inspect(pid: u32) -> String {
    let line = format!("cat /proc/{pid}/environ; : < /proc/{pid}/mem && echo opened");
    let mut shell = as_ordinary_user(Command::new("sh"));
    shell
        .args(["-c", &line])
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let done = wait_with_output(shell.spawn().expect("started")).await;
    format!("{}{}", done.stdout, done.stderr)
}

#[tokio::test]
async fn same_user_cannot_inspect_the_agent() {
    let home = Home::new();
    let folder = home.project_folder().with_file_name("");
    // The user needs no access to the folder of the build.
    let program = folder.join("program");
    fs::copy(env!("CARGO_BIN_EXE_turnery"), &program).expect("copied");
    if geteuid().is_root() {
        for path in [&folder, &home.project_folder()] {
            chown(path, Some(NOBODY), Some(NOBODY)).expect("owned");
        }
    }
    let configured = home.command(&[]);
    let start = |program: &std::ffi::OsStr, args: &[&str]| {
        let mut command = as_ordinary_user(Command::new(program));
        command
            .args(args)
            .current_dir(home.project_folder())
            .env_clear()
            .envs(
                configured
                    .as_std()
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("OPENAI_API_KEY", "s3cret")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Editor::spawn_command(command)
    };
    let mut agent = start(program.as_os_str(), &["acp"]);
    agent.initialize().await;
    let read = inspect(agent.child.id().expect("running")).await;
    assert!(
        !read.contains("s3cret") && !read.contains("opened"),
        "{read}"
    );
    assert_eq!(
        read.to_lowercase().matches("permission denied").count(),
        2,
        "{read}"
    );
    // Control: another program of the user can be inspected.
    let mut other = start("sh".as_ref(), &["-c", "echo '{}'; read x"]);
    let output = other.output.as_mut().expect("open");
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(output, &mut line)
        .await
        .expect("it runs");
    let read = inspect(other.child.id().expect("running")).await;
    assert!(read.contains("OPENAI_API_KEY=s3cret"), "{read}");
}
