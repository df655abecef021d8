//! Confines commands with what the operating system offers: landlock and seccomp on Linux,
//! `sandbox-exec` on macOS.
//!
//! A [`Confinement`] says what a command may touch. On Linux it is applied to a thread of the process that
//! starts the command (its supervisor), which the command inherits and cannot take off again. Nothing is
//! confined by halves: where a confinement cannot be applied, the command does not start.

mod links;
mod places;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
mod settings;

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod closed;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod linked_keys;
#[cfg(target_os = "linux")]
mod repositories;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(all(test, target_os = "linux"))]
mod tests;

#[cfg(target_os = "macos")]
pub(crate) use seatbelt::profile;
pub use settings::{SandboxMode, SandboxSettings, Surroundings};

/// What confines programs on macOS.
#[cfg(not(target_os = "linux"))]
pub(crate) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// What a command may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Whether the command may write: to the roots, temporary folders and caches. If not, it also reads
    /// no files but those of the roots, the system and toolchains.
    pub writes: bool,
    /// Whether it may open internet sockets.
    pub network: bool,
    /// The session's roots. Absolute, links resolved.
    pub roots: Vec<PathBuf>,
    /// Work trees of the repositories that held the roots when the session began. Git's folders of no others are opened,
    /// whatever commands move away since.
    pub work_trees: Vec<PathBuf>,
    /// The person's home folder.
    pub home: Option<PathBuf>,
    /// Folders for temporary files.
    pub temporary: Vec<PathBuf>,
    /// Folder for the temporary files of this command alone. It writes there even if it writes nowhere else.
    pub scratch: Option<PathBuf>,
    /// Further folders of programs, from the environment (`JAVA_HOME` and the like).
    pub toolchains: Vec<PathBuf>,
    /// Further files and folders of caches, from the environment (`registry` in `CARGO_HOME`).
    pub caches: Vec<PathBuf>,
    /// Further files and folders that no command reads or writes, such as turnery's own.
    pub private: Vec<PathBuf>,
}

/// What the running system offers for confining commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// Version of landlock's interface; `None` without landlock. On macOS always `None`.
    pub landlock: Option<u32>,
    /// Whether system calls can be filtered. On macOS: whether `sandbox-exec` is there.
    pub filter: bool,
}

impl Confinement {
    /// The files and folders that commands of the session write to, those that only read aside. They exist, and
    /// are without links. None is found through a link in another: a command may have put it there.
    fn writable(&self) -> Vec<PathBuf> {
        let places = self.places();
        let anywhere = self.and_roots(wherever_links_lead(&places));
        self.and_roots(
            places
                .iter()
                .filter_map(|path| links::follow(path, &anywhere)),
        )
    }

    /// The same, wherever links lead: all places in which a command may have put a link, and perhaps more.
    pub(crate) fn writable_anywhere(&self) -> Vec<PathBuf> {
        self.and_roots(wherever_links_lead(&self.places()))
    }

    fn and_roots(&self, places: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
        self.roots.iter().cloned().chain(places).collect()
    }

    /// Folders for temporary files and caches, as they are named, which exist.
    fn places(&self) -> Vec<PathBuf> {
        let home = self.home.iter();
        let caches = home.flat_map(|home| places::CACHES.iter().map(|it| home.join(it)));
        let temporary = self.temporary.iter().cloned();
        let all = temporary.chain(caches).chain(self.caches.iter().cloned());
        // Most do not, and one question is less than one for each folder on the way.
        all.filter(|path| path.exists()).collect()
    }

    /// Whether a command needs a [`scratch`](Self::scratch) folder: it may write to no folder for temporary files.
    #[must_use]
    pub fn needs_scratch(&self) -> bool {
        let usual = std::env::temp_dir();
        !self.writes
            || !self.temporary.contains(&usual)
            || links::follow(&usual, &self.writable_anywhere()).is_none()
    }

    /// Folder to make the [`scratch`](Self::scratch) folder in: `usual`, or the system's if a command may have
    /// put a link there.
    #[must_use]
    pub(crate) fn scratch_parent(&self, usual: &Path) -> Option<PathBuf> {
        let anywhere = self.writable_anywhere();
        let mut folders = [usual, Path::new(places::TEMPORARY)].into_iter();
        folders.find_map(|folder| links::follow(folder, &anywhere))
    }
}

impl SandboxSupport {
    /// Asks the kernel, once for this process.
    #[must_use]
    pub fn detect() -> Self {
        static FOUND: OnceLock<SandboxSupport> = OnceLock::new();
        *FOUND.get_or_init(Self::probe)
    }

    #[cfg(target_os = "linux")]
    fn probe() -> Self {
        Self {
            landlock: files::landlock_version(),
            filter: syscalls::is_supported(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn probe() -> Self {
        Self {
            landlock: None,
            filter: cfg!(target_os = "macos") && Path::new(SANDBOX_EXEC).exists(),
        }
    }

    /// Whether commands can be confined at all.
    #[must_use]
    pub fn is_usable(self) -> bool {
        self.filter && (cfg!(target_os = "macos") || self.landlock.is_some())
    }

    /// What a confinement does not hold back here though it would on a newer kernel, in words for people.
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

    /// One sentence for people: what confines commands here, or that nothing does.
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

fn wherever_links_lead(places: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    places.iter().filter_map(|path| path.canonicalize().ok())
}

/// A folder where no confined command writes: neither a temporary one nor in the source tree.
#[cfg(test)]
pub(crate) fn folder_beside_tests() -> tempfile::TempDir {
    let tests = std::env::current_exe().expect("a test runs");
    tempfile::tempdir_in(tests.parent().expect("it lies in a folder")).expect("a folder")
}

/// Runs `start` on a thread that is confined, so that the processes which it starts are.
///
/// # Errors
///
/// Those of `start`, and any failure to apply the confinement; then `start` was not called.
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

/// Lets the calling thread, and the processes which it starts from here on, signal nothing but each other. Needs version
/// 6 of landlock.
///
/// # Errors
///
/// Any failure of the kernel to do so.
#[cfg(target_os = "linux")]
pub(crate) fn confine_signals() -> std::io::Result<()> {
    files::restrict_signals()
}

/// Confines the calling thread, and the processes which it starts from here on.
///
/// # Errors
///
/// Any failure to apply the confinement; then the thread may be confined in part.
#[cfg(target_os = "linux")]
pub(crate) fn confine_thread(confinement: &Confinement) -> std::io::Result<()> {
    capabilities::restrict()?;
    let landlock = files::restrict(confinement)?;
    syscalls::restrict(confinement, landlock)
}
