//! Files that make programs run things, or that say what turnery may do: nobody changes them unseen.
//!
//! An editor, a shell, git or a build runs what these files name, often without being asked and outside of
//! turnery. Names are compared without regard to case, since some file systems do the same.

use std::path::{Path, PathBuf};

/// Folders by name, wherever they lie: everything in them is guarded.
const FOLDERS: &[&str] = &[
    ".aider",
    ".aws",
    ".buildkite",
    ".cargo",
    ".circleci",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".docker",
    ".fleet",
    ".gemini",
    ".git",
    ".githooks",
    ".gnupg",
    ".husky",
    ".idea",
    ".kiro",
    ".kube",
    ".opencode",
    ".qwen",
    ".roo",
    ".ssh",
    ".turnery",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// Folders and files by several parts of their path.
const PATHS: &[&[&str]] = &[
    &[".config", "autostart"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".config", "nvim"],
    &[".config", "systemd"],
    &[".config", "turnery"],
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
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cshrc",
    ".dir-locals.el",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".inputrc",
    ".irbrc",
    ".kshrc",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".lldbinit",
    ".login",
    ".mcp.json",
    ".mise.local.toml",
    ".mise.toml",
    ".netrc",
    ".npmrc",
    ".nvim.lua",
    ".nvimrc",
    ".pnpmfile.cjs",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".profile",
    ".pryrc",
    ".pypirc",
    ".tcshrc",
    ".tmux.conf",
    ".tool-versions",
    ".travis.yml",
    ".vimrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    // With these a folder is a git repository of its own.
    "commondir",
    "config.worktree",
    "head",
    "jenkinsfile",
    "lefthook.yaml",
    "lefthook.yml",
    "mise.local.toml",
    "mise.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Ends of file names.
const ENDINGS: &[&str] = &[".code-workspace"];

/// Agents that check out work trees in a folder of their own: these are projects like any other.
const WITH_WORKTREES: &[&str] = &[".claude", ".codex", ".cursor", ".gemini", ".opencode"];

/// Whether a change of this file is asked about in every mode but `auto`. `path` has its links resolved.
pub(super) fn is_guarded(path: &Path) -> bool {
    let parts = parts(path);
    let is_file = |name: &String| {
        FILES.contains(&name.as_str()) || ENDINGS.iter().any(|end| name.ends_with(end))
    };
    parts.iter().any(|part| FOLDERS.contains(&part.as_str()))
        || PATHS.iter().any(|wanted| has(&parts, wanted))
        || parts.last().is_some_and(is_file)
}

/// Whether this file says what turnery may do, or holds its keys: a change is asked about in `auto` too. `own` are
/// the files and folders of this installation.
pub(super) fn is_own(path: &Path, own: &[PathBuf]) -> bool {
    parts(path).iter().any(|part| part == ".turnery") || own.iter().any(|own| path.starts_with(own))
}

/// Whether a command line speaks of such a file anywhere.
pub(super) fn mentions_own(line: &str, own: &[PathBuf]) -> bool {
    let mut own = own.iter().filter_map(|path| path.to_str());
    line.to_lowercase().contains(".turnery") || own.any(|path| line.contains(path))
}

/// The paths as they were given and with links resolved, as far as they exist.
pub(super) fn with_links_resolved(paths: Vec<PathBuf>) -> Vec<PathBuf> {
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

/// Components of the path in small letters, from the innermost work tree that an agent keeps for itself.
fn parts(path: &Path) -> Vec<String> {
    let parts: Vec<String> = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().to_lowercase())
        .collect();
    let is_kept = |two: &[String]| match two {
        [agent, folder] => WITH_WORKTREES.contains(&agent.as_str()) && folder == "worktrees",
        _ => false,
    };
    match parts.windows(2).rposition(is_kept) {
        // The agent, `worktrees` and the name of the work tree.
        Some(at) if parts.len() > at + 3 => parts.into_iter().skip(at + 3).collect(),
        _ => parts,
    }
}

fn has(parts: &[String], wanted: &[&str]) -> bool {
    parts
        .windows(wanted.len())
        .any(|some| some.iter().zip(wanted).all(|(part, wanted)| part == wanted))
}
