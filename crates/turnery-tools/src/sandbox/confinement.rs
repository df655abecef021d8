//! Access rights of a confined command, and the part of them that the system can enforce.

use super::{known_paths, links};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
    /// Work trees of the repositories that contained the roots when the session began. Git folders of other
    /// work trees are not opened, whatever commands move later.
    pub work_trees: Vec<PathBuf>,
    /// Work trees of all repositories around the roots when the session began, except those that contain the
    /// home folder. Their links are not followed, since the project or an earlier command may have made them.
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
    /// Files and folders that the command may not read because of rules, unless they are among files that it
    /// may write.
    pub hidden: Vec<PathBuf>,
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
        self.writable_apart_from(&self.untrusted())
    }

    /// Like [`writable`](Self::writable), but follows no link in the folders `untrusted` instead.
    pub(super) fn writable_apart_from(&self, untrusted: &[PathBuf]) -> Vec<PathBuf> {
        let places = self.places();
        let found = places.iter();
        self.with_roots(found.filter_map(|path| links::follow_links(path, untrusted)))
    }

    /// Returns the folders whose links a command or the project may have made.
    pub(super) fn untrusted(&self) -> Vec<PathBuf> {
        [self.writable_through_links(), self.projects.clone()].concat()
    }

    /// Like [`writable`](Self::writable), but follows all links: every place where a command may have put a
    /// link, and possibly more.
    pub(crate) fn writable_through_links(&self) -> Vec<PathBuf> {
        let places = self.places();
        self.with_roots(places.iter().filter_map(|path| path.canonicalize().ok()))
    }

    fn with_roots(&self, places: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        self.roots.iter().cloned().chain(places).collect()
    }

    /// Returns the existing folders for temporary files and caches, links not resolved.
    fn places(&self) -> Vec<PathBuf> {
        let home = self.home.iter();
        let caches = home.flat_map(|home| known_paths::CACHES.iter().map(|it| home.join(it)));
        let temporary = self.temporary.iter().cloned();
        let all = temporary.chain(caches).chain(self.caches.iter().cloned());
        // Most do not exist, and this check is cheaper than one for each folder on the way.
        all.filter(|path| path.exists()).collect()
    }

    /// Returns true if a command needs a [`scratch`](Self::scratch) folder, because it may write to no other
    /// folder for temporary files.
    #[must_use]
    pub fn needs_scratch(&self) -> bool {
        let usual = std::env::temp_dir();
        !self.writes
            || !self.temporary.contains(&usual)
            || links::follow_links(&usual, &self.untrusted()).is_none()
    }

    /// Returns the folder in which to create the [`scratch`](Self::scratch) folder: `usual`, or the system's
    /// if a command or the project may have put a link there.
    #[must_use]
    pub(crate) fn scratch_parent(&self, usual: &Path) -> Option<PathBuf> {
        let untrusted = self.untrusted();
        let mut folders = [usual, Path::new(known_paths::TEMPORARY_FOLDER)].into_iter();
        folders.find_map(|folder| links::follow_links(folder, &untrusted))
    }
}
