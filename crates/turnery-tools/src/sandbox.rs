//! Confines commands with the operating system's sandbox: landlock and seccomp on Linux, `sandbox-exec` on
//! macOS.
//!
//! A [`Confinement`] describes what a command may access. On Linux it is applied to a thread of the process
//! that starts the command (its supervisor); the command inherits it and cannot remove it. There is no
//! partial confinement: if it cannot be applied in full, the command does not start.

mod known_paths;
mod links;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod settings;

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod linked_keys;
#[cfg(target_os = "linux")]
mod repository_folders;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(target_os = "linux")]
mod unreadable_folders;

#[cfg(target_os = "macos")]
pub(crate) use seatbelt::profile;
pub use settings::{SandboxMode, SandboxSettings, Surroundings};

/// Program that confines commands on macOS.
#[cfg(not(target_os = "linux"))]
pub(crate) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
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
    /// Work trees of the repositories that contained the roots when the session began. Git folders of other
    /// work trees are not opened, whatever commands move later.
    pub work_trees: Vec<PathBuf>,
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
    /// They exist and contain no links. None is found through a link in another, since a command may have put
    /// the link there.
    fn writable(&self) -> Vec<PathBuf> {
        let places = self.places();
        let anywhere = self.with_roots(canonical_paths(&places));
        self.with_roots(
            places
                .iter()
                .filter_map(|path| links::follow(path, &anywhere)),
        )
    }

    /// Like [`writable`](Self::writable), but follows all links: every place where a command may have put a
    /// link, and possibly more.
    pub(crate) fn writable_through_links(&self) -> Vec<PathBuf> {
        self.with_roots(canonical_paths(&self.places()))
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
            || links::follow(&usual, &self.writable_through_links()).is_none()
    }

    /// Returns the folder in which to create the [`scratch`](Self::scratch) folder: `usual`, or the system's
    /// if a command may have put a link there.
    #[must_use]
    pub(crate) fn scratch_parent(&self, usual: &Path) -> Option<PathBuf> {
        let anywhere = self.writable_through_links();
        let mut folders = [usual, Path::new(known_paths::TEMPORARY_FOLDER)].into_iter();
        folders.find_map(|folder| links::follow(folder, &anywhere))
    }
}

impl SandboxSupport {
    /// Queries the kernel, once per process.
    #[must_use]
    pub fn detect() -> Self {
        static FOUND: OnceLock<SandboxSupport> = OnceLock::new();
        *FOUND.get_or_init(Self::probe)
    }

    #[cfg(target_os = "linux")]
    fn probe() -> Self {
        Self {
            landlock: landlock_rules::landlock_version(),
            filter: seccomp::is_supported(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn probe() -> Self {
        Self {
            landlock: None,
            filter: cfg!(target_os = "macos") && Path::new(SANDBOX_EXEC).exists(),
        }
    }

    /// Returns true if commands can be confined at all.
    #[must_use]
    pub fn is_usable(self) -> bool {
        self.filter && (cfg!(target_os = "macos") || self.landlock.is_some())
    }

    /// Returns, for display, what this system's kernel cannot restrict although a newer one could.
    #[must_use]
    pub fn missing(self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        let Some(version) = self.landlock.filter(|_| self.filter) else {
            return missing;
        };
        if version < 2 {
            missing.push("files cannot be moved between folders (Linux 5.19 lifts this)");
        }
        if version < 3 {
            missing.push("files cannot be cut short by name (Linux 6.2 lifts this)");
        }
        if version < 5 {
            missing.push("device controls are not confined (needs Linux 6.10)");
        }
        if version < 6 {
            missing.push("signals to other processes are not confined (needs Linux 6.12)");
        }
        missing
    }

    /// Describes in one sentence what confines commands on this system, or that nothing does.
    #[must_use]
    pub fn describe(self) -> String {
        if !self.is_usable() {
            let lacking = match (cfg!(target_os = "macos"), self.landlock, self.filter) {
                (true, ..) => "/usr/bin/sandbox-exec is missing",
                (_, None, true) => "the kernel has no landlock, or it is switched off",
                (_, None, false) => "the kernel has neither landlock nor seccomp",
                (_, Some(_), _) => "the kernel has no seccomp filters",
            };
            return format!("Commands cannot be confined here: {lacking}");
        }
        let Some(version) = self.landlock else {
            return "Commands are confined by sandbox-exec".to_owned();
        };
        let mut text = format!("Commands are confined by landlock (version {version}) and seccomp");
        for missing in self.missing() {
            text.push_str("; ");
            text.push_str(missing);
        }
        text
    }
}

fn canonical_paths(places: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    places.iter().filter_map(|path| path.canonicalize().ok())
}

/// Creates a folder that no confined command can write: neither temporary nor in the source tree.
#[cfg(test)]
pub(crate) fn folder_beside_tests() -> tempfile::TempDir {
    let tests = std::env::current_exe().expect("a test runs");
    tempfile::tempdir_in(tests.parent().expect("it lies in a folder")).expect("a folder")
}

/// Runs `start` on a confined thread, so that the processes it starts are confined.
///
/// # Errors
///
/// Fails if `start` does or if the confinement cannot be applied; in that case `start` was not called.
#[cfg(target_os = "linux")]
pub(crate) fn start_confined<T: Send>(
    confinement: &Confinement,
    start: impl FnOnce() -> std::io::Result<T> + Send,
) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let confined = scope.spawn(|| {
            confine_thread(confinement)?;
            start()
        });
        confined
            .join()
            .unwrap_or_else(|_| Err(std::io::Error::other("the sandbox could not be set up")))
    })
}

/// Restricts the calling thread, and the processes it starts afterwards, to signalling each other. Needs
/// version 6 of landlock.
///
/// # Errors
///
/// Fails if the kernel cannot do so.
#[cfg(target_os = "linux")]
pub(crate) fn confine_signals() -> std::io::Result<()> {
    landlock_rules::restrict_signals()
}

/// Confines the calling thread and the processes it starts afterwards.
///
/// # Errors
///
/// Fails if the confinement cannot be applied in full; the thread may then be confined in part.
#[cfg(target_os = "linux")]
pub(crate) fn confine_thread(confinement: &Confinement) -> std::io::Result<()> {
    capabilities::restrict()?;
    let landlock = landlock_rules::restrict(confinement)?;
    seccomp::restrict(confinement, landlock)
}
