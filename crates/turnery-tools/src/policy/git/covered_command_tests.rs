//! Checks git commands that need permission although a rule covers them.

use super::attack_vector_tests::GitFixture;
use crate::{
    Access, Workspace,
    policy::{
        Judgement, Mode, Policy,
        everyday_line_tests::{everyday_fixture, is_allowed},
    },
};
use std::{fs, os::unix::fs::symlink};

fn git_policy() -> Policy {
    let rules = [
        "shell(git:*)",
        "shell(/usr/bin/git:*)",
        "shell(git-upload-archive:*)",
        "shell(echo:*)",
    ];
    let rules = rules.map(|rule| rule.parse().unwrap()).to_vec();
    Policy::new(Mode::Ask, rules, Vec::new())
}

/// Git would run what such a repository names.
#[test]
fn repository_named_in_line_is_asked_about_outside_repositories() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("bare.git/objects")).unwrap();
    let workspace = Workspace::local(root.clone()).unwrap();
    let policy = git_policy();
    let is_allowed = |line: &str| {
        let access = Access::Run {
            command: line.to_owned(),
            cwd: root.clone(),
        };
        policy.judge("shell", &access, &workspace) == Judgement::Allow
    };
    for line in [
        "git clone ../other copy",
        "git clone /other copy",
        "git clone file:///other copy",
        "git clone https://example.org/x.git x/../../copy",
        "git clone https://example.org/x.git x/../.git/hooks",
        "git clone https://example.org/x.git .git/hooks",
        "git ls-remote bare",
        "git fetch foo::./x",
        "git fetch foo::x push",
        "git clone foo::x push",
        "git clone https://example.org/x.git /elsewhere -b push",
        "git remote set-url origin foo::x push && git fetch",
        "git archive HEAD",
        "git fetch foo://host/x",
        "git pull ext::x main",
        "git ls-remote fd::0",
        "git fetch bare.git",
        "git archive --remote=bare.git --format=foo HEAD",
        "git archive --remote bare.git --format=foo HEAD",
        "git for-each-repo --config=init.defaultBranch archive HEAD",
        "echo x | git shell -c \"git-upload-archive 'x'\"",
        "echo x | git upload-archive x",
        "echo x | git-upload-archive x",
        "git receive-pack x",
        "git daemon --base-path=x",
    ] {
        assert!(!is_allowed(line), "{line}");
    }
    for line in [
        "git clone https://example.org/x.git",
        "git clone -q --depth 1 https://example.org/x.git new",
        "git ls-remote https://example.org/x.git",
        "git init",
    ] {
        assert!(is_allowed(line), "{line}");
    }
}

/// A commit may name folders anywhere as submodules and files, and git follows links on the way to them.
#[test]
fn commands_that_open_what_a_commit_names_are_asked_about() {
    let bench = everyday_fixture();
    let policy = git_policy();
    for line in [
        "git diff --submodule=diff HEAD~1 HEAD",
        "git show --submodule=diff",
        "git log -p --submodule",
        "git diff --subm=diff HEAD",
        "git commit -m x .",
        "git commit --dry-run -v .",
        "git commit -qm '' src",
        "git commit -am x src",
        "git commit -o src -m x",
        "git commit -qo -m x",
        "git commit -im x",
        "git commit --only -m x",
        "git commit --inc -m x",
        "git commit -m x -- src",
        "git commit --amend --no-edit src",
        "git commit --fixup=HEAD .",
        "git commit -Sk src",
        "git commit -u src",
        "git commit -C HEAD src",
        "git commit --pathspec-from-file=x -m x",
        "git commit --mess -m .",
        "git commit --fil -m src",
        "git commit --trail -m . --no-edit",
        "git commit --dat -m \"$x\"",
        "/usr/bin/git commit -m x .",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "git diff --submodule=short HEAD",
        "git commit -m x",
        "git commit -am x",
        "git commit -qam x --",
        "git commit --amend --no-edit",
        "git commit --author 'A <a@b.c>' --date=now -m x",
        "git commit -F msg",
        "git commit -C HEAD",
        "git commit -uno -m x",
        "git commit --fixup HEAD",
        // These words mean something only elsewhere.
        "git commit -m push",
        "git commit -m shell",
        "git commit -m '50% Gain'",
        "git tag push",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

/// An unknown word may be any option, an unknown subcommand anything, and some start programs by themselves.
#[test]
fn git_that_is_not_understood_is_asked_about() {
    let bench = everyday_fixture();
    let policy = git_policy();
    for line in [
        "git diff $(echo --submodule=diff) HEAD~1 HEAD",
        "git log -p -1 \"$(echo --submodule=diff)\"",
        "git diff HEAD *",
        "git worktree $(echo remove) wt",
        "git worktree {remove,wt}",
        "git init $(echo src)",
        "git commit -m $(echo x .)",
        "git commit -m {x,.}",
        "git commit -m *",
        "git commit -m x\"$(echo ' .')\" $x",
        "git commit -m \"$@\"",
        "git commit --date $(echo now .) -m x",
        "git submodule summary",
        "git submodule--helper summary",
        "git instaweb",
        "git difftool -y",
        "git mergetool -y",
        "git upload-archive--writer x",
        "git hook run x",
        "git quiltimport",
        "git credential fill",
        "git wt remove x",
        "git clone --template=x https://example.org/x.git",
        "git clone -c core.hooksPath=x https://example.org/x.git",
        "git clone --config=a.b=c https://example.org/x.git",
        "git init --template=x",
        "git init --separate-git-dir=x",
        "git init --sep=x",
        "git clone -qc core.hooksPath=x https://example.org/x.git",
        "git bisect view x",
        "git bisect visualize",
        "git cherry-pick --strategy=x/y main",
        "git cherry-pick --strat x/y main",
        "git rebase -s x/y main",
        "git rebase -sx/y main",
        "git pull -qs x/y --rebase",
        "git format-patch -1",
        "git check-attr -a src/x",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "git commit -m \"$(echo x)\"",
        "git commit -am \"$x\"",
        "/usr/bin/git commit -m x",
        "git sparse-checkout set src",
        "git rebase -s ours origin/main",
        "git cherry-pick --strategy=ours main",
        "git merge --no-ff feature/x",
        "git bisect start",
        "git init -q",
        "git update-index --chmod=+x a.txt",
        "git stage src",
        "git diff-index HEAD -- src",
        "git whatchanged src",
        "git clone https://example.org/x.git",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

/// A lone `-` is a file or a folder, and so is a second `init`. Each may be a link.
#[test]
fn operands_that_look_like_options_are_asked_about() {
    let bench = everyday_fixture();
    let policy = git_policy();
    for line in [
        "git commit -m y -",
        "git commit - -m y",
        "git commit -qm y -",
        "git commit -m y -- -",
        "git init init",
        "git init -q init",
        "git init --bare init",
        "git init -- init",
        "git init -",
        "git init -q -- -",
    ] {
        assert!(!is_allowed(&bench, &policy, line), "{line}");
    }
    for line in [
        "git commit -m y",
        "git commit -m -",
        "git init",
        "git init -q",
    ] {
        assert!(is_allowed(&bench, &policy, line), "{line}");
    }
}

/// Git renames the files first and then runs a hook, which may be one of them.
#[test]
fn files_moved_into_git_folder_are_asked_about() {
    let policy = git_policy();
    let set_up = |line: &str| {
        let bench = GitFixture::new();
        let folder = bench.work_tree.join("hooks");
        fs::create_dir(&folder).unwrap();
        fs::copy(bench.root.join("evil"), folder.join("post-index-change")).unwrap();
        symlink(".git", bench.work_tree.join("link")).unwrap();
        symlink(".git/hooks", bench.work_tree.join("linked-hooks")).unwrap();
        let own_hooks = bench.work_tree.join(".git/hooks");
        fs::remove_dir_all(&own_hooks).unwrap();
        bench.git("add hooks");
        bench.git("commit -qm hooks");
        if line.contains("linked-hooks") {
            fs::create_dir(own_hooks).unwrap();
        }
        bench
    };
    for line in [
        "git mv hooks link/",
        "git mv hooks link/hooks",
        "git mv hooks .git/",
        "git mv hooks src/../.git/",
        "git mv -f hooks -- ROOT/link/",
        "git mv hooks/post-index-change linked-hooks/",
        "git-mv hooks link/",
    ] {
        let bench = set_up(line);
        let line = line.replace("ROOT", bench.work_tree.to_str().unwrap());
        bench.assert_asked(&policy, &line);
        // Without protection, the attack works; `git-mv` is in a folder of git's own.
        bench.assert_attack_works(&line.replace("git-mv", "git mv"));
    }
    let bench = set_up("");
    for line in ["git mv hooks scripts", "git mv -k src/a.txt hooks/"] {
        bench.assert_allowed(&policy, line);
    }
}

/// Two branches that change the same file, so that a merge is not trivial.
fn fixture_with_conflict() -> GitFixture {
    let bench = GitFixture::new();
    bench.git("checkout -q -- .");
    bench.git("checkout -q -b topic");
    fs::write(bench.work_tree.join("src/a.txt"), "topic\n").unwrap();
    bench.git("commit -q -a -m topic");
    bench.git("checkout -q -b other main");
    fs::write(bench.work_tree.join("src/a.txt"), "other\n").unwrap();
    bench.git("commit -q -a -m other");
    bench.git("checkout -q main");
    fs::write(bench.work_tree.join("src/a.txt"), "main\n").unwrap();
    bench.git("commit -q -a -m main");
    bench
}

/// Git's strategies in shell run what their options contain; other options write any file.
#[test]
fn options_that_run_or_write_are_asked_about() {
    let policy = git_policy();
    let patch = "diff --git a/.git/hooks/post-index-change b/.git/hooks/post-index-change\n\
                 new file mode 100755\n--- /dev/null\n+++ b/.git/hooks/post-index-change\n\
                 @@ -0,0 +1,2 @@\n+#!/bin/sh\n+: > 'ROOT/mark'\n";
    for line in [
        "git merge -s octopus -X '' -X h -X '};EVIL;:${y' topic",
        "git rebase -s octopus -X '' -X h -X '$(EVIL)' topic",
        "git cherry-pick --strategy octopus -X '' -X h -X '$(EVIL)' topic",
        "git apply --apply --unsafe-paths --build-fake-ancestor=fake x.patch",
        "git apply --apply --unsafe --build-fake=fake x.patch",
        "git apply --apply --exclude -- --unsafe-paths --build-fake-ancestor=fake x.patch",
        "git merge -m -- -s octopus -X '' -X h -X '$(EVIL)' topic",
        "git merge -X 'ours=,--' -X 'ours=h' -X 'ours=$(EVIL)' topic other",
        "git rebase -x EVIL HEAD~1",
        "git rebase -x'EVIL #Xours' HEAD~1",
        "git bisect start HEAD HEAD~2 && git bisect run EVIL",
    ] {
        let bench = fixture_with_conflict();
        let root = bench.root.display().to_string();
        fs::write(
            bench.work_tree.join("x.patch"),
            patch.replace("ROOT", &root),
        )
        .unwrap();
        fs::remove_dir_all(bench.work_tree.join(".git/hooks")).unwrap();
        let line = line.replace("EVIL", &bench.evil_program());
        bench.assert_asked(&policy, &line);
        // Without protection, the attack works.
        bench.assert_attack_works(&line);
    }
}

/// A command that damages `.git` lets its children take a repository that is tracked, or the one above.
#[test]
fn command_that_overwrites_head_is_asked_about() {
    let policy = git_policy();
    let bench = fixture_with_conflict();
    fs::write(bench.work_tree.join("src/a.txt"), "later\n").unwrap();
    bench.git("stash");
    let plain = "git cherry-pick -n --strategy resolve topic";
    assert_eq!(
        bench.judge(&policy, &bench.work_tree, plain),
        Judgement::Allow
    );
    for line in [
        "git cherry-pick -n --strategy resolve --output=.git/HEAD topic",
        "git cherry-pick -n -- --output=.git/HEAD topic",
        "git stash list --format=%s --output .git/HEAD",
        "git stash list -- --output=.git/HEAD --format=%s",
        "git merge -s resolve -X index-output=.git/HEAD topic",
    ] {
        bench.assert_asked(&policy, line);
        // Without protection, the attack works.
        let head = bench.work_tree.join(".git/HEAD");
        let before = fs::read(&head).unwrap();
        bench.run(&bench.work_tree, line, &bench.environment());
        assert_ne!(fs::read(&head).unwrap(), before, "{line}");
        fs::write(head, before).unwrap();
        bench.git("reset -q --hard");
    }
    // Without its `.git`, git would take the folder itself.
    for name in ["HEAD", "config"] {
        fs::copy(
            bench.work_tree.join(".git").join(name),
            bench.work_tree.join(name),
        )
        .unwrap();
    }
    fs::create_dir_all(bench.work_tree.join("objects")).unwrap();
    bench.assert_asked(&policy, plain);
}

/// Editors run what their input tells them, and git starts one for a message.
#[test]
fn git_that_may_start_editor_on_given_input_is_asked_about() {
    let policy = git_policy();
    for line in [
        "git commit --allow-empty < orders",
        "echo EVIL | git commit --amend",
        "{ git commit --allow-empty; } < orders",
        "echo EVIL | git tag -a v1",
        "echo EVIL | git branch --edit-description",
        "echo EVIL | git commit -eF - --allow-empty",
        "echo EVIL | git rebase -i HEAD~1",
        "printf 'e\\n%4093s\\nEVIL\\n' '' | git am -qi x.patch",
    ] {
        let bench = fixture_with_conflict();
        fs::write(bench.work_tree.join("orders"), bench.evil_program()).unwrap();
        let patch = bench.output_of("git format-patch -q -1 topic --stdout");
        fs::write(bench.work_tree.join("x.patch"), patch).unwrap();
        let line = line.replace("EVIL", &bench.evil_program());
        bench.assert_asked(&policy, &line);
        // Without protection, the attack works: this editor reads its orders as `vi` and `ed` do.
        let mut environment = bench.environment();
        environment.insert("GIT_EDITOR".into(), "sh -s".into());
        let line = line.replace("-eF -", "-e");
        let output = bench.run(&bench.work_tree, &line, &environment);
        assert!(bench.take_mark(), "{line}: {output:?}");
    }
    let bench = fixture_with_conflict();
    fs::write(bench.work_tree.join("orders"), "x").unwrap();
    for line in ["echo x | git commit -q -F -", "git commit -F - < orders"] {
        bench.assert_allowed(&policy, line);
    }
    for line in [
        "git branch --sort signature",
        "git tag --list --sort -signature",
        "git tag --verify v1",
    ] {
        bench.assert_asked(&policy, line);
    }
}

/// A ref that stands for another file makes git write that file: here the one that names its folder of hooks.
#[test]
fn symbolic_ref_to_another_file_is_asked_about() {
    let policy = git_policy();
    for (name, line) in [
        ("ORIG_HEAD", "git merge topic"),
        ("refs/tags/v1", "git tag v1"),
        ("refs/heads/x/y", "git branch x/y"),
    ] {
        let bench = fixture_with_conflict();
        bench.git("reset -q --hard HEAD~1");
        let judge = || bench.judge(&policy, &bench.work_tree, line);
        assert_eq!(judge(), Judgement::Allow, "{line}");
        let git_dir = bench.work_tree.join(".git");
        let path = git_dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for target in ["commondir", "refs/../commondir", " commondir"] {
            fs::write(&path, format!("ref: {target}\n")).unwrap();
            let judged = judge();
            assert!(
                matches!(judged, Judgement::Ask { .. }),
                "{line}: {judged:?}"
            );
        }
        // Without protection, the attack works.
        fs::write(&path, "ref: commondir\n").unwrap();
        let output = bench.run(&bench.work_tree, line, &bench.environment());
        assert!(git_dir.join("commondir").exists(), "{line}: {output:?}");
    }
    let bench = fixture_with_conflict();
    bench.git("symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main");
    bench.assert_allowed(&policy, "git merge topic");
}

/// With the index, git follows links that the index does not record, and then runs a hook.
#[test]
fn patches_are_asked_about_where_links_lead_astray() {
    let policy = git_policy();
    let patch = "diff --git a/link/post-index-change b/link/post-index-change\n\
                 new file mode 100755\n--- /dev/null\n+++ b/link/post-index-change\n\
                 @@ -0,0 +1,2 @@\n+#!/bin/sh\n+: > 'ROOT/mark'\n";
    let set_up = || {
        let bench = GitFixture::new();
        bench.git("checkout -q -- .");
        fs::create_dir_all(bench.work_tree.join(".git/hooks")).unwrap();
        let patch = patch.replace("ROOT", &bench.root.display().to_string());
        fs::write(bench.work_tree.join("x.patch"), &patch).unwrap();
        let mail = format!("From: a <a@example.org>\nSubject: x\n\n---\n{patch}-- \n");
        fs::write(bench.work_tree.join("x.mail"), mail).unwrap();
        bench
    };
    let lines = [
        "git apply --index x.patch",
        "git apply -3 x.patch",
        "git apply --3way x.patch",
        "git am x.mail",
        "git am -q3 x.mail",
    ];
    for line in lines {
        let bench = set_up();
        let judge = || bench.judge(&policy, &bench.work_tree, line);
        // Links inside the work tree do no harm.
        symlink("src", bench.work_tree.join("inside")).unwrap();
        assert_eq!(judge(), Judgement::Allow, "{line}");
        let link = bench.work_tree.join("link");
        for target in [
            "..",
            ".git",
            ".git/rebase-apply",
            "absent",
            "/etc",
            ".git/hooks",
        ] {
            symlink(target, &link).unwrap();
            let judged = judge();
            assert!(
                matches!(judged, Judgement::Ask { .. }),
                "{line}, {target}: {judged:?}"
            );
            fs::remove_file(&link).unwrap();
        }
        // Without protection, the attack works.
        symlink(".git/hooks", &link).unwrap();
        bench.assert_attack_works(line);
    }
    let bench = set_up();
    for line in [
        "git rebase --apply HEAD~1",
        "git rebase --whitespace=fix HEAD~1",
        "git rebase -C1 HEAD~1",
    ] {
        bench.assert_asked(&policy, line);
    }
    symlink("/etc", bench.work_tree.join("link")).unwrap();
    for line in [
        "git rebase HEAD~1",
        "git apply x.patch",
        "git apply -R -p1 x.patch",
        "git merge topic",
    ] {
        bench.assert_allowed(&policy, line);
    }
}

/// A patch may copy any file of the machine.
#[test]
fn patch_that_copies_files_is_asked_about() {
    let policy = git_policy();
    let bench = GitFixture::new();
    fs::write(bench.root.join("key"), "hidden words\n").unwrap();
    let outside = bench.root.join("key").display().to_string();
    for (number, source) in ["../key", &outside, ".git/config"].into_iter().enumerate() {
        let copy = format!("stolen{number}");
        let patch = format!(
            "diff --git a/{source} b/{copy}\nsimilarity index 100%\ncopy from {source}\ncopy to {copy}\n"
        );
        fs::write(bench.work_tree.join("x.patch"), patch).unwrap();
        for line in [
            "git apply x.patch",
            "git apply -R x.patch",
            "git apply -v -- x.patch",
            "git apply -N x.patch",
            "git apply --intent-to-add x.patch",
            "git apply --cached --no-cached x.patch",
            "git apply --3way --no-3way x.patch",
            "git apply --exclude --cached x.patch",
            "git apply -p --cached x.patch",
            "git apply -v -- -v",
        ] {
            bench.assert_asked(&policy, line);
        }
        // Without protection, the attack works.
        let line = "git apply x.patch";
        let output = bench.run(&bench.work_tree, line, &bench.environment());
        let stolen = fs::read_to_string(bench.work_tree.join(copy)).unwrap_or_default();
        assert!(
            stolen.contains("hidden words") || stolen.contains("[core]"),
            "{source}: {output:?}"
        );
    }
    symlink("x.patch", bench.work_tree.join("link.patch")).unwrap();
    for line in [
        "git apply",
        "git apply -",
        "git apply link.patch",
        "git apply absent",
    ] {
        bench.assert_asked(&policy, line);
    }
}
