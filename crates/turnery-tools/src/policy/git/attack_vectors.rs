//! Lists known ways in which a repository makes git run a program.

use super::attack_vector_tests::GitFixture;
use std::{fs, path::PathBuf};

/// Attack vector: name, text for the configuration, further setup, the folder in which git starts, and a command
/// that triggers the program.
pub(super) struct AttackVector {
    pub(super) name: &'static str,
    pub(super) config: &'static str,
    pub(super) set_up: fn(&GitFixture),
    pub(super) folder: &'static str,
    pub(super) trigger: &'static str,
}

const fn work_tree_vector(
    name: &'static str,
    set_up: fn(&GitFixture),
    trigger: &'static str,
) -> AttackVector {
    AttackVector {
        name,
        config: "",
        set_up,
        folder: "",
        trigger,
    }
}

const fn config_vector(
    name: &'static str,
    config: &'static str,
    trigger: &'static str,
) -> AttackVector {
    AttackVector {
        config,
        ..work_tree_vector(name, |_| {}, trigger)
    }
}

pub(super) fn append_config(fixture: &GitFixture, text: &str) {
    fixture.configure(&fixture.work_tree.join(".git"), text);
}

fn add_hook(fixture: &GitFixture, name: &str) {
    let hook = fixture.work_tree.join(".git/hooks").join(name);
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::copy(fixture.root.join("evil"), hook).unwrap();
}

/// Adds a folder `docs` that git treats as a repository, as a clone could contain it.
fn add_bare_repository(fixture: &GitFixture, has_common_dir: bool) {
    let docs = fixture.work_tree.join("docs");
    let common = if has_common_dir {
        docs.join("x")
    } else {
        docs.clone()
    };
    for part in ["objects", "refs"] {
        fs::create_dir_all(common.join(part)).unwrap();
    }
    fs::write(docs.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let text =
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\nfsmonitor = EVIL\n";
    if has_common_dir {
        fs::write(docs.join("commondir"), "x\n").unwrap();
        fixture.configure(
            &common,
            "[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n",
        );
        let text = text.replace("repositoryformatversion = 0\n", "");
        fs::write(
            docs.join("config.worktree"),
            text.replace("EVIL", &fixture.evil_program()),
        )
        .unwrap();
    } else {
        fixture.configure(&common, text);
    }
    fs::copy(fixture.work_tree.join(".git/index"), docs.join("index")).unwrap();
}

/// Adds a copy of the repository as the submodule `lib`.
pub(super) fn add_submodule(fixture: &GitFixture) -> PathBuf {
    let from = fixture.work_tree.display();
    fixture.git(&format!(
        "-c protocol.file.allow=always submodule --quiet add -f {from} lib"
    ));
    fixture.git("commit -q -m lib");
    fixture.work_tree.join(".git/modules/lib")
}

/// All attack vectors.
pub(super) const ATTACK_VECTORS: &[AttackVector] = &[
    config_vector("core.fsmonitor", "[core]\nfsmonitor = EVIL\n", "git status"),
    config_vector(
        "one-line section",
        "[core] fsmonitor = EVIL\n",
        "git status",
    ),
    config_vector(
        "continued line",
        "[core]\nfsmonitor = \\\nEVIL\n",
        "git status",
    ),
    work_tree_vector(
        "include",
        |b| {
            fs::write(
                b.work_tree.join("more"),
                format!("[core]\nfsmonitor = {}\n", b.evil_program()),
            )
            .unwrap();
            append_config(b, "[include]\npath = ../more\n");
        },
        "git status",
    ),
    work_tree_vector(
        "config.worktree",
        |b| {
            append_config(
                b,
                "[extensions]\nworktreeConfig = true\n[core]\nrepositoryformatversion = 1\n",
            );
            let text = format!("[core]\nfsmonitor = {}\n", b.evil_program());
            fs::write(b.work_tree.join(".git/config.worktree"), text).unwrap();
        },
        "git status",
    ),
    config_vector("diff.external", "[diff]\nexternal = EVIL\n", "git diff"),
    config_vector(
        "diff driver's command",
        "[diff \"evil\"]\ncommand = EVIL\n",
        "git diff",
    ),
    config_vector(
        "diff driver's textconv",
        "[diff \"evil\"]\ntextconv = EVIL\n",
        "git log -p",
    ),
    config_vector(
        "clean filter",
        "[filter \"evil\"]\nclean = EVIL\n",
        "git diff",
    ),
    config_vector(
        "process filter",
        "[filter \"evil\"]\nprocess = EVIL\n",
        "git diff",
    ),
    config_vector(
        "smudge filter",
        "[filter \"evil\"]\nsmudge = EVIL\n",
        "git checkout HEAD~1 -- src/a.txt",
    ),
    work_tree_vector(
        "hook post-index-change",
        |b| add_hook(b, "post-index-change"),
        "git status",
    ),
    work_tree_vector(
        "hook pre-commit",
        |b| add_hook(b, "pre-commit"),
        "git commit -q -a -m x",
    ),
    work_tree_vector(
        "core.hooksPath",
        |b| {
            fs::create_dir(b.work_tree.join("hooks")).unwrap();
            fs::copy(
                b.root.join("evil"),
                b.work_tree.join("hooks/post-index-change"),
            )
            .unwrap();
            append_config(b, "[core]\nhooksPath = hooks\n");
        },
        "git status",
    ),
    config_vector(
        "core.pager",
        "[core]\npager = EVIL\n",
        "script -qec 'git log' /dev/null",
    ),
    config_vector(
        "pager.log",
        "[pager]\nlog = EVIL\n",
        "script -qec 'git log' /dev/null",
    ),
    config_vector(
        "core.sshCommand",
        "[core]\nsshCommand = EVIL\n[remote \"origin\"]\nurl = ssh://x/y\n",
        "GIT_ALLOW_PROTOCOL=ssh git fetch",
    ),
    config_vector(
        "remote helper",
        "[remote \"origin\"]\nurl = ext::EVIL\n",
        "git fetch",
    ),
    config_vector(
        "upload-pack",
        "[remote \"origin\"]\nurl = .\nuploadpack = EVIL\nfetch = +refs/heads/*:refs/remotes/origin/*\n",
        "git fetch origin",
    ),
    work_tree_vector(
        "promisor remote",
        |b| {
            append_config(
                b,
                "[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = origin\n\
                 [remote \"origin\"]\nurl = ext::EVIL\npromisor = true\n",
            );
            remove_blobs(b);
        },
        "git log -p",
    ),
    config_vector("alias", "[alias]\nstatus2 = !EVIL\n", "git status2"),
    work_tree_vector(
        "gpg.program",
        |b| {
            add_signed_commit(b);
            append_config(b, "[gpg]\nprogram = EVIL\n");
        },
        "git log --format=%G?",
    ),
    work_tree_vector(
        "log.showSignature",
        |b| {
            add_signed_commit(b);
            append_config(b, "[gpg]\nprogram = EVIL\n[log]\nshowSignature = true\n");
        },
        "git log",
    ),
    config_vector(
        "credential.helper",
        "[credential]\nhelper = EVIL\n",
        "echo url=https://example.org | git credential fill",
    ),
    config_vector("core.editor", "[core]\neditor = EVIL\n", "git commit -a"),
    config_vector(
        "interactive.diffFilter",
        "[interactive]\ndiffFilter = EVIL\n[color]\nui = always\n",
        "echo q | git add -p",
    ),
    AttackVector {
        name: "embedded bare repository",
        config: "",
        set_up: |b| add_bare_repository(b, false),
        folder: "docs",
        trigger: "git status",
    },
    AttackVector {
        name: "embedded repository with commondir",
        config: "",
        set_up: |b| add_bare_repository(b, true),
        folder: "docs",
        trigger: "git status",
    },
    AttackVector {
        name: "folder below an embedded repository",
        config: "",
        set_up: |b| {
            add_bare_repository(b, true);
            fs::create_dir(b.work_tree.join("docs/deep")).unwrap();
        },
        folder: "docs/deep",
        trigger: "git status",
    },
    AttackVector {
        name: "repository with commondir in .git",
        config: "",
        set_up: |b| {
            add_bare_repository(b, true);
            fs::rename(b.work_tree.join(".git"), b.work_tree.join("was")).unwrap();
            fs::rename(b.work_tree.join("docs"), b.work_tree.join(".git")).unwrap();
            let config = b.work_tree.join(".git/config.worktree");
            let text = fs::read_to_string(&config).unwrap();
            fs::write(config, text.replace("worktree = ..\n", "")).unwrap();
        },
        folder: "",
        trigger: "git status",
    },
    AttackVector {
        name: "file .git that leads to a prepared folder",
        config: "[core]\nfsmonitor = EVIL\n",
        set_up: |b| {
            fs::rename(b.work_tree.join(".git"), b.work_tree.join("was")).unwrap();
            fs::write(b.work_tree.join(".git"), "gitdir: was\n").unwrap();
        },
        folder: "",
        trigger: "git status",
    },
    AttackVector {
        name: "link .git",
        config: "[core]\nfsmonitor = EVIL\n",
        set_up: |b| {
            fs::rename(b.work_tree.join(".git"), b.work_tree.join("was")).unwrap();
            std::os::unix::fs::symlink("was", b.work_tree.join(".git")).unwrap();
        },
        folder: "",
        trigger: "git status",
    },
    work_tree_vector(
        "submodule's core.fsmonitor",
        |b| {
            let kept = add_submodule(b);
            b.configure(&kept, "[core]\nfsmonitor = EVIL\n");
        },
        "git status",
    ),
    work_tree_vector(
        "submodule's hook",
        |b| {
            let kept = add_submodule(b);
            fs::create_dir_all(kept.join("hooks")).unwrap();
            fs::copy(b.root.join("evil"), kept.join("hooks/post-index-change")).unwrap();
        },
        "git status",
    ),
    work_tree_vector(
        "submodule's filter",
        |b| {
            let kept = add_submodule(b);
            b.configure(&kept, "[filter \"evil\"]\nclean = EVIL\n");
            fs::write(b.work_tree.join("lib/src/a.txt"), "one\nTWO\n").unwrap();
        },
        "git diff",
    ),
    work_tree_vector(
        "gitlink to a repository with a folder .git",
        |b| {
            b.git(&format!("clone -q {} lib", b.work_tree.display()));
            b.git("-c advice.addEmbeddedRepo=false add lib");
            b.git("commit -q -m lib");
            b.configure(&b.work_tree.join("lib/.git"), "[core]\nfsmonitor = EVIL\n");
        },
        "git status",
    ),
];

/// Removes the blobs of the first commits, which a partial clone then requests from its remote.
fn remove_blobs(fixture: &GitFixture) {
    let listed = fixture.run(
        &fixture.work_tree,
        "git rev-parse HEAD:src/a.txt HEAD~1:src/a.txt",
        &fixture.environment(),
    );
    for name in String::from_utf8(listed.stdout).unwrap().lines() {
        let (folder, file) = name.split_at(2);
        let _ = fs::remove_file(
            fixture
                .work_tree
                .join(".git/objects")
                .join(folder)
                .join(file),
        );
    }
}

/// Adds a commit with a fake signature.
fn add_signed_commit(fixture: &GitFixture) {
    let line = "c=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' \
                | git hash-object -t commit -w --stdin) && git update-ref HEAD $c";
    let output = fixture.run(&fixture.work_tree, line, &fixture.environment());
    assert!(output.status.success(), "{output:?}");
}
