//! Checks files of a repository that name another folder: `.git`, `commondir`, `gitdir`.

use super::super::{Judgement, Mode, Policy};
use super::attack_vector_tests::{GitFixture, user_rules};
use std::fs;

/// Git reads a file that names a folder completely, however long it is.
#[test]
fn pointer_longer_than_what_is_read_is_asked_about() {
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    let bench = GitFixture::new();
    bench.git("worktree add -q lib");
    bench.git("clone -q . evil");
    let evil = bench.work_tree.join("evil/.git");
    bench.configure(&evil, "[diff]\nexternal = EVIL\n");
    fs::write(bench.work_tree.join("lib/src/a.txt"), "four\n").unwrap();
    let lib = bench.work_tree.join("lib");
    assert_eq!(bench.judge(&policy, &lib, "git diff"), Judgement::Allow);
    // The first 4096 bytes name the record's own folder.
    let pointer = format!("../..{}/../evil/.git\n", "/.".repeat(2045));
    assert_eq!(pointer.find("../evil"), Some(4096));
    fs::write(
        bench.work_tree.join(".git/worktrees/lib/commondir"),
        pointer,
    )
    .unwrap();
    for line in ["git diff", "git status", "git log"] {
        let judged = bench.judge(&policy, &lib, line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{line}: {judged:?}"
        );
    }
    // Without protection, the attack works.
    let output = bench.run(&lib, "git diff", &bench.environment());
    assert!(bench.take_mark(), "{output:?}");
}

/// A path through `/proc/self/cwd` starts at the folder of the program that opens it: turnery's, or git's.
#[test]
fn path_through_proc_is_asked_about() {
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    let bench = GitFixture::new();
    bench.git("worktree add -q lib");
    bench.git("init -q -b main other");
    let other = bench.work_tree.join("other/.git");
    let git_dir = bench.work_tree.join(".git/modules/other");
    fs::create_dir_all(git_dir.parent().unwrap()).unwrap();
    fs::rename(&other, &git_dir).unwrap();
    fs::write(&other, "gitdir: ../.git/modules/other\n").unwrap();
    let config = git_dir.join("config");
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, own + "\tworktree = ../../../other\n").unwrap();
    let (lib, record) = (
        bench.work_tree.join("lib"),
        bench.work_tree.join(".git/worktrees/lib"),
    );
    for (folder, file, named) in [
        (&lib, lib.join(".git"), record.clone()),
        (&lib, record.join("commondir"), bench.work_tree.join(".git")),
        (&lib, record.join("gitdir"), lib.join(".git")),
        (
            &bench.work_tree.join("other"),
            other.clone(),
            git_dir.clone(),
        ),
    ] {
        let judge = || bench.judge(&policy, folder, "git status");
        assert_eq!(judge(), Judgement::Allow, "{}", file.display());
        let text = fs::read_to_string(&file).unwrap();
        let prefix = if text.starts_with("gitdir: ") {
            "gitdir: "
        } else {
            ""
        };
        // For every process this is the same file, which only reading the path does not tell.
        let ups = "../".repeat(40);
        let through = format!("{prefix}/proc/self/cwd/{ups}{}\n", named.display());
        fs::write(&file, through).unwrap();
        let judged = judge();
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{}: {judged:?}",
            file.display()
        );
        fs::write(&file, text).unwrap();
    }
}
