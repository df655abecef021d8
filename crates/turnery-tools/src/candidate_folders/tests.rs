//! Tests with real repositories in temporary folders.

use super::*;
use crate::{
    CommandLineLimits, HiddenFiles, Origin, SandboxMode, ToolCx, TraceContext, run_user_command,
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
    time::Duration,
};

/// Session's folder, in a repository or not, and a folder for temporary files.
struct Bench {
    home: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for folder in ["project", "tmp"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        Self { home }
    }

    /// Creates a repository with one commit: `kept`, `changed`, `removed`, and `ignored.log`, which is tracked.
    fn with_repository() -> Self {
        let bench = Self::new();
        bench.git(&["init", "--quiet", "--initial-branch=main"]);
        bench.write(".gitignore", "*.log\nbuild/\n");
        for file in ["kept", "changed", "removed", "ignored.log"] {
            bench.write(file, "first\n");
        }
        bench.git(&["add", "--force", "."]);
        bench.git(&["commit", "--quiet", "-m", "first"]);
        bench
    }

    fn project(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("project")
    }

    fn temporary(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("tmp")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.project(), args)
    }

    async fn make(
        &self,
        folder: &str,
        count: usize,
    ) -> Result<CandidateFolders, CandidateFoldersError> {
        self.make_within(folder, count, CopyLimits::default()).await
    }

    async fn make_within(
        &self,
        folder: &str,
        count: usize,
        limits: CopyLimits,
    ) -> Result<CandidateFolders, CandidateFoldersError> {
        let workspace = Workspace::local(self.project().join(folder)).unwrap();
        let id = SessionId::from("s/1");
        CandidateFolders::create_within(&workspace, &id, count, limits, &self.temporary()).await
    }

    /// Returns what is left in the folder for temporary files and among git's work trees.
    fn leftovers(&self) -> Vec<PathBuf> {
        let git = self.project().join(".git/worktrees");
        let folders = [self.temporary(), git];
        let entries = folders.iter().filter_map(|it| fs::read_dir(it).ok());
        entries.flatten().map(|it| it.unwrap().path()).collect()
    }
}

fn git_in(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the files below a folder with their text, without git's.
fn files_in(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if name == ".git" {
            } else if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.push((name, fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

fn names(changes: &FolderChanges) -> Vec<String> {
    changes.paths().map(|it| it.display().to_string()).collect()
}

#[tokio::test]
async fn work_trees_have_uncommitted_files_and_no_ignored_ones() {
    let bench = Bench::with_repository();
    bench.write("changed", "uncommitted\n");
    bench.write("sub/untracked", "new\n");
    bench.write("build/output", "ignored\n");
    fs::remove_file(bench.project().join("removed")).unwrap();
    let before = files_in(&bench.project());
    let head = bench.git(&["rev-parse", "HEAD"]);
    let folders = bench.make("", 2).await.unwrap();
    for index in 0..2 {
        let expected = [
            (".gitignore", "*.log\nbuild/\n"),
            ("changed", "uncommitted\n"),
            ("ignored.log", "first\n"),
            ("kept", "first\n"),
            ("sub/untracked", "new\n"),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(files_in(&folders.folder(index)), expected);
        // Git shows what the session's user would see.
        let status = git_in(&folders.folder(index), &["status", "--porcelain"]);
        assert_eq!(status, " M changed\n D removed\n?? sub/\n");
        assert_eq!(git_in(&folders.folder(index), &["rev-parse", "HEAD"]), head);
        assert!(folders.changes(index).await.unwrap().is_empty());
    }
    assert_ne!(folders.folder(0), folders.folder(1));
    assert!(bench.git(&["worktree", "list"]).lines().count() == 3);
    folders.remove().await;
    assert_eq!(bench.leftovers(), [] as [PathBuf; 0]);
    assert_eq!(files_in(&bench.project()), before);
    assert_eq!(bench.git(&["worktree", "list"]).lines().count(), 1);
}

/// Files change, appear and vanish in one candidate's folder; neither the others nor the session's folder do.
#[tokio::test]
async fn changes_are_those_of_one_candidate() {
    let bench = Bench::with_repository();
    let folders = bench.make("", 2).await.unwrap();
    let own = folders.folder(1);
    fs::write(own.join("changed"), "second\n").unwrap();
    fs::write(own.join("ignored.log"), "second\n").unwrap();
    fs::write(own.join("new.bin"), [0, 159, 146]).unwrap();
    fs::write(own.join("other.log"), "ignored\n").unwrap();
    fs::remove_file(own.join("removed")).unwrap();
    fs::set_permissions(own.join("kept"), fs::Permissions::from_mode(0o755)).unwrap();
    // What git has in its index, or a commit, does not matter.
    git_in(&own, &["add", "--all"]);
    git_in(&own, &["commit", "--quiet", "-m", "second"]);
    let changes = folders.changes(1).await.unwrap();
    let expected = ["removed", "changed", "ignored.log", "kept", "new.bin"];
    assert_eq!(names(&changes), expected);
    assert!(folders.changes(0).await.unwrap().is_empty());
    let workspace = Workspace::local(bench.project()).unwrap();
    changes
        .check(&bench.project(), workspace.files())
        .await
        .unwrap();
    changes
        .apply(&bench.project(), workspace.files())
        .await
        .unwrap();
    let status = bench.git(&["status", "--porcelain"]);
    let expected = " M changed\n M ignored.log\n M kept\n D removed\n?? new.bin\n";
    assert_eq!(status, expected);
    assert_eq!(
        fs::read(bench.project().join("new.bin")).unwrap(),
        [0, 159, 146]
    );
}

#[tokio::test]
async fn session_in_a_subfolder_gets_the_whole_work_tree() {
    let bench = Bench::with_repository();
    bench.write("sub/inner", "inner\n");
    bench.write("sub/.gitignore", "ignored\n");
    let folders = bench.make("sub", 1).await.unwrap();
    let own = folders.folder(0);
    assert_eq!(fs::read_to_string(own.join("../kept")).unwrap(), "first\n");
    // Changes elsewhere are not the candidate's to make.
    fs::write(own.join("../kept"), "second\n").unwrap();
    fs::write(own.join("inner"), "second\n").unwrap();
    fs::write(own.join("ignored"), "ignored\n").unwrap();
    assert_eq!(names(&folders.changes(0).await.unwrap()), ["inner"]);
}

#[tokio::test]
async fn folder_without_repository_is_copied() {
    let bench = Bench::new();
    bench.write("a/b", "first\n");
    bench.write(".gitignore", "*.log\n");
    bench.write("x.log", "ignored\n");
    symlink("a/b", bench.project().join("link")).unwrap();
    let folders = bench.make("", 1).await.unwrap();
    let own = folders.folder(0);
    assert_eq!(fs::read_link(own.join("link")).unwrap(), Path::new("a/b"));
    assert!(!own.join("x.log").exists() && !own.join(".git").exists());
    // A file takes the place of a folder.
    fs::remove_dir_all(own.join("a")).unwrap();
    fs::write(own.join("a"), "second\n").unwrap();
    let changes = folders.changes(0).await.unwrap();
    assert_eq!(names(&changes), ["a/b", "a"]);
    let workspace = Workspace::local(bench.project()).unwrap();
    changes
        .apply(&bench.project(), workspace.files())
        .await
        .unwrap();
    assert_eq!(
        fs::read_to_string(bench.project().join("a")).unwrap(),
        "second\n"
    );
    drop(folders);
    assert_eq!(bench.leftovers(), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn repository_without_commit_is_copied() {
    let bench = Bench::new();
    bench.git(&["init", "--quiet"]);
    bench.write("a", "first\n");
    let folders = bench.make("", 1).await.unwrap();
    assert_eq!(files_in(&folders.folder(0)).len(), 1);
    assert!(!folders.folder(0).join(".git").exists());
}

#[tokio::test]
async fn too_large_folder_is_refused_without_a_trace() {
    for limits in [
        CopyLimits {
            files: 1,
            bytes: 100,
        },
        CopyLimits {
            files: 100,
            bytes: 1,
        },
    ] {
        let bench = Bench::with_repository();
        let made = bench.make_within("", 2, limits).await;
        assert_eq!(made.err(), Some(CandidateFoldersError::TooLarge));
        assert_eq!(bench.leftovers(), [] as [PathBuf; 0]);
    }
    let workspace = Workspace::without_folder();
    let made = CandidateFolders::create(&workspace, &SessionId::from("s"), 1).await;
    assert_eq!(made.err(), Some(CandidateFoldersError::NoFolder));
}

/// A damaged repository is an error; nothing is left behind.
#[tokio::test]
async fn failure_of_git_is_reported() {
    let bench = Bench::with_repository();
    fs::write(bench.project().join(".git/worktrees"), "in the way").unwrap();
    let made = bench.make("", 1).await;
    assert!(matches!(made, Err(CandidateFoldersError::Git(_))));
    assert_eq!(fs::read_dir(bench.temporary()).unwrap().count(), 0);
    fs::write(bench.project().join(".git/HEAD"), "nonsense").unwrap();
    let made = bench.make("", 1).await;
    assert!(matches!(made, Err(CandidateFoldersError::Git(_))));
}

/// Neither hooks nor filters of the repository run.
#[tokio::test]
async fn repository_runs_nothing() {
    let bench = Bench::with_repository();
    let mark = bench.home.path().join("mark");
    let script = format!("touch {}", mark.display());
    bench.write(
        ".git/hooks/post-checkout",
        &format!("#!/bin/sh\n{script}\n"),
    );
    let hook = bench.project().join(".git/hooks/post-checkout");
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    bench.write(".git/info/attributes", "* filter=evil\n");
    for name in ["smudge", "clean", "process"] {
        bench.git(&["config", &format!("filter.evil.{name}"), &script]);
    }
    bench.git(&["config", "core.fsmonitor", &script]);
    let folders = bench.make("", 1).await.unwrap();
    fs::write(folders.folder(0).join("kept"), "second\n").unwrap();
    assert_eq!(names(&folders.changes(0).await.unwrap()), ["kept"]);
    folders.remove().await;
    assert!(!mark.exists());
}

/// The folders of a killed process are recognised by their lock, those of a live one are left alone.
#[tokio::test]
async fn leftovers_of_killed_process_are_removed() {
    let bench = Bench::with_repository();
    let alive = bench.make("", 1).await.unwrap();
    let killed = bench.make("", 2).await.unwrap();
    let left = killed.private.path().to_owned();
    // What a kill leaves: the lock is gone with the process, nothing else is.
    let lock = left.join("lock");
    std::mem::forget(killed);
    fs::copy(&lock, left.join("copy")).unwrap();
    fs::rename(left.join("copy"), &lock).unwrap();
    assert_eq!(bench.git(&["worktree", "list"]).lines().count(), 4);
    // The user's own work tree on a disk that is not mounted stays recorded.
    let own = bench.home.path().join("own");
    bench.git(&[
        "worktree",
        "add",
        "--quiet",
        "--detach",
        own.to_str().unwrap(),
    ]);
    fs::rename(&own, bench.home.path().join("elsewhere")).unwrap();
    let next = bench.make("", 1).await.unwrap();
    assert!(!left.exists());
    assert!(alive.folder(0).join("kept").exists() && next.folder(0).join("kept").exists());
    assert_eq!(bench.git(&["worktree", "list"]).lines().count(), 4);
    drop((alive, next));
    assert_eq!(bench.git(&["worktree", "list"]).lines().count(), 2);
}

/// A list in a leftover cannot make turnery remove another folder.
#[tokio::test]
async fn only_records_of_the_leftover_are_removed() {
    let bench = Bench::with_repository();
    let killed = bench.make("", 1).await.unwrap();
    let left = killed.private.path().to_owned();
    std::mem::forget(killed);
    fs::remove_file(left.join("lock")).unwrap();
    fs::write(left.join("lock"), "").unwrap();
    fs::write(left.join("records"), bench.project().display().to_string()).unwrap();
    leftovers::remove_all(&bench.temporary());
    assert!(!left.exists() && bench.project().join("kept").exists());
}

#[tokio::test]
async fn changes_that_do_not_apply_change_nothing() {
    let bench = Bench::with_repository();
    let folders = bench.make("", 1).await.unwrap();
    for file in ["kept", "changed", "new"] {
        fs::write(folders.folder(0).join(file), "second\n").unwrap();
    }
    let changes = folders.changes(0).await.unwrap();
    let workspace = Workspace::local(bench.project()).unwrap();
    let check = async || changes.check(&bench.project(), workspace.files()).await;
    check().await.unwrap();
    bench.write("changed", "by the user\n");
    bench.write("new", "by the user\n");
    let before = files_in(&bench.project());
    let Err(FolderChangesError::Conflict(files)) = check().await else {
        panic!("it applies");
    };
    assert_eq!(files, ["changed", "new"]);
    // A failure in the middle undoes what was done before it.
    fs::remove_file(bench.project().join("new")).unwrap();
    fs::create_dir(bench.project().join("new")).unwrap();
    let applied = changes.apply(&bench.project(), workspace.files()).await;
    assert!(applied.is_err());
    fs::remove_dir(bench.project().join("new")).unwrap();
    let kept = bench.project().join("kept");
    assert_eq!(fs::read_to_string(kept).unwrap(), "first\n");
    assert_eq!(before.len(), 6);
}

#[tokio::test]
async fn link_out_of_the_folder_is_refused() {
    for (target, is_refused) in [("/etc/passwd", true), ("../../x", true), ("../kept", false)] {
        let bench = Bench::with_repository();
        bench.write("sub/inner", "inner\n");
        let folders = bench.make("", 1).await.unwrap();
        symlink(target, folders.folder(0).join("sub/link")).unwrap();
        let changes = folders.changes(0).await;
        let refused = matches!(changes, Err(FolderChangesError::LeavingLink(_)));
        assert_eq!(refused, is_refused, "{target}");
        if let Ok(changes) = changes {
            let workspace = Workspace::local(bench.project()).unwrap();
            changes
                .apply(&bench.project(), workspace.files())
                .await
                .unwrap();
            let link = fs::read_link(bench.project().join("sub/link")).unwrap();
            assert_eq!(link, Path::new(target));
        }
    }
}

/// The kept diff can be applied by others.
#[tokio::test]
async fn kept_changes_are_a_patch_and_files() {
    let bench = Bench::with_repository();
    let folders = bench.make("", 1).await.unwrap();
    fs::write(folders.folder(0).join("changed"), "first\nsecond").unwrap();
    fs::write(folders.folder(0).join("new"), "new\n").unwrap();
    fs::write(folders.folder(0).join("bin"), [0, 1]).unwrap();
    fs::remove_file(folders.folder(0).join("removed")).unwrap();
    let changes = folders.changes(0).await.unwrap();
    let kept = tempfile::tempdir().unwrap();
    changes.write_to(kept.path()).unwrap();
    assert_eq!(fs::read(kept.path().join("files/bin")).unwrap(), [0, 1]);
    let diff = kept.path().join("changes.diff");
    bench.git(&["apply", "--exclude=bin", diff.to_str().unwrap()]);
    let status = bench.git(&["status", "--porcelain"]);
    assert_eq!(status, " M changed\n D removed\n?? new\n");
    let changed = fs::read_to_string(bench.project().join("changed")).unwrap();
    assert_eq!(changed, "first\nsecond");
}

/// A confined command of a candidate reaches neither the other folders nor the session's, and git's folder, which all
/// share, is not written.
#[tokio::test]
async fn confined_candidate_writes_only_its_folder() {
    let sandbox = SandboxSettings {
        mode: SandboxMode::Workspace,
        ..SandboxSettings::default()
    };
    if !sandbox.is_active() {
        return;
    }
    let bench = Bench::with_repository();
    let folders = bench.make("", 2).await.unwrap();
    let workspace = folders.workspace(0, &sandbox).unwrap();
    let (progress, _) = tokio::sync::mpsc::channel(1);
    let cx = ToolCx {
        call_id: "c".into(),
        origin: Origin::default(),
        workspace: Arc::new(workspace),
        hidden: HiddenFiles::default(),
        line_limits: CommandLineLimits::default(),
        progress,
        cancel: CancellationToken::new(),
        trace: TraceContext::default(),
        caller: None,
        host: None,
    };
    let run = async |line: &str| run_user_command(line, Duration::from_secs(30), &[], &cx).await;
    let other = folders.folder(1).join("kept");
    let base = folders.private.path().join(BASE).join("kept");
    for file in [&other, &base, &bench.project().join("kept")] {
        let output = run(&format!("echo x > {}", file.display())).await;
        assert_ne!(output.exit_code, Some(0), "{output:?}");
        assert_eq!(fs::read_to_string(file).unwrap(), "first\n");
    }
    assert_ne!(
        run(&format!("cat {}", other.display())).await.exit_code,
        Some(0)
    );
    // Its own folder is written, and git read.
    let output =
        run("echo x > kept && echo y > \"$TMPDIR/y\" && git diff --stat && git log --oneline")
            .await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(
        output.text.contains("kept | 2 +-") && output.text.contains("first"),
        "{output:?}"
    );
    for line in ["git branch stolen", "git config user.name x", "git stash"] {
        let output = run(line).await;
        assert_ne!(output.exit_code, Some(0), "{line}: {output:?}");
    }
    assert_eq!(bench.git(&["branch", "--list", "stolen"]), "");
}
