//! Checks which commands the rules that "always allow" suggests cover.

use super::{Judgement, Mode, Policy, Rule};
use crate::{Access, Workspace};

struct Bench {
    _folder: tempfile::TempDir,
    workspace: Workspace,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for part in ["crates/x", "src", "evil", "folder.py"] {
            std::fs::create_dir_all(root.join(part)).unwrap();
        }
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

/// A line, and lines that its suggested rule must not cover: each runs a program named in its arguments,
/// writes a file named there, or reads a file outside the roots.
const NOT_COVERED: &[(&str, &[&str])] = &[
    (
        "cargo test",
        &[
            "cargo test --config target.x86_64-unknown-linux-gnu.runner='\"./evil.sh\"'",
            "cargo test --config=evil.toml",
            "cargo test --manifest-path src/Cargo.toml",
            "cargo test --manifest-path ../x/Cargo.toml",
            "cargo test --manifest-path=/tmp/x/Cargo.toml",
            "cargo test --manifest-path outside/Cargo.toml",
            "cargo test outer.txt",
            "cargo test -- src/outer",
            // Inside the roots if links are followed, as the system does; outside by the text.
            "cargo test --manifest-path deep/../../x/Cargo.toml",
            "cargo test --manifest-path=src/../deep/../../x/Cargo.toml",
            "cargo test --manifest-path outside/../src/Cargo.toml",
            "cd deep && cargo test --manifest-path ../../x/Cargo.toml",
            "cd crates && cargo test --manifest-path ../deep/../../x/Cargo.toml",
            "cargo test --target-dir /tmp/x",
            "cargo test --profile x",
            "echo x | cargo test",
            "cargo test --target evil.json",
            "cargo test -C ../x",
            "cargo test -Zscript",
            "cargo test -qZ unstable-options",
            "cargo test --test --config=evil.toml",
            "cargo test -p --config=evil.toml",
            "cargo test -- --logfile=/tmp/x",
            "cargo test -- --logfile /tmp/x",
            "cargo test -- -Zunstable-options",
            "cargo test @evil",
            "cargo test -- @/etc/passwd",
            "cargo test $X",
            "cargo +evil test",
            "cargo testing",
        ],
    ),
    (
        "cargo build",
        &[
            "cargo build --artifact-dir /tmp/x",
            "cargo build --out-dir=/tmp/x",
            "cargo build --timings",
            "cargo build --lockfile-path /tmp/x",
            "cargo build evil",
        ],
    ),
    (
        "cargo clippy",
        &[
            "cargo clippy -- -C linker=./evil.sh",
            "cargo clippy -- -Clinker=./evil.sh",
            "cargo clippy -- -o /tmp/x",
            "cargo clippy -- @evil",
            "cargo clippy -- -A x__CLIPPY_HACKERY__--sysroot",
            "cargo clippy --fix",
        ],
    ),
    (
        "cargo doc",
        &["cargo doc --open", "cargo doc --target-dir=/tmp/x"],
    ),
    (
        "git add src",
        &[
            "git add",
            "git add -A",
            "git add -v",
            "git add -p",
            "git add src/../../x",
            "git add '*'",
            "git add src -v evil",
            "git add -e",
            "git add --pathspec-from-file=/etc/passwd",
            "git add ../x",
            "git add :/",
            "git add ':(top)x'",
            "git add outside/passwd",
        ],
    ),
    (
        "git commit -m x",
        &[
            "git commit",
            "git commit -q",
            "git commit --amend",
            "git commit --amend --no-edit",
            "git commit -m x < evil",
            "git commit -a -m x",
            "git commit -am x",
            "git commit -m x README.md",
            "git commit -S -m x",
            "git commit -F /etc/passwd",
            "git commit --file=/etc/passwd",
            "git commit -t evil",
            "git commit --gpg-sign=x",
            "git commit --no-verify -m x",
            "git commit -m --no-verify",
            "git commit -mx -F/etc/passwd",
            "git commit --trailer x",
        ],
    ),
    (
        "git fetch origin",
        &[
            "git fetch --upload-pack=./evil.sh origin",
            "git fetch --upload-pack ./evil.sh origin",
            "git fetch --upl=./evil.sh origin",
            "git fetch ext::./evil.sh",
            "git fetch 'ext::sh -c evil'",
            "git fetch ./evil",
            "git fetch evil",
            "git fetch ../evil",
            "git fetch /tmp/x",
            "git fetch https://example.org/x",
            "git fetch me@host:x",
            "git fetch -c core.sshCommand=evil origin",
            "git fetch --recurse-submodules origin",
            "git fetch --server-option=x origin",
            "git fetch --negotiation-tip=x origin",
            "git fetch --refmap=x origin",
        ],
    ),
    (
        "git pull",
        &[
            "git pull --upload-pack=./evil.sh",
            "git pull -s evil",
            "git pull -X x",
            "git pull ext::./evil.sh",
            "git pull --recurse-submodules",
            "git pull -S",
        ],
    ),
    ("git grep x", &["git grep -O./evil.sh x", "git grep y"]),
    (
        "git diff --no-index src evil",
        &["git diff --output=/tmp/x", "git diff --ext-diff"],
    ),
    (
        "go test ./...",
        &[
            "go test -exec ./evil.sh ./...",
            "go test -exec=./evil.sh",
            "go test --exec=./evil.sh",
            "go test -toolexec ./evil.sh",
            "go test -vettool=./evil.sh",
            "go test -ldflags=-extld=./evil.sh",
            "go test -gcflags=x",
            "go test -o /tmp/x",
            "go test -coverprofile=/tmp/x",
            "go test -cpuprofile /tmp/x",
            "go test -outputdir /tmp",
            "go test -C ../x",
            "go test -modfile=/tmp/go.mod",
            "go test -overlay=x.json",
            "go test -args -test.coverprofile=/tmp/x",
            "go test ../x/...",
            "go test ./outside/...",
            "go test ./testdata/x",
            "go test ./vendor/x",
            "go test ./src/testdata/...",
            "go test ./_x",
            "go test . < evil",
            "go test ./src/../../x",
            "go test /tmp/x",
            "go test example.com/m/b",
            "go test ...",
            "go test .../b",
            "go test ./src -v ./src/x",
            "go test -run -exec=./evil.sh",
        ],
    ),
    (
        "make test",
        &[
            "make test --eval='$(shell touch x)'",
            "make test -f /tmp/Makefile",
            "make test --file=evil",
            "make test --makefile=evil",
            "make test -C ../x",
            "make test -C crates -C x",
            "make test -Ccrates -C deep/../../..",
            "make test -I evil",
            "make test SHELL=./evil.sh",
            "make test CC=./evil.sh",
            "make test install",
            "echo x | make test",
            "make test < evil",
            "make test -Cx2>&1",
            "for i in >(make test); do echo y >&63; done",
            "echo y | tee >(make test)",
            "ls 2>& -x && make test 2>& --eval",
            "make test -fx2>/dev/null",
            "for x in <(echo y); do make test -j 0>&63; done",
            "make test <<< x",
            "make test -j",
            "make test -j install",
            "make test -j4x",
            "make test -E x",
            "make test -d",
            "make install",
        ],
    ),
    (
        "npm test",
        &[
            "npm test --script-shell=./evil.sh",
            "npm test --prefix ../x",
            "npm test --userconfig=evil",
            "npm test -- --config ../x",
            "npm test -- -r ./evil.js",
            "npm test -- ../x",
            "npm test deploy",
            "npm test src/x.test.js",
            "npm test -- src/x.test.js",
            "npm test -- --coverage",
            "npm test -- deploy",
            "npm test -- --run test.other",
            "npm test SHELL=./x",
            "npm test --node-options=--require=./evil.js",
            "npm test -- 'a$(touch M)'",
            "npm test 'a;touch M'",
            "npm test -- 'a b'",
            "npm test -w x",
            "npm test --workspace=x",
            "npm test --workspaces -- x.js",
        ],
    ),
    (
        "npm run build",
        &[
            "npm run build --script-shell ./evil.sh",
            "npm run build -- --outDir /tmp/x",
            "npm run build -C ../x",
            "npm run deploy",
        ],
    ),
    (
        "npm install",
        &[
            "npm install evil",
            "npm install --prefix ../x",
            "npm install -g",
        ],
    ),
    (
        "pnpm test",
        &[
            "pnpm test -C ../x",
            "pnpm test --dir=../x",
            "pnpm test 'a`touch M`'",
            "pnpm test -- 'a\"b'",
        ],
    ),
    (
        "pnpm run build",
        &["pnpm run build -w 'x y'", "pnpm run build --silent"],
    ),
    (
        "yarn test",
        &[
            "yarn test --cwd ../x",
            "yarn test --use-yarnrc evil",
            "yarn test -w src",
        ],
    ),
    (
        "yarn run build",
        &["yarn run build -s", "yarn run build -w x"],
    ),
    (
        "pytest tests/x.py",
        &[
            "pytest outside/x.py",
            "pytest src",
            "pytest folder.py",
            "pytest -n 4",
            "pytest -pevil2>&1",
            "pytest -q 0>&1",
            "pytest outside/x.py::test_y",
            "pytest tests/x.py -x evil.py",
            "pytest -p evil",
            "pytest -c ../x/pytest.ini",
            "pytest -o addopts=-pevil",
            "pytest --override-ini=x",
            "pytest --rootdir=/tmp",
            "pytest --basetemp=src",
            "pytest --junitxml=/tmp/x",
            "pytest --pastebin=all",
            "pytest '..[x'",
            "pytest 'outside[x]'",
            "pytest --debug=/tmp/x",
            "pytest --pdb --pdbcls=evil:x",
            "pytest --confcutdir=/",
            "pytest ../x",
            "pytest @evil",
            "pytest -k '__import__(1)'",
            "pytest -xp evil",
        ],
    ),
    (
        "python3 -m pytest",
        &["python3 -m pytest -p evil", "python3 -m pip install x"],
    ),
    (
        "uv run pytest",
        &["uv run pytest -p evil", "uv run --with x pytest"],
    ),
];

#[test]
fn suggested_rule_covers_no_running_or_writing_option() {
    let bench = Bench::new();
    let mut covered = Vec::new();
    let mut count = 0;
    for (first, follow_ups) in NOT_COVERED {
        let mut policy = Policy::new(Mode::Ask, vec![], vec![]);
        policy.allow(bench.suggested_rule(first));
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
        &["make test -j 4 -k", "make test -s"],
    ),
    (
        "python3 -m pytest -q",
        "shell(python3 -m pytest:+)",
        &[
            "python3 -m pytest tests/x.py::test_y -x --tb=short",
            "python3 -m pytest -k 'a and not b'",
        ],
    ),
    (
        "uv run pytest -q",
        "shell(uv run pytest:+)",
        &["uv run pytest tests/x.py -vv"],
    ),
];

#[test]
fn suggested_rule_covers_ordinary_options() {
    let bench = Bench::new();
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
    let bench = Bench::new();
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
        "go vet ./...",
        "pytest --collect-only",
        "gh pr view 1",
        "git checkout main",
        "git add -A",
        "git commit -am x",
        "git fetch origin",
        "git grep -O./evil.sh x",
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
            format!("shell({line})")
        );
    }
}

#[test]
fn rejected_known_options_rule_denies_every_option() {
    let bench = Bench::new();
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
    let bench = Bench {
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
