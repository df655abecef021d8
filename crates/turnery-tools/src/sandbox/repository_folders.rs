//! Finds the folders that git needs of the repositories that contain a session's roots: their work tree, and
//! the git folder if it is elsewhere.
//!
//! A `.git` file may name any folder, and a command may write one. It counts only if that folder names it in
//! return: git's own record of a linked work tree, or the configuration of a submodule.

use super::{confinement::Confinement, links::follow_links};
use crate::workspace::disk;
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// Maximum size of a file that names a repository. Unit: bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Folders that git needs, links resolved.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RepositoryFolders {
    pub(super) work_trees: Vec<PathBuf>,
    pub(super) git_folders: Vec<PathBuf>,
}

impl RepositoryFolders {
    /// Returns the folders of a confinement's work trees. Follows no link in `untrusted`, and none in a work
    /// tree.
    pub(super) fn find(confinement: &Confinement, untrusted: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for top in &confinement.work_trees {
            // In a folder shared by all users for temporary files, `.git` may belong to anyone.
            let mut shared = confinement.temporary.iter();
            let is_shared = !confinement.roots.contains(top)
                && shared.any(|it| it.canonicalize().is_ok_and(|it| it == *top));
            let home = confinement.home.as_deref();
            if !is_shared && !home.is_some_and(|home| home.starts_with(top)) {
                found.work_trees.push(top.clone());
            }
            let untrusted = [untrusted, std::slice::from_ref(top)].concat();
            let folder =
                follow_links(&top.join(".git"), &untrusted).and_then(|it| match it.is_dir() {
                    true => Some(it),
                    false => linked_git_folder(&it, &untrusted),
                });
            found
                .git_folders
                .extend(folder.filter(|it| it.join("HEAD").is_file()));
        }
        found
    }
}

/// Returns the folder with git's data for the work tree of this `.git` file. It and the work tree are apart:
/// anybody's project can contain a repository of its own.
fn linked_git_folder(dot_git: &Path, untrusted: &[PathBuf]) -> Option<PathBuf> {
    let work_tree = dot_git.parent()?;
    let is_apart = |it: &PathBuf| !work_tree.starts_with(it) && !it.starts_with(work_tree);
    let text = read_bounded(dot_git)?;
    let folder = work_tree.join(text.strip_prefix("gitdir:")?.trim());
    let folder = follow_links(&folder, untrusted)?;
    let leads_to = |path: &str, wanted: &Path| {
        let path = folder.join(path.trim_end_matches(['\n', '\r']));
        follow_links(&path, untrusted).is_some_and(|it| it == wanted)
    };
    if let Some(common) = read_bounded(&folder.join("commondir")) {
        let common = follow_links(&folder.join(common.trim_end()), untrusted)?;
        let is_recorded = folder.parent() == Some(&common.join("worktrees"))
            && leads_to(&read_bounded(&folder.join("gitdir"))?, dot_git);
        return is_recorded.then_some(common).filter(is_apart);
    }
    let names_work_tree = leads_to(
        &parse_core_worktree(&read_bounded(&folder.join("config"))?)?,
        work_tree,
    );
    names_work_tree.then_some(folder).filter(is_apart)
}

/// Returns `core.worktree` of a configuration.
fn parse_core_worktree(config: &str) -> Option<String> {
    let mut is_core = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.eq_ignore_ascii_case("[core]");
        } else if is_core
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            return Some(value.trim().trim_matches('"').to_owned());
        }
    }
    None
}

/// Returns the text of a regular file at a path without links; `None` if it is longer than
/// [`MAX_FILE_BYTES`].
fn read_bounded(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = disk::open(path).ok()?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .ok()?;
    (text.len() as u64 <= MAX_FILE_BYTES).then_some(text)
}
