//! Tests that nothing a command leaves on the disk gives the next command more access.

use super::{DENIED, SandboxFixture, is_confining, without_root_capabilities};
use crate::sandbox::{
    Confinement,
    settings::{find_projects, find_work_trees},
    start_confined,
};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    process::Command,
};

const WRITE: &str = "echo x >> $HOME/Documents/tax.txt";
const READ: &str = "cat $HOME/Documents/tax.txt";

impl SandboxFixture {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home().join(name)
    }

    /// Makes a link and its parent folder.
    pub(super) fn link(&self, name: &str, target: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a world to test in");
        symlink(target, path).expect("a world to test in");
    }

    /// Makes a folder with a repository that has one commit.
    pub(super) fn make_repository(&self, name: &str) {
        fs::create_dir(self.path(name)).expect("a world to test in");
        self.git(name, &["init", "-q"]);
        self.git(name, &["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// Moves `name` away and replaces it by a link to the folder `Documents`.
    pub(super) fn replace_with_link(&self, name: &str) {
        let path = self.path(name);
        if path.exists() {
            fs::rename(&path, path.with_extension("moved")).expect("a world to test in");
        }
        symlink(self.path("Documents"), path).expect("a world to test in");
    }

    /// Makes this folder the only root of the session.
    pub(super) fn enter(&self, confinement: &mut Confinement, name: &str) {
        confinement.roots = vec![self.path(name)];
        confinement.work_trees = find_work_trees(&confinement.roots);
        confinement.projects = find_projects(&confinement.roots, confinement.home.as_deref());
    }

    /// Asserts that neither writing nor read-only commands can access the folder `Documents`.
    pub(super) fn assert_documents_protected(&self, change: impl Fn(&mut Confinement)) {
        let mut confinement = self.workspace();
        change(&mut confinement);
        self.assert_refused(&confinement, WRITE, DENIED);
        confinement.writes = false;
        self.assert_refused(&confinement, WRITE, DENIED);
        self.assert_refused(&confinement, READ, DENIED);
    }

    pub(super) fn git(&self, folder: &str, arguments: &[&str]) {
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

/// The project or a command of an earlier session may have made the links.
#[test]
fn links_of_project_around_root_open_nothing() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    fs::create_dir(world.path("project/sub")).unwrap();
    fs::write(world.path("Documents/HEAD"), "ref: refs/heads/main\n").unwrap();
    let assert_protected = |name: &str| {
        let path = world.path("project").join(name);
        symlink(world.path("Documents"), &path).unwrap();
        world.assert_documents_protected(|it| {
            world.enter(it, "project/sub");
            match name {
                "registry" => it.caches.push(path.clone()),
                "bin" => it.toolchains.push(path.clone()),
                "tmp" => it.temporary.push(path.clone()),
                _ => {}
            }
            assert_ne!(it.scratch_parent(&path), Some(world.path("Documents")));
        });
        fs::remove_file(path).unwrap();
    };
    assert_protected(".git");
    fs::create_dir(world.path("project/.git")).unwrap();
    let all = ["registry", "bin", "tmp"];
    all.iter().for_each(|name| assert_protected(name));
    // A repository within the project.
    fs::create_dir(world.path("project/sub/.git")).unwrap();
    all.iter().for_each(|name| assert_protected(name));
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
        confinement.projects = find_projects(&roots, confinement.home.as_deref());
        confinement.roots = roots;
        confinement
    };
    // A home folder with the user's settings is no project.
    fs::create_dir(world.path("home/.git")).unwrap();
    world.assert_refused(&home(vec![world.path("home")]), WRITE, DENIED);
    // A link of the user's is followed where no command can have put it.
    let apart = home(vec![world.path("home/project")]);
    world.assert_allowed(&apart, "echo x > $HOME/home/.cache/pip/a");
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

/// Entries of the folder beyond the limit on rules may be inaccessible.
#[test]
fn files_beside_keys_in_full_folder_are_accessible() {
    let world = SandboxFixture::new();
    if !is_confining() {
        return;
    }
    let mut confinement = world.workspace();
    for number in 0..8 {
        let name = format!("full/way{number}");
        fs::create_dir_all(world.path(&name)).unwrap();
        fs::write(world.path(&format!("{name}/key")), "x\n").unwrap();
        fs::write(world.path(&format!("{name}/notes")), "x\n").unwrap();
        confinement.private.push(world.path(&format!("{name}/key")));
    }
    for number in 0..3 * 4096 {
        fs::write(world.path(&format!("full/{number}")), "").unwrap();
    }
    world.assert_allowed(&confinement, "cat $HOME/full/*/notes");
    world.assert_refused(&confinement, "cat $HOME/full/way0/key", DENIED);
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
