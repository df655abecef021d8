//! Tests of the shell tool with a sandbox: permission, confinement, and hints for the model.

use super::test_support::{ShellFixture, envelope_text};
use crate::{
    Access, CommandLineLimits, GitSettings, HiddenFiles, Judgement, Mode, Policy, SandboxMode,
    SandboxSettings, SandboxSupport, Tool, Workspace,
};
use serde_json::{Value, json};
use std::{os::unix::ffi::OsStrExt as _, path::PathBuf, sync::Arc};
use turnery_engine::{Artifact, Content};

fn settings(mode: SandboxMode) -> SandboxSettings {
    SandboxSettings {
        mode,
        ..SandboxSettings::default()
    }
}

/// Creates a shell with this sandbox mode.
fn sandboxed_shell(mode: SandboxMode) -> ShellFixture {
    let mut trial = ShellFixture::new();
    let workspace = Workspace::clone(&trial.cx.workspace).with_sandbox(settings(mode));
    trial.cx.workspace = Arc::new(workspace);
    trial
}

/// Creates a file that no command can write in a sandbox.
fn file_outside_roots() -> (tempfile::TempDir, PathBuf) {
    let folder = crate::sandbox::temp_folder_outside_sandbox();
    let file = folder.path().join("file");
    (folder, file)
}

#[tokio::test]
async fn refused_command_suggests_outside_sandbox() {
    for (mode, writes) in [
        (SandboxMode::Off, true),
        (SandboxMode::Workspace, false),
        (SandboxMode::ReadOnly, false),
    ] {
        let (_folder, file) = file_outside_roots();
        let trial = sandboxed_shell(mode);
        let is_confined = trial.cx.workspace.sandbox().is_active();
        let (envelope, _) = trial
            .run(json!({ "command": format!("echo x > {}", file.display()) }))
            .await;
        assert_eq!(file.exists(), writes || !is_confined, "{mode:?}");
        let said = envelope_text(&envelope);
        assert_eq!(
            said.contains("sandbox: this may have failed because the command was confined"),
            !writes && is_confined,
            "{said}"
        );
        assert_eq!(said.contains("outside_sandbox"), !writes && is_confined);
    }
}

/// The hint that follows when a command that may write was refused.
const HINT: &str = "sandbox: this may have failed because the command was confined: it could write only to the session's folders, temporary folders and caches, and read no keys, and had no network. If it needs more, call again with outside_sandbox and the reason; the user is asked then";

/// The kernel does not report what it refused: the hint follows from the words that the program prints.
#[tokio::test]
async fn refused_key_socket_and_signal_suggest_outside_sandbox() {
    let support = SandboxSupport::detect();
    let (folder, key) = file_outside_roots();
    std::fs::write(&key, "s3cret").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let confines = support.is_usable();
    let confines_signals = confines && support.landlock >= Some(6);
    for (line, is_confined) in [
        (format!("cat {}", key.display()), confines),
        (format!("exec 3<>/dev/tcp/127.0.0.1/{port}"), confines),
        (format!("kill -0 {}", std::process::id()), confines_signals),
    ] {
        for (mode, is_refused) in [
            (SandboxMode::Off, false),
            (SandboxMode::Workspace, is_confined),
        ] {
            let settings = SandboxSettings {
                private: vec![folder.path().canonicalize().unwrap()],
                ..settings(mode)
            };
            let mut trial = ShellFixture::new();
            let workspace = Workspace::clone(&trial.cx.workspace).with_sandbox(settings);
            trial.cx.workspace = Arc::new(workspace);
            // A line that only read would be confined more.
            let command = format!("touch a && {line}");
            let (envelope, _) = trial.run(json!({ "command": command })).await;
            let said = envelope_text(&envelope);
            let end = format!("\nexit code: 1\n{HINT}");
            assert_eq!(said.ends_with(&end), is_refused, "{mode:?} {line}: {said}");
            assert_eq!(
                said.ends_with("exit code: 0"),
                !is_refused,
                "{line}: {said}"
            );
        }
    }
}

/// `mktemp`, `sort` and long here-documents need a folder for temporary files.
#[tokio::test]
async fn confined_command_has_temporary_folder() {
    let line =
        "file=$(mktemp) && echo x > \"$file\" && cat \"$file\" && echo \"$file\" && rm \"$file\"";
    let in_temporary = SandboxSettings {
        private: vec![std::env::temp_dir().join("home/turnery")],
        ..settings(SandboxMode::Workspace)
    };
    for (settings, has_own) in [
        (settings(SandboxMode::Off), false),
        (settings(SandboxMode::Workspace), false),
        (settings(SandboxMode::ReadOnly), true),
        (in_temporary, true),
    ] {
        let mut trial = ShellFixture::new();
        let workspace = Workspace::clone(&trial.cx.workspace).with_sandbox(settings.clone());
        let has_own = has_own && workspace.sandbox().is_active();
        trial.cx.workspace = Arc::new(workspace);
        let (envelope, _) = trial.run(json!({ "command": line })).await;
        let said = envelope_text(&envelope);
        let file = said.strip_prefix("x\n").and_then(|it| it.lines().next());
        let folder = file.and_then(|it| std::path::Path::new(it).parent());
        let folder = folder.unwrap_or_else(|| panic!("{settings:?}: {said}"));
        assert_eq!(
            folder != std::env::temp_dir(),
            has_own,
            "{settings:?}: {said}"
        );
        assert_eq!(!folder.exists(), has_own, "{settings:?}: {said}");
    }
}

#[tokio::test]
async fn unrelated_failure_has_no_sandbox_hint() {
    let (envelope, _) = sandboxed_shell(SandboxMode::Workspace)
        .run(json!({ "command": "echo no such thing; exit 3" }))
        .await;
    assert_eq!(envelope_text(&envelope), "no such thing\nexit code: 3");
}

#[tokio::test]
async fn read_only_command_gets_read_only_confinement() {
    let trial = sandboxed_shell(SandboxMode::Workspace);
    let workspace = Arc::clone(&trial.cx.workspace);
    let plan = |line: &str| {
        super::run_plan::plan(
            line,
            workspace.cwd(),
            None,
            CommandLineLimits::default(),
            &HiddenFiles::default(),
            &workspace,
        )
    };
    if !workspace.sandbox().is_active() {
        assert!(!SandboxSupport::detect().is_usable());
        return;
    }
    let writes = |line| plan(line).confinement.map(|it| it.writes);
    assert_eq!(writes("ls"), Some(false));
    assert_eq!(writes("touch a"), Some(true));
    assert!(!plan("ls").may_use_terminals && plan("touch a").may_use_terminals);
    let off = Workspace::clone(&workspace).with_sandbox(settings(SandboxMode::Off));
    let plan = super::run_plan::plan(
        "ls",
        off.cwd(),
        None,
        CommandLineLimits::default(),
        &HiddenFiles::default(),
        &off,
    );
    assert!(plan.confinement.is_none() && plan.may_use_terminals);
}

/// Returns the limits of a line that is allowed to run without permission.
fn allowed_limits(mode: Mode, line: &str, workspace: &Workspace) -> CommandLineLimits {
    let access = Access::Run {
        command: line.to_owned(),
        cwd: workspace.cwd().to_owned(),
    };
    let policy = Policy::new(mode, vec![], vec![]).with_confined(workspace.sandbox().is_active());
    let (judgement, limits) = policy.judge_with_limits("shell", &access, workspace);
    assert_eq!(judgement, Judgement::Allow, "{line}");
    limits
}

/// A program of the same user may replace a folder by a link once the line is allowed.
#[tokio::test]
async fn read_only_limits_hold_after_folder_is_replaced() {
    let (elsewhere, file) = file_outside_roots();
    std::fs::write(&file, "private").unwrap();
    let mut trial = sandboxed_shell(SandboxMode::Workspace);
    let workspace = Arc::clone(&trial.cx.workspace);
    let folder = workspace.cwd().join("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file"), "public").unwrap();
    let line = "cat folder/file";
    let limits = allowed_limits(Mode::Ask, line, &workspace);
    assert!(limits.only_reads);
    if !workspace.sandbox().is_active() {
        assert!(!SandboxSupport::detect().is_usable());
        return;
    }
    std::fs::rename(&folder, workspace.cwd().join("moved")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
    let plan = super::run_plan::plan(
        line,
        workspace.cwd(),
        None,
        limits,
        &trial.cx.hidden,
        &workspace,
    );
    assert!(!plan.may_use_terminals, "nothing confines it there");
    assert_eq!(plan.confinement.map(|it| it.writes), Some(false));
    trial.cx.line_limits = limits;
    let (envelope, _) = trial.run(json!({ "command": line })).await;
    let said = envelope_text(&envelope);
    assert!(said.contains("Permission denied"), "{said}");
    assert!(!said.contains("private"), "{said}");
}

#[tokio::test]
async fn git_stays_hardened_after_config_change() {
    for sandbox in [SandboxMode::Workspace, SandboxMode::Off] {
        let trial = sandboxed_shell(sandbox);
        let workspace = &trial.cx.workspace;
        let made = std::process::Command::new("git")
            .args(["init", "-q", "."])
            .current_dir(workspace.cwd())
            .status();
        assert!(made.unwrap().success());
        let lines = [(Mode::Ask, "git status"), (Mode::Plan, "git status | head")];
        let limits = lines.map(|(mode, line)| allowed_limits(mode, line, workspace));
        let config = workspace.cwd().join(".git/config");
        std::fs::write(config, "[core]\n\tfsmonitor = ./planted\n").unwrap();
        for ((_, line), limits) in lines.into_iter().zip(limits) {
            let plan = super::run_plan::plan(
                line,
                workspace.cwd(),
                None,
                limits,
                &trial.cx.hidden,
                workspace,
            );
            assert_eq!(plan.git, GitSettings::Hardened, "{line}");
        }
    }
}

async fn prepare_call(mode: SandboxMode, args: &Value) -> (Access, String, String, Workspace) {
    let trial = sandboxed_shell(mode);
    let prepared = trial.shell.prepare(args, &trial.cx).await.expect("valid");
    let shown = prepared.detail.artifacts.iter().map(|it| match it {
        Artifact::Content(content) => Content::as_text(content).unwrap_or_default().to_owned(),
        _ => String::new(),
    });
    let shown: Vec<String> = shown.collect();
    let workspace = Workspace::clone(&trial.cx.workspace);
    (
        prepared.access,
        prepared.detail.title,
        shown.join("\n"),
        workspace,
    )
}

#[tokio::test]
async fn leaving_sandbox_always_asks() {
    let args = json!({ "command": "touch a", "outside_sandbox": "it needs \u{202e}docker" });
    let (access, title, shown, workspace) = prepare_call(SandboxMode::Workspace, &args).await;
    if !workspace.sandbox().is_active() {
        assert!(matches!(access, Access::Run { .. }));
        return;
    }
    assert!(matches!(access, Access::RunOutside { .. }), "{access:?}");
    assert_eq!(title, "Outside the sandbox: touch a");
    assert!(
        shown.contains("because: it needs ⟨U+202E⟩docker"),
        "{shown}"
    );
    let shell = "shell".parse().expect("a rule");
    for mode in [Mode::Ask, Mode::Edit, Mode::Auto] {
        let policy = Policy::new(mode, vec![], vec![]);
        let judged = policy.judge("shell", &access, &workspace);
        assert_eq!(judged, Judgement::Ask { always: None }, "{mode}");
        let mut policy = Policy::new(mode, vec![], vec![]);
        policy.add_allow_rule("shell".parse().expect("a rule"));
        let judged = policy.judge("shell", &access, &workspace);
        assert_eq!(judged, Judgement::Ask { always: None }, "{mode}");
    }
    let plan = Policy::new(Mode::Plan, vec![], vec![]);
    let judged = plan.judge("shell", &access, &workspace);
    assert!(matches!(judged, Judgement::Deny(_)));
    let denied = Policy::new(Mode::Auto, vec![], vec![shell]);
    let judged = denied.judge("shell", &access, &workspace);
    assert!(matches!(judged, Judgement::Deny(_)));
}

#[tokio::test]
async fn outside_sandbox_is_ignored_without_sandbox() {
    let args = json!({ "command": "touch a", "outside_sandbox": "why" });
    let (access, title, ..) = prepare_call(SandboxMode::Off, &args).await;
    assert!(matches!(access, Access::Run { .. }), "{access:?}");
    assert_eq!(title, "touch a");
}

#[tokio::test]
async fn approved_outside_sandbox_runs_unconfined() {
    let (_folder, file) = file_outside_roots();
    let args = json!({
        "command": format!("echo x > {}", file.display()),
        "outside_sandbox": "it writes elsewhere",
    });
    let (envelope, _) = sandboxed_shell(SandboxMode::Workspace).run(args).await;
    assert!(file.exists(), "{envelope:?}");
}

/// A command that moves the repository of its session away gets no access to the outer repository.
#[tokio::test]
async fn outer_repository_stays_closed_after_inner_moves() {
    if !SandboxSupport::detect().is_usable() {
        return;
    }
    for has_own in [true, false] {
        let folder = crate::sandbox::temp_folder_outside_sandbox();
        let outer = folder.path().canonicalize().unwrap();
        let root = outer.join("project");
        for (top, is_made) in [(&outer, true), (&root, has_own)] {
            let dot_git = top.join(if is_made { ".git" } else { "other" });
            std::fs::create_dir_all(&dot_git).unwrap();
            std::fs::write(dot_git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let workspace = Workspace::local(root.clone()).unwrap();
        let workspace = Arc::new(workspace.with_sandbox(settings(SandboxMode::Workspace)));
        for command in [
            "echo x > ../.git/first",
            "mv .git moved",
            "echo x > ../.git/second",
        ] {
            let mut trial = ShellFixture::new();
            trial.cx.workspace = Arc::clone(&workspace);
            trial.run(json!({ "command": command })).await;
        }
        for name in ["first", "second"] {
            let is_written = outer.join(".git").join(name).exists();
            assert_eq!(is_written, !has_own, "{name}");
        }
    }
}

/// Without wildcards, or with some that are searched for; through links; and outside the session's folders.
#[tokio::test]
async fn files_hidden_by_rules_are_closed_to_commands() {
    if !SandboxSupport::detect().is_usable() {
        return;
    }
    let (_folder, outside) = file_outside_roots();
    let beside = outside.with_file_name("beside");
    let trial = sandboxed_shell(SandboxMode::Workspace);
    let workspace = Arc::clone(&trial.cx.workspace);
    let root = workspace.cwd();
    std::fs::create_dir_all(root.join("sub/deep")).unwrap();
    for path in [".env", "env", "sub/env", "sub/deep/.env", "sub/deep/env"] {
        std::fs::write(root.join(path), "content").unwrap();
    }
    let odd = root.join(std::ffi::OsStr::from_bytes(b"\xff.pem"));
    for path in [&outside, &beside, &odd] {
        std::fs::write(path, "content").unwrap();
    }
    std::os::unix::fs::symlink("env", root.join("link")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("out")).unwrap();
    let (outside, beside) = (outside.display(), beside.display());
    for (rule, allowed, refused) in [
        (
            "read(.env)",
            "cat env sub/deep/.env; ls -A; find .",
            "cat .env",
        ),
        ("read(**/.env)", "cat env sub/deep/env", "cat sub/deep/.env"),
        ("read(**/.env)", "git init -q && git status", "cat .env"),
        (
            "read(sub/)",
            "cat env .env; ls sub/deep",
            "cat sub/deep/env",
        ),
        ("read(s*/deep)", "cat sub/env", "cat sub/deep/env"),
        ("read(*.pem)", "cat env", "grep -r content ."),
        ("read(lin?)", "cat .env", "cat env"),
        ("read(**)", "pwd; ls sub", "cat env"),
        ("read(/**)", "pwd; touch a && cat env", "cat env"),
        ("read(.env)", "touch a && cat .env", "cat .env"),
        (
            "read(out)",
            &format!("touch a && cat {beside}"),
            "touch a && cat out",
        ),
        (
            &format!("read({outside})"),
            &format!("touch a && cat {beside}"),
            &format!("touch a && cat {outside}"),
        ),
    ] {
        let policy = Policy::new(Mode::Ask, vec![], vec![rule.parse().unwrap()]);
        for (line, is_refused) in [(allowed, false), (refused, true)] {
            let mut trial = ShellFixture::new();
            trial.cx.workspace = Arc::clone(&workspace);
            trial.cx.hidden = policy.hidden_files_for("shell");
            let (envelope, _) = trial.run(json!({ "command": line })).await;
            let said = envelope_text(&envelope);
            assert_eq!(
                said.contains("Permission denied"),
                is_refused,
                "{rule}: {line}: {said}"
            );
            assert_eq!(
                said.ends_with("exit code: 0"),
                !is_refused,
                "{rule}: {line}: {said}"
            );
        }
    }
}
