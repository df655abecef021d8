//! Checks which commands the rules that "always allow" suggests cover.

mod not_covered;

use super::{Judgement, Mode, Policy, Rule};
use crate::{Access, Workspace};
use not_covered::NOT_COVERED;

struct SuggestedRuleFixture {
    _folder: tempfile::TempDir,
    workspace: Workspace,
}

impl SuggestedRuleFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for part in [
            "a",
            "crates/x",
            "evil",
            "nested",
            "src",
            "src/testdata",
            "test_folder.py",
            "venv",
        ] {
            std::fs::create_dir_all(root.join(part)).unwrap();
        }
        for file in ["nested/go.mod", "src/a_test.go", "venv/pyvenv.cfg"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("src/testdata", root.join("linked")).unwrap();
        std::os::unix::fs::symlink("deploy.py", root.join("test_linked.py")).unwrap();
        std::os::unix::fs::symlink("/etc", root.join("outside")).unwrap();
        std::os::unix::fs::symlink("crates/x", root.join("deep")).unwrap();
        Self {
            workspace: Workspace::local(root).unwrap(),
            _folder: folder,
        }
    }

    fn judge(&self, policy: &Policy, command: &str) -> Judgement {
        let access = Access::Run {
            command: command.to_owned(),
            cwd: self.workspace.cwd().to_owned(),
        };
        policy.judge("shell", &access, &self.workspace)
    }

    /// Returns the rule that "always allow" adds for this line.
    fn suggested_rule(&self, command: &str) -> Rule {
        match self.judge(&Policy::new(Mode::Ask, vec![], vec![]), command) {
            Judgement::Ask { always: Some(rule) } => rule,
            other => panic!("{command:?}: {other:?}"),
        }
    }
}

#[test]
fn suggested_rule_covers_no_running_or_writing_option() {
    let bench = SuggestedRuleFixture::new();
    let mut covered = Vec::new();
    let mut count = 0;
    for (first, follow_ups) in NOT_COVERED {
        let mut policy = Policy::new(Mode::Ask, vec![], vec![]);
        policy.add_allow_rule(bench.suggested_rule(first));
        assert_eq!(bench.judge(&policy, first), Judgement::Allow, "{first}");
        for line in *follow_ups {
            count += 1;
            if bench.judge(&policy, line) == Judgement::Allow {
                covered.push(*line);
            }
        }
    }
    assert!(covered.is_empty(), "{covered:#?}");
    assert!(count >= 60, "{count}");
}

/// Nor does a rule that the user writes.
#[test]
fn git_diff_rule_covers_no_output_file() {
    let bench = SuggestedRuleFixture::new();
    assert!("shell(git diff:+)".parse::<Rule>().is_err());
    for rule in ["shell(git diff)", "shell(git diff:*)"] {
        let policy = Policy::new(Mode::Ask, vec![rule.parse().unwrap()], vec![]);
        assert_eq!(bench.judge(&policy, "git diff"), Judgement::Allow, "{rule}");
        for line in ["--output=x", "--output x", "--outp=x", "--ext-diff"] {
            let judged = bench.judge(&policy, &format!("git diff {line}"));
            assert_ne!(judged, Judgement::Allow, "{rule}: {line}");
        }
    }
}

/// A line, the rule suggested for it, and lines that the rule must cover.
const COVERED: &[(&str, &str, &[&str])] = &[
    (
        "cargo test",
        "shell(cargo test:+)",
        &[
            "cargo test -p x name",
            "cargo test -j 2 -p x",
            "cargo test --lib module::tests::name -- --exact --test-threads=1",
            "cargo test --workspace --all-features --no-fail-fast -q",
            "cargo test --test it --features a,b -- --nocapture name",
            "cd crates/x && cargo test | tail -n 20",
        ],
    ),
    (
        "cargo build --release",
        "shell(cargo build:+)",
        &["cargo build", "cargo build -p x --locked"],
    ),
    (
        "cargo clippy --all-targets -- -D warnings",
        "shell(cargo clippy:+)",
        &[
            "cargo clippy -p x --all-targets",
            "cargo clippy -- -W clippy::pedantic",
        ],
    ),
    (
        "cargo nextest run",
        "shell(cargo nextest run:+)",
        &["cargo nextest run -p x name"],
    ),
    (
        "git add src",
        "shell(git add:+)",
        &["git add -A src/x.rs README.md", "git add ."],
    ),
    (
        "git commit -m 'a: b'",
        "shell(git commit:+)",
        &[
            "git commit -q -m 'c, with /a path and --an option'",
            "git commit -m 'check the signature' --allow-empty",
        ],
    ),
    (
        "go test ./...",
        "shell(go test:+)",
        &[
            "go test -v -run TestX ./a ./src/... -count=1",
            "go test -race",
        ],
    ),
    (
        "make test",
        "shell(make test:+)",
        &["make test -s", "NO_COLOR=1 make test"],
    ),
    (
        "python3 -m pytest -q",
        "shell(python3 -m pytest:+)",
        &["python3 -m pytest tests/test_x.py::test_y -x --tb=short"],
    ),
    (
        "uv run pytest -q",
        "shell(uv run pytest:+)",
        &["uv run pytest tests/x_test.py -vv"],
    ),
];

#[test]
fn suggested_rule_covers_ordinary_options() {
    let bench = SuggestedRuleFixture::new();
    for (first, expected, follow_ups) in COVERED {
        let rule = bench.suggested_rule(first);
        assert_eq!(rule.to_string(), *expected, "{first}");
        let policy = Policy::new(Mode::Ask, vec![rule], vec![]);
        for line in *follow_ups {
            assert_eq!(bench.judge(&policy, line), Judgement::Allow, "{line}");
        }
    }
}

#[test]
fn unlisted_command_is_suggested_exactly() {
    let bench = SuggestedRuleFixture::new();
    for line in [
        "./run.sh x",
        "cargo run",
        "cargo build --locked",
        "cargo fmt",
        "cargo fmt --check",
        "cargo publish",
        "cargo test --no-run",
        "cargo test -- --list",
        "go build ./...",
        "go test -run TestA ./...",
        "go test -short ./...",
        "go vet ./...",
        "pytest -m 'not live'",
        "pytest -k 'not deploy' -q",
        "cargo test --workspace --exclude deploy",
        "pytest --collect-only",
        "gh pr view 1",
        "git checkout main",
        "git add -A",
        "git commit -am x",
        "git fetch origin",
        "git merge x",
        "git pull",
        "git push",
        "go run .",
        "make",
        "npm install",
        "npm run lint",
        "npm run lint -- --fix",
        "npm test",
        "npx x",
        "pip install x",
        "python3 -m pip install x",
        "uv run x",
    ] {
        assert_eq!(
            bench.suggested_rule(line).to_string(),
            format!("shell({line})"),
            "{line}"
        );
    }
    // No rule covers git with a program of the project.
    for line in ["git grep -O./evil.sh x", "git rebase -x ./evil.sh main"] {
        let judged = bench.judge(&Policy::new(Mode::Ask, vec![], vec![]), line);
        assert_eq!(judged, Judgement::Ask { always: None }, "{line}");
    }
}

/// A variable may make the program do more, so no rule says what the line does.
#[test]
fn no_rule_is_suggested_for_line_with_variable() {
    let bench = SuggestedRuleFixture::new();
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    for line in [
        "CI=1 make test",
        "LC_ALL=C npm test",
        "export CI=1; make test",
        "for container in '$(shell x)'; do make test; done",
    ] {
        assert_eq!(
            bench.judge(&policy, line),
            Judgement::Ask { always: None },
            "{line}"
        );
    }
}

#[test]
fn rejected_known_options_rule_denies_every_option() {
    let bench = SuggestedRuleFixture::new();
    let rules = vec!["shell(cargo test:+)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, vec![], rules);
    for line in ["cargo test", "cargo test --config evil.toml"] {
        assert!(
            matches!(bench.judge(&policy, line), Judgement::Deny(_)),
            "{line}"
        );
    }
}

#[test]
fn known_options_rule_requires_listed_program() {
    let error = "shell(rm -r:+)".parse::<Rule>().unwrap_err().to_string();
    assert_eq!(
        error,
        "invalid rule \"shell(rm -r:+)\": no options are known of rm -r, so `:+` cannot be used: write shell(rm -r) for exactly this, or shell(rm -r:*) for any further arguments"
    );
}

/// Cargo uses a workspace in the folders above and runs its code.
#[test]
fn suggested_rule_covers_no_parent_cargo_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    let member = top.join("member");
    std::fs::create_dir(&member).unwrap();
    let bench = SuggestedRuleFixture {
        workspace: Workspace::local(member).unwrap(),
        _folder: folder,
    };
    let policy = Policy::new(
        Mode::Ask,
        vec!["shell(cargo test:+)".parse().unwrap()],
        vec![],
    );
    let covers = |line: &str| bench.judge(&policy, line) == Judgement::Allow;
    let of_packages = [
        "cargo test -p b",
        "cargo test --package=b",
        "cargo test --workspace",
        "cargo test --all",
        "cargo test --exclude b",
    ];
    for line in of_packages {
        assert!(covers(line), "{line}");
    }
    std::fs::write(top.join("Cargo.toml"), "[workspace]\n").unwrap();
    for line in of_packages {
        assert!(!covers(line), "{line}");
    }
    assert!(covers("cargo test --locked name -- --nocapture"));
}
