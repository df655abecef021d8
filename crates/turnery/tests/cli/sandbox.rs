//! End-to-end tests of the sandbox.

use crate::{
    editor::Editor,
    home::{Home, wait_with_output},
    inspection::may_inspect_all,
};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};
use std::{
    os::{fd::AsRawFd as _, unix::fs::PermissionsExt as _},
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;
use turnery_tools::SandboxSupport;

/// Creates a folder outside the system's temporary folder, so that sandboxed commands cannot write to it.
fn folder_outside_sandbox() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

pub(crate) fn shell_step(args: Value) -> Value {
    json!({"steps": [{"tool_call": {"name": "shell", "args": args}}]})
}

/// Runs one command in mode `auto` and returns everything that turnery prints: the events on stdout, with the
/// command's result among them, and then stderr.
async fn run_in_auto_mode(home: &Home, flags: &[&str], args: Value) -> String {
    let model = home.scripted_model(json!([shell_step(args), {"steps": [{"text": "done"}]}]));
    let run = [
        "run",
        "--mode",
        "auto",
        "--format",
        "stream-json",
        "--model",
        &model,
        "hi",
    ];
    let done = home.run(&[&run[..], flags].concat()).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    format!("{}{}", done.stdout, done.stderr)
}

#[tokio::test]
async fn command_is_confined_unless_the_sandbox_is_off() {
    let is_confining = SandboxSupport::detect().is_usable();
    for (flags, outside, inside) in [
        (&[][..], !is_confining, true),
        (&["--sandbox", "workspace"], !is_confining, true),
        (&["--sandbox", "read-only"], !is_confining, !is_confining),
        (&["--sandbox", "off"], true, true),
    ] {
        let home = Home::new();
        let folder = folder_outside_sandbox();
        let file = folder.path().join("file");
        let command = format!("echo x > inside; echo x > {}", file.display());
        let told = run_in_auto_mode(&home, flags, json!({ "command": command })).await;
        assert_eq!(file.exists(), outside, "{flags:?}: {told}");
        assert_eq!(
            home.project_folder().join("inside").exists(),
            inside,
            "{flags:?}"
        );
        assert_eq!(told.contains("outside_sandbox"), !outside, "{told}");
        assert_eq!(
            told.contains("Commands cannot be confined here"),
            !is_confining && flags != ["--sandbox", "off"]
        );
    }
}

#[tokio::test]
async fn command_reaches_neither_keys_nor_agent() {
    let is_confining = SandboxSupport::detect().is_usable();
    for (sandbox, is_closed) in [("workspace", is_confining), ("off", false)] {
        let home = Home::new();
        home.write_file("turnery/notes", "s3cret");
        home.write_file(".ssh/id_rsa", "s3cret");
        // Its name alone would lead to a permission request.
        home.write_file("project/notes.sh", "cat ../turnery/notes");
        for command in ["sh notes.sh", "cat ../.ssh/id_rsa"] {
            let told = run_in_auto_mode(
                &home,
                &["--sandbox", sandbox],
                json!({ "command": command }),
            )
            .await;
            assert_eq!(told.contains("Permission denied"), is_closed, "{told}");
            assert_eq!(told.contains("s3cret"), !is_closed, "{told}");
        }
    }
}

/// `LD_LIBRARY_PATH=:/opt/x` includes the current folder, and the process that starts commands is not sandboxed.
#[tokio::test]
async fn project_library_is_not_loaded_at_command_start() {
    let home = Home::new();
    for name in ["libgcc_s.so.1", "libc.so.6", "libtinfo.so.6"] {
        home.write_file(format!("project/{name}"), "no library");
    }
    let command = json!({ "command": "ls; echo \"<$LD_LIBRARY_PATH>\"" });
    let model = home.scripted_model(json!([shell_step(command), {"steps": [{"text": "done"}]}]));
    let project = home.project_folder().display().to_string();
    let mut run = home.command(&["run", "--mode", "auto", "--cwd", &project]);
    run.args(["--format", "stream-json", "--model", &model, "hi"])
        .current_dir("/")
        .env("LD_LIBRARY_PATH", ":/opt/none");
    let done = wait_with_output(run.spawn().expect("started")).await;
    assert!(done.stdout.contains("libgcc_s.so.1\\n"), "{done:?}");
    assert!(done.stdout.contains("</opt/none>"), "{done:?}");
}

/// The configuration may name a key file anywhere.
#[tokio::test]
async fn key_file_of_a_provider_is_closed_to_commands() {
    let is_confining = SandboxSupport::detect().is_usable();
    for (sandbox, is_closed) in [("workspace", is_confining), ("off", false)] {
        let home = Home::new();
        let folder = folder_outside_sandbox();
        let key = folder.path().join("key");
        std::fs::write(&key, "s3cret").expect("a file");
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&key, mode).expect("a file");
        let config = format!("[providers.openai]\nkey_file = \"{}\"\n", key.display());
        home.write_file("turnery/config.toml", &config);
        home.write_file("project/key.sh", &format!("cat {}", key.display()));
        let flags = ["--sandbox", sandbox];
        let read = run_in_auto_mode(&home, &flags, json!({ "command": "sh key.sh" })).await;
        assert_eq!(read.contains("s3cret"), !is_closed, "{read}");
        // Like turnery's own files, it is never changed without asking, in any mode.
        let write = json!({ "command": format!("echo x > {}", key.display()) });
        run_in_auto_mode(&home, &flags, write).await;
        let content = std::fs::read_to_string(&key).expect("a file");
        assert_eq!(content, "s3cret");
    }
}

/// The policy does not know what a program reads.
#[tokio::test]
async fn file_hidden_by_rule_is_closed_to_programs() {
    let is_confining = SandboxSupport::detect().is_usable();
    let home = Home::new();
    let folder = folder_outside_sandbox();
    let file = folder.path().join("file");
    std::fs::write(&file, "s3cret").expect("a file");
    home.write_file("project/sub/.env", "s3cret");
    let outside = format!("read({})", file.display());
    let all = format!("all:\n\tcat sub/.env\noutside:\n\tcat {}\n", file.display());
    home.write_file("project/Makefile", &all);
    for (sandbox, rule, command, is_closed) in [
        ("off", outside.as_str(), "make outside", false),
        ("workspace", &outside, "make outside", is_confining),
        ("workspace", "read(**/.env)", "make", false),
        ("read-only", "read(**/.env)", "make", is_confining),
    ] {
        let flags = ["--sandbox", sandbox, "--deny", rule];
        let told = run_in_auto_mode(&home, &flags, json!({ "command": command })).await;
        assert_eq!(told.contains("Permission denied"), is_closed, "{told}");
        assert_eq!(told.contains("s3cret"), !is_closed, "{told}");
    }
}

/// Environment variables may move key files, but files inside the project stay accessible.
#[tokio::test]
async fn keys_at_environment_paths_are_closed() {
    let is_confining = SandboxSupport::detect().is_usable();
    let home = Home::new();
    let folder = folder_outside_sandbox();
    let keys = [
        ("CARGO_HOME", "cargo", "cargo/credentials.toml"),
        ("CLAUDE_CONFIG_DIR", "claude", "claude/.credentials.json"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "google", "google"),
        ("HISTFILE", "history", "history"),
        ("KUBECONFIG", "kube", "kube"),
        ("MYSQL_HOME", "mysql", "mysql/.my.cnf"),
        ("RCLONE_CONFIG", "rclone", "rclone"),
        ("XDG_CONFIG_HOME", "config", "config/gh/hosts"),
        ("SOPS_AGE_KEY_FILE", "age", "age"),
        ("XDG_DATA_HOME", "data", "data/atuin/key"),
        ("XDG_RUNTIME_DIR", "run", "run/containers/auth.json"),
        ("ZDOTDIR", "zsh", "zsh/.zsh_history"),
        ("NETRC", "with:colon", "with:colon"),
        // Relative to the project, and through the home folder, below.
        ("AWS_CONFIG_FILE", "relative", "relative"),
        ("BOTO_CONFIG", "of_home", "of_home"),
    ];
    let names = keys.map(|(_, _, key)| key);
    let command = format!(
        "cd {}; cat {}; cat open; cat $OLDPWD/pgpass; touch $OLDPWD/new",
        folder.path().display(),
        names.join(" ")
    );
    for name in names.iter().chain(&["open"]) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, format!("content of {name}.")).expect("a file");
    }
    home.write_file("project/pgpass", "content of pgpass.");
    let from = |place: &Path, name: &str| {
        let place = place.canonicalize().expect("a folder");
        let up: PathBuf = place.components().skip(1).map(|_| "..").collect();
        let folder = folder.path().canonicalize().expect("a folder");
        up.join(folder.strip_prefix("/").expect("an absolute path"))
            .join(name)
    };
    for (sandbox, is_closed) in [("workspace", is_confining), ("off", false)] {
        let args = shell_step(json!({ "command": command }));
        let model = home.scripted_model(json!([args, {"steps": [{"text": "done"}]}]));
        let mut run = home.command(&["run", "--mode", "auto", "--sandbox", sandbox]);
        run.args(["--format", "stream-json", "--model", &model, "hi"])
            .envs(keys.map(|(variable, place, _)| (variable, folder.path().join(place))))
            .env("PGPASSFILE", home.project_folder().join("pgpass"))
            .env("AWS_CONFIG_FILE", from(&home.project_folder(), "relative"))
            .env(
                "BOTO_CONFIG",
                Path::new("~").join(from(&home.project_folder().join(".."), "of_home")),
            );
        let told = wait_with_output(run.spawn().expect("started")).await;
        for key in names {
            let said = told.stdout.contains(&format!("content of {key}."));
            assert_eq!(said, !is_closed, "{key}: {told:?}");
        }
        assert!(
            told.stdout.contains("content of open.content of pgpass."),
            "{told:?}"
        );
        assert!(home.project_folder().join("new").exists(), "{told:?}");
    }
}

/// The repository around the project is readable, unless it is the home folder, by whatever path.
#[tokio::test]
async fn home_folder_that_is_a_repository_is_not_read() {
    let is_confining = SandboxSupport::detect().is_usable();
    let home = Home::new();
    let folder = folder_outside_sandbox();
    let person = folder.path().join("real/ann");
    let project = person.join("work/project");
    std::fs::create_dir_all(&project).expect("a folder");
    std::fs::write(person.join("other"), "content of other.").expect("a file");
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(&person)
        .status();
    assert!(git.expect("git").success());
    std::os::unix::fs::symlink("real", folder.path().join("linked")).expect("a link");
    for (sandbox, is_closed) in [("read-only", is_confining), ("off", false)] {
        for name in ["real", "linked"] {
            let args = shell_step(json!({ "command": "cat ~/other" }));
            let model = home.scripted_model(json!([args, {"steps": [{"text": "done"}]}]));
            let mut run = home.command(&["run", "--mode", "auto", "--sandbox", sandbox]);
            run.args(["--format", "stream-json", "--model", &model, "hi"])
                .env("HOME", folder.path().join(name).join("ann"))
                .current_dir(&project);
            let told = wait_with_output(run.spawn().expect("started")).await;
            let said = told.stdout.contains("content of other.");
            assert_eq!(said, !is_closed, "{sandbox} {name}: {told:?}");
        }
    }
}

/// The agent is the parent of the supervisor, which is the parent of the shell.
#[tokio::test]
async fn command_cannot_read_the_agents_environment_or_signal_it() {
    let support = SandboxSupport::detect();
    let agent = "agent=$(awk '/^PPid/ {print $2}' /proc/$PPID/status)";
    let environment = format!("{agent}; tr '\\0' ' ' < /proc/$agent/environ");
    let signal = format!("{agent}; kill -0 $agent && echo reached");
    for (sandbox, confines) in [("workspace", support.is_usable()), ("off", false)] {
        let home = Home::new();
        let flags = ["--sandbox", sandbox];
        let read = run_in_auto_mode(&home, &flags, json!({ "command": environment })).await;
        let is_readable = !confines && may_inspect_all();
        assert_eq!(read.contains("TURNERY_HOME="), is_readable, "{read}");
        let signalled = run_in_auto_mode(&home, &flags, json!({ "command": signal })).await;
        let is_refused = confines && support.landlock >= Some(6);
        assert_eq!(signalled.contains("reached\\n"), !is_refused, "{signalled}");
    }
}

/// Joins the process group of a process, adds a stopped process and orphans the group; the kernel then sends
/// SIGHUP to the whole group.
const HANG_UP: &str = r#"
import os, signal, sys
group = os.getpgid(int(sys.argv[1]))
reader, writer = os.pipe()
joined = os.fork()
if joined == 0:
    try:
        os.setpgid(0, group)
        os.write(writer, b"j")
        signal.pause()
    except PermissionError:
        os.write(writer, b"r")
    os._exit(0)
if os.read(reader, 1) == b"r":
    sys.exit("refused")
if os.fork() == 0:
    stopped = os.fork()
    if stopped == 0:
        os.setpgid(0, group)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(stopped, os.WUNTRACED)
    os.setsid()
    os.write(writer, b"s")
    signal.pause()
os.read(reader, 1)
os.kill(joined, signal.SIGKILL)
os.waitpid(joined, 0)
"#;

/// Only the command's processes keep the agent's group from being orphaned, as below `setsid`, `nohup` and
/// services.
#[tokio::test]
async fn command_cannot_join_the_agents_group_and_hang_it_up() {
    if !SandboxSupport::detect().is_usable() {
        return;
    }
    let home = Home::new();
    home.write_file("project/hang_up.py", HANG_UP);
    let agent = "$(awk '/^PPid/ {print $2}' /proc/$PPID/status)";
    let command = json!({ "command": format!("python3 hang_up.py {agent}") });
    let model = home.scripted_model(json!([shell_step(command), {"steps": [{"text": "done"}]}]));
    let run = ["run", "--mode", "auto", "--sandbox", "workspace"];
    let output = ["--format", "stream-json", "--model", &model, "hi"];
    let run = home.command(&[&run[..], &output].concat());
    let run = run.as_std();
    let mut session = Command::new("setsid");
    session
        .arg(run.get_program())
        .args(run.get_args())
        .current_dir(home.project_folder())
        .env_clear()
        .envs(
            run.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let done = wait_with_output(session.spawn().expect("started")).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("refused"), "{done:?}");
}

/// A command reaches a server on this machine only where the user's configuration opens the network.
#[tokio::test]
async fn command_reaches_the_network_only_if_configured() {
    let is_confining = SandboxSupport::detect().is_usable();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let command = format!(": <> /dev/tcp/127.0.0.1/{port}");
    for (sandbox, config, is_closed) in [
        ("workspace", "", is_confining),
        ("workspace", "sandbox_network = false", is_confining),
        ("workspace", "sandbox_network = true", false),
        ("off", "", false),
    ] {
        let home = Home::new();
        home.write_file("turnery/config.toml", config);
        let told = run_in_auto_mode(
            &home,
            &["--sandbox", sandbox],
            json!({ "command": command }),
        )
        .await;
        // The command has ended, so the connection is in the listener's queue or was never made.
        assert_eq!(listener.accept().is_err(), is_closed, "{config}: {told}");
        let is_refused = told.contains("Operation not permitted");
        assert_eq!(is_refused, is_closed, "{config}: {told}");
    }
}

/// Inherited file descriptors must be closed: the sandbox does not check files that are already open.
#[tokio::test]
async fn inherited_descriptor_is_not_passed_to_command() {
    for sandbox in ["workspace", "read-only", "off"] {
        let home = Home::new();
        let key = home.write_file(".ssh/id_rsa", "s3cret");
        let key = std::fs::File::open(key).expect("a file");
        fcntl_setfd(&key, FdFlags::empty()).expect("inherited");
        let command = format!("echo began; cat <&{}", key.as_raw_fd());
        let told = run_in_auto_mode(
            &home,
            &["--sandbox", sandbox],
            json!({ "command": command }),
        )
        .await;
        assert!(told.contains("began"), "{told}");
        assert!(told.contains("Bad file descriptor"), "{told}");
        assert!(!told.contains("s3cret"), "{told}");
    }
}

/// One command creates links at paths that the environment names; the next one writes through them.
#[tokio::test]
async fn folders_named_by_environment_widen_nothing() {
    for (sandbox, is_closed) in [
        ("workspace", SandboxSupport::detect().is_usable()),
        ("off", false),
    ] {
        let home = Home::new();
        let folder = folder_outside_sandbox();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(path("bin")).expect("a folder");
        std::fs::write(path("bin/git"), "program").expect("a file");
        std::fs::create_dir(home.project_folder().join("tmp")).expect("a folder");
        let link = format!(
            "mkdir tools; for i in git registry pkg bin; do ln -s {0} tools/$i; done; rmdir tmp; ln -s {0} tmp",
            folder.path().display()
        );
        let write = format!("echo x >> {}; echo x > {}", path("bin/git"), path("new"));
        // If `TMPDIR` points elsewhere, a command gets its own folder for temporary files.
        let scratch = "cd $TMPDIR && pwd -P".to_owned();
        let steps = [link, write, scratch].map(|it| shell_step(json!({ "command": it })));
        let [first, second, third] = steps;
        let model =
            home.scripted_model(json!([first, second, third, {"steps": [{"text": "done"}]}]));
        let mut run = home.command(&["run", "--mode", "auto", "--sandbox", sandbox]);
        run.args(["--format", "stream-json", "--model", &model, "hi"]);
        let tools = home.project_folder().join("tools");
        for name in ["CARGO_HOME", "GOPATH", "VIRTUAL_ENV"] {
            run.env(name, &tools);
        }
        let inherited = std::env::var("PATH").expect("a path");
        run.env("TMPDIR", home.project_folder().join("tmp"))
            .env("PATH", format!("{inherited}:{}", path("bin")));
        let done = wait_with_output(run.spawn().expect("started")).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        let program = std::fs::read_to_string(path("bin/git")).expect("a file");
        assert_eq!(program == "program", is_closed, "{done:?}");
        assert_eq!(!folder.path().join("new").exists(), is_closed, "{done:?}");
        let made = format!("{}/turnery-", folder.path().display());
        assert!(!done.stdout.contains(&made), "{done:?}");
        assert_eq!(done.stdout.contains("/turnery-"), is_closed, "{done:?}");
    }
}

/// Without a user to ask, a command that requests to leave the sandbox is refused, also in mode `auto`.
#[tokio::test]
async fn command_outside_sandbox_needs_user_approval() {
    let is_confining = SandboxSupport::detect().is_usable();
    let home = Home::new();
    let args = json!({ "command": "touch made", "outside_sandbox": "why not" });
    let told = run_in_auto_mode(&home, &["--sandbox", "workspace"], args).await;
    assert_eq!(
        home.project_folder().join("made").exists(),
        !is_confining,
        "{told}"
    );
}

#[tokio::test]
async fn misspelt_sandbox_flag_lists_choices() {
    let home = Home::new();
    let done = home.run(&["run", "--sandbox", "workspce", "hi"]).await;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.stderr
            .contains("write \"workspace\" (or off, read-only)"),
        "{done:?}"
    );
}

#[tokio::test]
async fn session_reports_sandbox() {
    let confined = match SandboxSupport::detect().is_usable() {
        true => "Commands write only to this session's folders, ",
        false => "Commands cannot be confined here: ",
    };
    for (sandbox, expected) in [
        ("workspace", confined),
        ("off", "Commands are not confined: the sandbox is off."),
    ] {
        let home = Home::new();
        let mut editor = Editor::spawn(&home, &["acp", "--sandbox", sandbox], &[]);
        editor.initialize().await;
        let params = json!({ "cwd": home.project_folder(), "mcpServers": [] });
        let made = editor.request(1, "session/new", params).await;
        let said = made["result"]["_meta"]["turnery"]["sandbox"].as_str();
        assert!(said.is_some_and(|it| it.starts_with(expected)), "{made}");
        // Displayed where the user chooses the mode.
        let mode = made["result"]["configOptions"][0]["description"].as_str();
        assert!(mode.is_some_and(|it| it.contains(expected)), "{made}");
        let args = [
            "run",
            "--format",
            "json",
            "--sandbox",
            sandbox,
            "--model",
            "offline",
            "hi",
        ];
        let ran = home.run(&args).await;
        let said = &ran.stdout_json()["sandbox"];
        let said = said.as_str().is_some_and(|it| it.starts_with(expected));
        assert!(said, "{ran:?}");
    }
}

#[tokio::test]
async fn tool_list_reports_sandbox() {
    let done = Home::new().run(&["tool", "list"]).await;
    let expected = match SandboxSupport::detect().is_usable() {
        true => "Commands are confined by ",
        false => "Commands cannot be confined here: ",
    };
    assert!(done.stdout.contains(expected), "{done:?}");
}

#[tokio::test]
async fn key_like_variable_is_passed_only_by_pass_env() {
    let home = Home::new();
    let command = json!({ "command": "echo \"<$DATABASE_URL>\" > seen" });
    let model = home.scripted_model(json!([shell_step(command), {"steps": [{"text": "done"}]}]));
    for (config, project, seen) in [
        ("", "", "<>\n"),
        ("", "pass_env = [\"DATABASE_URL\"]", "<>\n"),
        ("pass_env = [\"DATABASE_URL\"]", "", "<postgres://x>\n"),
    ] {
        home.write_file("turnery/config.toml", config);
        home.write_file("project/.turnery/config.toml", project);
        let run = home
            .command(&["run", "--mode", "auto", "--model", &model, "hi"])
            .env("DATABASE_URL", "postgres://x")
            .spawn();
        let done = wait_with_output(run.expect("started")).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        let found = std::fs::read_to_string(home.project_folder().join("seen")).expect("it ran");
        assert_eq!(found, seen, "{config:?} {project:?}");
    }
}

#[tokio::test]
async fn direct_tool_call_is_confined_as_configured() {
    let is_confining = SandboxSupport::detect().is_usable();
    for (config, project, is_confined) in [
        ("", "", is_confining),
        ("sandbox = \"off\"", "", false),
        ("sandbox = \"off\"", "sandbox = \"workspace\"", is_confining),
    ] {
        let home = Home::new();
        home.write_file("turnery/config.toml", config);
        home.write_file("project/.turnery/config.toml", project);
        let folder = folder_outside_sandbox();
        let file = folder.path().join("file");
        let command = format!("echo x > inside; echo x > {}", file.display());
        let args = json!({ "command": command }).to_string();
        let done = home.run(&["tool", "call", "shell", &args]).await;
        assert!(home.project_folder().join("inside").exists(), "{done:?}");
        assert_eq!(file.exists(), !is_confined, "{config} {project}: {done:?}");
    }
}
