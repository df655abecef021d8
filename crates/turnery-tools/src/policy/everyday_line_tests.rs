//! Counts the lines of `everyday.txt` that need no approval when read-only commands are confined.

use super::{Judgement, Mode, Policy, only_reads};
use crate::{Access, Workspace};

/// Lines that must be allowed without approval, one of each kind.
const ONE_LINE_OF_EACH_KIND: &[&str] = &[
    "ls *.rs",
    "wc -l src/*.rs",
    "grep -R 'use std' src",
    "jq -r .name package.json",
    "date +%F",
    "[ -f Cargo.toml ] && echo yes",
    "[[ -f Cargo.toml ]] && cat Cargo.toml",
    "test -f README.md && head README.md",
    "awk '{print $1}' README.md",
    "awk '/use|mod/{print}' src/main.rs",
    "sed -n '/fn main/,/^}/p' src/main.rs",
    "find . -name '*.rs' -print0 | xargs -0 wc -l",
    "find . -name '*.rs' | xargs wc -l",
    "find . -name '*.rs' -newer Cargo.toml",
    "find . -type f -printf '%p %s\\n'",
    "find . -type f -executable",
    "git --no-pager log --oneline -10",
    "git -C src log -1",
    "git grep main",
    "git reflog",
    "git config --get user.name",
    "git branch --list",
    "git branch --merged main",
    "git status -uno",
    "git diff --check",
    "git tag -l",
    "git cat-file -p HEAD",
    "git ls-files",
    "npm ls",
    "cargo tree",
    "cargo metadata --no-deps --format-version 1",
    "pip list",
    "go version",
    "tac README.md",
    "xxd README.md | head",
    "tar tf a.tar",
    "stat -c %s README.md",
    "echo \"$HOME\"",
    "for f in src/lib.rs src/main.rs; do echo \"== $f\"; head -5 \"$f\"; done",
    "ls # all of it",
    "ls\npwd",
];

pub(super) struct EverydayFixture {
    _folder: tempfile::TempDir,
    pub(super) workspace: Workspace,
}

pub(super) fn everyday_fixture() -> EverydayFixture {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for part in ["src", "tests", "target", ".git/objects", ".git/refs/heads"] {
        std::fs::create_dir_all(root.join(part)).unwrap();
    }
    for file in [
        "README.md",
        "CHANGELOG.md",
        "Cargo.toml",
        "Cargo.lock",
        "package.json",
        "build.rs",
        "src/lib.rs",
        "src/main.rs",
        "tests/it.rs",
        "a.tar",
        "a.tar.gz",
        "a.zip",
        "go.mod",
    ] {
        std::fs::write(root.join(file), "x\n").unwrap();
    }
    std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(
        root.join(".git/config"),
        "[core]\n\trepositoryformatversion = 0\n",
    )
    .unwrap();
    EverydayFixture::at(folder)
}

impl EverydayFixture {
    /// Creates a fixture for sessions in a folder.
    pub(super) fn at(folder: tempfile::TempDir) -> Self {
        let root = folder.path().canonicalize().unwrap();
        Self {
            workspace: Workspace::local(root).unwrap(),
            _folder: folder,
        }
    }
}

fn everyday_lines() -> Vec<String> {
    include_str!("everyday.txt")
        .lines()
        .filter(|line| !line.is_empty() && (!line.starts_with("# ") || line.contains('⏎')))
        .filter(|line| !line.starts_with("# Everyday"))
        .map(|line| line.replace('⏎', "\n"))
        .collect()
}

pub(super) fn is_allowed(bench: &EverydayFixture, policy: &Policy, line: &str) -> bool {
    let cwd = bench.workspace.cwd().to_owned();
    let access = Access::Run {
        command: line.to_owned(),
        cwd,
    };
    policy.judge("shell", &access, &bench.workspace) == Judgement::Allow
}

#[test]
fn most_everyday_lines_are_allowed_when_confined() {
    let bench = everyday_fixture();
    let policy = Policy::new(Mode::Ask, Vec::new(), Vec::new()).with_confined(true);
    let lines = everyday_lines();
    assert!(lines.len() >= 200, "{}", lines.len());
    let asked: Vec<&String> = lines
        .iter()
        .filter(|line| !is_allowed(&bench, &policy, line))
        .collect();
    assert!(
        asked.len() * 10 <= lines.len(),
        "{} of {}: {asked:#?}",
        asked.len(),
        lines.len()
    );
}

#[test]
fn one_line_of_each_kind_is_allowed() {
    let bench = everyday_fixture();
    let lines = everyday_lines();
    for mode in [Mode::Ask, Mode::Plan] {
        let policy = Policy::new(mode, Vec::new(), Vec::new()).with_confined(true);
        for line in ONE_LINE_OF_EACH_KIND {
            assert!(
                lines.iter().any(|listed| listed == line),
                "{line} is not listed"
            );
            assert!(is_allowed(&bench, &policy, line), "{mode:?} {line}");
        }
    }
}

#[test]
fn only_reads_agrees_with_confined_policy() {
    let bench = everyday_fixture();
    let confined = Policy::default().with_confined(true);
    for line in
        everyday_lines()
            .iter()
            .map(String::as_str)
            .chain(["rm x", "cat > x", "cargo test", ""])
    {
        let cwd = bench.workspace.cwd();
        assert_eq!(
            only_reads(line, cwd, &bench.workspace),
            is_allowed(&bench, &confined, line),
            "{line}"
        );
    }
    assert!(!only_reads(
        "cargo test",
        bench.workspace.cwd(),
        &bench.workspace
    ));
}

#[test]
fn names_that_xargs_splits_are_asked_about() {
    let policy = Policy::default().with_confined(true);
    for name in ["a -f b", "a'b", "a\\b", "-f", "a\nb"] {
        let bench = everyday_fixture();
        let line = "find . | xargs wc -l";
        assert!(is_allowed(&bench, &policy, line));
        std::fs::write(bench.workspace.cwd().join("src").join(name), "").unwrap();
        assert!(!is_allowed(&bench, &policy, line), "{name:?}");
        let exact = "find . -print0 | xargs -0 wc -l";
        assert!(is_allowed(&bench, &policy, exact), "{name:?}");
    }
}

/// `PATH` may contain a folder of the project, such as that of an activated environment.
#[test]
fn project_programs_are_asked_about() {
    let cases = [
        ("bin/ls", "ls src", "cat README.md"),
        ("bin/git", "git log", "cat README.md"),
        ("bin/echo", "find src -print0 | xargs -0 echo", "echo x"),
        ("bin/gzip", "tar tzf a.tar.gz", "cat README.md"),
        ("bin/go1.99.1", "go version", "cat README.md"),
        ("tools/wc", "wc -l README.md", "cat README.md"),
        ("here/wc", "cd src && wc -l lib.rs", "cat README.md"),
        ("stat", "stat README.md", "cat README.md"),
        ("bin/bash", "pwd", ""),
    ];
    for (program, question, allowed) in cases {
        let mut bench = everyday_fixture();
        let root = bench.workspace.cwd().to_owned();
        let search = format!("/usr/bin:{}/bin:tools:here:", root.display());
        bench.workspace = bench.workspace.with_search_path(search.as_ref());
        let policies = [true, false].map(|confined| Policy::default().with_confined(confined));
        assert!(is_allowed(&bench, &policies[0], question), "{question}");
        let file = root.join(program);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "x").unwrap();
        for policy in &policies {
            assert!(!is_allowed(&bench, policy, question), "{question}");
            assert!(
                allowed.is_empty() || is_allowed(&bench, policy, allowed),
                "{allowed}"
            );
        }
    }
}

/// Nothing here leads outside the roots, so that could not be the reason to ask.
#[test]
fn names_from_find_reach_only_readers() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    for line in [
        // The first command ends at its semicolon; find parses the rest.
        "find . -exec echo \\; -exec touch M {} +",
        "find . -exec echo ';' -exec touch M {} ';'",
        "find . -exec echo \\; -fprint M -exec echo {} +",
        "find . -exec echo \\; -delete -exec echo {} +",
        // The first name is the value of the preceding option.
        "find src -name '*.rs' -print0 | xargs -0 xxd -l",
        "find src -name '*.rs' -exec xxd -s {} +",
        "find src -name '*.rs' -print0 | xargs -0 grep -e",
        // A name may be a host, or a list of arguments.
        "find . -name '*.tar' -print0 | xargs -0 tar tf",
        "find . -name '*.tar' -exec tar tf {} ';'",
        "find . -name '@*' -print0 | xargs -0 strings",
        "find . -type f -exec strings {} +",
        // The output consists of lines or messages, not names.
        "grep -el main | xargs cat",
        "grep -r -el main src | xargs cat",
        "grep -lc main src/main.rs | xargs cat",
        "grep -l --count main src/main.rs | xargs cat",
        "rg -- -l src | xargs cat",
        "grep -- -l src/main.rs | xargs cat",
        "git ls-files -z -t | xargs -0 cat --",
        "git ls-files -z --stage | xargs -0 cat --",
        "git ls-files -z --full-name | xargs -0 cat --",
        "grep -l x './a ../../secret b' |& xargs cat",
        "find . -name main.rs |& xargs cat",
        "find 'src ../../secret' -name main.rs | xargs cat",
        // Only one side separates names by NUL.
        "grep -rlZ main src | xargs wc -l",
        "grep -rl main src | xargs -0 wc -l --",
        "git ls-files src | xargs wc -l",
        // The names come from elsewhere.
        "find . -name main.rs | xargs cat < src/main.rs",
        "find . -name main.rs | xargs cat <<< /etc/passwd",
        "find . -name main.rs | < src/main.rs xargs cat",
        "find . -name main.rs 2>&1 | xargs cat",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "find . -exec echo {} +",
        "find src -name '*.rs' -exec head -n 3 {} ';'",
        "find src -name '*.rs' -print0 | xargs -0 grep -e main",
        "find src -name '*.rs' 2>/dev/null | xargs wc -l 2>/dev/null",
        "grep -rl --include='*.rs' -e main src | sort -u | xargs wc -l",
        "grep -rlZ main src | xargs -0 wc -l --",
        "rg -l 'fn main' -g '*.rs' | xargs wc -l",
        "git ls-files -z src | xargs -0 wc -l --",
        "grep -rl main -- src | xargs wc -l",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

#[test]
fn deny_rule_covers_patterns_and_loops() {
    let bench = everyday_fixture();
    let policies = [Mode::Ask, Mode::Plan, Mode::Auto].map(|mode| {
        let deny = vec!["read(src/main.rs)".parse().unwrap()];
        Policy::new(mode, Vec::new(), deny).with_confined(true)
    });
    for line in [
        "cat src/*.rs",
        "for f in src/*.rs; do cat \"$f\"; done",
        "for f in lib main; do cat src/$f.rs; done",
        "find src -name '*.rs' -exec cat {} +",
        "find src -print0 | xargs -0 cat",
        "grep -R fn src",
    ] {
        for policy in &policies {
            assert!(!is_allowed(&bench, policy, line), "{line}");
        }
    }
    for policy in &policies {
        assert!(is_allowed(&bench, policy, "cat tests/*.rs"));
    }
}

#[test]
fn line_breaks_in_command_are_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    // The grammar parses both lines as one command, bash as two.
    for line in ["! 2>/dev/null\ncat README.md", "! 2>&1 \n ls"] {
        assert!(!is_allowed(&bench, &policy, line), "{line:?}");
    }
    for line in ["cat README.md\nls", "cat \\\n README.md", "printf 'a\nb'"] {
        assert!(is_allowed(&bench, &policy, line), "{line:?}");
    }
}

#[test]
fn loop_variable_set_twice_is_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    for line in [
        "for f in src tests; do for f in README.md; do cat $f; done; done",
        "for f in src; do ls $f; done; for f in tests; do ls $f; done",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line:?}");
    }
    let once = "for f in src; do for g in tests; do ls $f $g; done; done";
    assert!(is_allowed(&bench, &policy, once));
}

#[test]
fn ambiguous_patterns_are_asked_about() {
    let bench = everyday_fixture();
    let policy = Policy::default().with_confined(true);
    // bash's options determine what a pattern without a match becomes; the locale determines the letters of a
    // range.
    for line in ["ls nothing*", "ls [a-z]*"] {
        assert!(!is_allowed(&bench, &policy, line), "{line:?}");
    }
    assert!(is_allowed(&bench, &policy, "ls s*"));
}
