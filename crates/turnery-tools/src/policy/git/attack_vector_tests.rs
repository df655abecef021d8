//! Tests every attack vector against every git command that needs no approval, with a real git.
//!
//! No program may run, and each vector is shown to work without protection.

use super::super::{Judgement, Mode, Policy, Rule, read_only_programs::READ_ONLY_PROGRAMS};
use super::{
    attack_vectors::{ATTACK_VECTORS, add_submodule, append_config},
    environment::{GitSettings, apply_git_settings},
};
use crate::{Access, Workspace};
use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, SystemTime},
};

/// Fixture: a repository in `work/` with some history, next to a program that leaves a mark.
pub(super) struct GitFixture {
    _folder: tempfile::TempDir,
    /// Offset of the files' modification times. Unit: seconds.
    file_age: Cell<u64>,
    pub(super) root: PathBuf,
    pub(super) work_tree: PathBuf,
}

impl GitFixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let work = root.join("work");
        let bench = Self {
            _folder: folder,
            file_age: Cell::new(0),
            work_tree: work.clone(),
            root: root.clone(),
        };
        fs::create_dir(&work).unwrap();
        let program = format!("#!/bin/sh\n: > '{}/mark'\n", root.display());
        fs::write(root.join("evil"), program).unwrap();
        fs::set_permissions(root.join("evil"), fs::Permissions::from_mode(0o755)).unwrap();
        bench.git("init -q -b main .");
        fs::create_dir(work.join("src")).unwrap();
        fs::write(work.join("src/a.txt"), "one\n").unwrap();
        fs::write(work.join(".gitattributes"), "*.txt diff=evil filter=evil\n").unwrap();
        bench.git("add -A");
        bench.git("commit -q -m first");
        fs::write(work.join("src/a.txt"), "one\ntwo\n").unwrap();
        bench.git("commit -q -a -m second");
        fs::write(work.join("src/a.txt"), "three\n").unwrap();
        bench
    }

    /// Runs git as the user would, before anything malicious is configured.
    pub(super) fn git(&self, line: &str) {
        self.git_in(&self.work_tree, line);
    }

    pub(super) fn git_in(&self, folder: &Path, line: &str) {
        let output = self.run(folder, &format!("git {line}"), &self.environment());
        assert!(output.status.success(), "git {line}: {output:?}");
    }

    pub(super) fn environment(&self) -> BTreeMap<OsString, OsString> {
        let set = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let path = std::env::var("PATH").unwrap();
        BTreeMap::from([
            set("PATH", &path),
            set("HOME", self.root.to_str().unwrap()),
            set("GIT_CONFIG_NOSYSTEM", "1"),
            set("GIT_AUTHOR_NAME", "a"),
            set("GIT_AUTHOR_EMAIL", "a@example.org"),
            set("GIT_COMMITTER_NAME", "a"),
            set("GIT_COMMITTER_EMAIL", "a@example.org"),
            set("GIT_ALLOW_PROTOCOL", "file:ext"),
        ])
    }

    pub(super) fn run(
        &self,
        folder: &Path,
        line: &str,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Output {
        Command::new("/bin/bash")
            .args(["-c", line])
            .current_dir(folder)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Checks that a line needs permission in the work tree.
    #[track_caller]
    pub(super) fn assert_asked(&self, policy: &Policy, line: &str) {
        let judged = self.judge(policy, &self.work_tree, line);
        assert!(
            matches!(judged, Judgement::Ask { .. }),
            "{line}: {judged:?}"
        );
    }

    /// Checks that a line needs no permission in the work tree.
    #[track_caller]
    pub(super) fn assert_allowed(&self, policy: &Policy, line: &str) {
        let judged = self.judge(policy, &self.work_tree, line);
        assert_eq!(judged, Judgement::Allow, "{line}");
    }

    /// Checks that a line in the work tree runs the program, without protection.
    #[track_caller]
    pub(super) fn assert_attack_works(&self, line: &str) {
        let output = self.run(&self.work_tree, line, &self.environment());
        assert!(self.take_mark(), "{line}: {output:?}");
    }

    /// Returns the output of a line in the work tree, without protection.
    pub(super) fn output_of(&self, line: &str) -> String {
        let output = self.run(&self.work_tree, line, &self.environment());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns true if the program has run since the last call.
    pub(super) fn take_mark(&self) -> bool {
        fs::remove_file(self.root.join("mark")).is_ok()
    }

    pub(super) fn evil_program(&self) -> String {
        self.root.join("evil").display().to_string()
    }

    pub(super) fn configure(&self, folder: &Path, text: &str) {
        let path = folder.join("config");
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, before + &text.replace("EVIL", &self.evil_program())).unwrap();
    }

    /// Makes every file look changed, so that git reads it again.
    pub(super) fn touch_files(&self, folder: &Path) {
        // Git compares whole seconds.
        self.file_age.set(self.file_age.get() + 60);
        let then = SystemTime::now() - Duration::from_secs(self.file_age.get());
        for name in [
            "src/a.txt",
            ".gitattributes",
            "lib/src/a.txt",
            "lib/.gitattributes",
        ] {
            if let Ok(file) = fs::File::options().write(true).open(folder.join(name)) {
                file.set_modified(then).unwrap();
            }
        }
    }

    pub(super) fn workspace(&self) -> Workspace {
        Workspace::local(self.work_tree.clone()).unwrap()
    }

    pub(super) fn judge(&self, policy: &Policy, cwd: &Path, line: &str) -> Judgement {
        let access = Access::Run {
            command: line.to_owned(),
            cwd: cwd.to_owned(),
        };
        policy.judge("shell", &access, &self.workspace())
    }
}

/// Git commands that need no approval: each table entry alone, and with options that make it read more.
fn allowed_git_commands() -> Vec<String> {
    let of_table = READ_ONLY_PROGRAMS
        .iter()
        .copied()
        .flatten()
        .filter(|program| program.words.first() == Some(&"git") && program.words.len() > 1)
        .map(|program| program.words.join(" "));
    let more = [
        "git status --short --branch --ignored --untracked-files=all",
        "git diff HEAD~1",
        "git diff --cached --stat",
        "git diff HEAD --word-diff --unified=0",
        "git log -p",
        "git log -p --stat --all --follow src/a.txt",
        "git log -S one",
        "git show HEAD",
        "git show HEAD:src/a.txt",
        "git blame src/a.txt",
        "git branch -av",
        "git describe --always --dirty",
        "git ls-files -m -o -d --exclude-standard",
        "git shortlog HEAD",
        "git log --format=%G?",
        "git log '--pretty=%+GS'",
        "git --no-pager log -p",
        "git -C src diff",
        "git -C . status",
        "git grep -n one",
        "git grep one HEAD",
        "git reflog -p",
        "git cat-file -p HEAD:src/a.txt",
        "git check-ignore src/a.txt",
        "git config --get core.editor",
        "git worktree list",
        "git remote get-url origin",
        "git tag -l",
    ];
    of_table.chain(more.map(str::to_owned)).collect()
}

/// Rules that a user may have written.
pub(super) fn user_rules() -> Vec<Rule> {
    let texts = [
        "shell(git status)",
        "shell(git diff)",
        "shell(git log)",
        "shell(git add:*)",
        "shell(git commit:*)",
        "shell(git fetch:*)",
        "shell(git pull:*)",
        "shell(git stash push:*)",
        "shell(git status2:*)",
        "shell(git checkout:*)",
        "shell(git -p log)",
    ];
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn no_attack_vector_runs_without_asking() {
    let (mut ran, mut idle) = (Vec::new(), Vec::new());
    let mut allowed_count = 0;
    for way in ATTACK_VECTORS {
        let bench = GitFixture::new();
        append_config(&bench, way.config);
        (way.set_up)(&bench);
        let cwd = bench.work_tree.join(way.folder);
        bench.take_mark();
        bench.touch_files(&bench.work_tree);
        let alone = Policy::new(Mode::Ask, vec![], vec![]);
        let confined = Policy::new(Mode::Ask, user_rules(), vec![]).with_confined(true);
        let edit = Policy::new(Mode::Edit, user_rules(), vec![]);
        let by_rules = [
            "git add -A",
            "git commit -q -a -m x",
            "git fetch",
            "git fetch origin",
            "git pull -q",
            "git stash push",
        ];
        for command in allowed_git_commands()
            .iter()
            .map(String::as_str)
            .chain(by_rules)
            .chain([way.trigger])
        {
            for (policy, line) in [
                (&alone, command.to_owned()),
                (&confined, command.to_owned()),
                (&edit, format!("{command} > out.tmp")),
                (&edit, command.to_owned()),
            ] {
                if bench.judge(policy, &cwd, &line) != Judgement::Allow {
                    continue;
                }
                allowed_count += 1;
                let mut environment = bench.environment();
                if super::super::needs_hardened_git(&line, &cwd, &bench.workspace()) {
                    apply_git_settings(GitSettings::Hardened, &mut environment);
                }
                bench.touch_files(&bench.work_tree);
                bench.run(&cwd, &line, &environment);
                if bench.take_mark() {
                    ran.push(format!("{}: {line}", way.name));
                }
            }
        }
        // From the folder above, with `cd`.
        for line in ["git status", "git diff"].map(|line| format!("cd {} && {line}", way.folder)) {
            if !way.folder.is_empty() {
                let judgement = bench.judge(&edit, &bench.work_tree, &line);
                assert_ne!(judgement, Judgement::Allow, "{}: {line}", way.name);
            }
        }
        // This comes last because it may change the repository: the vector works without protection.
        bench.touch_files(&bench.work_tree);
        let output = bench.run(&cwd, way.trigger, &bench.environment());
        if !bench.take_mark() {
            idle.push(format!("{}: {output:?}", way.name));
        }
    }
    assert!(ran.is_empty(), "{ran:#?}");
    assert!(
        idle.is_empty(),
        "these ways do not work undefended: {idle:#?}"
    );
    assert!(allowed_count > 300, "{allowed_count}");
}

#[test]
fn plain_repository_commands_are_allowed() {
    let bench = GitFixture::new();
    add_submodule(&bench);
    bench.git("worktree add -q ../other");
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    for cwd in [
        &bench.work_tree,
        &bench.work_tree.join("src"),
        &bench.work_tree.join("lib"),
    ] {
        for line in [
            "git status",
            "git log -p",
            "git commit -m x",
            "git add -A && git commit -m x",
        ] {
            assert_eq!(
                bench.judge(&policy, cwd, line),
                Judgement::Allow,
                "{cwd:?} {line}"
            );
        }
    }
    let other = Workspace::local(bench.root.join("other")).unwrap();
    let access = Access::Run {
        command: "git status".to_owned(),
        cwd: other.cwd().to_owned(),
    };
    assert_eq!(policy.judge("shell", &access, &other), Judgement::Allow);
}

#[test]
fn every_index_version_is_read() {
    for (version, expected) in [(2, true), (3, true), (4, true)] {
        let bench = GitFixture::new();
        let kept = add_submodule(&bench);
        if version == 3 {
            fs::write(bench.work_tree.join("new"), "").unwrap();
            bench.git("add -N new");
        } else {
            bench.git(&format!("update-index --index-version {version}"));
        }
        let policy = Policy::new(Mode::Ask, vec![], vec![]);
        let judged = bench.judge(&policy, &bench.work_tree, "git status");
        assert_eq!(judged == Judgement::Allow, expected, "{version}");
        bench.configure(&kept, "[core]\nfsmonitor = EVIL\n");
        assert_ne!(
            bench.judge(&policy, &bench.work_tree, "git status"),
            Judgement::Allow
        );
    }
    let bench = GitFixture::new();
    bench.git("update-index --split-index");
    let policy = Policy::new(Mode::Ask, vec![], vec![]);
    assert_ne!(
        bench.judge(&policy, &bench.work_tree, "git status"),
        Judgement::Allow
    );
}

#[test]
fn git_after_work_tree_change_is_asked_about() {
    let bench = GitFixture::new();
    fs::create_dir(bench.work_tree.join("docs")).unwrap();
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    for line in [
        "git pull && cd docs && git status",
        "git checkout x; git diff",
    ] {
        assert_ne!(
            bench.judge(&policy, &bench.work_tree, line),
            Judgement::Allow,
            "{line}"
        );
    }
}

/// `git add` turns a nested repository into a submodule, which later commands enter.
#[test]
fn submodule_made_by_git_add_runs_nothing() {
    let policy = Policy::new(Mode::Ask, user_rules(), vec![]);
    for line in [
        "git add -A",
        "git add lib && git commit -q -m x",
        "git add lib && git commit -q -a -m x",
        "git add lib; git commit -q -m x; git status",
        "git add lib && git status",
        "git add lib && git diff",
        "git add lib && git stash push",
        "git add lib && git pull",
    ] {
        let bench = GitFixture::new();
        bench.git(&format!("clone -q {} lib", bench.work_tree.display()));
        bench.configure(
            &bench.work_tree.join("lib/.git"),
            "[core]\nfsmonitor = EVIL\n",
        );
        if bench.judge(&policy, &bench.work_tree, line) == Judgement::Allow {
            bench.run(&bench.work_tree, line, &bench.environment());
            assert!(!bench.take_mark(), "{line}");
        }
    }
}
