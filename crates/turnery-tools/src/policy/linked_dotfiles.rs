//! Finds the files that links in the user's home folder lead to, such as those of a dotfiles repository: shells, git and
//! editors read them under another name, so their own names do not give them away.

use super::guarded_paths::{fold_case, fold_path, guarded_names, has_guarded_prefix};
use crate::workspace::names_through_links;
use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

/// Maximum number of entries that are looked at in each guarded folder of the home folder, the upper ones first.
const MAX_ENTRIES: usize = 4_096;
/// Maximum depth of these entries below a guarded folder.
const MAX_DEPTH: usize = 6;
/// Folders that hold no settings and many entries.
const SKIPPED_FOLDERS: &[&str] = &[".git", "extensions", "node_modules"];
/// Ends of folders whose own entries are looked at, but not what is below them.
const SHALLOW_FOLDERS: &[&str] = &[".cargo/registry", ".rustup/toolchains"];

/// Files to which links among the dotfiles of a home folder lead. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct LinkedDotfiles {
    home: PathBuf,
    /// Targets of links, with case folded, found when first needed.
    targets: Arc<OnceLock<Vec<PathBuf>>>,
}

impl PartialEq for LinkedDotfiles {
    fn eq(&self, other: &Self) -> bool {
        self.home == other.home
    }
}

impl LinkedDotfiles {
    /// Creates the set for the home folder of the user who runs this process; `None` without a home folder.
    pub(super) fn from_env() -> Option<Self> {
        env::home_dir().map(Self::new)
    }

    /// Creates the set for a home folder, which is searched when first needed.
    pub(super) fn new(home: PathBuf) -> Self {
        Self {
            home,
            targets: Arc::default(),
        }
    }

    /// Returns true if a guarded name in the home folder leads to `path`, or to a folder above it. `path` has its links
    /// resolved.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let targets = self.targets.get_or_init(|| self.find_targets());
        let folded = fold_path(path);
        targets.iter().any(|target| folded.starts_with(target))
    }

    fn find_targets(&self) -> Vec<PathBuf> {
        let mut targets = Vec::new();
        // A hidden file that is a link holds settings, of a program in the tables or not.
        for entry in self.home.read_dir().into_iter().flatten().flatten() {
            let name = fold_case(&entry.file_name().to_string_lossy());
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let is_of_shell = has_guarded_prefix(&name);
            if is_link && (is_of_shell || name.starts_with('.') && !entry.path().is_dir()) {
                targets.extend(names_through_links(&entry.path()));
            }
            if is_of_shell {
                collect_link_targets(entry.path(), &mut targets);
            }
        }
        let config = self.home.join(".config");
        if config.is_symlink() {
            targets.extend(names_through_links(&config));
        }
        collect_link_targets(config, &mut targets);
        let mut listings = HashMap::new();
        for name in guarded_names() {
            let mut paths = find_in_any_case(&self.home, &name, &mut listings);
            paths.push(self.home.join(name));
            paths.sort();
            paths.dedup();
            for path in paths {
                targets.extend(names_through_links(&path));
                collect_link_targets(path, &mut targets);
            }
        }
        let mut targets: Vec<PathBuf> = targets.iter().map(|target| fold_path(target)).collect();
        targets.sort();
        targets.dedup();
        targets
    }
}

/// Returns the existing paths in `folder` that are called `name` if case is folded; `name` is folded already.
fn find_in_any_case(
    folder: &Path,
    name: &Path,
    listings: &mut HashMap<PathBuf, Vec<(String, OsString)>>,
) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    for part in name {
        let mut inner = Vec::new();
        for folder in folders {
            let entries = listings.entry(folder.clone()).or_insert_with(|| {
                let entries = folder.read_dir().into_iter().flatten().flatten();
                let fold = |name: OsString| (fold_case(&name.to_string_lossy()), name);
                entries.map(|entry| fold(entry.file_name())).collect()
            });
            let same = entries.iter().filter(|(folded, _)| part == folded.as_str());
            inner.extend(same.map(|(_, name)| folder.join(name)));
        }
        folders = inner;
    }
    folders
}

/// Adds the targets of links below a folder, and of links in the folders that those lead to.
pub(super) fn collect_link_targets(folder: PathBuf, targets: &mut Vec<PathBuf>) {
    let mut left = MAX_ENTRIES;
    let mut folders = vec![folder];
    for _ in 0..MAX_DEPTH {
        let mut inner = Vec::new();
        for folder in folders {
            let is_shallow = SHALLOW_FOLDERS.iter().any(|end| folder.ends_with(end));
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    return;
                };
                left = rest;
                let path = entry.path();
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_link {
                    targets.extend(names_through_links(&path));
                }
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_skipped = SKIPPED_FOLDERS.iter().any(|it| entry.file_name() == *it);
                if !is_shallow && !is_skipped && (is_folder || is_link && path.is_dir()) {
                    inner.push(path);
                }
            }
        }
        folders = inner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    /// Where in the home folder a link is, where it leads, a file, and whether that is guarded.
    #[test]
    fn targets_of_links_to_settings_are_guarded() {
        for (link, target, file, guarded) in [
            (".zshrc", "dotfiles/zshrc", "zshrc", true),
            (".zshrc", "dotfiles/zshrc", "notes", false),
            // Also on a case-insensitive file system.
            (".zshrc", "dotfiles/zshrc", "ZſHRC", true),
            (".Vim/x", "../dotfiles/Plug", "plug/a.vim", true),
            (".bashrc", "dotfiles/missing", "missing", true),
            (".config/git", "../dotfiles", "new", true),
            (".ssh/config", "../dotfiles/ssh", "ssh", true),
            (
                ".config/fish/conf.d/a.fish",
                "../../../dotfiles/a",
                "a",
                true,
            ),
            (".tool-versions", "dotfiles/tools", "tools", true),
            (
                ".vim/pack/p/start/x",
                "../../../../dotfiles/x",
                "x/plugin.vim",
                true,
            ),
            (".Rprofile", "dotfiles/r", "r", true),
            (
                ".vim/pack/registry/x",
                "../../../dotfiles/x",
                "x/plugin.vim",
                true,
            ),
            (
                ".rustup/toolchains/dev",
                "../../dotfiles/dev",
                "dev/bin/cargo",
                true,
            ),
            (".bash_completion.d", "dotfiles/bash", "bash/new", true),
            (".zsh/a", "../dotfiles/a", "a", true),
            (".gradle", "dotfiles", "init.gradle", true),
            (".gradle", "dotfiles", "notes", false),
            (".config", "dotfiles", "git/config", true),
            (".config", "dotfiles", "gdb/gdbinit", true),
            ("notes", "dotfiles/notes", "notes", false),
            (".lesskey", "dotfiles/less", "less", true),
            (".config/gdb/gdbinit", "../../dotfiles/gdb", "gdb", true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let home = folder.path().canonicalize().unwrap();
            fs::create_dir(home.join("dotfiles")).unwrap();
            fs::write(home.join("dotfiles/zshrc"), "").unwrap();
            fs::create_dir_all(home.join(link).parent().unwrap()).unwrap();
            symlink(target, home.join(link)).unwrap();
            let settings = LinkedDotfiles::new(home.clone());
            let path = home.join("dotfiles").join(file);
            assert_eq!(settings.contains(&path), guarded, "{link} {file}");
        }
    }

    #[test]
    fn links_in_linked_folders_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        fs::create_dir_all(home.join("dotfiles/plug")).unwrap();
        fs::create_dir(home.join(".vim")).unwrap();
        symlink("../dotfiles/plug", home.join(".vim/plugin")).unwrap();
        symlink("../shared/a.vim", home.join("dotfiles/plug/a.vim")).unwrap();
        symlink("..", home.join("dotfiles/plug/loop")).unwrap();
        let settings = LinkedDotfiles::new(home.clone());
        assert!(settings.contains(&home.join("dotfiles/shared/a.vim")));
        assert!(!settings.contains(&home.join("notes")));
    }
}
