//! Access rights of a confined command, and the part of them that the system can enforce.

use super::{known_paths, links};
use serde::{Deserialize, Serialize};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Files and network that a command may access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The command may write to the roots, temporary folders and caches. If false, it also reads only the
    /// files of the roots, the system and toolchains.
    pub writes: bool,
    /// The command may open internet sockets.
    pub network: bool,
    /// The session's roots. Absolute, links resolved.
    pub roots: Vec<PathBuf>,
    /// For each root, the innermost work tree that contained it when the session began. Git folders of other
    /// work trees are not opened, whatever commands move later.
    pub work_trees: Vec<PathBuf>,
    /// All work trees that contained the roots when the session began, not only the innermost, except those
    /// that contain the home folder. Their links are not followed, since the project or an earlier command
    /// may have made them.
    pub projects: Vec<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Folders for temporary files.
    pub temporary: Vec<PathBuf>,
    /// Folder for the temporary files of this command alone, writable even if nothing else is.
    pub scratch: Option<PathBuf>,
    /// Additional folders of programs, from the environment (`JAVA_HOME` and similar).
    pub toolchains: Vec<PathBuf>,
    /// Additional files and folders of caches, from the environment (`registry` in `CARGO_HOME`).
    pub caches: Vec<PathBuf>,
    /// Additional files and folders that no command reads or writes, such as turnery's own.
    pub private: Vec<PathBuf>,
    /// The command reads the git folder of a work tree, if it is elsewhere, and does not write it.
    pub is_git_folder_read_only: bool,
    /// Paths of files and folders that the command may not read because of rules, unless they are among files
    /// that it may write. Their names may be in any encoding.
    pub hidden: Vec<OsString>,
}

/// Support of the running system for confining commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Version of landlock; `None` without landlock and on macOS.
    pub landlock: Option<u32>,
    /// System calls can be filtered. On macOS: `sandbox-exec` exists.
    pub filter: bool,
}

impl Confinement {
    /// Returns the files and folders that the session's commands can write to, unless they are read-only.
    /// They exist and contain no links. None is found through a link in another or in a project, since a
    /// command or the project may have put the link there.
    pub(super) fn writable(&self) -> Vec<PathBuf> {
        let places = self.temporary_and_cache_paths();
        self.writable_among(&places, &self.untrusted(&places))
    }

    /// Returns those of `places` that can be found without a link in the folders `untrusted`, and the roots.
    pub(super) fn writable_among(&self, places: &[PathBuf], untrusted: &[PathBuf]) -> Vec<PathBuf> {
        let found = places.iter();
        self.with_roots(found.filter_map(|path| links::follow_links(path, untrusted)))
    }

    /// Returns the folders whose links a command or the project may have made.
    pub(super) fn untrusted(&self, places: &[PathBuf]) -> Vec<PathBuf> {
        let real = places.iter().filter_map(|path| path.canonicalize().ok());
        self.with_roots(real.chain(self.projects.iter().cloned()))
    }

    /// Like [`writable`](Self::writable), but follows all links: every place where a command may have put a
    /// link, and possibly more.
    pub(crate) fn writable_through_links(&self) -> Vec<PathBuf> {
        let places = self.temporary_and_cache_paths();
        self.with_roots(places.iter().filter_map(|path| path.canonicalize().ok()))
    }

    fn with_roots(&self, places: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        self.roots.iter().cloned().chain(places).collect()
    }

    /// Returns the existing folders for temporary files and the existing files and folders of caches, with
    /// links not resolved.
    pub(super) fn temporary_and_cache_paths(&self) -> Vec<PathBuf> {
        let home = self.home.iter();
        let caches = home.flat_map(|home| known_paths::CACHES.iter().map(|it| home.join(it)));
        let temporary = self.temporary.iter().cloned();
        let all = temporary.chain(caches).chain(self.caches.iter().cloned());
        // Most do not exist, and this check is cheaper than one for each folder on the way.
        all.filter(|path| path.exists()).collect()
    }

    /// Prevents reading of `paths`, except for those that the command may write. A path above the system's
    /// programs stands for the roots below it, since no command starts without programs.
    pub(crate) fn hide(&mut self, paths: Vec<PathBuf>) {
        let is_above = |real: &Path| {
            let mut programs = known_paths::PROGRAMS.iter();
            programs.any(|it| Path::new(it).starts_with(real))
        };
        let roots = &self.roots;
        let hidden = paths.into_iter().flat_map(|path| {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let is_written = || self.writes && roots.iter().any(|root| real.starts_with(root));
            match is_above(&real) {
                true if self.writes => Vec::new(),
                true => roots
                    .iter()
                    .filter(|root| root.starts_with(&real))
                    .cloned()
                    .collect(),
                false if is_written() => Vec::new(),
                false => vec![path],
            }
        });
        self.hidden = hidden.map(PathBuf::into_os_string).collect();
    }

    /// Returns true if a command needs a [`scratch`](Self::scratch) folder, because it may write to no other
    /// folder for temporary files.
    #[must_use]
    pub fn needs_scratch(&self) -> bool {
        let usual = std::env::temp_dir();
        !self.writes
            || !self.temporary.contains(&usual)
            || links::follow_links(&usual, &self.untrusted(&self.temporary_and_cache_paths()))
                .is_none()
    }

    /// Returns the folder in which to create the [`scratch`](Self::scratch) folder: `usual`, or the system's
    /// if a command or the project may have put a link there.
    #[must_use]
    pub(crate) fn scratch_parent(&self, usual: &Path) -> Option<PathBuf> {
        let untrusted = self.untrusted(&self.temporary_and_cache_paths());
        let mut folders = [usual, Path::new(known_paths::TEMPORARY_FOLDER)].into_iter();
        folders.find_map(|folder| links::follow_links(folder, &untrusted))
    }
}
