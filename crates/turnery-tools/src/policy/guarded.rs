//! Files that make programs run things, or that say what turnery may do: nobody changes them unseen.
//!
//! An editor, a shell, git or a build runs what these files name, often without being asked and outside of
//! turnery. Names are compared without regard to case, since some file systems do the same.

use super::versions;
use globset::GlobBuilder;
use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Folders by name, wherever they lie: everything in them is guarded.
const FOLDERS: &[&str] = &[
    ".aider",
    ".amazonq",
    ".aws",
    ".buildkite",
    ".bundle",
    ".cargo",
    ".circleci",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".docker",
    ".emacs.d",
    ".fleet",
    ".gemini",
    ".git",
    ".githooks",
    ".gnupg",
    ".helix",
    ".hg",
    ".husky",
    ".idea",
    ".ipython",
    ".jj",
    ".kiro",
    ".kube",
    ".mise",
    ".mvn",
    ".opencode",
    ".qwen",
    ".roo",
    ".ssh",
    ".theia",
    ".turnery",
    ".vim",
    ".vscode",
    ".windsurf",
    ".woodpecker",
    ".zed",
    "mise",
];

/// Folders and files by several parts of their path.
const PATHS: &[&[&str]] = &[
    &[".config", "autostart"],
    &[".config", "environment.d"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".config", "lefthook.json"],
    &[".config", "lefthook.toml"],
    &[".config", "lefthook.yaml"],
    &[".config", "lefthook.yml"],
    &[".config", "nvim"],
    &[".config", "systemd"],
    &[".config", "turnery"],
    &[".config", "zsh"],
    &[".forgejo", "workflows"],
    &[".gitea", "workflows"],
    &[".github", "actions"],
    &[".github", "workflows"],
    &[".local", "bin"],
    &[".local", "share", "turnery"],
    &[".yarn", "plugins"],
    &[".yarn", "releases"],
    &["library", "application support", "turnery"],
    &["library", "launchagents"],
];

/// Files by name, wherever they lie.
const FILES: &[&str] = &[
    ".appveyor.yml",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".bazelrc",
    ".build.yml",
    ".cirrus.star",
    ".cirrus.yml",
    ".cshrc",
    ".curlrc",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".ghci",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".gitpod.yml",
    ".hgrc",
    ".inputrc",
    ".irbrc",
    ".kshrc",
    ".lefthook-local.yaml",
    ".lefthook-local.yml",
    ".lefthook.json",
    ".lefthook.toml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lldbinit",
    ".login",
    ".mcp.json",
    ".netrc",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".ocamlinit",
    ".octaverc",
    ".pam_environment",
    ".pdbrc",
    ".perltidyrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".profile",
    ".pryrc",
    ".psqlrc",
    ".pypirc",
    ".pythonrc",
    ".pythonrc.py",
    ".renviron",
    ".rprofile",
    ".sbclrc",
    ".screenrc",
    ".sqliterc",
    ".tcshrc",
    ".tmux.conf",
    ".travis.yml",
    ".vimrc",
    ".wgetrc",
    ".woodpecker.yaml",
    ".woodpecker.yml",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    // With these a folder is a git repository of its own.
    "buildspec.yml",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "commondir",
    "config.worktree",
    "head",
    "jenkinsfile",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.json",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Ends of file names.
const ENDINGS: &[&str] = &[".code-workspace", ".sublime-project"];

/// Agents that check out work trees in a folder of their own: these are projects like any other.
const WITH_WORKTREES: &[&str] = &[".claude", ".codex", ".cursor", ".gemini", ".opencode"];

/// Whether a change of this file is asked about in every mode but `auto`. `path` has its links resolved.
pub(super) fn is_guarded(path: &Path) -> bool {
    let parts = parts(path);
    let is_file = |name: &String| {
        FILES.contains(&name.as_str())
            || ENDINGS.iter().any(|end| name.ends_with(end))
            || versions::is_version_file(name)
    };
    is_in_guarded_folder(&parts) || parts.last().is_some_and(is_file)
}

fn is_in_guarded_folder(parts: &[String]) -> bool {
    parts.iter().any(|part| FOLDERS.contains(&part.as_str()))
        || PATHS.iter().any(|wanted| has(parts, wanted))
}

/// Whether this file says what turnery may do, or holds its keys: a change is asked about in `auto` too. `own` are
/// the files and folders of this installation.
pub(super) fn is_own(path: &Path, own: &[PathBuf]) -> bool {
    let is_below = |own: &PathBuf| in_small_letters(path).starts_with(in_small_letters(own));
    parts(path).iter().any(|part| part == ".turnery") || own.iter().any(is_below)
}

/// Whether such a file goes along when this folder is moved, replaced or removed.
pub(super) fn holds_own(folder: &Path, own: &[PathBuf]) -> bool {
    let folder_in_small = in_small_letters(folder);
    own.iter()
        .any(|own| in_small_letters(own).starts_with(&folder_in_small))
        || folder.join(".turnery").symlink_metadata().is_ok()
}

fn in_small_letters(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}

/// Whether a command line speaks of such a file anywhere.
pub(super) fn mentions_own(line: &str, own: &[PathBuf]) -> bool {
    let line = line.to_lowercase();
    let mut own = own.iter().filter_map(|path| path.to_str());
    line.contains(".turnery") || own.any(|path| line.contains(&path.to_lowercase()))
}

/// Whether a pattern somewhere in a command line may stand for such a file, or for a folder that holds one, when it runs
/// in one of `bases`. A word that begins with `~` or a variable may be anywhere.
pub(super) fn may_match_own(line: &str, bases: &[PathBuf], own: &[PathBuf]) -> bool {
    let ends_word = |c: char| c.is_whitespace() || "'\"`;|&()<>=:".contains(c);
    let is_pattern = |word: &&str| word.contains(['*', '?', '[', '{']);
    line.split(ends_word).filter(is_pattern).any(|word| {
        let word = word.trim_end_matches('/');
        let parts: Vec<&str> = word.split('/').filter(|part| *part != ".").collect();
        let is_turnery = |part: &&str| {
            // A pattern stands for a hidden file only if it says so.
            !part.starts_with(['*', '?', '[']) && part_matches(part, ".turnery")
        };
        parts.iter().any(is_turnery)
            || own
                .iter()
                .any(|own| bases.iter().any(|base| path_matches(&parts, base, own)))
    })
}

/// Whether the parts of a word, read in `base`, may be `own`, a folder above it, or a file below it.
fn path_matches(parts: &[&str], base: &Path, own: &Path) -> bool {
    let names = |path: &Path| -> Vec<String> {
        let names = path.components().skip(1);
        names
            .map(|name| name.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    let own = names(own);
    let fits = |parts: &[&str], own: &[String]| {
        let mut pairs = parts.iter().zip(own);
        pairs.all(|(part, name)| part_matches(part, name))
    };
    match parts.split_first() {
        Some((&"", parts)) => fits(parts, &own),
        // A variable alone is a pattern no more with braces than without: `${x}`, `$?`.
        Some((first, parts)) if first.starts_with('~') || first.contains('$') => {
            !parts.is_empty()
                && (0..own.len()).any(|at| own.get(at..).is_some_and(|own| fits(parts, own)))
        }
        _ => {
            let base = names(base);
            let mut all: Vec<&str> = base.iter().map(String::as_str).collect();
            for part in parts {
                match *part {
                    ".." => drop(all.pop()),
                    part => all.push(part),
                }
            }
            fits(&all, &own)
        }
    }
}

/// Whether a pattern of the shell may stand for the name. A brace that quotes tore apart stands for each of its parts.
fn part_matches(part: &str, name: &str) -> bool {
    let matches = |part: &str| {
        let pattern = GlobBuilder::new(part).case_insensitive(true).build();
        pattern.is_ok_and(|pattern| pattern.compile_matcher().is_match(name))
    };
    match part.matches('{').count() == part.matches('}').count() {
        true => matches(part),
        false => part.split(['{', ',', '}']).any(matches),
    }
}

/// Files and folders that no mode changes without a question: the host's own configuration, keys and sessions.
/// Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardedPaths(Arc<[PathBuf]>);

impl GuardedPaths {
    /// Guards these absolute paths, folders with everything in them. Resolves their links, which reads the disk:
    /// build it once and clone it for each session.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self(with_links_resolved(paths).into())
    }
}

impl Deref for GuardedPaths {
    type Target = [PathBuf];

    fn deref(&self) -> &[PathBuf] {
        &self.0
    }
}

/// The paths as they were given and with links resolved, as far as they exist.
fn with_links_resolved(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let resolve = |path: &PathBuf| match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), _, _) => Some(path),
        (Err(_), Some(folder), Some(name)) => Some(folder.canonicalize().ok()?.join(name)),
        (Err(_), _, _) => None,
    };
    let mut all: Vec<PathBuf> = paths.iter().filter_map(resolve).collect();
    all.extend(paths);
    all.sort();
    all.dedup();
    all
}

/// Components of the path in small letters, from the innermost work tree that an agent keeps for itself. Below a
/// guarded folder nothing is such a work tree: a submodule may be called `.claude/worktrees/x`, and git keeps its
/// hooks in `.git/modules` by that name.
fn parts(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().to_lowercase())
        .collect();
    let is_kept = |two: &[String]| match two {
        [agent, folder] => WITH_WORKTREES.contains(&agent.as_str()) && folder == "worktrees",
        _ => false,
    };
    while let Some(at) = parts.windows(2).position(is_kept) {
        let is_plain = parts
            .get(..at)
            .is_some_and(|above| !is_in_guarded_folder(above));
        // The agent, `worktrees` and the name of the work tree.
        if !is_plain || parts.len() <= at + 3 {
            break;
        }
        parts.drain(..at + 3);
    }
    parts
}

fn has(parts: &[String], wanted: &[&str]) -> bool {
    parts
        .windows(wanted.len())
        .any(|some| some.iter().zip(wanted).all(|(part, wanted)| part == wanted))
}
