//! Checks in which modes changing a guarded file needs approval.

use super::{GuardedPaths, Judgement, Mode, Policy};
use crate::{Access, Workspace};
use std::{fs, os::unix::fs::symlink, path::PathBuf};

struct GuardedFixture {
    folder: tempfile::TempDir,
    workspace: Workspace,
}

impl GuardedFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = Workspace::local(root).unwrap();
        Self { folder, workspace }
    }

    fn judge_edit(&self, policy: &Policy, path: &str) -> Judgement {
        let access = Access::Edit(vec![self.workspace.resolve(path).unwrap()]);
        policy.judge("write_file", &access, &self.workspace)
    }

    fn judge_shell(&self, policy: &Policy, command: &str) -> Judgement {
        let access = Access::Run {
            command: command.to_owned(),
            cwd: self.workspace.cwd().to_owned(),
        };
        policy.judge("shell", &access, &self.workspace)
    }
}

/// Taken from the manuals of the programs that run commands named in these files.
const GUARDED: &[&str] = &[
    ".Rprofile",
    ".bashrc",
    ".cargo/config.toml",
    ".claude/settings.json",
    ".claude/worktrees/.cargo/config.toml",
    ".claude/worktrees/.github/workflows/ci.yml",
    ".claude/worktrees/mise/config.toml",
    ".config/fish/config.fish",
    ".config/git/.cursor/worktrees/x/config",
    ".config/mise/config.toml",
    ".cursor/mcp.json",
    ".devcontainer.json",
    ".devcontainer/devcontainer.json",
    ".emacs.d/init.el",
    ".envrc",
    ".forgejo/workflows/ci.yml",
    ".gemini/settings.json",
    ".gemini/worktrees/.git/hooks/pre-commit",
    ".ghci",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/modules/.claude/worktrees/lib/config",
    ".git/modules/.claude/worktrees/lib/hooks/post-checkout",
    ".github/workflows/ci.yml",
    ".gitmodules",
    ".hg/hgrc",
    ".husky/pre-commit",
    ".idea/workspace.xml",
    ".jj/repo/config.toml",
    ".mcp.json",
    ".mise/config.toml",
    ".npmrc",
    ".pdbrc",
    ".pre-commit-config.yaml",
    ".profile",
    ".psqlrc",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".tool-versions",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".zshrc",
    "deep/down/.ENVRC",
    "deep/down/.Git/config",
    "docs/HEAD",
    "docs/commondir",
    "library/application support/turnery/x",
    "mise/conf.d/x.toml",
    "mise/config.toml",
    "rust-toolchain.toml",
    "x.code-workspace",
    "x.sublime-project",
];

const ORDINARY: &[&str] = &[
    ".claude/worktrees/feature/src/main.rs",
    ".gitignore",
    ".github/ISSUE_TEMPLATE/bug.md",
    "Cargo.toml",
    "README.md",
    "docs/head.md",
    "git/config",
    "mise/src/config.rs",
    "package.json",
    "src/main.rs",
];

fn policy(mode: Mode) -> Policy {
    Policy::new(mode, vec!["edit".parse().unwrap()], Vec::new())
}

const ASK: Judgement = Judgement::Ask { always: None };

#[test]
fn guarded_files_are_asked_about_in_ask_and_edit() {
    let bench = GuardedFixture::new();
    for mode in [Mode::Ask, Mode::Edit] {
        for path in GUARDED {
            assert_eq!(bench.judge_edit(&policy(mode), path), ASK, "{mode} {path}");
            let write = format!("echo x > {path}");
            assert_eq!(
                bench.judge_shell(&policy(mode), &write),
                ASK,
                "{mode} {write}"
            );
        }
        for path in ORDINARY {
            let allowed = Judgement::Allow;
            assert_eq!(
                bench.judge_edit(&policy(mode), path),
                allowed,
                "{mode} {path}"
            );
        }
    }
    for path in GUARDED {
        let judged = bench.judge_edit(&policy(Mode::Auto), path);
        assert_eq!(judged, Judgement::Allow, "{path}");
    }
}

/// A repository whose folder has another name, and which a `.git` file leads to.
#[test]
fn files_of_a_repository_are_guarded_by_any_name() {
    let bench = GuardedFixture::new();
    let root = bench.workspace.cwd();
    for part in [
        "repo/objects/info",
        "repo/info",
        "repo/main/src",
        "repo/main/.git",
        "work",
    ] {
        fs::create_dir_all(root.join(part)).unwrap();
    }
    let edit = Policy::new(Mode::Edit, vec![], vec![]);
    let judge = |line: &str| bench.judge_shell(&edit, line);
    assert_eq!(judge("echo x >> repo/config"), Judgement::Allow);
    for mark in ["HEAD", "refs"] {
        fs::write(root.join("repo").join(mark), "x\n").unwrap();
        for line in [
            "echo x >> repo/config",
            "echo x > repo/remotes/origin",
            "echo x > repo/objects/info/alternates; cd work && git status",
            "echo x > repo/info/attributes",
        ] {
            assert_ne!(judge(line), Judgement::Allow, "{mark}: {line}");
        }
        fs::remove_file(root.join("repo").join(mark)).unwrap();
    }
    // `commondir` of a folder with `HEAD` may name one that does not exist yet.
    assert_eq!(judge("echo x > new/objects/a"), Judgement::Allow);
    fs::create_dir_all(root.join("new/objects")).unwrap();
    for line in [
        "echo x > new/refs/a",
        "echo x > new/REFS/a",
        "echo x > new/commondir",
    ] {
        assert_eq!(judge(line), ASK, "{line}");
    }
    fs::write(root.join("repo/HEAD"), "x\n").unwrap();
    // A folder that is no work tree of its own may be one that the configuration includes.
    fs::write(root.join("repo/refs"), "").unwrap();
    assert_eq!(judge("echo x > repo/extra/config"), ASK);
    for line in ["echo x > repo/main/src/a.rs", "echo x > work/config"] {
        assert_eq!(judge(line), Judgement::Allow, "{line}");
    }
    // A project that only looks like a repository.
    for part in ["game/.git", "game/objects", "game/refs"] {
        fs::create_dir_all(root.join(part)).unwrap();
    }
    fs::write(root.join("game/HEAD"), "").unwrap();
    assert_eq!(judge("echo x > game/src/a.rs"), Judgement::Allow);
}

/// The user's settings may be kept in the session's folder, under other names.
#[test]
fn files_that_user_settings_lead_to_are_guarded() {
    let bench = GuardedFixture::new();
    let root = bench.workspace.cwd().to_owned();
    let home = tempfile::tempdir().unwrap();
    symlink(root.join("gitconfig"), home.path().join(".gitconfig")).unwrap();
    fs::write(root.join("gitconfig"), "").unwrap();
    let judge = |mode, rules: Vec<super::Rule>, path: &str| {
        let policy = Policy::new(mode, rules, vec![]).with_home(home.path().to_owned());
        bench.judge_edit(&policy, path)
    };
    let all = || vec!["edit(**)".parse().unwrap()];
    for (path, expected) in [("gitconfig", ASK), ("notes", Judgement::Allow)] {
        assert_eq!(judge(Mode::Edit, vec![], path), expected, "{path}");
        assert_eq!(judge(Mode::Ask, all(), path), expected, "{path}");
    }
}

/// Whatever leads to the file that is written, git and version managers of the same line may read it.
#[test]
fn line_that_writes_and_reads_settings_is_asked_about() {
    let bench = GuardedFixture::new();
    let edit = policy(Mode::Edit);
    for line in [
        "echo x > more; git diff",
        "git log > x",
        "echo x > y; rustc -V",
    ] {
        assert_eq!(bench.judge_shell(&edit, line), ASK, "{line}");
    }
    for line in ["echo x > more; cat more", "ls | sort > x", ": > x"] {
        assert_eq!(bench.judge_shell(&edit, line), Judgement::Allow, "{line}");
    }
}

#[test]
fn guarded_name_is_recognised_in_other_case() {
    let bench = GuardedFixture::new();
    for path in [
        ".vſcode/tasks.json",
        ".git./config",
        ".envrc..",
        ".ſsh/config",
        ".proﬁle",
        ".g\u{200b}it/config",
        ".g\u{1bca0}it/config",
    ] {
        assert_eq!(bench.judge_edit(&policy(Mode::Edit), path), ASK, "{path}");
    }
}

#[test]
fn link_to_guarded_file_is_guarded() {
    let bench = GuardedFixture::new();
    let root = bench.folder.path();
    fs::create_dir(root.join(".ssh")).unwrap();
    fs::write(root.join(".ssh/config"), "").unwrap();
    symlink(".ssh", root.join("notes")).unwrap();
    symlink(".ssh/config", root.join("notes.txt")).unwrap();
    for path in ["notes/config", "notes/new", "notes.txt"] {
        assert_eq!(bench.judge_edit(&policy(Mode::Edit), path), ASK, "{path}");
        let write = format!("echo x > {path}");
        assert_eq!(
            bench.judge_shell(&policy(Mode::Edit), &write),
            ASK,
            "{write}"
        );
    }
}

/// The user's configuration may be kept elsewhere, also in a branch that is not checked out.
#[test]
fn own_files_behind_links_are_asked_about() {
    let bench = GuardedFixture::new();
    let root = bench.workspace.cwd();
    let home = tempfile::tempdir().unwrap();
    symlink(
        root.join("dot/turnery.toml"),
        home.path().join("config.toml"),
    )
    .unwrap();
    symlink(root.join("cmds"), home.path().join("commands")).unwrap();
    for own in [home.path().to_owned(), home.path().join("config.toml")] {
        let auto = policy(Mode::Auto).with_guarded_paths(GuardedPaths::new(vec![own]));
        assert_eq!(bench.judge_edit(&auto, "dot/turnery.toml"), ASK);
    }
    // A link in the session's folder on the way to a file elsewhere.
    fs::create_dir(root.join("sub")).unwrap();
    symlink("/elsewhere/keys", root.join("sub/keys")).unwrap();
    symlink(root.join("sub/keys"), home.path().join("keys")).unwrap();
    let own = GuardedPaths::new(vec![home.path().to_owned()]);
    let auto = policy(Mode::Auto).with_guarded_paths(own);
    assert_eq!(bench.judge_edit(&auto, "cmds/new.md"), ASK);
    assert_eq!(bench.judge_shell(&auto, "mv sub other"), ASK);
    assert_eq!(bench.judge_edit(&auto, "notes"), Judgement::Allow);
    let hidden = ".claude/worktrees/.turnery/config.toml";
    assert_eq!(bench.judge_edit(&auto, hidden), ASK);
}

/// A program in the session's folder may be a link that leads elsewhere, such as `.venv/bin/python`.
#[test]
fn link_to_a_program_is_guarded_itself() {
    let bench = GuardedFixture::new();
    let root = bench.workspace.cwd();
    fs::create_dir(root.join("bin")).unwrap();
    symlink("/usr/bin/env", root.join("bin/python")).unwrap();
    let programs = [root.join("bin/python")];
    let own = GuardedPaths::default().with_paths(&programs);
    let auto = policy(Mode::Auto).with_guarded_paths(own);
    for line in [
        "mv evil bin/python",
        "rm bin/python",
        "ln -sf evil bin/python",
        "mv bin old",
        "nice mv bin old",
        "env mv bin old",
        "git mv bin old",
        "find bin -delete",
        "find bin -exec rm -r {} +",
        "rm -r bin; cp -r evil bin",
    ] {
        assert_eq!(bench.judge_shell(&auto, line), ASK, "{line}");
    }
    for line in ["mv evil other", "find bin -name x", "find lib -delete"] {
        assert_eq!(bench.judge_shell(&auto, line), Judgement::Allow, "{line}");
    }
}

#[test]
fn own_files_are_asked_about_in_auto_mode() {
    let bench = GuardedFixture::new();
    let home = bench.folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::create_dir_all(bench.folder.path().join("sub/.turnery")).unwrap();
    symlink("home", bench.folder.path().join("linked")).unwrap();
    let own: Vec<PathBuf> = vec![
        bench.folder.path().join("linked/config.toml"),
        bench.folder.path().join("a/.hidden"),
    ];
    for mode in [Mode::Ask, Mode::Edit, Mode::Auto] {
        let policy = policy(mode).with_guarded_paths(GuardedPaths::new(own.clone()));
        for path in [
            ".turnery/config.toml",
            "sub/.turnery/commands/x.md",
            "home/config.toml",
            // Also on a case-insensitive file system.
            "Home/CONFIG.toml",
        ] {
            assert_eq!(bench.judge_edit(&policy, path), ASK, "{mode} {path}");
            for write in [
                format!("echo x > {path}"),
                format!("cp evil.toml {path}"),
                format!("cd src; tee ../{path}"),
            ] {
                assert!(
                    matches!(bench.judge_shell(&policy, &write), Judgement::Ask { .. }),
                    "{mode} {write}"
                );
            }
        }
    }
    let auto = policy(Mode::Auto).with_guarded_paths(GuardedPaths::new(own));
    for write in [
        "bash -c 'echo x > .turnery/config.toml'",
        "cp x .turnery/*",
        "for f in .turnery/config.toml; do cp x $f; done",
        "mv home other",
        "rm -rf home",
        "cp -r evil/. home",
        "mv sub other && mv evil sub",
        "mv .t* x",
        "rm -rf .tu?nery .turner?",
        "rm -rf sub/.*",
        "cd .t*; echo > config.toml",
        "bash -c 'mv {.turnery,x}'",
        "find . -maxdepth 1 -name '.t*' -exec mv {} x \\;",
        "mv ho* x",
        "rm -rf *",
        "rm -rf ./h*/",
        "cp x ~/*/config.toml",
        "tee $HOME/ho*/config.t* < x",
        "tee ${x}/config.t* < x",
        "echo x > .turn$@ery/config.toml",
        "echo x > .turn$1ery/config.toml",
        "echo x > .turn\"$x\"ery/config.toml",
        "echo x > $(echo .turn)ery/config.toml",
        "echo x > .turn`echo ery`/config.toml",
        "cp a.txt .turn${x}ery/config.toml",
        "cd .turn$(echo ery) && echo x > config.toml",
        "echo x > ho$x/config.toml",
        "cp a.txt ho$(echo me)/config.toml",
        "echo x > ~/home/config.toml",
        "echo x >> $HOME/home/config.toml",
        "echo x >> \"$HOME\"/home/config.toml",
        "cd ~/home/config.toml; echo x",
        "cd && echo x > .hidden/config.toml",
        "cd ~; echo x > .hidden/config.toml",
        "cd \"$HOME\"; rm -rf .hidden",
        "pushd $HOME; mv .hidden x",
        "cd - && mv .hidden x",
    ] {
        assert_eq!(bench.judge_shell(&auto, write), ASK, "{write}");
    }
    let whole = home.join("config.toml").display().to_string();
    let hidden = format!("bash -c 'echo x > {}'", whole.to_uppercase());
    assert_eq!(bench.judge_shell(&auto, &hidden), ASK, "{hidden}");
    for read in [
        "cat .turnery/config.toml",
        "ls home",
        "make",
        "cp a.txt b.txt .",
        "rm -f src/*.o *.log",
        "mv src/{a,b}.rs other",
        "python3 -c 'print([1, 2][0])'",
        "rm -rf ~/.cache/x*",
        "mv src other",
        "touch a || exit $?",
        "python3 -c 1; echo exit=$?",
        "for f in a b; do touch ${f}.rs; done",
        "touch \"${a[@]}\" ${b[0]} $*",
        "touch ${x:-y} ${x%.c} src/${x##*/}",
        "cp a.txt ~/home",
        "echo $$ > pid; echo $$$x >> $1",
        "cp a.txt $a$b ${a}${b} $(pwd)$1",
        "cp a.txt $OUT/home/a.txt",
        "cp a.txt $OUT/b/$x \"$(pwd)\"/b.txt",
        "cd src && echo x > .hidden/config.toml",
        "cd $OUT && make && cp a.txt build/home",
        "cd $OUT && rm -rf .cache/x",
    ] {
        assert_eq!(bench.judge_shell(&auto, read), Judgement::Allow, "{read}");
    }
}

#[test]
fn agent_work_tree_is_not_guarded() {
    let bench = GuardedFixture::new();
    let edit = policy(Mode::Edit);
    for path in [
        ".claude/worktrees/one/src/main.rs",
        ".cursor/worktrees/a/b.rs",
        ".claude/worktrees/one/.claude/worktrees/two/src/main.rs",
    ] {
        assert_eq!(bench.judge_edit(&edit, path), Judgement::Allow, "{path}");
    }
    for path in [
        ".claude/worktrees/one/.git/config",
        ".claude/worktrees/.envrc",
        ".git/worktrees/one/config",
    ] {
        assert_eq!(bench.judge_edit(&edit, path), ASK, "{path}");
    }
}

/// Files from which a program runs something or reads keys: one of each kind.
const ONE_OF_EACH: &str = "
    .aider/x .amazonq/x .appveyor.yml .aws/x .azure-pipelines/x .azuredevops/x .bash.d/x .bash_aliases
    .bash_login .bash_logout .bash_profile .bash_profile.local .bashrc.local .bazelrc .blerc .build.yml
    .buildkite/x .builds/x .bundle/x .byebugrc .circleci/x .cirrus.star .cirrus.yml .cnb.yml .codex/x
    .config/autostart/x .config/blesh/init.sh .config/emacs/x .config/environment.d/x .config/ion/initrc
    .config/jj/x .config/lefthook.json .config/lefthook.toml .config/lefthook.yaml .config/lefthook.yml
    .config/mise.toml .config/mise/x .config/nvim/x .config/oil/oshrc .config/oils/oshrc .config/systemd/x
    .config/tmux/x .config/turnery/x .config/zsh/x .continue/x .cshdirs .cshrc .curlrc .dir-locals-2.el
    .dir-locals.el .docker/x .drone.jsonnet .drone.star .drone.yaml .drone.yml .duckdbrc .elvish/rc.elv .emacs
    .erlang .esrc .exrc .externalToolBuilders/x .fleet/x .forward .fzf.bash .fzf.zsh .gdbearlyinit .gdbinit
    .git-hooks/x .gitconfig .gitea/workflows/x .githooks/x .github/actions/x .github/hooks/x .gitlab-ci.yaml
    .gitlab-ci.yml .gitpod.yml .gnupg/x .gnuplot .go-version .gradle/init.gradle.kts .gvimrc .harness/x .helix/x
    .hgrc .hkrc.pkl .inputrc .ipython/x .irbrc .jjconfig.toml .julia/config/startup.jl .kiro/x .kshrc .kube/x
    .lefthook-local.yaml .lefthook-local.yml .lefthook.json .lefthook.toml .lefthook.yaml .lefthook.yml .lesskey
    .lintstagedrc.cts .lintstagedrc.ts .lldbinit .local/bin/x .local/share/turnery/x .login .mise.ci.toml
    .mise.local.toml .mise.toml .miserc.toml .murex_preload .murex_profile .mvn/x .nanorc .netrc .node-version
    .nvim.lua .nvimrc .nvmrc .ocamlinit .octaverc .opencode/x .openhands/setup.sh .p10k.zsh .p4config
    .packit.yaml .pam_environment .perldb .perltidyrc .pi/extensions/x .pnpmfile.cjs .pre-commit-config.yml
    .procmailrc .prototools .proverc .pryrc .pypirc .python-version .pythonrc .pythonrc.py .qwen/x .rcrc
    .renviron .roo/x .rtx.ci.toml .rtx.toml .sbclrc .screenrc .semaphore/x .simple-git-hooks.cjs .space.kts
    .sqliterc .tcshrc .teamcity/x .tekton/x .theia/x .tmux.conf .tmuxinator.yml .travis.yml .trunk/x .vim/x
    .vimrc .wgetrc .windsurf/x .woodpecker.yaml .woodpecker.yml .woodpecker/x .workflow/x .xinitrc .xprofile
    .xsession .xsessionrc .yarn/plugins/x .yarn/releases/x .yarnrc .yarnrc.yml .zed/x .zimrc .zlogin .zlogout
    .zpreztorc .zprofile .zsh/x .zshenv _exrc _gvimrc _vimrc amplify.yml appveyor.yml azure-pipelines.yaml
    azure-pipelines.yml bitbucket-pipelines.yml bitrise.yml buildspec.yaml buildspec.yml captainhook.json
    ci_scripts/ci_post_clone.sh ci_scripts/ci_post_xcodebuild.sh ci_scripts/ci_pre_xcodebuild.sh cloudbuild.yaml
    cloudbuild.yml codemagic.yaml config.worktree grumphp.yml hk.local.pkl hk.pkl jenkinsfile
    lefthook-local.yaml lefthook-local.yml lefthook.json lefthook.toml lefthook.yaml lefthook.yml
    library/launchagents/x lint-staged.config.js lint-staged.config.mjs mise.ci.toml mise.local.toml mise.toml
    mise/config.ci.toml mise/tasks/x packit.yaml prek.toml rust-toolchain simple-git-hooks.js
    simple-git-hooks.json sitecustomize.py usercustomize.py wercker.yml
";

#[test]
fn every_guarded_file_is_asked_about_in_edit_mode() {
    let bench = GuardedFixture::new();
    let policy = policy(Mode::Edit);
    for path in ONE_OF_EACH.split_whitespace() {
        for path in [path.to_owned(), format!("sub/{path}")] {
            assert_ne!(bench.judge_edit(&policy, &path), Judgement::Allow, "{path}");
        }
    }
    assert_eq!(bench.judge_edit(&policy, "sub/x"), Judgement::Allow);
}
