//! Oracle tests: what a real bash does with lines that are judged to be allowed. Every program that
//! it can find is a stand-in that leaves a mark, so a line that hides a command is found out.

use super::{Judgement, Mode, Policy};
use crate::{Access, Workspace};
use proptest::prelude::*;
use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    sync::LazyLock,
};

struct Bench {
    folder: tempfile::TempDir,
    workspace: Workspace,
    policy: Policy,
}

static BENCH: LazyLock<Bench> = LazyLock::new(bench);
static OTHER: LazyLock<Bench> = LazyLock::new(bench);

fn bench() -> Bench {
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
    Bench {
        workspace: Workspace::local(root.join("work")).unwrap(),
        policy: Policy::new(Mode::Ask, allow, Vec::new()),
        folder,
    }
}

/// Whether a real bash runs one of the marked programs.
fn leaves_a_mark(root: &Path, line: &str) -> bool {
    let status = Command::new("/bin/bash")
        .args(["-c", line])
        .current_dir(root.join("work"))
        .env_clear()
        .env("PATH", root.join("bin"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok());
    let mark = root.join("mark");
    let left = mark.exists();
    if left {
        std::fs::remove_file(mark).unwrap();
    }
    left
}

fn line() -> impl Strategy<Value = String> {
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
    ]);
    // Half of them begin as a line that is allowed.
    let begun = prop::sample::select(vec![
        "",
        "",
        "",
        "cargo test ",
        "ls && cargo test -- 'a b' \"c\"",
        "cat src | git status $x",
        "for f in a; do ls; done; cd src && echo $(ls)",
    ]);
    let pieces = prop::collection::vec((piece, any::<prop::sample::Index>()), 1..10);
    (begun, pieces).prop_map(|(begun, pieces)| {
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
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_allowed_line_runs_nothing_that_was_not_seen(line in line()) {
        let bench = &*BENCH;
        let access = Access::Run { command: line.clone(), cwd: bench.workspace.cwd().to_owned() };
        if bench.policy.judge("shell", &access, &bench.workspace) == Judgement::Allow {
            let root = bench.folder.path();
            prop_assert!(!leaves_a_mark(root, &line), "{:?}", line);
        }
    }
}

#[test]
fn a_line_that_hides_nothing_from_bash_leaves_a_mark() {
    let line = "echo `echo \\$(rm x)`";
    let bench = &*OTHER;
    assert!(leaves_a_mark(bench.folder.path(), line));
    assert!(!leaves_a_mark(bench.folder.path(), "ls"));
}
