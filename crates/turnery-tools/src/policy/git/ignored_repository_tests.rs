//! Checks git commands under rules that deny files, where git takes another repository than the words suggest, or none.

use super::super::{Judgement, Mode, Policy};
use super::attack_vector_tests::GitFixture;
use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

/// Git ignores a repository of another format, and compares any two folders then.
#[test]
fn diff_in_ignored_repository_shows_no_denied_file() {
    let policy = Policy::new(Mode::Ask, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
    let config = bench.work_tree.join(".git/config");
    let plain = fs::read_to_string(&config).unwrap();
    let line = "git diff src .";
    let judge = || bench.judge(&policy, &bench.work_tree, line);
    assert_eq!(judge(), Judgement::Allow);
    for (extension, is_shown) in [
        ("objectFormat = sha1", true),
        ("refStorage = files", true),
        ("relativeWorktrees = true", false),
    ] {
        fs::write(&config, format!("{plain}[extensions]\n\t{extension}\n")).unwrap();
        assert!(matches!(judge(), Judgement::Ask { .. }), "{extension}");
        // Without protection, the attack works.
        let shown = bench.output_of(line).contains("hidden words");
        assert!(shown || !is_shown, "{extension}");
    }
}

#[test]
fn diff_after_repository_is_taken_away_shows_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let set_up = || {
        let bench = GitFixture::new();
        fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
        bench
    };
    for line in [
        "mv .git g && git diff src .",
        "rm .git/HEAD; git diff src .",
        "git config core.repositoryformatversion 99; git diff src .",
        "GIT_DIR=/absent git diff src .",
        "export GIT_DIR=/absent; git diff src .",
        "export GIT_CEILING_DIRECTORIES=/work; git diff src .",
    ] {
        let bench = set_up();
        let line = line.replace("/work", &bench.root.display().to_string());
        bench.assert_asked(&policy, &line);
        // Without protection, the attack works.
        let shown = bench.output_of(&line);
        assert!(
            shown.contains("hidden words") || line.contains("CEIL"),
            "{line}: {shown}"
        );
    }
    let bench = set_up();
    for line in ["touch x; git diff HEAD~1 HEAD", "git log; git diff src ."] {
        bench.assert_allowed(&policy, line);
    }
}

/// Git ignores a repository of another user, and compares any two folders then.
#[test]
fn diff_in_repository_of_other_user_shows_no_denied_file() {
    let policy = Policy::new(Mode::Ask, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
    let line = "git diff src .";
    let judge = || bench.judge(&policy, &bench.work_tree, line);
    assert_eq!(judge(), Judgement::Allow);
    let is_root = rustix::process::geteuid().is_root();
    let changed = chown(bench.work_tree.join(".git"), Some(4_242), None);
    // Only root can give a folder to another user.
    assert_eq!(changed.is_ok(), is_root, "{changed:?}");
    assert_eq!(judge() == Judgement::Allow, !is_root);
    // Without protection, the attack works.
    assert_eq!(bench.output_of(line).contains("hidden words"), is_root);
}

/// Git skips an empty `.git`, and takes the repository above it.
#[test]
fn blame_below_empty_git_folder_quotes_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
    fs::create_dir_all(bench.work_tree.join("nest/.git")).unwrap();
    let line = "git -C nest blame ../src/a.txt";
    let judge = || bench.judge(&policy, &bench.work_tree, line);
    assert_eq!(judge(), Judgement::Allow);
    symlink(".env", bench.work_tree.join("ignored")).unwrap();
    bench.git("config blame.ignoreRevsFile ignored");
    let output = bench.run(&bench.work_tree, line, &bench.environment());
    assert!(String::from_utf8_lossy(&output.stderr).contains("hidden words"));
    assert!(matches!(judge(), Judgement::Ask { .. }));
}

/// Git skips an empty `.git` for `git diff` too.
#[test]
fn diff_below_empty_git_folder_shows_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
    fs::create_dir_all(bench.work_tree.join("nest/.git")).unwrap();
    let line = "git -C nest diff src .";
    let judge = || bench.judge(&policy, &bench.work_tree, line);
    assert_eq!(judge(), Judgement::Allow);
    bench.git("config core.repositoryformatversion 99");
    assert!(bench.output_of(line).contains("hidden words"));
    assert!(matches!(judge(), Judgement::Ask { .. }));
}

/// Git looks for a pattern where the path before it leads, even through folders that do not exist.
#[test]
fn patterns_reach_no_denied_file() {
    let rules = ["rm", "restore", "checkout", "stash"];
    let rules = rules.map(|name| format!("shell(git {name}:*)").parse().unwrap());
    let deny = vec!["edit(secrets/**)".parse().unwrap()];
    let policy = Policy::new(Mode::Ask, rules.into(), deny);
    let set_up = || {
        let bench = GitFixture::new();
        fs::create_dir(bench.work_tree.join("secrets")).unwrap();
        fs::write(bench.work_tree.join("secrets/a"), "one\n").unwrap();
        bench.git("add secrets/a");
        bench.git("commit -qm secrets");
        fs::write(bench.work_tree.join("secrets/a"), "two\n").unwrap();
        fs::create_dir(bench.work_tree.join("deep")).unwrap();
        symlink("../src", bench.work_tree.join("deep/link")).unwrap();
        bench
    };
    for line in [
        "git rm -qf 'src/../s*'",
        "git rm -qf 'absent/../s*'",
        "git rm -qf -- '--/../secret?/a'",
        "git rm -qrf :",
        "git rm -qrf ::",
        "git restore :",
        "git checkout HEAD -- :",
        "git checkout HEAD -- 'src/../s*'",
        "git stash push -q -- 'src/../s*'",
        "cd src && git rm -qf '../s*/a'",
        "git stash push -qm -m 's*'",
        "git stash push --message -m 's*'",
        "git -C deep/link rm -qf '../s*/a'",
    ] {
        let bench = set_up();
        bench.assert_asked(&policy, line);
        // Without protection, the attack works.
        bench.output_of(line);
        let left = fs::read_to_string(bench.work_tree.join("secrets/a"));
        assert_ne!(left.ok().as_deref(), Some("two\n"), "{line}");
    }
    let bench = set_up();
    for line in ["git rm -q 'src/*'", "git checkout HEAD -- src/a.txt"] {
        bench.assert_allowed(&policy, line);
    }
}

/// An earlier command of git may make the index list a denied file, or move the work tree.
#[test]
fn commands_after_other_git_commands_show_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let set_up = || {
        let bench = GitFixture::new();
        let env = bench.work_tree.join(".env");
        fs::write(&env, "old\n").unwrap();
        bench.git("add .env");
        bench.git("commit -qm env");
        bench.git("tag withenv");
        bench.git("diff --binary HEAD~1 HEAD --output=../env.patch");
        bench.git("rm -q --cached .env");
        bench.git("commit -qm gone");
        fs::write(&env, "hidden words\n").unwrap();
        bench
    };
    for line in [
        "git reset -q withenv && git diff",
        "git read-tree withenv; git grep words",
        "git apply --cached ../env.patch && git diff",
        "timeout 5 git reset -q withenv && git diff",
        "timeout 5 git add -A && git diff --cached",
    ] {
        let bench = set_up();
        bench.assert_asked(&policy, line);
        assert!(bench.output_of(line).contains("hidden words"), "{line}");
    }
    let bench = set_up();
    for line in [
        "git log --oneline; git diff",
        "make && git diff",
        "git fetch; git status",
    ] {
        bench.assert_allowed(&policy, line);
    }
}

/// Git quotes files of its own folder, such as the report of the last `git gc`.
#[test]
fn links_in_git_folder_show_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
    let judge = |line: &str| bench.judge(&policy, &bench.work_tree, line);
    let lines = ["git gc --auto", "git commit -q --no-edit", "git status -s"];
    for line in lines {
        assert_eq!(judge(line), Judgement::Allow, "{line}");
    }
    symlink("../.env", bench.work_tree.join(".git/gc.log")).unwrap();
    for line in lines {
        assert!(matches!(judge(line), Judgement::Ask { .. }), "{line}");
    }
}

/// A git that does not know an extension of the format works at the top of the repository, as if outside.
#[test]
fn repository_with_unknown_extension_is_asked_about() {
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    let bench = GitFixture::new();
    let judge = || bench.judge(&policy, &bench.work_tree, "git status");
    assert_eq!(judge(), Judgement::Allow);
    for extension in ["relativeWorktrees = true", "refStorage = files"] {
        let config = bench.work_tree.join(".git/config");
        let plain = fs::read_to_string(&config).unwrap();
        let version_1 = plain.replace("repositoryformatversion = 0", "repositoryformatversion = 1");
        fs::write(&config, format!("{version_1}[extensions]\n\t{extension}\n")).unwrap();
        assert!(matches!(judge(), Judgement::Ask { .. }), "{extension}");
        fs::write(&config, plain).unwrap();
        assert_eq!(judge(), Judgement::Allow);
    }
}

/// Git reads unasked what lies in a bare repository.
#[test]
fn links_in_bare_repository_show_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(.env)".parse().unwrap()]);
    let bench = GitFixture::new();
    fs::write(bench.work_tree.join(".env"), "hidden words\n").unwrap();
    bench.git("init -q --bare bare");
    symlink("../.env", bench.work_tree.join("bare/packed-refs")).unwrap();
    for line in ["git -C bare log -1 --oneline", "cd bare && git branch"] {
        let output = bench.run(&bench.work_tree, line, &bench.environment());
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("hidden words"),
            "{line}"
        );
        bench.assert_asked(&policy, line);
    }
}

/// A commit may contain hooks of a git folder that is part of the work tree.
#[test]
fn git_folder_in_work_tree_is_asked_about() {
    let policy = Policy::new(
        Mode::Ask,
        vec!["shell(git checkout:*)".parse().unwrap()],
        vec![],
    );
    let bench = GitFixture::new();
    let judge = || bench.judge(&policy, &bench.work_tree, "git checkout main");
    assert_eq!(judge(), Judgement::Allow);
    fs::rename(bench.work_tree.join(".git"), bench.work_tree.join("gd")).unwrap();
    fs::write(bench.work_tree.join(".git"), "gitdir: gd\n").unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
}

/// A git command may run after another one that follows it in the text.
#[test]
fn order_of_git_commands_is_that_of_their_run() {
    let rules = [
        "shell(git checkout:*)",
        "shell(git commit:*)",
        "shell(git add:*)",
    ];
    let rules = rules.map(|rule| rule.parse().unwrap());
    let policy = Policy::new(Mode::Ask, rules.to_vec(), vec![]);
    let bench = GitFixture::new();
    let judge = |line: &str| bench.judge(&policy, &bench.work_tree, line);
    for line in [
        "while git checkout main; do :; done",
        "until ! git checkout main; do :; done",
        "while git branch; do git checkout main; done",
        "git status & git checkout main",
        "{ ls; git status -s; } | git checkout main",
        "git commit -m \"$(git checkout main)\"",
        "true() { git branch; }; git checkout main; true",
        "true() { git checkout main && true; }; true",
        "git checkout main && git status",
    ] {
        let judged = judge(line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{line}: {judged:?}"
        );
    }
    for line in [
        "git checkout main",
        "git add src/a.txt && git commit -m x",
        "git add src/a.txt | cat",
        "git log --oneline | head -3; git add src/a.txt; git commit -m x",
        "for i in 1 2; do git status; done",
    ] {
        assert_eq!(judge(line), Judgement::Allow, "{line}");
    }
}

/// Programs of git's own folder have no subcommand: `git-checkout fetch` is no fetch.
#[test]
fn programs_of_git_are_no_subcommands() {
    let rules = vec!["shell(git-checkout:*)".parse().unwrap()];
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    let bench = GitFixture::new();
    let judge = |policy: &Policy, line: &str| bench.judge(policy, &bench.work_tree, line);
    for line in [
        "git-checkout fetch && git status",
        "git-checkout tag && cat src/a.txt",
        "git-checkout commit -m x && cat src/a.txt",
    ] {
        let judged = judge(&policy, line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{line}: {judged:?}"
        );
    }
    let deny = vec!["edit(secrets/**)".parse().unwrap()];
    let policy = Policy::new(Mode::Auto, vec![], deny);
    for line in [
        "git-checkout tag -m 's*'",
        "/usr/lib/git-core/git-checkout commit -m 's*'",
    ] {
        let judged = judge(&policy, line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{line}: {judged:?}"
        );
    }
}
