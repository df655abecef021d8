//! Tests which git folders outside the session's folder are opened, and for whom.

use super::{DENIED, SandboxFixture, is_confining};
use crate::sandbox::{Confinement, repository_folders::RepositoryFolders};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A `.git` file of a project may not open a folder that does not name it in return.
#[test]
fn git_file_opens_no_foreign_folder() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::write(world.path("Documents/HEAD"), "ref: refs/heads/main\n").unwrap();
    let dot_git = world.path("project/.git");
    let documents = world.path("Documents").display().to_string();
    fs::write(&dot_git, format!("gitdir: {documents}\n")).unwrap();
    world.assert_documents_protected(|_| {});
    // A linked work tree and a submodule, where the project can write both ends.
    for forged in [
        world.path("project/forged"),
        world.path("project/worktrees/forged"),
    ] {
        fs::create_dir_all(&forged).unwrap();
        let write = |name: &str, text: &Path| {
            fs::write(forged.join(name), format!("{}\n", text.display())).unwrap();
        };
        write("commondir", Path::new(&documents));
        write("gitdir", &dot_git);
        write("HEAD", Path::new("ref: refs/heads/main"));
        fs::write(&dot_git, format!("gitdir: {}\n", forged.display())).unwrap();
        world.assert_documents_protected(|_| {});
    }
    let linked = world.path("project/modules");
    symlink(&documents, &linked).unwrap();
    let config = format!("[core]\n\tworktree = {}\n", world.path("project").display());
    fs::write(world.path("project/config"), config).unwrap();
    fs::write(&dot_git, format!("gitdir: {}\n", linked.display())).unwrap();
    world.assert_documents_protected(|_| {});
}

/// The folder of a linked work tree or a submodule belongs only to that one.
#[test]
fn git_file_opens_no_folder_of_another_work_tree() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    world.make_repository("main");
    world.git("main", &["worktree", "add", "-q", "../linked"]);
    world.git(
        "main",
        &["submodule", "--quiet", "add", "../main", "module"],
    );
    for name in ["worktrees/linked", "modules/module"] {
        let folder = world.path("main/.git").join(name);
        let text = format!("gitdir: {}\n", folder.display());
        fs::write(world.path("project/.git"), text).unwrap();
        let head = folder.join("HEAD").display().to_string();
        for confinement in [world.workspace(), world.read_only()] {
            world.assert_refused(
                &confinement,
                &format!("touch {head}.lock; rm {head}.lock"),
                DENIED,
            );
        }
        world.assert_refused(&world.read_only(), &format!("cat {head}"), DENIED);
    }
}

/// Commands may be able to write where another work tree is.
#[test]
fn git_file_opens_no_folder_through_linked_work_tree() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    world.make_repository("main");
    world.git("main", &["worktree", "add", "-q", "../tmp/linked"]);
    let record = world.path("main/.git/worktrees/linked");
    let dot_git = world.path("project/.git");
    fs::write(&dot_git, format!("gitdir: {}\n", record.display())).unwrap();
    let hook = "echo x > $HOME/main/.git/hooks/pre-commit";
    let keeps_hooks = || world.assert_refused(&world.workspace(), hook, DENIED);
    fs::remove_file(world.path("tmp/linked/.git")).unwrap();
    symlink(&dot_git, world.path("tmp/linked/.git")).unwrap();
    keeps_hooks();
    fs::rename(world.path("tmp/linked"), world.path("tmp/moved")).unwrap();
    symlink(world.path("project"), world.path("tmp/linked")).unwrap();
    keeps_hooks();
    // Likewise for the work tree that a submodule's configuration names.
    let folder = world.path("main/.git/modules/linked");
    fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[core]\n\tworktree = {}\n",
        world.path("tmp/linked").display()
    );
    fs::write(folder.join("config"), config).unwrap();
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(&dot_git, format!("gitdir: {}\n", folder.display())).unwrap();
    let head = format!("touch {0}/a && rm {0}/a", folder.display());
    world.assert_refused(&world.workspace(), &head, DENIED);
}

/// Opening a pipe blocks until its other end is opened.
#[test]
fn git_file_that_is_pipe_or_too_long_is_ignored() {
    let world = SandboxFixture::new();
    let root = world.path("project");
    let dot_git = root.join(".git");
    let around = || {
        let root = root.clone();
        let (answer, answers) = mpsc::channel();
        let confinement = Confinement {
            work_trees: vec![root],
            ..Confinement::default()
        };
        thread::spawn(move || answer.send(RepositoryFolders::find(&confinement, &[])));
        answers.recv_timeout(Duration::from_secs(20)).unwrap()
    };
    let folder = world.path("own");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.join("config"), "[core]\n\tworktree = ../project\n").unwrap();
    fs::write(&dot_git, "gitdir: ../own\n").unwrap();
    assert_eq!(around().git_folders, [folder]);
    fs::write(&dot_git, format!("gitdir: ../own{}", "\n".repeat(64 << 10))).unwrap();
    assert!(around().git_folders.is_empty());
    fs::remove_file(&dot_git).unwrap();
    mknodat(CWD, &dot_git, FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(around().git_folders.is_empty());
}

/// Work trees, submodules and subfolders whose repository is outside the roots.
#[test]
fn git_works_with_git_folder_outside_roots() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::create_dir_all(world.path("main/sub/deep")).unwrap();
    world.git("main", &["init", "-q"]);
    world.git("main", &["commit", "-q", "--allow-empty", "-m", "x"]);
    world.git("main", &["worktree", "add", "-q", "../linked"]);
    world.git("main", &["worktree", "add", "-q", "../relative"]);
    let record = world.path("main/.git/worktrees/relative/gitdir");
    fs::write(record, "../../../../relative/.git\n").unwrap();
    world.git(
        "main",
        &["submodule", "--quiet", "add", "../main", "module"],
    );
    let commit = "git -c user.name=a -c user.email=a@b commit -q -m y";
    for folder in ["main/module", "linked", "relative", "main/sub/deep"] {
        let mut confinement = world.workspace();
        world.enter(&mut confinement, folder);
        let line = format!("cd $HOME/{folder} && echo y > y && git add y && {commit}");
        world.assert_allowed(&confinement, &line);
        confinement.writes = false;
        let line = format!("cd $HOME/{folder} && GIT_OPTIONAL_LOCKS=0 git status && git log");
        world.assert_allowed(&confinement, &line);
        // The work tree of the repository is read, not written.
        let outside = "echo x >> $HOME/main/.gitmodules";
        confinement.writes = true;
        world.assert_refused(&confinement, outside, DENIED);
    }
}

/// Commands write the git folder of a linked work tree, wherever it is.
#[test]
fn links_in_git_folder_open_nothing() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    world.make_repository("main");
    world.git("main", &["worktree", "add", "-q", "../linked"]);
    let path = world.path("main/.git/tmp");
    symlink(world.path("Documents"), &path).unwrap();
    let changes: [fn(&mut Confinement, PathBuf); 2] = [
        |it, path| it.caches.push(path),
        |it, path| it.toolchains.push(path),
    ];
    for change in changes {
        world.assert_documents_protected(|it| {
            world.enter(it, "linked");
            change(it, path.clone());
        });
    }
}

/// A project may contain what looks like its repository or that of a folder in it.
#[test]
fn git_file_opens_no_folder_of_its_project() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let write = |name: &str, text: &str| {
        let path = world.path("project").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let assert_closed = |line: &str| {
        let mut confinement = world.workspace();
        world.enter(&mut confinement, "project/sub");
        world.assert_refused(&confinement, line, DENIED);
    };
    write("sub/a", "");
    write("HEAD", "ref: refs/heads/main\n");
    write("config", "[core]\n\tworktree = .\n");
    write(".git", "gitdir: .\n");
    assert_closed("echo x >> a.txt");
    write("docs/HEAD", "ref: refs/heads/main\n");
    write("docs/config", "[core]\n\tworktree = ..\n");
    write(".git", "gitdir: docs\n");
    assert_closed("echo x >> docs/HEAD");
    write("worktrees/sub/commondir", "../..\n");
    write("worktrees/sub/gitdir", "../../sub/.git\n");
    write("sub/.git", "gitdir: ../worktrees/sub\n");
    assert_closed("echo x >> a.txt");
}
