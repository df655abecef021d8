//! Checks repositories in a work tree that become submodules while a command covered by a rule runs.

use super::super::{GitSettings, Judgement, Mode, Policy, Rule};
use super::attack_vector_tests::{GitFixture, user_rules};
use super::attack_vectors::append_config;
use super::environment::apply_git_settings;
use super::repository_layout_tests::LayoutCase;
use crate::Access;
use std::{ffi::OsStr, fs, os::unix::fs::symlink};

fn submodule_policy() -> Policy {
    let rules = [
        "shell(git add:*)",
        "shell(git checkout feat)",
        "shell(git commit:*)",
        "shell(git pull:*)",
        "shell(git stash branch b)",
        "shell(git stash pop)",
        "shell(git switch feat)",
    ];
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    Policy::new(Mode::Ask, rules, vec![])
}

/// Adds an ignored repository in the folder `n`.
fn add_ignored_repository(bench: &GitFixture) {
    bench.git("init -q n");
    fs::write(bench.work_tree.join(".git/info/exclude"), "/n\n").unwrap();
}

/// Adds a branch `feat` and a stash with `n` as a submodule that the index does not contain.
fn add_submodule_branch(bench: &GitFixture) {
    let line = "export GIT_INDEX_FILE=.git/other && cp .git/index .git/other \
        && git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,n \
        && t=$(git write-tree) && c=$(git commit-tree -p HEAD -m feat $t) \
        && git update-ref refs/heads/feat $c \
        && git stash store $(git commit-tree -p HEAD -p $c -m stash $t) && rm .git/other";
    let output = bench.run(&bench.work_tree, line, &bench.environment());
    assert!(output.status.success(), "{output:?}");
}

/// Adds a remote whose branch `main` has `n` as a submodule, and configures pulls to stash changes.
fn add_submodule_remote(bench: &GitFixture) {
    add_submodule_branch(bench);
    let upstream = bench.root.join("upstream");
    let upstream = upstream.display();
    bench.git(&format!("clone -q --bare . {upstream}"));
    bench.git(&format!("push -q {upstream} feat:main"));
    let own = format!("[url \"{upstream}\"]\n\tinsteadOf = https://example.org/x.git\n");
    fs::write(bench.root.join(".gitconfig"), own).unwrap();
    append_config(
        bench,
        "[remote \"origin\"]\nurl = https://example.org/x.git\nfetch = +refs/heads/*:refs/remotes/origin/*\n\
         [branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n\
         [pull]\nrebase = true\n[rebase]\nautoStash = true\n",
    );
}

#[test]
fn repository_that_becomes_a_submodule_runs_nothing() {
    let policy = submodule_policy();
    let cases: [LayoutCase; 10] = [
        ("git add n && git commit --amend", |_| {}),
        ("git add n && git commit", |_| {}),
        ("git add n && git commit --amend -s", |_| {}),
        ("git checkout feat", add_submodule_branch),
        ("git switch feat", add_submodule_branch),
        ("git stash pop", add_submodule_branch),
        ("git stash branch b", add_submodule_branch),
        ("git pull", add_submodule_remote),
        ("git pull --rebase", add_submodule_remote),
        ("git commit -am x", add_submodule_branch),
    ];
    for (line, lay) in cases {
        let bench = GitFixture::new();
        add_ignored_repository(&bench);
        if line.starts_with("git add") {
            fs::write(bench.work_tree.join(".git/info/exclude"), "").unwrap();
            bench.git_in(&bench.work_tree.join("n"), "commit -q --allow-empty -m new");
        }
        lay(&bench);
        // After an `add`, a commit without a message needs approval anyway.
        let is_covered = !line.starts_with("git add");
        let before = bench.judge(&policy, &bench.work_tree, line);
        assert_eq!(before == Judgement::Allow, is_covered, "{line}");
        bench.configure(
            &bench.work_tree.join("n/.git"),
            "[core]\nfsmonitor = EVIL\n",
        );
        bench.assert_asked(&policy, line);
        // Without protection, the attack works. A commit applies this stash, wherever the ref is stored.
        if line.starts_with("git commit") {
            bench.git("rev-parse stash > .git/MERGE_AUTOSTASH");
        }
        bench.take_mark();
        bench.assert_attack_works(line);
    }
}

/// Git reads the refs of a repository that it adds, and shows lines that are not refs.
#[test]
fn repository_that_is_added_shows_no_file_outside() {
    let policy = submodule_policy();
    for line in ["git add -A", "git add n"] {
        let bench = GitFixture::new();
        fs::write(bench.root.join("secret"), "hidden words\n").unwrap();
        bench.git("init -q n");
        assert_eq!(
            bench.judge(&policy, &bench.work_tree, line),
            Judgement::Allow
        );
        symlink(
            "../../../secret",
            bench.work_tree.join("n/.git/packed-refs"),
        )
        .unwrap();
        bench.assert_asked(&policy, line);
        // Without protection, the attack works.
        let output = bench.run(&bench.work_tree, line, &bench.environment());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("hidden words"), "{line}: {text}");
    }
}

/// Merges, diffs and pushes look for the commits of a submodule in its stored repository and fetch missing
/// ones.
#[test]
fn stored_submodule_that_is_not_plain_is_asked_about() {
    let rules = [
        "shell(git stash:*)",
        "shell(git commit:*)",
        "shell(git tag:*)",
    ];
    let policy = Policy::new(
        Mode::Ask,
        rules.map(|rule| rule.parse().unwrap()).to_vec(),
        vec![],
    );
    let promisor = "[extensions]\npartialclone = p\n[remote \"p\"]\nurl = https://example.org/x\npromisor = true\nuploadpack = EVIL\n";
    for name in ["n", "deep/er", "n/modules/m", "n/x"] {
        let bench = GitFixture::new();
        let lines = [
            "git stash pop",
            "git stash apply -q",
            "git commit -v --dry-run",
        ];
        for name in ["n", name] {
            bench.git(&format!("init -q --bare .git/modules/{name}"));
            let config = bench
                .work_tree
                .join(".git/modules")
                .join(name)
                .join("config");
            fs::write(config, "[core]\nbare = false\n").unwrap();
        }
        for line in lines {
            assert_eq!(
                bench.judge(&policy, &bench.work_tree, line),
                Judgement::Allow,
                "{line}"
            );
        }
        bench.configure(&bench.work_tree.join(".git/modules").join(name), promisor);
        for line in lines {
            bench.assert_asked(&policy, line);
        }
    }
}

#[test]
fn stored_submodule_in_git_folder_is_asked_about() {
    let rules = ["shell(git stash:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    for name in [
        "n/info",
        "n/refs/q",
        "n/objects/zz",
        "n/objects/ab/x",
        "n/logs/refs/x",
    ] {
        let bench = GitFixture::new();
        let line = "git stash push -k";
        bench.git("init -q --bare .git/modules/n");
        fs::write(bench.work_tree.join(".git/modules/n/config"), "").unwrap();
        fs::create_dir_all(bench.work_tree.join(".git/modules/n/logs/refs/remotes/o")).unwrap();
        let log = bench
            .work_tree
            .join(".git/modules/n/logs/refs/remotes/o/HEAD");
        fs::write(log, "").unwrap();
        assert_eq!(
            bench.judge(&policy, &bench.work_tree, line),
            Judgement::Allow
        );
        bench.git(&format!("init -q --bare .git/modules/{name}"));
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{name}: {judged:?}"
        );
    }
}

#[test]
fn stored_submodule_with_foreign_work_tree_is_asked_about() {
    let rules = ["shell(git stash:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    let extended = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n";
    for (name, work_tree, is_asked) in [
        ("config", "../../../n", false),
        ("config", "../../../../n", true),
        ("config", "/elsewhere", true),
        ("config.worktree", "../../../n", true),
        ("config.worktree", "/elsewhere", true),
    ] {
        let bench = GitFixture::new();
        bench.git("init -q --bare .git/modules/n");
        let kept = bench.work_tree.join(".git/modules/n");
        fs::write(kept.join("config"), extended).unwrap();
        let text = format!("[core]\n\tworktree = {work_tree}\n");
        let before = fs::read_to_string(kept.join(name)).unwrap_or_default();
        fs::write(kept.join(name), before + &text).unwrap();
        let judged = bench.judge(&policy, &bench.work_tree, "git stash push -k");
        assert_eq!(
            matches!(judged, Judgement::Ask { .. }),
            is_asked,
            "{name} {work_tree}: {judged:?}"
        );
    }
}

/// Git treats a name that is not a remote of the repository as a folder, and the user's settings may contain
/// such a name.
#[test]
fn user_git_settings_name_no_local_repository() {
    let bench = GitFixture::new();
    let rules = ["shell(git push)", "shell(git fetch:*)"];
    let policy = Policy::new(
        Mode::Ask,
        rules.map(|rule| rule.parse().unwrap()).to_vec(),
        vec![],
    );
    append_config(
        &bench,
        "[remote \"origin\"]\nurl = https://example.invalid/x\n",
    );
    let own = "[remote]\n\tpushDefault = fork\n[push]\n\tdefault = current\n[remote \"upstream\"]\n\tfetch = +refs/heads/*:refs/remotes/upstream/*\n";
    fs::write(bench.root.join(".gitconfig"), own).unwrap();
    bench.git("clone -q --bare . fork");
    bench.git("clone -q --bare . upstream");
    for line in ["git push", "git fetch upstream"] {
        let access = Access::Run {
            command: line.to_owned(),
            cwd: bench.work_tree.clone(),
        };
        let (_, limits) = policy.judge_with_limits("shell", &access, &bench.workspace());
        let run = |settings| {
            let mut environment = bench.environment();
            environment.remove(OsStr::new("GIT_ALLOW_PROTOCOL"));
            apply_git_settings(settings, &mut environment);
            let output = bench.run(&bench.work_tree, &format!("{line} --dry-run"), &environment);
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let free = run(GitSettings::Unrestricted);
        assert!(!free.contains("not allowed"), "{line}: {free}");
        let careful = run(limits.git.max(GitSettings::Careful));
        assert!(careful.contains("'file' not allowed"), "{line}: {careful}");
    }
}

/// These commands write to folders named by records, and look for changes in work trees with their own
/// settings.
#[test]
fn commands_in_other_work_trees_are_asked_about() {
    let rules = ["shell(git worktree:*)", "shell(git init:*)"];
    let policy = Policy::new(
        Mode::Ask,
        rules.map(|rule| rule.parse().unwrap()).to_vec(),
        vec![],
    );
    let bench = GitFixture::new();
    bench.git("worktree add -q ../linked");
    for line in [
        "git worktree repair",
        "git worktree remove linked",
        "git worktree move linked ../other",
        "git -C . worktree remove --force ../linked",
        "git init ../other",
    ] {
        bench.assert_asked(&policy, line);
    }
    for line in [
        "git worktree prune",
        "git worktree lock ../linked",
        "git init -q",
    ] {
        bench.assert_allowed(&policy, line);
    }
}

#[test]
fn pointer_replacing_stored_submodule_is_asked_about() {
    let rules = ["shell(git stash:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    for (name, text) in [
        ("n/commondir", "../../../evil\n"),
        ("m", "gitdir: ../../evil\n"),
    ] {
        let bench = GitFixture::new();
        bench.git("init -q --bare .git/modules/n");
        fs::write(bench.work_tree.join(".git/modules/n/config"), "").unwrap();
        let line = "git stash pop";
        assert_eq!(
            bench.judge(&policy, &bench.work_tree, line),
            Judgement::Allow
        );
        fs::write(bench.work_tree.join(".git/modules").join(name), text).unwrap();
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{name}: {judged:?}"
        );
    }
}

/// Git uses the name of a remote without a URL as a path.
#[test]
fn remote_without_url_is_asked_about() {
    let rules = ["shell(git fetch:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    let bench = GitFixture::new();
    append_config(&bench, "[remote \"origin\"]\nurl = https://example.org/x\n");
    let line = "git fetch --all --no-recurse-submodules";
    assert_eq!(
        bench.judge(&policy, &bench.work_tree, line),
        Judgement::Allow
    );
    for key in [
        "fetch = +refs/heads/*:refs/remotes/p/*",
        "pushurl = https://example.org/x",
    ] {
        let bench = GitFixture::new();
        append_config(&bench, "[remote \"origin\"]\nurl = https://example.org/x\n");
        append_config(&bench, &format!("[remote \"../other\"]\n{key}\n"));
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert!(matches!(judged, Judgement::Ask { .. }), "{key}: {judged:?}");
    }
}

/// Git looks in the work tree for a submodule that arrives with a fetch.
#[test]
fn fetch_with_embedded_repository_is_asked_about() {
    let rules = ["shell(git fetch:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    let bench = GitFixture::new();
    append_config(&bench, "[remote \"origin\"]\nurl = https://example.org/x\n");
    assert_eq!(
        bench.judge(&policy, &bench.work_tree, "git fetch"),
        Judgement::Allow
    );
    bench.git("init -q n");
    bench.configure(
        &bench.work_tree.join("n/.git"),
        "[core]\nfsmonitor = EVIL\n",
    );
    bench.assert_asked(&policy, "git fetch");
}

/// Git records pending operations, and a commit continues them.
#[test]
fn unfinished_merge_is_asked_about() {
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    let hash = "1".repeat(40);
    let bench = GitFixture::new();
    let git = bench.work_tree.join(".git");
    let judge = || bench.judge(&policy, &bench.work_tree, "git commit -am x");
    fs::write(git.join("MERGE_RR"), "").unwrap();
    assert_eq!(judge(), Judgement::Allow);
    fs::write(git.join("MERGE_AUTOSTASH"), format!("{hash}\n")).unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    fs::remove_file(git.join("MERGE_AUTOSTASH")).unwrap();
    assert_eq!(judge(), Judgement::Allow);
    // Git takes its options from there.
    fs::write(git.join("BISECT_START"), "--pathspec-from-file=/x\n").unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    fs::remove_file(git.join("BISECT_START")).unwrap();
    fs::write(git.join("BISECT_TERMS"), "bad\ngood\n").unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    fs::remove_file(git.join("BISECT_TERMS")).unwrap();
    let packed = git.join("packed-refs");
    fs::write(&packed, format!("# pack-refs\n{hash} refs/x\n")).unwrap();
    assert_eq!(judge(), Judgement::Allow);
    fs::write(&packed, format!("{hash} MERGE_AUTOSTASH\n")).unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    fs::remove_file(&packed).unwrap();
    let before = fs::read_to_string(git.join("config")).unwrap();
    append_config(
        &bench,
        "[core]\nrepositoryformatversion = 1\n[extensions]\nrefStorage = reftable\n",
    );
    let text = fs::read_to_string(git.join("config")).unwrap();
    fs::write(
        git.join("config"),
        text.replacen("repositoryformatversion = 0", "", 1),
    )
    .unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    // The list of reftables may name files anywhere.
    let reads = |policy: &Policy| bench.judge(policy, &bench.work_tree, "git status");
    assert!(matches!(reads(&policy), Judgement::Ask { .. }));
    assert_eq!(reads(&policy.clone().with_confined(true)), Judgement::Allow);
    fs::write(git.join("config"), before).unwrap();
    assert_eq!(judge(), Judgement::Allow);
    fs::write(git.join("MERGE_RR"), format!("{hash}\t../secret\0")).unwrap();
    assert!(matches!(judge(), Judgement::Ask { .. }));
    // Without protection, the attack works.
    fs::write(bench.root.join("secret"), "hidden words\n").unwrap();
    let resolved = git.join("rr-cache").join(&hash);
    fs::create_dir_all(&resolved).unwrap();
    fs::write(resolved.join("preimage"), "").unwrap();
    bench.run(&bench.work_tree, "git commit -am x", &bench.environment());
    let copied = fs::read_to_string(resolved.join("postimage")).unwrap();
    assert_eq!(copied, "hidden words\n");
}

/// A rule for a program that starts git does not cover the repository that git finds.
#[test]
fn git_behind_another_program_is_asked_about() {
    let lines = ["npx git status", "uv run git commit -m x"];
    let rules = lines.map(|line| format!("shell({line})").parse().unwrap());
    let policy = Policy::new(Mode::Ask, rules.to_vec(), vec![]);
    let bench = GitFixture::new();
    for line in lines {
        let judged = bench.judge(&policy, &bench.work_tree, line);
        assert_eq!(judged, Judgement::Ask { always: None }, "{line}");
    }
}

/// Settings, including those of the repository, can make git show more than the words of the line ask for.
#[test]
fn git_settings_show_no_denied_file() {
    let policy = Policy::new(Mode::Auto, vec![], vec!["read(**/.env)".parse().unwrap()]);
    let library = GitFixture::new();
    fs::write(library.work_tree.join(".env"), "SECRET=1\n").unwrap();
    library.git("add -f .env");
    library.git("commit -qm env");
    let bench = GitFixture::new();
    bench.git(&format!(
        "-c protocol.file.allow=always submodule add -q {} lib",
        library.work_tree.display()
    ));
    bench.git("commit -qm lib");
    fs::write(bench.work_tree.join("lib/.env"), "SECRET=2\n").unwrap();
    bench.git("config diff.submodule diff");
    let own = GitFixture::new();
    fs::write(own.work_tree.join(".env"), "SECRET=1\n").unwrap();
    own.git("add -f .env");
    own.git("commit -qm env");
    fs::write(own.work_tree.join(".env"), "SECRET=2\n").unwrap();
    own.git("config commit.verbose 2");
    for (bench, line) in [(&bench, "git diff -W"), (&own, "git commit -m x")] {
        let access = Access::Run {
            command: line.to_owned(),
            cwd: bench.work_tree.clone(),
        };
        let (judged, limits) = policy.judge_with_limits("shell", &access, &bench.workspace());
        assert_eq!(judged, Judgement::Allow, "{line}");
        let shows = |settings| {
            let mut environment = bench.environment();
            apply_git_settings(settings, &mut environment);
            let output = bench.run(&bench.work_tree, line, &environment);
            String::from_utf8_lossy(&output.stdout).contains("SECRET")
        };
        assert!(shows(GitSettings::Unrestricted), "{line}");
        assert!(!shows(limits.git), "{line}");
    }
}

/// A rule covers only the repository that was checked; the user's approval, or a rule for all commands,
/// covers every other one too.
#[test]
fn git_allowed_by_rule_gets_careful_settings() {
    let bench = GitFixture::new();
    let access = Access::Run {
        command: "git add -A".to_owned(),
        cwd: bench.work_tree.clone(),
    };
    for (mode, rule, expected) in [
        (Mode::Ask, "shell(git add:*)", GitSettings::Careful),
        (Mode::Edit, "shell(git add:*)", GitSettings::Careful),
        (Mode::Ask, "shell", GitSettings::Unrestricted),
        (Mode::Auto, "shell(git add:*)", GitSettings::Unrestricted),
    ] {
        let policy = Policy::new(mode, vec![rule.parse().unwrap()], vec![]);
        let (judged, limits) = policy.judge_with_limits("shell", &access, &bench.workspace());
        assert_eq!(
            (judged, limits.git),
            (Judgement::Allow, expected),
            "{mode:?} {rule}"
        );
    }
}
