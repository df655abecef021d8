//! Watches a file with inotify, so that nothing has to poll it.

use std::path::Path;

#[cfg(target_os = "linux")]
pub(crate) use linux::FileWatch;

#[cfg(target_os = "linux")]
mod linux {
    use super::Path;
    use rustix::{
        fd::OwnedFd,
        fs::{
            inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch},
            statfs,
        },
        io::Errno,
    };
    use std::{io, mem::MaybeUninit, os::unix::ffi::OsStrExt as _};

    /// `f_type` values of file systems that only the local kernel changes: ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs,
    /// F2FS, ZFS and bcachefs.
    const LOCAL_FILE_SYSTEMS: [u64; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
    ];

    /// Watches a file, and its folder for files that replace it. Dropping it may take milliseconds.
    pub(crate) struct FileWatch {
        events: OwnedFd,
        name: Vec<u8>,
        watches: Watches,
    }

    /// Watch descriptors of the folder and the file.
    #[derive(Clone, Copy, Default)]
    struct Watches {
        folder: Option<i32>,
        file: Option<i32>,
    }

    impl FileWatch {
        /// Creates a watch for a file with the name of `file`; nothing is watched before [`Self::follow`].
        /// Returns `None` if the kernel allows no more inotify instances, or the path has no file name.
        pub(crate) fn new(file: &Path) -> Option<Self> {
            Some(Self {
                events: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?,
                name: file.file_name()?.as_bytes().to_owned(),
                watches: Watches::default(),
            })
        }

        /// Watches the file that is at the path now. Returns false if some changes would go unnoticed: if the path is a
        /// link to another folder, or if the file system can be changed by other machines (network file systems).
        pub(crate) fn follow(&mut self, file: &Path) -> bool {
            let Some(folder) = file.parent() else {
                return false;
            };
            let found = self.add_watches(folder, file);
            let now = found.unwrap_or_default();
            let before = self.watches;
            for (old, new) in [(before.folder, now.folder), (before.file, now.file)] {
                if let Some(old) = old.filter(|old| Some(*old) != new) {
                    // Fails if the kernel has removed the watch together with the file.
                    let _ = remove_watch(&self.events, old);
                }
            }
            self.watches = now;
            found.is_some()
        }

        /// Adds watches for the folder and, if it exists, the file.
        fn add_watches(&self, folder: &Path, file: &Path) -> Option<Watches> {
            let replaced = WatchFlags::ATTRIB
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            let written = WatchFlags::ATTRIB
                | WatchFlags::MODIFY
                // For writes through a memory map.
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DONT_FOLLOW;
            if !is_local(folder) {
                return None;
            }
            let folder = add_watch(&self.events, folder, replaced).ok()?;
            let file = match file.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Ok(found) if !found.is_symlink() && is_local(file) => {
                    Some(add_watch(&self.events, file, written).ok()?)
                }
                Ok(_) | Err(_) => return None,
            };
            Some(Watches {
                folder: Some(folder),
                file,
            })
        }

        /// Returns true if the file has not changed since the last call of `follow` or this function. Does not
        /// block.
        pub(crate) fn is_quiet(&self) -> bool {
            let mut buffer = [MaybeUninit::uninit(); 512];
            let mut events = Reader::new(&self.events, &mut buffer);
            let mut is_quiet = true;
            loop {
                match events.next() {
                    Err(Errno::AGAIN) => return is_quiet,
                    Err(_) => return false,
                    Ok(event) => {
                        let is_other = event
                            .file_name()
                            .is_some_and(|name| name.to_bytes() != self.name);
                        let is_lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                        let watch = Some(event.wd());
                        let Watches { folder, file } = self.watches;
                        let is_watched = watch == folder || watch == file;
                        is_quiet &= !is_lost && (is_other || !is_watched);
                    }
                }
            }
        }
    }

    fn is_local(path: &Path) -> bool {
        let kind = statfs(path).map(|found| u64::try_from(found.f_type));
        matches!(kind, Ok(Ok(kind)) if LOCAL_FILE_SYSTEMS.contains(&kind))
    }
}

/// Placeholder for systems without inotify; never created.
#[cfg(not(target_os = "linux"))]
pub(crate) struct FileWatch(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl FileWatch {
    pub(crate) fn new(_: &Path) -> Option<Self> {
        None
    }

    pub(crate) fn follow(&mut self, _: &Path) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_quiet(&self) -> bool {
        match self.0 {}
    }
}
