//! Checks that deny rules for files stop lines that may show those files, and no others.

use super::{
    Mode, Policy,
    everyday_line_tests::{EverydayFixture, everyday_fixture, is_allowed},
};

fn check_reading(bench: &EverydayFixture, deny: &str, stopped: &[&str], allowed: &[&str]) {
    for mode in [Mode::Ask, Mode::Plan, Mode::Edit] {
        let policy = Policy::new(mode, Vec::new(), vec![deny.parse().unwrap()]).with_confined(true);
        for line in allowed {
            assert!(is_allowed(bench, &policy, line), "{line} in {mode:?}");
        }
        for line in stopped {
            assert!(!is_allowed(bench, &policy, line), "{line} in {mode:?}");
        }
    }
}

/// Lines that only read and show no hidden file need no permission.
#[test]
fn read_rule_stops_no_line_that_shows_other_files() {
    let bench = everyday_fixture();
    let cwd = bench.workspace.cwd();
    std::fs::write(cwd.join(".env"), "x\n").unwrap();
    let check = |stopped: &[&str], allowed: &[&str]| {
        check_reading(&bench, "read(.env)", stopped, allowed);
    };
    let of_commits = [
        "git diff",
        "git diff -- .",
        "git diff -- src .",
        "git diff HEAD -- .",
        "git diff HEAD~1..HEAD .",
        "git show HEAD",
        "git log -p",
        "git grep foo",
    ];
    let allowed = [
        "git status",
        "git log --stat",
        "git ls-files",
        "git status .",
        "git -C . status",
        "git log --oneline .",
        "cargo --version",
        "rg foo src",
        "grep -rn foo src",
        "find src -name '*.rs' | xargs wc -l",
        "find src -name '*.rs' -exec grep -l foo {} +",
    ];
    let stopped = [
        "cat .env",
        "find src -name '*.rs' | xargs cat .env",
        "find -type f -exec grep -l foo {} +",
        "find -type f | xargs grep -l foo",
        "cat .e*",
        "grep -rn foo",
        "grep -rn -- '-*e*'",
        "grep -r -- --regexp",
        "egrep -r -- '-*e*'",
        "rg foo",
        "rg -- '-*e*'",
        "rg -tmake foo",
        "rg --hidden foo",
        "rg -uu foo",
        "rg -g '*' foo",
        "find -newer README.md -type f -exec cat {} +",
        "find -newer README.md -type f | xargs cat",
        "find ! -newer README.md -exec cat {} +",
        "git ls-files -zo '*env' | xargs -0 cat --",
        "git -C src diff ../README.md ../.env",
        "git diff ../x/src .",
        "find . -type f -exec grep -l foo {} +",
        "find . -type f | xargs grep -l foo",
        "git diff --no-index src .env",
        "git grep --untracked foo",
        "git check-ignore -v x",
        "cargo metadata --no-deps --offline",
    ];
    let add = |file| {
        let mut git = std::process::Command::new("git");
        let status = git.arg("-C").arg(cwd).args(["add", file]).status();
        assert!(status.unwrap().success());
    };
    add("README.md");
    check(&stopped, &allowed);
    let name = cwd.file_name().unwrap().display();
    let untracked = [
        format!("git diff ../{name} src"),
        format!("git diff ../{name} -"),
        format!("git diff -- ../{name} -d"),
        format!("git diff --end-of-options ../{name} -d"),
    ];
    check(&untracked.each_ref().map(String::as_str), &[]);
    check(&[], &of_commits);
    add(".env");
    check(&of_commits, &allowed);
}

/// Of files outside a repository, `git diff` shows any.
#[test]
fn git_outside_repositories_is_stopped_by_named_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("src")).unwrap();
    for name in [".env", "a.txt", "src/b.txt"] {
        std::fs::write(root.join(name), "x\n").unwrap();
    }
    let bench = EverydayFixture::at(folder);
    let stopped = [
        "git -C src diff ../a.txt ../.env",
        "git diff --no-index a.txt .env",
        "git diff src .",
    ];
    check_reading(&bench, "read(.env)", &stopped, &["git status", "ls src"]);
    let allowed = ["grep . src/b.txt", "grep -c . a.txt", "cat a.txt | jq ."];
    let stopped = ["grep -r . .", "grep -d recurse x .", "grep . .env"];
    check_reading(&bench, "read(.env)", &stopped, &allowed);
    let stopped = [
        r#"jq -n 'import "b" as $d {search: "./src"}; $d'"#,
        "jq -nL src 1",
        "gcc -E -Wp,-include.env,-DX a.c",
        "make CFLAGS=-include.env a.o",
        "./grep x src",
        "./jq x src",
        "./git commit -m .env",
        "./gh '.env: x'",
        "egrep x src",
        "/usr/bin/../../home/me/jq x src",
        "sqlite3 :memory: 'attach [src/k.db] as s; select * from s.t'",
    ];
    let deny = vec!["read(src/**)", "read(.env)"];
    let deny = deny.into_iter().map(|rule| rule.parse().unwrap()).collect();
    let policy = Policy::new(Mode::Auto, vec![], deny);
    for line in stopped {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
}

#[test]
fn quoted_settings_are_hidden() {
    let bench = everyday_fixture();
    let stopped = [
        "npm ls",
        "find src -exec npm ls --json {} +",
        "cat package.json",
    ];
    check_reading(&bench, "read(package.json)", &stopped, &["git remote -v"]);
    let stopped = [
        "git remote -v",
        "git remote get-url origin",
        "git config --get a.b",
    ];
    check_reading(
        &bench,
        "read(.git/config)",
        &stopped,
        &["git status", "git log"],
    );
    check_reading(
        &bench,
        "read(.env)",
        &[],
        &["git remote -v", "git config --get user.name"],
    );
    let cwd = bench.workspace.cwd();
    std::fs::create_dir(cwd.join("wt")).unwrap();
    std::fs::write(cwd.join("wt/.git"), "gitdir: ../.git\n").unwrap();
    let stopped = [
        "git -C src remote -v",
        "git -C wt remote -v",
        "cd wt && git remote -v",
    ];
    check_reading(&bench, "read(.git/config)", &stopped, &[]);
    std::fs::remove_dir_all(cwd.join("wt")).unwrap();
    std::fs::write(cwd.join(".env"), "[x\n").unwrap();
    check_reading(&bench, "read(.env)", &[], &["rg foo src"]);
    std::fs::write(cwd.join(".ignore"), "x\n").unwrap();
    let stopped = ["rg foo src", "find src | xargs rg foo"];
    check_reading(
        &bench,
        "read(.ignore)",
        &stopped,
        &["ls", "grep -r foo src"],
    );
    check_reading(&bench, "read(**/exclude)", &[], &["grep -r foo src"]);
    std::fs::remove_file(cwd.join(".ignore")).unwrap();
    std::os::unix::fs::symlink(".env", cwd.join(".ignore")).unwrap();
    check_reading(
        &bench,
        "read(.env)",
        &["rg foo src", "find src | xargs rg foo"],
        &["ls"],
    );
}

/// A rule for all reading also wins over rules and modes that allow commands.
#[test]
fn rule_against_all_reading_wins() {
    let bench = everyday_fixture();
    let allow = ["shell(cat:*)", "shell(git diff:*)", "shell"];
    let allow: Vec<_> = allow.iter().map(|rule| rule.parse().unwrap()).collect();
    for mode in Mode::ALL {
        let policy = Policy::new(mode, allow.clone(), vec!["read".parse().unwrap()]);
        let policy = policy.with_confined(true);
        for line in [
            "cat README.md",
            "grep -rn x .",
            "git log -p",
            "git diff",
            "cat < README.md",
            "echo $(<README.md)",
            "git stash list -p",
            "tac README.md; touch x",
        ] {
            assert!(!is_allowed(&bench, &policy, line), "{line} in {mode:?}");
        }
        for line in ["echo x", "pwd", "date"] {
            assert!(is_allowed(&bench, &policy, line), "{line} in {mode:?}");
        }
    }
}

/// The message of a commit may be about any file.
#[test]
fn message_of_commit_names_no_file() {
    let bench = everyday_fixture();
    let policy = Policy::new(Mode::Auto, Vec::new(), vec!["read(.env)".parse().unwrap()]);
    for line in [
        "git commit -m 'Ignore .env'",
        "git commit -am .env",
        "git commit --message .env",
        "git commit --message=.env",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "git commit -F .env",
        "git commit -Fm .env",
        "git commit -m x .env",
        "git commit -m -m .env",
        "git commit -F -m .env",
        "git commit --fil -m .env",
        "git commit --trailer -m .env",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
}

/// A program that starts git shows what git shows.
#[test]
fn started_git_and_other_folders_are_considered_in_auto() {
    let bench = everyday_fixture();
    let judge = |deny: &str, line: &str| {
        let policy = Policy::new(Mode::Auto, Vec::new(), vec![deny.parse().unwrap()]);
        is_allowed(&bench, &policy, line)
    };
    for line in [
        "nice git remote -v",
        "time git config --get remote.origin.url",
    ] {
        assert!(!judge("read(.git/config)", line), "{line}");
        assert!(judge("read(.env)", line), "{line}");
    }
    for line in [
        "git -C src rm lib.rs",
        "git -C src commit -qF lib.rs --allow-empty",
    ] {
        assert!(!judge("edit(src/lib.rs)", line), "{line}");
        assert!(judge("edit(docs/x)", line), "{line}");
    }
}

/// Git itself expands patterns that the shell leaves as they are.
#[test]
fn patterns_for_git_stop_at_denied_files() {
    let bench = everyday_fixture();
    let cwd = bench.workspace.cwd();
    std::fs::write(cwd.join(".env"), "x\n").unwrap();
    let rules = ["shell(git:*)"].map(|it| it.parse().unwrap());
    let judge = |mode: Mode, deny: &str, line: &str| {
        let policy = Policy::new(mode, rules.to_vec(), vec![deny.parse().unwrap()]);
        is_allowed(&bench, &policy, line)
    };
    for line in [
        "git rm -f '[s]rc/lib.rs'",
        "git rm -f '?rc/lib.rs'",
        "git rm -f '\\src/lib.rs'",
        "git checkout HEAD~1 -- '*/lib.rs'",
        "git restore -s HEAD~1 's?c/lib.rs'",
        "git checkout -m '[s]rc/lib.rs'",
    ] {
        assert!(!judge(Mode::Ask, "edit(src/**)", line), "{line}");
    }
    for line in ["nice git rm -f '?rc/lib.rs'", "git-rm -f '?rc/lib.rs'"] {
        assert!(!judge(Mode::Auto, "edit(src/**)", line), "{line}");
    }
    assert!(!judge(Mode::Ask, "read(.env)", "git add -f '.en?'"));
    for line in [
        "git rm -f 'docs/*'",
        "git commit -m 'why?'",
        "git tag -a v1 -m 'why?'",
    ] {
        assert!(judge(Mode::Ask, "edit(src/**)", line), "{line}");
    }
}
