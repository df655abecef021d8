//! Runs allowed lines with a real bash, in which every program is a stub that leaves a mark, to detect hidden
//! commands.

use super::{Judgement, Mode, Policy};
use crate::{Access, Workspace};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use std::{
    io::Read as _,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{LazyLock, mpsc},
    time::Duration,
};

struct OracleFixture {
    folder: tempfile::TempDir,
    workspace: Workspace,
    policy: Policy,
}

static PROPTEST_FIXTURE: LazyLock<OracleFixture> = LazyLock::new(oracle_fixture);
static SELF_CHECK_FIXTURE: LazyLock<OracleFixture> = LazyLock::new(oracle_fixture);

fn oracle_fixture() -> OracleFixture {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for part in ["bin", "work/src"] {
        std::fs::create_dir_all(root.join(part)).unwrap();
    }
    for program in ["rm", "curl", "test\\", "-rf", "x"] {
        let path = root.join("bin").join(program);
        std::fs::write(&path, format!("#!/bin/sh\n: > '{}/mark'\n", root.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for program in ["ls", "cargo", "git", "cat"] {
        let path = root.join("bin").join(program);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let allow = vec![
        "shell(cargo test:*)".parse().unwrap(),
        "shell(git:*)".parse().unwrap(),
    ];
    OracleFixture {
        workspace: Workspace::local(root.join("work")).unwrap(),
        policy: Policy::new(Mode::Ask, allow, Vec::new()),
        folder,
    }
}

/// Maximum time that bash may take for one line.
const BASH_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs a line with a real bash in `work`, which finds only the programs in `bin`. Everything that it started has ended
/// afterwards.
pub(super) fn run_bash(root: &Path, line: &str) {
    let child = Command::new("/bin/bash")
        .args(["-c", line])
        .current_dir(root.join("work"))
        .env_clear()
        .env("PATH", root.join("bin"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    reap(child, line);
}

/// The timeout ends bash, and the end of bash ends what it left behind. All processes of a line hold its output open.
#[test]
fn reaped_line_leaves_no_process() {
    for (line, is_late) in [
        ("sleep 3000 & sleep 3000", true),
        ("while :; do :; done", true),
        ("sleep 3000 &", false),
        ("(trap '' HUP TERM; sleep 3000; sleep 3000) &", false),
    ] {
        let (mut output, writer) = std::io::pipe().unwrap();
        let child = Command::new("/bin/bash")
            .args(["-c", line])
            .stdin(Stdio::null())
            .stdout(writer)
            .process_group(0)
            .spawn()
            .unwrap();
        let timeout = Duration::from_secs(if is_late { 1 } else { 120 });
        let reaped = std::panic::catch_unwind(|| reap_within(timeout, child, line));
        assert_eq!(reaped.is_err(), is_late, "{line}");
        let (sender, ended) = mpsc::channel();
        std::thread::spawn(move || sender.send(output.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(
            ended.recv_timeout(Duration::from_secs(120)),
            Ok(true),
            "{line}"
        );
    }
}

/// Returns true if a real bash runs one of the marked programs.
fn leaves_mark(root: &Path, line: &str) -> bool {
    run_bash(root, line);
    let mark = root.join("mark");
    let left = mark.exists();
    if left {
        std::fs::remove_file(mark).unwrap();
    }
    left
}

/// Waits for bash, for at most `BASH_TIMEOUT`, and kills what is left of its process group.
pub(super) fn reap(child: Child, line: &str) {
    reap_within(BASH_TIMEOUT, child, line);
}

fn reap_within(timeout: Duration, mut child: Child, line: &str) {
    let group = rustix::process::Pid::from_child(&child);
    let kill = move || {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    };
    let (ended, has_ended) = mpsc::sync_channel::<()>(1);
    let guard = std::thread::spawn(move || {
        let is_late = has_ended.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout);
        if is_late {
            kill();
        }
        is_late
    });
    child.wait().unwrap();
    drop(ended);
    let is_late = guard.join().unwrap();
    kill();
    assert!(!is_late, "bash did not end: {line:?}");
}

pub(super) fn line_strategy() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "cargo test",
        "git status",
        "echo",
        "cat",
        " ",
        " ",
        " ",
        " ",
        "rm x",
        "rm",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "$(rm x)",
        "`rm x`",
        "$(",
        "`",
        "<(rm x)",
        "<",
        "2>&1",
        "0>&1",
        ">&1",
        ">& -a",
        "2147483648",
        "2>& ",
        ">&",
        "0",
        "3",
        "-a",
        "-x2",
        ">&2",
        ">/dev/null",
        "'",
        "\"",
        "$'",
        "\\",
        "\\'",
        "\\\"",
        "\\;",
        "$x",
        "${x}",
        "${x:-",
        "}",
        "*",
        "#",
        "{",
        "!",
        "x=",
        "for f in a; do ",
        "; done",
        "if ",
        "; then ",
        "; fi",
        "é",
        "\t",
        "~",
        "=",
        "[",
        "]",
        "-",
        "--",
        "$?",
        "\\`",
        "\\$",
        "$",
        "a",
        "'rm x'",
        "\"$(rm x)\"",
        "time ",
        "f() { ",
        "; }",
        "case x in x) ",
        ";; esac",
        "cd src",
        "((",
        "))",
        "$((",
        "$[",
        "!((",
        "'a[$(rm x)]'",
        "'$(rm x)'",
        "for x in 'a[$(rm x)]'; do ",
        "CI='a[$(rm x)]'; ",
    ]);
    // Half of the lines begin with an allowed line.
    let begun = prop::sample::select(vec![
        "",
        "",
        "",
        "cargo test ",
        "ls && cargo test -- 'a b' \"c\"",
        "cat src | git status $x",
        "for f in a; do ls; done; cd src && echo $(ls)",
        "for x in 'a[$(rm x)]'; do ls; done",
    ]);
    let pieces = prop::collection::vec((piece, any::<prop::sample::Index>()), 1..10);
    let mixed = (begun, pieces).prop_map(|(begun, pieces)| {
        let mut line = begun.to_owned();
        let is_new = line.is_empty();
        for (piece, at) in pieces {
            let ends: Vec<usize> = line
                .char_indices()
                .map(|(at, _)| at)
                .chain([line.len()])
                .collect();
            let at = if is_new { line.len() } else { *at.get(&ends) };
            line.insert_str(at, piece);
        }
        line
    });
    prop_oneof![4 => mixed, 1 => prop::sample::select(arithmetic_lines())]
}

/// Number of lines that the fuzz tries.
const CASES: u32 = 2000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn allowed_line_runs_no_hidden_command(line in line_strategy()) {
        let bench = &*PROPTEST_FIXTURE;
        let access = Access::Run { command: line.clone(), cwd: bench.workspace.cwd().to_owned() };
        if bench.policy.judge("shell", &access, &bench.workspace) == Judgement::Allow {
            let root = bench.folder.path();
            prop_assert!(!leaves_mark(root, &line), "{:?}", line);
        }
    }
}

#[test]
fn line_with_marked_program_leaves_mark() {
    let line = "echo `echo \\$(rm x)`";
    let bench = &*SELF_CHECK_FIXTURE;
    assert!(leaves_mark(bench.folder.path(), line));
    assert!(!leaves_mark(bench.folder.path(), "ls"));
}

/// Starts of the four lines in which arithmetic once ran a program, here a marked one.
const ARITHMETIC: [&str; 4] = [
    "(('$(rm x)'",
    "for x in 'a[$(rm x)]'; do ((x",
    "CI='a[$(rm x)]'; ((CI",
    "for x in 'a[$(rm x)]'; do !((",
];

/// Lines with arithmetic of every form in every place.
fn arithmetic_lines() -> Vec<String> {
    let places = [
        ("", "", "'$(rm x)'"),
        ("for x in 'a[$(rm x)]'; do ", "; done", "x"),
        ("for x in 'a[$(rm x)]'; do ", "; done", "echo x"),
        ("CI='a[$(rm x)]'; ", "", "CI"),
    ];
    let forms = [
        ("((", "))"),
        ("!((", "))"),
        ("! ((", "))"),
        ("(((", ")))"),
        ("echo $((", "))"),
        ("echo $[", "]"),
        ("echo \"$((", "))\""),
        ("echo \"$?$[", "]\""),
        ("( ((", ")) )"),
        ("if ((", ")); then ls; fi"),
        ("while ((", ")); do false; done"),
    ];
    let mut lines = Vec::new();
    for (before, after, inside) in places {
        for (open, close) in forms {
            for then in ["", "; ls"] {
                lines.push(format!("{before}{open}{inside}{close}{then}{after}"));
            }
        }
    }
    lines
}

/// Returns the starts in [`ARITHMETIC`] of which the fuzz finds no allowed line that leaves a mark, among as many
/// lines as it tries.
fn forms_without_a_mark(bench: &OracleFixture) -> Vec<&'static str> {
    let mut runner = TestRunner::deterministic();
    let lines = line_strategy();
    let mut missing = ARITHMETIC.to_vec();
    for _ in 0..CASES {
        let line = lines.new_tree(&mut runner).unwrap().current();
        let access = Access::Run {
            command: line.clone(),
            cwd: bench.workspace.cwd().to_owned(),
        };
        missing.retain(|form| {
            !line.starts_with(form)
                || bench.policy.judge("shell", &access, &bench.workspace) != Judgement::Allow
                || !leaves_mark(bench.folder.path(), &line)
        });
    }
    missing
}

#[test]
fn oracle_detects_arithmetic_when_check_is_off() {
    let bench = oracle_fixture();
    assert_eq!(forms_without_a_mark(&bench), ARITHMETIC);
    super::command_line::IGNORES_ARITHMETIC.set(true);
    let missing = forms_without_a_mark(&bench);
    super::command_line::IGNORES_ARITHMETIC.set(false);
    assert_eq!(missing, [""; 0]);
}
