//! File watch: the kernel tells when a file has changed, so that nobody has to look.

use std::path::Path;

/// Change of a file since the last time.
pub(crate) enum FileChange {
    None,
    /// It may have been written, made, replaced or removed.
    Changed,
    /// Its folder is elsewhere now: nothing more is heard.
    WatchEnded,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::FileWatch;

#[cfg(target_os = "linux")]
mod linux {
    use super::{FileChange, Path};
    use rustix::{
        fd::OwnedFd,
        fs::{
            inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init},
            statfs,
        },
        io::Errno,
    };
    use std::{ffi::CString, mem::MaybeUninit, os::unix::ffi::OsStrExt as _};

    /// File systems that only this machine's kernel changes, by what `statfs` calls them: ext2 to ext4, XFS,
    /// Btrfs, tmpfs, overlayfs, F2FS, ZFS and bcachefs.
    const LOCAL: [u64; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0x794c_7630,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
    ];

    /// Watches a file by its folder, whether it is there or not. Dropping it may take milliseconds.
    pub(crate) struct FileWatch {
        events: OwnedFd,
        name: CString,
    }

    impl FileWatch {
        /// Starts to watch. `None` if there is no such folder, if the file is a link to elsewhere, or if not all
        /// changes are made by this machine's kernel, as on a disk in the network.
        pub(crate) fn start(file: &Path) -> Option<Self> {
            let (folder, name) = (file.parent()?, file.file_name()?);
            let kind = statfs(folder).ok()?.f_type;
            if file.is_symlink() || !LOCAL.contains(&u64::try_from(kind).ok()?) {
                return None;
            }
            let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            let changes = WatchFlags::ATTRIB
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            add_watch(&events, folder, changes).ok()?;
            let name = CString::new(name.as_bytes()).ok()?;
            Some(Self { events, name })
        }

        /// Returns the change, without waiting for a disk.
        pub(crate) fn poll(&self) -> FileChange {
            let mut buffer = [MaybeUninit::uninit(); 512];
            let mut events = Reader::new(&self.events, &mut buffer);
            let mut change = FileChange::None;
            loop {
                match events.next() {
                    Err(Errno::AGAIN) => return change,
                    Err(_) => return FileChange::WatchEnded,
                    Ok(event) => match event.file_name() {
                        Some(name) if *name == *self.name => change = FileChange::Changed,
                        Some(_) => {}
                        // The mode of the folder itself.
                        None if event.events() == (ReadFlags::ATTRIB | ReadFlags::ISDIR) => {
                            change = FileChange::Changed;
                        }
                        None => return FileChange::WatchEnded,
                    },
                }
            }
        }
    }
}

/// Only Linux's way is known here.
#[cfg(not(target_os = "linux"))]
pub(crate) struct FileWatch(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl FileWatch {
    pub(crate) fn start(_: &Path) -> Option<Self> {
        None
    }

    pub(crate) fn poll(&self) -> FileChange {
        match self.0 {}
    }
}
