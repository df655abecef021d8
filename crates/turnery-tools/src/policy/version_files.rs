//! Recognises project files with which version managers select the programs that run by a name.

use super::path_checks::entry_exists;
use crate::{Workspace, workspace::disk};
use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Files with which asdf, mise, pyenv, nodenv and Volta select programs, which may be in a folder of the
/// project.
pub(super) const VERSION_MANAGER_FILES: &[&str] = &[
    ".config/mise",
    ".config/mise.toml",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".node-version",
    ".prototools",
    ".python-version",
    ".python-versions",
    ".rtx.toml",
    ".tool-versions",
    ".volta",
    "mise",
];

/// Folders in which mise looks for its files.
const MISE_FOLDERS: &[&str] = &["", ".config"];

/// Files that contain only a version, which may be a path.
const PLAIN_VERSION_FILES: &[&str] = &[".go-version", ".nvmrc"];
/// Maximum size of such a file; longer ones contain more than a version. Unit: bytes.
const MAX_VERSION_BYTES: u64 = 64;

/// Folders in which version managers keep versions, one folder each: variable, folder in the home folder, folder
/// below. rustup and pyenv let a version be a link to any folder.
const VERSION_FOLDERS: &[(&str, &str, &str)] = &[
    ("ASDF_DATA_DIR", ".asdf", "installs"),
    ("COREPACK_HOME", ".cache/node/corepack", "v1"),
    ("GOENV_ROOT", ".goenv", "versions"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs"),
    ("XDG_DATA_HOME", ".local/share", "mise/installs"),
    ("NODENV_ROOT", ".nodenv", "versions"),
    ("PYENV_ROOT", ".pyenv", "versions"),
    ("RUSTUP_HOME", ".rustup", "toolchains"),
];

/// Returns true if a version manager may start a program of the project, because the folder of its versions is there or
/// one of them is a link into it.
pub(super) fn has_version_in_project(workspace: &Workspace) -> bool {
    let home = env::home_dir().unwrap_or_default();
    // Two rows may name one folder.
    let folders: BTreeSet<PathBuf> = VERSION_FOLDERS
        .iter()
        .map(|(variable, folder, versions)| {
            let root = env::var_os(variable).map_or_else(|| home.join(folder), PathBuf::from);
            root.join(versions)
        })
        .collect();
    let mut folders = folders.iter();
    folders.any(|folder| holds_project_version(folder, &home, workspace))
}

fn holds_project_version(versions: &Path, home: &Path, workspace: &Workspace) -> bool {
    let exists = !versions.is_absolute() || versions.exists();
    // In a session in the home folder, the usual folders are the user's.
    let is_users = || versions.starts_with(home) && workspace.may_be_in_project(home);
    exists && workspace.may_be_in_project(versions) && !is_users()
        || has_link_into_project(versions, 0, workspace)
}

/// Returns true if a link among the versions leads into the project: a version, or one of its programs or environments.
/// `depth` is 0 for the folder of all versions.
fn has_link_into_project(folder: &Path, depth: usize, workspace: &Workspace) -> bool {
    let mut entries = folder.read_dir().into_iter().flatten().flatten();
    entries.any(|entry| {
        let (path, name) = (entry.path(), entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => workspace.may_be_in_project(&path),
            Ok(kind) if kind.is_dir() => {
                (depth < 2 || depth < 4 && (name == "bin" || name == "envs"))
                    && has_link_into_project(&path, depth + 1, workspace)
            }
            Ok(_) => false,
            Err(_) => true,
        }
    })
}

/// Returns true for the lowercase name of a version manager's file.
pub(super) fn is_version_file(name: &str) -> bool {
    VERSION_MANAGER_FILES.contains(&name)
        || PLAIN_VERSION_FILES.contains(&name)
        || is_mise_file(name)
}

/// Returns true for `mise.toml`, `.miserc.toml` and `.rtx.toml`, including those of one environment:
/// `mise.ci.toml`.
fn is_mise_file(name: &str) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    let begins = ["mise.", "miserc.", "rtx."];
    begins.iter().any(|it| name.starts_with(it)) && name.ends_with(".toml")
}

/// Returns true for the path of mise's configuration in a folder without a dot: `mise/config.toml`, `mise/config.ci.toml`.
/// A folder called `mise` may also be a copy of mise itself. `parts` are in lower case.
pub(super) fn is_mise_config(parts: &[String]) -> bool {
    matches!(parts, [.., folder, name]
        if folder == "mise" && name.starts_with("config.") && name.ends_with(".toml"))
}

/// Returns true if a file in the folder may make a version manager select a program of the project.
pub(super) fn picks_project_version(folder: &Path) -> bool {
    let is_path = |name: &&str| match disk::open(&folder.join(name)) {
        Ok(file) => {
            let mut text = String::new();
            let read = file.take(MAX_VERSION_BYTES + 1).read_to_string(&mut text);
            read.is_err() || text.len() as u64 > MAX_VERSION_BYTES || text.contains(['/', ':'])
        }
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let holds_file_of_mise = |inner: &&str| {
        let is_found = |entry: fs::DirEntry| is_mise_file(&entry.file_name().to_string_lossy());
        let entries = folder.join(inner).read_dir();
        entries.is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_found)))
    };
    VERSION_MANAGER_FILES
        .iter()
        .any(|name| entry_exists(folder, name))
        || PLAIN_VERSION_FILES.iter().any(is_path)
        || MISE_FOLDERS.iter().any(holds_file_of_mise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn version_linked_into_project_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (root, versions) = (folder.join("root"), folder.join("toolchains"));
        fs::create_dir_all(root.join("build")).unwrap();
        fs::create_dir_all(versions.join("stable/bin")).unwrap();
        let workspace = Workspace::local(root.clone()).unwrap();
        symlink("stable", versions.join("default")).unwrap();
        let home = folder.join("home");
        assert!(!holds_project_version(&versions, &home, &workspace));
        assert!(!holds_project_version(
            &root.join("build"),
            &root,
            &workspace
        ));
        for inside in [root.join("build"), "relative".into()] {
            assert!(
                holds_project_version(&inside, &home, &workspace),
                "{inside:?}"
            );
        }
        symlink(root.join("build"), versions.join("dev")).unwrap();
        assert!(has_link_into_project(&versions, 0, &workspace));
        for link in [
            "3.12/envs/x",
            "3.12/bin/python3",
            "python/dev",
            "python/3.12/bin/python",
        ] {
            let installs = tempfile::tempdir().unwrap();
            let link = installs.path().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(root.join("build"), &link).unwrap();
            assert!(
                has_link_into_project(installs.path(), 0, &workspace),
                "{}",
                link.display()
            );
        }
    }
}
