//! Checks repository layouts that make git do more than requested, beyond configuration keys: submodules,
//! remotes, unfinished rebases and links. All of them need approval.

use super::super::{Judgement, Mode, Policy, Rule};
use super::attack_vector_tests::{GitFixture, user_rules};
use super::attack_vectors::append_config;
use std::{fs, os::unix::fs::PermissionsExt};

/// A fetch continues in the stored repositories of submodules that a new commit names, even if they are not
/// checked out.
#[test]
fn fetch_of_submodules_is_asked_about() {
    let wide = ["shell(git fetch:*)", "shell(git pull:*)"];
    let wide = wide.iter().map(|text| text.parse().unwrap()).collect();
    let policy = Policy::new(Mode::Ask, wide, vec![]);
    let bench = GitFixture::new();
    let to = bench.root.join("upstream");
    bench.git(&format!("clone -q . {}", to.display()));
    let address = "https://example.org/upstream";
    bench.git(&format!("remote add origin {address}"));
    let own = format!("[url \"{}\"]\n\tinsteadOf = {address}\n", to.display());
    fs::write(bench.root.join(".gitconfig"), own).unwrap();
    let modules = "[submodule \"lib\"]\n\turl = ../upstream\n";
    fs::write(
        to.join(".gitmodules"),
        modules.to_owned() + "\tpath = lib\n",
    )
    .unwrap();
    let missing = "1".repeat(40);
    bench.git_in(&to, "add -A");
    bench.git_in(
        &to,
        &format!("update-index --add --cacheinfo 160000,{missing},lib"),
    );
    bench.git_in(&to, "commit -q -m lib");
    append_config(&bench, &(modules.to_owned() + "\tactive = true\n"));
    bench.git("init -q --bare .git/modules/lib");
    bench.configure(
        &bench.work_tree.join(".git/modules/lib"),
        "[core]\nbare = false\n[remote \"origin\"]\nurl = ../../upstream\nuploadpack = EVIL\n",
    );
    for line in [
        "git fetch",
        "git fetch origin",
        "git pull --rebase",
        "git fetch --no-recurse-submodules --recurse-submodules",
        "git fetch -o --no-recurse-submodules",
        "git fetch --no-recurse-submodules --multiple --recurse-submodules origin",
        "git pull --no-recurse-submodules --recurse-submodules",
    ] {
        bench.assert_asked(&policy, line);
    }
    let line = "git fetch --no-recurse-submodules";
    assert_eq!(
        bench.judge(&policy, &bench.work_tree, line),
        Judgement::Allow
    );
    bench.run(&bench.work_tree, line, &bench.environment());
    assert!(!bench.take_mark(), "{line}");
    // Without protection, the attack works.
    bench.git("update-ref -d refs/remotes/origin/main");
    let output = bench.run(&bench.work_tree, "git fetch", &bench.environment());
    assert!(bench.take_mark(), "{output:?}");
}

/// Command line, and the setup that runs before it.
pub(super) type LayoutCase = (&'static str, fn(&GitFixture));

fn add_link(bench: &GitFixture, name: &str, target: &str) {
    let path = bench.work_tree.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(target, path).unwrap();
}

#[test]
fn git_dir_leading_outside_is_asked_about() {
    let lay: [fn(&GitFixture); 20] = [
        |b| add_link(b, ".git/ORIG_HEAD", "/etc/passwd"),
        |b| add_link(b, ".git/rebase-merge/head-name", "/etc/passwd"),
        |b| add_link(b, ".git/rebase-apply/head-name", "/etc/passwd"),
        |b| add_link(b, ".git/worktrees/w/gitdir", "/etc/passwd"),
        |b| add_link(b, ".git/hooks/x.sample", "/etc/passwd"),
        |b| add_link(b, ".git/modules/x", "/etc/passwd"),
        |b| {
            fs::remove_dir_all(b.work_tree.join(".git/hooks")).unwrap();
            add_link(b, ".git/hooks", "/etc");
        },
        |b| add_link(b, ".git/lfs/objects", "/etc"),
        |b| add_link(b, ".git/lfs/objects/26/58", "/etc"),
        |b| add_link(b, ".git/refs/heads/hooks", "/etc"),
        |b| add_link(b, ".git/logs/hooks", "/etc"),
        |b| add_link(b, ".git/fsmonitor--daemon.ipc", "/etc/passwd"),
        |b| fs::write(b.work_tree.join(".git/objects/info/alternates"), "/x\n").unwrap(),
        |b| std::os::unix::fs::symlink("/etc", b.work_tree.join(".git/refs/heads/x")).unwrap(),
        |b| {
            std::os::unix::fs::symlink("/etc/x", b.work_tree.join(".git/objects/pack/x.pack"))
                .unwrap()
        },
        // Git shows the line of these files that is not a hash.
        |b| {
            add_link(
                b,
                ".git/objects/info/commit-graphs/commit-graph-chain",
                "/etc/passwd",
            )
        },
        |b| {
            add_link(
                b,
                ".git/objects/pack/multi-pack-index.d/multi-pack-index-chain",
                "/etc/passwd",
            )
        },
        |b| add_link(b, ".git/objects/info/ab/x", "/etc/passwd"),
        |b| append_config(b, "[core]\nworktree = /etc\n"),
        |b| {
            fs::rename(b.work_tree.join(".git"), b.root.join("elsewhere")).unwrap();
            fs::write(b.work_tree.join(".git"), "gitdir: ../elsewhere\n").unwrap();
        },
    ];
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    for (at, lay) in lay.iter().enumerate() {
        let bench = GitFixture::new();
        assert_eq!(
            bench.judge(&policy, &bench.work_tree, "git status"),
            Judgement::Allow
        );
        lay(&bench);
        let judged = bench.judge(&policy, &bench.work_tree, "git status");
        assert!(matches!(judged, Judgement::Ask { .. }), "{at}: {judged:?}");
    }
}

/// Git reads the refs of every linked work tree at the place that its record names, and shows lines that are
/// not refs.
#[test]
fn foreign_work_tree_record_is_asked_about() {
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    let lay: [fn(&GitFixture); 4] = [
        |b| {
            let record = b.work_tree.join(".git/worktrees/other");
            fs::write(record.join("commondir"), "../../../evil\n").unwrap();
            fs::write(record.join("HEAD"), "ref: refs/heads/zz\n").unwrap();
            fs::create_dir_all(b.work_tree.join("evil/refs")).unwrap();
            fs::write(b.root.join("secret"), "hidden words\n").unwrap();
            add_link(b, "evil/packed-refs", "../../secret");
        },
        |b| fs::remove_file(b.work_tree.join(".git/worktrees/other/commondir")).unwrap(),
        |b| fs::write(b.work_tree.join(".git/worktrees/other/HEAD"), "ref: x\n").unwrap(),
        |b| fs::remove_file(b.work_tree.join(".git/worktrees/other/HEAD")).unwrap(),
    ];
    for (at, lay) in lay.iter().enumerate() {
        let bench = GitFixture::new();
        bench.git("worktree add -q ../other");
        let lines = ["git branch", "git log --oneline --all"];
        for line in lines {
            assert_eq!(
                bench.judge(&policy, &bench.work_tree, line),
                Judgement::Allow
            );
        }
        lay(&bench);
        for line in lines {
            let judged = bench.judge(&policy, &bench.work_tree, line);
            assert!(matches!(judged, Judgement::Ask { .. }), "{at}: {judged:?}");
        }
        if at == 0 {
            // Without protection, the attack works.
            let output = bench.run(&bench.work_tree, "git branch", &bench.environment());
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(text.contains("hidden words"), "{text}");
        }
    }
}

/// A path that git treats as a submodule or as one of its own files leads to a file outside, which `git diff`
/// shows.
#[test]
fn tracked_path_that_leads_outside_is_asked_about() {
    let lay: [fn(&GitFixture); 2] = [
        |b| {
            let file = b.work_tree.join("src/a.txt");
            fs::remove_file(&file).unwrap();
            for part in ["objects", "refs"] {
                fs::create_dir_all(file.join(".git").join(part)).unwrap();
            }
            fs::write(file.join(".git/HEAD"), "ref: refs/heads/zz\n").unwrap();
            add_link(b, "src/a.txt/.git/packed-refs", "../../../../secret");
        },
        // With the same size and time, git assumes that the file is unchanged.
        |b| {
            b.touch_files(&b.work_tree);
            b.git("add -A");
            let known = fs::metadata(b.work_tree.join("src/a.txt")).unwrap();
            fs::remove_dir_all(b.work_tree.join("src")).unwrap();
            fs::create_dir(b.root.join("src")).unwrap();
            fs::rename(b.root.join("secret"), b.root.join("src/a.txt")).unwrap();
            let file = fs::File::options()
                .write(true)
                .open(b.root.join("src/a.txt"));
            let file = file.unwrap();
            file.set_len(known.len()).unwrap();
            file.set_modified(known.modified().unwrap()).unwrap();
            add_link(b, "src", "../src");
            let own = "[core]\n\tcheckStat = minimal\n\ttrustCTime = false\n";
            fs::write(b.root.join(".gitconfig"), own).unwrap();
        },
    ];
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    for (at, lay) in lay.iter().enumerate() {
        let bench = GitFixture::new();
        fs::write(bench.root.join("secret"), "hidden words\n").unwrap();
        let judge = || bench.judge(&policy, &bench.work_tree, "git diff");
        assert_eq!(judge(), Judgement::Allow);
        lay(&bench);
        let judged = judge();
        assert!(matches!(judged, Judgement::Ask { .. }), "{at}: {judged:?}");
        // Without protection, the attack works.
        let output = bench.run(&bench.work_tree, "git diff", &bench.environment());
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.contains("hidden"), "{at}: {shown}");
    }
}

/// Git uses the recorded length of a name in the index, which may differ from where the name ends.
#[test]
fn submodule_under_a_false_name_is_asked_about() {
    let bench = GitFixture::new();
    let lib = bench.work_tree.join("lib");
    bench.git("init -q -b main lib");
    fs::write(lib.join("z"), "z\n").unwrap();
    bench.git_in(&lib, "add z");
    bench.git_in(&lib, "commit -q -m z");
    let head = bench.run(&lib, "git rev-parse HEAD", &bench.environment());
    let head = String::from_utf8(head.stdout).unwrap();
    fs::write(lib.join(".git/info/attributes"), "* filter=e\n").unwrap();
    bench.configure(&lib.join(".git"), "[filter \"e\"]\nclean = EVIL\n");
    fs::write(lib.join("z"), "y\n").unwrap();
    bench.git(&format!(
        "update-index --add --cacheinfo 160000,{},lib",
        head.trim()
    ));
    let file = bench.work_tree.join(".git/index");
    let mut index = fs::read(&file).unwrap();
    let at = index
        .windows(6)
        .position(|bytes| bytes == b"\0\x03lib\0")
        .unwrap();
    index[at..at + 6].copy_from_slice(b"\0\x02libX");
    fs::write(&file, index).unwrap();
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    for line in ["git status", "git diff"] {
        bench.assert_asked(&policy, line);
    }
    // Without protection, the attack works.
    bench.run(&bench.work_tree, "git status", &bench.environment());
    assert!(bench.take_mark());
}

/// Some user settings make git enter submodules, even those that are not checked out.
#[test]
fn user_git_settings_enter_no_submodule() {
    let bench = GitFixture::new();
    let lib = bench.work_tree.join("lib");
    bench.git("init -q -b main lib");
    for text in ["one\n", "two\n", "three\n"] {
        fs::write(lib.join("z"), text).unwrap();
        bench.git_in(&lib, "add z");
        bench.git_in(&lib, "commit -q -m z");
        bench.git("add lib");
        if text != "three\n" {
            bench.git("commit -q -m lib");
        }
    }
    let settings = "[diff]\n\tsubmodule = diff\n[status]\n\tsubmoduleSummary = true\n";
    fs::write(bench.root.join(".gitconfig"), settings).unwrap();
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    let mut hardened = bench.environment();
    super::environment::apply_git_settings(super::GitSettings::Hardened, &mut hardened);
    let status = |environment: &_| {
        let output = bench.run(&bench.work_tree, "git status", environment);
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(status(&bench.environment()).contains("Submodule changes"));
    assert!(!status(&hardened).contains("Submodule changes"));

    let modules = bench.work_tree.join(".git/modules");
    fs::create_dir(&modules).unwrap();
    fs::rename(lib.join(".git"), modules.join("lib")).unwrap();
    fs::remove_dir_all(&lib).unwrap();
    bench.configure(&modules.join("lib"), "[diff]\n\texternal = EVIL\n");
    let named = "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.org/x\n";
    fs::write(bench.work_tree.join(".gitmodules"), named).unwrap();
    for line in ["git log -p -1", "git show", "git diff HEAD~1 HEAD"] {
        assert_eq!(
            bench.judge(&policy, &bench.work_tree, line),
            Judgement::Allow
        );
        let output = bench.run(&bench.work_tree, line, &hardened);
        assert!(!bench.take_mark(), "{line}: {output:?}");
        // Without protection, the attack works.
        bench.assert_attack_works(line);
    }
}

/// Git trusts names in the index: one that leads outside shows the file there as a change.
#[test]
fn index_that_names_files_elsewhere_is_asked_about() {
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    let confined = Policy::new(Mode::Ask, vec![], vec![]).with_confined(true);
    let place = |bench: &GitFixture, name: &str| match name {
        "/" => bench.root.join("secret").display().to_string(),
        _ => name.to_owned(),
    };
    for name in [
        "/",
        "../secret",
        "src/../../secret",
        "./secret",
        "src//a",
        ".git/config",
        ".Git/a",
    ] {
        let bench = GitFixture::new();
        fs::write(bench.root.join("secret"), "hidden words\n").unwrap();
        let name = place(&bench, name);
        let stand_in = "z".repeat(name.len());
        fs::write(bench.work_tree.join(&stand_in), "z\n").unwrap();
        bench.git(&format!("add {stand_in}"));
        bench.git(&format!("commit -q -m {stand_in}"));
        let lines = ["git diff", "git status"];
        let judged = lines.map(|line| bench.judge(&policy, &bench.work_tree, line));
        assert_eq!(judged, [Judgement::Allow, Judgement::Allow], "{name}");
        let file = bench.work_tree.join(".git/index");
        let mut index = fs::read(&file).unwrap();
        let bytes = stand_in.as_bytes();
        let at = memchr::memmem::find(&index, bytes).unwrap();
        index[at..at + name.len()].copy_from_slice(name.as_bytes());
        fs::write(&file, index).unwrap();
        for line in lines {
            let judged = bench.judge(&policy, &bench.work_tree, line);
            assert!(
                matches!(judged, Judgement::Ask { .. }),
                "{name}: {judged:?}"
            );
        }
        for line in [
            "git diff",
            "git grep words",
            "git ls-files -z | xargs -0 cat --",
        ] {
            let judged = bench.judge(&confined, &bench.work_tree, line);
            assert!(
                matches!(judged, Judgement::Ask { .. }),
                "{name}: {judged:?}"
            );
        }
        if name.ends_with("../secret") || name.starts_with('/') {
            // Without protection, the attack works.
            let output = bench.run(&bench.work_tree, "git diff", &bench.environment());
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("hidden words"), "{name}: {text}");
        }
    }
}

#[test]
fn covered_command_in_prepared_repository_is_asked_about() {
    let rules = [
        "shell(git push:*)",
        "shell(git rebase:*)",
        "shell(git fetch:*)",
        "shell(git pull:*)",
        "shell(git commit:*)",
    ];
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let policy = Policy::new(Mode::Ask, rules, vec![]);
    let cases: [LayoutCase; 22] = [
        // With the user's own format `ssh`, git signs with the file of that name.
        ("git commit -m x", |b| {
            add_link(b, "deadbeefdeadbeef", "../key")
        }),
        ("git commit -a --dry-run", |b| {
            fs::remove_file(b.work_tree.join("src/a.txt")).unwrap();
            b.git("clone -q . src/a.txt");
            b.configure(
                &b.work_tree.join("src/a.txt/.git"),
                "[core]\nfsmonitor = EVIL\n",
            );
        }),
        ("git push", |b| {
            append_config(b, "[remote \"origin\"]\nurl = ./x.git\n")
        }),
        ("git fetch", |b| {
            append_config(b, "[remote \"origin\"]\nurl = ./x.git\n")
        }),
        ("git fetch", |b| {
            append_config(b, "[remote \"up\"]\nurl = /x\n")
        }),
        ("git pull --rebase", |b| {
            append_config(b, "[remote \"origin\"]\nurl = file:///x\n")
        }),
        ("git fetch", |b| {
            append_config(b, "[branch \"main\"]\nremote = evil\n")
        }),
        ("git pull", |b| {
            b.git("config --remove-section remote.origin");
            add_link(b, "origin", "../elsewhere");
        }),
        ("git fetch evil", |b| add_link(b, "evil", "../elsewhere")),
        ("git fetch evil", |b| {
            add_link(b, "evil.git", "../elsewhere")
        }),
        ("git push", |b| {
            append_config(b, "[remote \"up\"]\nurl = git@x/y:z\n")
        }),
        ("git push", |b| {
            append_config(b, "[branch \"main\"]\nremote = evil\n")
        }),
        ("git push", |b| {
            append_config(b, "[branch \"main\"]\npushRemote = evil\n")
        }),
        ("git push origin main", |b| {
            b.git("config --remove-section remote.origin")
        }),
        ("git push", |b| {
            b.git("config --remove-section remote.origin")
        }),
        ("git fetch", |b| {
            fs::create_dir_all(b.work_tree.join(".git/modules/x")).unwrap();
        }),
        ("git fetch", |b| {
            let missing = "1".repeat(40);
            b.git(&format!(
                "update-index --add --cacheinfo 160000,{missing},lib"
            ));
        }),
        ("git pull", |b| {
            fs::write(b.work_tree.join(".gitmodules"), "").unwrap();
        }),
        ("git push", |b| {
            append_config(b, "[remote \"origin\"]\nurl = file:///x.git\n")
        }),
        ("git rebase --continue", |b| {
            fs::create_dir(b.work_tree.join(".git/rebase-merge")).unwrap();
            fs::write(
                b.work_tree.join(".git/rebase-merge/git-rebase-todo"),
                "exec touch x\n",
            )
            .unwrap();
        }),
        ("git fetch origin", |b| {
            fs::create_dir_all(b.work_tree.join(".git/remotes")).unwrap();
            fs::write(b.work_tree.join(".git/remotes/origin"), "URL: ext::evil\n").unwrap();
        }),
        ("git fetch other", |b| {
            fs::create_dir_all(b.work_tree.join(".git/branches")).unwrap();
            fs::write(b.work_tree.join(".git/branches/other"), "ext::evil\n").unwrap();
        }),
    ];
    for (line, lay) in cases {
        let bench = GitFixture::new();
        append_config(
            &bench,
            "[remote \"origin\"]\nurl = https://example.org/x.git\n[user]\nsigningKey = deadbeefdeadbeef\n",
        );
        let before = bench.judge(&policy, &bench.work_tree, line);
        assert_eq!(before, Judgement::Allow, "{line}");
        lay(&bench);
        bench.assert_asked(&policy, line);
    }
    // A name that is not a remote is a folder with its own hooks.
    let bench = GitFixture::new();
    append_config(
        &bench,
        "[remote \"origin\"]\nurl = https://example.org/x.git\n[remote \"/abs/evil\"]\nurl = https://example.org/x.git\n",
    );
    for line in [
        "git push evil main",
        "git push --repo=evil",
        "git push -o origin evil main",
        "git push /abs/evil main",
        "git fetch ../evil",
        "git fetch file:///evil",
        "git fetch '~/evil'",
        "git pull /evil main",
    ] {
        bench.assert_asked(&policy, line);
    }
}

/// Git skips a `.git` whose folders it has no permission to enter, and uses the repository above.
#[test]
fn repository_skipped_by_git_is_asked_about() {
    let bench = GitFixture::new();
    bench.git("init -q sub");
    let sub = bench.work_tree.join("sub");
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    assert_eq!(bench.judge(&policy, &sub, "git status"), Judgement::Allow);
    // With packed refs the folder is empty, so no entry in it could turn out to be unreadable.
    fs::remove_dir_all(sub.join(".git/refs")).unwrap();
    fs::create_dir(sub.join(".git/refs")).unwrap();
    assert_eq!(bench.judge(&policy, &sub, "git status"), Judgement::Allow);
    let closed = fs::Permissions::from_mode(0o400);
    fs::set_permissions(sub.join(".git/refs"), closed).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let judged = bench.judge(&policy, &sub, "git status");
    // Root can enter every folder.
    assert_eq!(judged == Judgement::Allow, is_root, "{judged:?}");
    fs::set_permissions(sub.join(".git/refs"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn confined_git_shows_no_keys_or_link_targets() {
    let bench = GitFixture::new();
    let policy = Policy::new(Mode::Ask, vec![], vec![]).with_confined(true);
    let judge = |line: &str| bench.judge(&policy, &bench.work_tree, line);
    assert_eq!(judge("git grep one"), Judgement::Allow);
    assert_eq!(judge("git -C src grep one -- .."), Judgement::Allow);
    assert_eq!(judge("git config --get user.name"), Judgement::Allow);
    assert_ne!(
        judge("git config --get http.https://x.extraheader"),
        Judgement::Allow
    );
    add_link(&bench, ".git/hooks/pre-commit", "../../pre-commit");
    assert_eq!(judge("git status"), Judgement::Allow);
    add_link(&bench, "linked", "/etc");
    for line in [
        "git grep one",
        "git -C src grep one ..",
        "git -C src grep one -- ../linked",
    ] {
        assert_ne!(judge(line), Judgement::Allow, "{line}");
    }
    assert_eq!(judge("git -C src grep one"), Judgement::Allow);
}
