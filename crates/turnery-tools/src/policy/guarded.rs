//! Files that make programs run things, or that say what turnery may do: nobody changes them unseen.
//!
//! An editor, a shell, git or a build runs what these files name, often without being asked and outside of
//! turnery. Names are compared without regard to case, since some file systems do the same.

use super::{harmless::exists, versions};
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
    ".azure-pipelines",
    ".buildkite",
    ".builds",
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
    ".semaphore",
    ".ssh",
    ".teamcity",
    ".tekton",
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
    &[".config", "emacs"],
    &[".config", "environment.d"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".config", "lefthook.json"],
    &[".config", "lefthook.toml"],
    &[".config", "lefthook.yaml"],
    &[".config", "lefthook.yml"],
    &[".config", "nvim"],
    &[".config", "systemd"],
    &[".config", "tmux"],
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
    ".drone.jsonnet",
    ".drone.star",
    ".drone.yaml",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gdbearlyinit",
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
    "bitrise.yml",
    "buildspec.yml",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "codemagic.yaml",
    // With these a folder is a git repository of its own.
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
    "wercker.yml",
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
    is_in_guarded_folder(&parts) || parts.last().is_some_and(is_file) || is_of_git(path)
}

/// Folders in which git keeps files of its own. Others in a bare repository are work trees.
const OF_GIT: &[&str] = &[
    "branches",
    "common",
    "hooks",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "rr-cache",
    "sequencer",
    "svn",
    "worktrees",
];

/// Returns true if the file belongs to a repository whose folder is not called `.git`: a bare one, or one that a `.git`
/// file names. A line could change its configuration and then run git.
fn is_of_git(path: &Path) -> bool {
    // What linked work trees share needs no `HEAD`.
    let is_git_folder = |folder: &&Path| {
        exists(folder, "objects") && (exists(folder, "HEAD") || exists(folder, "refs"))
    };
    path.ancestors()
        .skip(1)
        .filter(is_git_folder)
        .any(|folder| {
            let inner = path.strip_prefix(folder).unwrap_or(path);
            let mut inner = parts(inner).into_iter();
            match (inner.next(), inner.next()) {
                (Some(first), Some(_)) => OF_GIT.contains(&first.as_str()),
                _ => true,
            }
        })
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

/// Recognises a command line in which a pattern or a variable may stand for such a file, or for a folder that holds one,
/// when it runs in one of `bases`. A word that begins with `~` or a variable may be anywhere, and so may a hidden file
/// after a change to the home folder or to one that a variable names.
pub(super) fn may_match_own(line: &str, bases: &[PathBuf], own: &[PathBuf]) -> bool {
    let ends_word = |c: char| c.is_whitespace() || "'\"`;|&()<>=:".contains(c);
    let is_pattern = |word: &str| word.starts_with('~') || word.contains(['*', '?', '[', '{', '$']);
    let joined = without_values(line);
    [line, &joined].into_iter().any(|line| {
        let mut is_moved = false;
        let mut is_folder = false;
        line.split(ends_word).any(|word| {
            is_moved |= is_folder && (word.is_empty() || word.starts_with(['~', '$', '-']));
            is_folder = matches!(word, "cd" | "pushd");
            let word = word.trim_end_matches('/');
            let parts = word.split('/').filter(|part| *part != ".");
            let parts: Vec<&str> = match is_moved && word.starts_with('.') {
                true => std::iter::once("~").chain(parts).collect(),
                false if is_pattern(word) => parts.collect(),
                false => return false,
            };
            parts.iter().any(|part| may_be_turnery(part))
                || own
                    .iter()
                    .any(|own| bases.iter().any(|base| path_matches(&parts, base, own)))
        })
    })
}

/// The line as one text: quotes and backslashes left out, and `$` in place of each substitution and each variable in braces.
fn without_values(line: &str) -> String {
    let mut text = String::new();
    // What ends the substitutions that are open.
    let mut open = Vec::new();
    let mut last = ' ';
    for c in line.chars() {
        match c {
            '(' | '{' if last == '$' || !open.is_empty() => open.push(c),
            ')' | '}' if !open.is_empty() => drop(open.pop()),
            '`' if open.last() == Some(&c) => drop(open.pop()),
            '`' => {
                if open.is_empty() {
                    text.push('$');
                }
                open.push(c);
            }
            '"' | '\'' | '\\' => {}
            _ if open.is_empty() => text.push(c),
            _ => {}
        }
        last = c;
    }
    text
}

fn may_be_turnery(part: &str) -> bool {
    // A pattern stands for a hidden file only if it says so, and a variable alone for anything.
    !part.starts_with(['*', '?', '[']) && with_stars(part) != "*" && part_matches(part, ".turnery")
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
    // A folder somewhere above is meant only where a pattern may be, or a hidden folder.
    let is_meant = |parts: &[&str], own: &[String]| {
        let mut names = own.iter().take(parts.len());
        parts.len() >= own.len()
            || names.any(|name| name.starts_with('.'))
            || parts.iter().any(|part| part.contains(['*', '?', '[', '{']))
    };
    match parts.split_first() {
        Some((&"", parts)) => fits(parts, &own),
        // A variable alone is a pattern no more with braces than without: `${x}`, `$?`.
        Some((first, parts)) if first.starts_with('~') || first.contains('$') => {
            let mut below = (0..own.len()).filter_map(|at| own.get(at..));
            !parts.is_empty() && below.any(|own| is_meant(parts, own) && fits(parts, own))
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

/// Matches a name against a pattern of the shell. A brace that quotes tore apart stands for each of its parts, and
/// a variable for anything.
fn part_matches(part: &str, name: &str) -> bool {
    let part = with_stars(part);
    let part = part.as_str();
    let matches = |part: &str| {
        let pattern = GlobBuilder::new(part).case_insensitive(true).build();
        pattern.is_ok_and(|pattern| pattern.compile_matcher().is_match(name))
    };
    match part.matches('{').count() == part.matches('}').count() {
        true => matches(part),
        false => part.split(['{', ',', '}']).any(matches),
    }
}

/// The part with `*` in place of each variable.
fn with_stars(part: &str) -> String {
    let mut pieces = part.split('$');
    let mut pattern = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let piece = piece.strip_prefix('{').unwrap_or(piece);
        let rest = match piece.strip_prefix(['@', '*', '#', '?', '!', '-', '$']) {
            Some(rest) => rest,
            None => piece.trim_start_matches(is_of_name),
        };
        if !pattern.ends_with('*') {
            pattern.push('*');
        }
        pattern.push_str(rest.strip_prefix('}').unwrap_or(rest));
    }
    pattern
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
