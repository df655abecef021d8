//! Confines commands with the operating system's sandbox: landlock and seccomp on Linux, `sandbox-exec` on
//! macOS.
//!
//! A [`Confinement`] describes what a command may access. On Linux it is applied to a thread of the process
//! that starts the command (its supervisor); the command inherits it and cannot remove it. There is no
//! partial confinement: if it cannot be applied in full, the command does not start.

mod confinement;
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

pub use confinement::{Confinement, SandboxSupport};
#[cfg(target_os = "macos")]
pub(crate) use seatbelt::profile;
pub use settings::{SandboxBaseline, SandboxMode, SandboxSettings};

/// Program that confines commands on macOS.
#[cfg(not(target_os = "linux"))]
pub(crate) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

#[cfg(not(target_os = "linux"))]
use std::path::Path;
use std::sync::OnceLock;

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

    /// Returns, for display, what an old kernel needlessly forbids to confined commands or fails to restrict;
    /// a newer kernel would do better.
    #[must_use]
    pub fn missing_features(self) -> Vec<&'static str> {
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
        for missing in self.missing_features() {
            text.push_str("; ");
            text.push_str(missing);
        }
        text
    }
}

/// Creates a folder that no confined command can write: neither temporary nor in the source tree.
#[cfg(test)]
pub(crate) fn temp_folder_outside_sandbox() -> tempfile::TempDir {
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
