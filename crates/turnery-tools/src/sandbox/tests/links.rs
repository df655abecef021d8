//! Tests that nothing a command leaves on the disk gives the next command more access.

use super::{DENIED, SandboxFixture, is_confining, without_root_capabilities};
use crate::sandbox::{
    Confinement, repository_folders::RepositoryFolders, settings::find_work_trees, start_confined,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

const WRITE: &str = "echo x >> $HOME/Documents/tax.txt";
const READ: &str = "cat $HOME/Documents/tax.txt";

impl SandboxFixture {
    fn path(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    /// Makes a link and its parent folder.
    fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a world to test in");
        symlink(target, path).expect("a world to test in");
    }

    /// Makes a folder with a repository that has one commit.
    fn make_repository(&self, name: &str) {
        fs::create_dir(self.path(name)).expect("a world to test in");
        self.git(name, &["init", "-q"]);
        self.git(name, &["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// Moves `name` away and replaces it by a link to the folder `Documents`.
    fn replace_with_link(&self, name: &str) {
        let path = self.path(name);
        if path.exists() {
            fs::rename(&path, path.with_extension("moved")).expect("a world to test in");
        }
        symlink(self.path("Documents"), path).expect("a world to test in");
    }

    /// Asserts that neither writing nor read-only commands can access the folder `Documents`.
    fn assert_documents_protected(&self, change: impl Fn(&mut Confinement)) {
        let mut confinement = self.workspace();
        change(&mut confinement);
        self.assert_refused(&confinement, WRITE, DENIED);
        confinement.writes = false;
        self.assert_refused(&confinement, WRITE, DENIED);
        self.assert_refused(&confinement, READ, DENIED);
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .current_dir(self.path(folder))
            .output();
        let output = output.expect("a world to test in");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn programs_cannot_be_replaced() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::create_dir(world.path("bin")).unwrap();
    for name in ["git", "registry", ".package-cache"] {
        fs::write(world.path("bin").join(name), "program\n").unwrap();
        let mut confinement = world.workspace();
        confinement.toolchains = vec![world.path("bin")];
        let line = format!("echo x >> $HOME/bin/{name}");
        world.assert_refused(&confinement, &line, DENIED);
        confinement.writes = false;
        world.assert_refused(&confinement, &line, DENIED);
        world.assert_allowed(&confinement, &format!("cat $HOME/bin/{name}"));
    }
}

#[test]
fn project_links_open_nothing() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::write(world.path("Documents/HEAD"), "ref: refs/heads/main\n").unwrap();
    for name in [".git", "registry", "bin", "tmp"] {
        let path = world.path("project").join(name);
        symlink(world.path("Documents"), &path).unwrap();
        world.assert_documents_protected(|it| match name {
            "registry" => it.caches.push(path.clone()),
            "bin" => it.toolchains.push(path.clone()),
            "tmp" => it.temporary.push(path.clone()),
            _ => {}
        });
    }
}

/// A command can move away a root that is in a folder for temporary files.
#[test]
fn root_replaced_by_link_is_not_followed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::create_dir(world.path("tmp/own")).unwrap();
    world.replace_with_link("tmp/own");
    world.assert_documents_protected(|it| it.roots = vec![world.path("tmp/own")]);
    let below = world.path("tmp/own/inner");
    fs::create_dir(world.path("Documents/inner")).unwrap();
    fs::write(world.path("Documents/inner/a"), "a\n").unwrap();
    let mut confinement = world.workspace();
    confinement.roots = vec![below];
    world.assert_refused(&confinement, "echo x >> $HOME/Documents/inner/a", DENIED);
}

/// `TMPDIR` is often in the system's folder for temporary files, and a cache may be in another one.
#[test]
fn nested_temporary_folder_replaced_by_link_is_not_followed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    for (own, later) in [("tmp/own", "tmp"), (".cache/pip/own", ".cache/pip")] {
        fs::create_dir_all(world.path(own)).unwrap();
        let change = |it: &mut Confinement| {
            it.temporary = vec![world.path(own)];
            it.caches = vec![world.path(later)];
        };
        let mut confinement = world.workspace();
        change(&mut confinement);
        assert_eq!(
            confinement.scratch_parent(&world.path(own)),
            Some(world.path(own))
        );
        world.assert_allowed(&confinement, &format!("echo x > $HOME/{own}/a"));
        world.replace_with_link(own);
        world.assert_documents_protected(change);
        let parent = confinement.scratch_parent(&world.path(own)).unwrap();
        assert!(!parent.starts_with(world.home()));
    }
}

#[test]
fn cache_replaced_by_link_is_not_followed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let elsewhere = world.path("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    for name in ["home/.ssh", "home/go/pkg", "home/project"] {
        fs::create_dir_all(world.path(name)).unwrap();
    }
    fs::create_dir(elsewhere.join("pip")).unwrap();
    symlink(&elsewhere, world.path("home/.cache")).unwrap();
    world.replace_with_link("home/go/pkg");
    let home = |roots: Vec<PathBuf>| {
        let mut confinement = world.workspace();
        confinement.home = Some(world.path("home"));
        confinement.roots = roots;
        confinement
    };
    world.assert_refused(&home(vec![world.path("home")]), WRITE, DENIED);
    // A link of the user's is followed where no command can have put it.
    let apart = home(vec![world.path("home/project")]);
    world.assert_allowed(&apart, "echo x > $HOME/home/.cache/pip/a");
}

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
        thread::spawn(move || answer.send(RepositoryFolders::find(&[root], &[], None, &[])));
        answers.recv_timeout(Duration::from_secs(20)).unwrap()
    };
    let folder = root.join("own");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.join("config"), "[core]\n\tworktree = ..\n").unwrap();
    fs::write(&dot_git, "gitdir: own\n").unwrap();
    assert_eq!(around().git_folders, [folder]);
    fs::write(&dot_git, format!("gitdir: own{}", "\n".repeat(64 << 10))).unwrap();
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
        confinement.roots = vec![world.path(folder)];
        confinement.work_trees = find_work_trees(&confinement.roots);
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

/// Users may keep keys in another folder and link to them from where programs look.
#[test]
fn key_behind_a_link_stays_closed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    symlink(world.path("Documents/tax.txt"), world.path(".ssh/config")).unwrap();
    fs::write(world.path("Documents/other.txt"), "x\n").unwrap();
    let workspace = world.workspace();
    world.assert_refused(&workspace, READ, DENIED);
    world.assert_refused(&workspace, "cat $HOME/.ssh/config", DENIED);
    world.assert_allowed(&workspace, "cat $HOME/Documents/other.txt");
    // Files in the project belong to the project.
    symlink(world.path("project/a.txt"), world.path(".ssh/known_hosts")).unwrap();
    world.assert_allowed(&workspace, "cat a.txt && echo x > new.txt");
}

#[test]
fn keys_behind_nested_and_folder_links_stay_closed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    for folder in [
        "vault/keys/deep",
        "vault/further",
        ".gnupg/private",
        "apps/bin",
    ] {
        fs::create_dir_all(world.path(folder)).unwrap();
    }
    let keys = ["vault/keys/deep/a", "vault/further/b", "vault/c"];
    for key in keys {
        fs::write(world.path(key), "key\n").unwrap();
    }
    for (link, target) in [
        (".ssh/keys", "vault/keys"),
        ("vault/keys/further", "vault/further"),
        ("vault/further/loop", "vault/keys"),
        (".gnupg/private/c", "vault/c"),
    ] {
        symlink(world.path(target), world.path(link)).unwrap();
    }
    for confinement in [world.workspace(), world.read_only()] {
        for key in keys {
            world.assert_refused(&confinement, &format!("cat $HOME/{key}"), DENIED);
        }
    }
    let append = "echo x >> $HOME/vault/keys/deep/a";
    world.assert_refused(&world.workspace(), append, DENIED);
    world.assert_allowed(&world.workspace(), READ);
    // A folder with programs that commands need stays open.
    fs::write(world.path("apps/bin/tool"), "tool\n").unwrap();
    for (name, target) in [
        ("home", ""),
        ("root", "project"),
        ("bin", "apps/bin"),
        ("apps", "apps"),
    ] {
        symlink(world.path(target), world.path(".ssh").join(name)).unwrap();
    }
    let mut confinement = world.workspace();
    confinement.toolchains = vec![world.path("apps/bin")];
    world.assert_allowed(
        &confinement,
        "echo x > new && cat a.txt $HOME/apps/bin/tool",
    );
    world.assert_allowed(&confinement, READ);
    fs::create_dir_all(world.path("other/.ssh")).unwrap();
    symlink(world.path("other"), world.path("other/.ssh/home")).unwrap();
    fs::write(world.path("other/notes"), "notes\n").unwrap();
    confinement.home = Some(world.path("other"));
    world.assert_allowed(&confinement, "cat $HOME/other/notes");
}

#[test]
fn scratch_folder_replaced_by_link_is_not_followed() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let scratch = world.path("tmp/scratch");
    for (confinement, is_link) in [
        (world.workspace(), false),
        (world.read_only(), false),
        (world.workspace(), true),
        (world.read_only(), true),
    ] {
        let mut confinement = confinement;
        confinement.scratch = Some(scratch.clone());
        if is_link {
            world.run(None, "rm -rf ~/tmp/scratch; ln -s ~/.ssh ~/tmp/scratch");
            world.assert_refused(&confinement, "cat ~/tmp/scratch/id_rsa", DENIED);
            world.assert_refused(&confinement, "echo x > ~/tmp/scratch/planted", DENIED);
        } else {
            world.run(None, "mkdir -p ~/tmp/scratch");
            world.assert_allowed(&confinement, "echo x > ~/tmp/scratch/$RANDOM");
        }
    }
}

/// Replacing a link on the way to a closed file would close another file instead.
#[test]
fn links_leading_to_keys_cannot_be_replaced() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    world.link("project/a/config", "../b/config");
    world.link(".turnery/linked", "../project/a/config");
    fs::create_dir(world.path("project/b")).unwrap();
    fs::write(world.path("project/b/config"), "content\n").unwrap();
    let mut confinement = world.workspace();
    confinement.private.push(world.path(".turnery/linked"));
    world.assert_refused(
        &confinement,
        "ln -sfn x a/config && ln -sfn ../b/config a/config",
        DENIED,
    );
    world.assert_refused(&confinement, "cat b/config", DENIED);
    // Through a folder, and to a key that no table names.
    world.link("project/c/current", "../../vault");
    world.link(".config", "project/c/current");
    world.link("project/d/key", "../../vault/key");
    world.link(".ssh/linked", "../project/d/key");
    fs::create_dir_all(world.path("vault/gh")).unwrap();
    fs::write(world.path("vault/key"), "content\n").unwrap();
    let confinement = world.workspace();
    world.assert_refused(
        &confinement,
        "rm c/current && ln -s ../../vault c/current",
        DENIED,
    );
    world.assert_refused(
        &confinement,
        "rm d/key && ln -s ../../vault/key d/key",
        DENIED,
    );
    world.assert_refused(&confinement, "cat $HOME/vault/key", DENIED);
}

/// A command may close a folder of its user, which the next command opens again.
#[test]
fn nothing_starts_while_key_folder_is_unreadable() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::create_dir_all(world.home().join("vault/inner")).unwrap();
    fs::create_dir_all(world.home().join(".config/gh")).unwrap();
    fs::write(world.home().join("vault/inner/key"), "content\n").unwrap();
    symlink("../vault/inner/key", world.home().join(".ssh/linked")).unwrap();
    // Not examined before: a link to a key that does not exist yet.
    fs::create_dir_all(world.home().join("aside/inner")).unwrap();
    symlink("aside/inner", world.home().join(".kaggle-linked")).unwrap();
    let mut confinement = world.workspace();
    let later = world.home().join(".kaggle-linked/later");
    confinement.private.push(later);
    let start = || {
        without_root_capabilities(|| start_confined(&confinement, || Command::new("true").status()))
    };
    assert!(start().is_ok_and(|status| status.success()));
    for (name, mode) in [
        (".ssh", 0o000),
        (".ssh", 0o111),
        (".ssh", 0o444),
        (".config", 0o000),
        ("vault", 0o000),
        ("vault/inner", 0o000),
        ("aside", 0o000),
        ("", 0o000),
    ] {
        let folder = world.home().join(name);
        let set = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        set(mode);
        let started = start();
        set(0o755);
        let error = started.expect_err(name).to_string();
        let command = format!(
            "run `chmod u+rx {}`",
            folder.components().as_path().display()
        );
        assert!(error.contains(&command), "{name} {mode:o}: {error}");
    }
    assert!(start().is_ok());
}
