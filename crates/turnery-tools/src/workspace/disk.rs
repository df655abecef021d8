//! Opens and replaces files by resolved paths without following links in them. A link that replaced a folder
//! or file after the path was resolved is an error.

use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, FileType, Mode, OFlags, fchmod, fchown, fstat, mkdirat, openat, renameat,
        symlinkat, unlinkat,
    },
    fs::{Gid, Uid},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    path::{Component, Path},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Flags with which the folders on the way are opened: to traverse them, not to list them.
#[cfg(target_os = "linux")]
const TRAVERSE_FLAGS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = OFlags::RDONLY;

/// Opens a regular file for reading. Never blocks: a pipe or a device is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let (folder, name) = open_parent(path, false)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    ensure_regular(openat(&folder, name, flags, Mode::empty()).map_err(to_io_error)?)
}

/// Opens a file for change; `None` if it does not exist.
pub(crate) fn open_for_change(path: &Path) -> io::Result<Option<File>> {
    let (folder, name) = match open_parent(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => ensure_regular(file).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(to_io_error(errno)),
    }
}

/// Atomically replaces `path` with `bytes`, creating its folders. `old` is the file being replaced: its mode
/// bits and, where possible, its owner are kept.
pub(crate) fn replace(path: &Path, bytes: &[u8], old: Option<&File>) -> io::Result<()> {
    let (folder, name) = open_parent(path, true)?;
    let (temporary, mut file) = create_temporary(&folder)?;
    let written = (|| {
        file.write_all(bytes)?;
        if let Some(old) = old {
            let (old, new) = (fstat(old)?, fstat(&file)?);
            if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
                // Only root can change the owner; for others the file becomes their own.
                let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
                let _ = fchown(&file, Some(uid), Some(gid));
            }
            fchmod(&file, Mode::from_raw_mode(old.st_mode))?;
        }
        renameat(&folder, &*temporary, &folder, name).map_err(to_io_error)
    })();
    if written.is_err() {
        let _ = unlinkat(&folder, &*temporary, AtFlags::empty());
    }
    written
}

/// Removes a file or a link.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let (folder, name) = open_parent(path, false)?;
    unlinkat(&folder, name, AtFlags::empty()).map_err(to_io_error)
}

/// Creates a link, and its folders. Fails if something is there.
pub(crate) fn create_link(path: &Path, target: &Path) -> io::Result<()> {
    let (folder, name) = open_parent(path, true)?;
    symlinkat(target, &folder, name).map_err(to_io_error)
}

/// Creates a new file in the folder, under an unused name.
fn create_temporary(folder: &OwnedFd) -> io::Result<(String, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".turnery-{}-{count}.tmp", process::id());
        match openat(folder, &*name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(to_io_error(errno)),
        }
    }
}

/// Opens the parent folder of `path` without following links. Returns it and the file name.
fn open_parent(path: &Path, create: bool) -> io::Result<(OwnedFd, &OsStr)> {
    let unusable = || io::Error::new(io::ErrorKind::InvalidInput, "the path is not resolved");
    let name = path.file_name().ok_or_else(unusable)?;
    let flags = TRAVERSE_FLAGS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = openat(rustix::fs::CWD, "/", flags, Mode::empty())?;
    for component in path.parent().ok_or_else(unusable)?.components() {
        let step = match component {
            Component::RootDir => continue,
            Component::Normal(step) => step,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => {
                return Err(unusable());
            }
        };
        folder = match openat(&folder, step, flags, Mode::empty()) {
            Err(Errno::NOENT) if create => {
                match mkdirat(&folder, step, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(to_io_error(errno)),
                }
                openat(&folder, step, flags, Mode::empty())
            }
            opened => opened,
        }
        .map_err(to_io_error)?;
    }
    Ok((folder, name))
}

fn ensure_regular(file: OwnedFd) -> io::Result<File> {
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

fn to_io_error(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP => io::Error::other("a link has taken its place"),
        errno => errno.into(),
    }
}
