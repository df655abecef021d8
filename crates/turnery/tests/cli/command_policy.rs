//! End-to-end tests that shell commands run exactly as the policy understood them, without code of the
//! project.

use crate::{
    home::{Home, wait_with_output},
    sandbox::shell_step,
};
use serde_json::json;
use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Runs a prompt whose model calls `shell` with `command`, in mode `ask` and with these environment variables
/// for turnery; returns stdout and stderr.
async fn run_in_ask_mode<const N: usize>(
    home: &Home,
    command: &str,
    variables: [(&str, &std::ffi::OsStr); N],
) -> String {
    let command = json!({ "command": command });
    let model = home.scripted_model(json!([shell_step(command), {"steps": [{"text": "done"}]}]));
    let args = ["run", "--format", "stream-json", "--model", &model, "hi"];
    let mut turnery = home.command(&args);
    let done = wait_with_output(turnery.envs(variables).spawn().expect("started")).await;
    format!("{}{}", done.stdout, done.stderr)
}

#[tokio::test]
async fn command_in_gbk_locale_needs_permission() {
    for (locale, is_asked) in [("C.UTF-8", false), ("zh_CN.GBK", true)] {
        let home = Home::new();
        let told = run_in_ask_mode(&home, "echo é", [("LC_ALL", locale.as_ref())]).await;
        assert_eq!(!told.contains("exit code: 0"), is_asked, "{told}");
    }
}

/// A command starts in the real path of the project, even if `PWD` names a symbolic link to it; otherwise
/// `..` could mean another folder than the policy assumed.
#[tokio::test]
async fn inherited_pwd_link_is_not_used() {
    let home = Home::new();
    let link = home.project_folder().with_file_name("link");
    std::os::unix::fs::symlink(home.project_folder(), &link).expect("a link");
    let told = run_in_ask_mode(&home, "pwd", [("PWD", link.as_os_str())]).await;
    let real = home.project_folder().canonicalize().expect("a folder");
    assert!(told.contains(real.to_str().expect("a name")), "{told}");
    assert!(!told.contains(link.to_str().expect("a name")), "{told}");
}

/// A read-only command runs no programs of the project that `PATH` has (here for the helper of a version
/// manager's shim), and no `BASH_ENV` file of the project.
#[tokio::test]
async fn read_only_commands_load_no_project_code() {
    let home = Home::new();
    home.write_file("tools/python3", "#!/bin/sh\nhelper || echo none\n");
    home.write_file("project/bin/helper", "#!/bin/sh\necho of the project\n");
    home.write_file("project/env.sh", "echo of the project\n");
    let top = home.project_folder().with_file_name("");
    for script in ["tools/python3", "project/bin/helper"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(top.join(script), mode).expect("executable");
    }
    let folders = [home.project_folder().join("bin"), top.join("tools")];
    let system = ["/usr/bin", "/bin"].map(PathBuf::from);
    let path = std::env::join_paths(folders.iter().chain(&system)).expect("a path");
    let file = home.project_folder().join("env.sh");
    let variables = [("PATH", path.as_os_str()), ("BASH_ENV", file.as_os_str())];
    let told = run_in_ask_mode(&home, "python3 --version", variables).await;
    assert!(!told.contains("of the project"), "{told}");
    assert!(told.contains("none"), "{told}");
}

/// Commands allowed by a rule run the system's `bash`, `git` and `gpg`, not programs with these names that
/// the project puts first in `PATH`, and no `BASH_ENV` file.
#[tokio::test]
async fn command_allowed_by_rule_runs_no_project_program() {
    let home = Home::new();
    home.write_file(
        "turnery/config.toml",
        "sandbox = \"off\"\nallow = [\"shell(git commit:+)\", \"shell(touch made)\"]\n",
    );
    home.write_file("project/env.sh", ": > marked\n");
    for program in ["bash", "git", "gpg"] {
        let script = home.write_file(
            format!("project/node_modules/.bin/{program}"),
            "#!/bin/sh\n: > marked\n",
        );
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(script, mode).expect("executable");
    }
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let git = git.args(args).current_dir(home.project_folder());
        assert!(git.status().expect("git").success());
    };
    git(&["init", "-q"]);
    git(&["config", "commit.gpgSign", "true"]);
    let inside = home.project_folder().join("node_modules/.bin");
    for folder in [inside.as_path(), Path::new("node_modules/.bin")] {
        let path = [folder, Path::new("/usr/bin"), Path::new("/bin")];
        let path = std::env::join_paths(path).expect("a path");
        for command in ["git commit --allow-empty -m x", "touch made"] {
            let variables = [("PATH", path.as_os_str()), ("BASH_ENV", "env.sh".as_ref())];
            let told = run_in_ask_mode(&home, command, variables).await;
            assert!(told.contains("exit code"), "{command}: {told}");
            assert!(
                !home.project_folder().join("marked").exists(),
                "{command}: {told}"
            );
        }
    }
}
