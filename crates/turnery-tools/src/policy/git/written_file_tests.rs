//! Checks git commands that write files which their words name, other than those that the command is for.

use super::attack_vector_tests::GitFixture;
use crate::policy::{Mode, Policy};
use std::{fs, os::unix::fs::symlink};

/// `git blame -- FILE REVISION` takes an option for the revision.
#[test]
fn option_after_dashes_is_asked_about() {
    let bench = GitFixture::new();
    for mode in [Mode::Ask, Mode::Edit] {
        let policy = Policy::new(mode, Vec::new(), Vec::new());
        bench.assert_asked(&policy, "git blame -- src/a.txt --output=written");
        bench.assert_asked(&policy, "git blame -s -- src/a.txt --outp=written");
        bench.assert_allowed(&policy, "git blame -- src/a.txt");
        bench.assert_allowed(&policy, "git log --oneline -- src/a.txt");
    }
    bench.output_of("git blame -- src/a.txt --output=written");
    assert!(bench.work_tree.join("written").exists());
}

/// Git takes a name that is no ref for a path from the git folder, and writes there what it was told.
#[test]
fn refs_elsewhere_are_asked_about() {
    let bench = GitFixture::new();
    let rules = ["shell(git:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, Vec::new());
    for line in [
        "git symbolic-ref ../written 'refs/heads/x;id'",
        "git symbolic-ref -m why ../written refs/heads/x",
        "git symbolic-ref config refs/heads/x",
        "git symbolic-ref refs/../config refs/heads/x",
        "git symbolic-ref HEAD ../x",
        "git update-ref hooks/x HEAD",
        "git update-ref -m why commondir HEAD",
        "git symbolic-ref -qm HEAD -qm HEAD ../written refs/heads/x",
        "git update-ref -dm refs/heads/a ../written",
    ] {
        bench.assert_asked(&policy, line);
    }
    for line in [
        "git symbolic-ref HEAD",
        "git symbolic-ref HEAD refs/heads/x",
        "git symbolic-ref -m why HEAD refs/heads/x",
        "git update-ref refs/heads/x HEAD",
        "git update-ref -d refs/heads/x",
    ] {
        bench.assert_allowed(&policy, line);
    }
    let said = bench.output_of("git symbolic-ref ../written 'refs/heads/x;id' 2>&1");
    match fs::read_to_string(bench.work_tree.join("written")) {
        Ok(written) => assert_eq!(written, "ref: refs/heads/x;id\n"),
        // Git 2.40 and later.
        Err(_) => assert!(said.contains("refusing to update ref"), "{said}"),
    }
}

/// Without a folder, `git clone` takes its name from the address.
#[test]
fn derived_folder_of_clone_is_asked_about() {
    let bench = GitFixture::new();
    let rules = ["shell(git clone:*)".parse().unwrap()].to_vec();
    let policy = Policy::new(Mode::Ask, rules, Vec::new());
    fs::create_dir(bench.root.join("outside")).unwrap();
    for name in ["y", "host"] {
        symlink(bench.root.join("outside"), bench.work_tree.join(name)).unwrap();
    }
    for line in [
        "git clone https://example.org/y.git",
        "git clone https://example.org/y.git/",
        "git clone https://example.org/y/.git",
        "git clone https://example.org/y.bundle",
        "git clone example.org:y",
        "git clone https://host",
        "git clone https://user@host:80/",
        "git clone https://example.org/.git.git",
        "git clone --bare https://example.org/.git.git",
        "git clone example.org:.git.bundle",
        "git clone 'https://example.org/x\ty.git'",
    ] {
        bench.assert_asked(&policy, line);
    }
    bench.assert_allowed(&policy, "git clone https://example.org/other.git");
    let address = format!("file://{}", bench.work_tree.display());
    let line = format!(
        "git clone -q --bare . copy && mv copy {0}/y.git && git clone -q {1}/../y.git",
        bench.root.display(),
        address
    );
    bench.output_of(&line);
    assert!(bench.root.join("outside/.git").exists());
}
