//! Disk: opens and replaces files by paths that are resolved already, following no link anywhere in
//! them. A link that took the place of a folder or file after the path was resolved is an error.

use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, FileType, Mode, OFlags, fchmod, fchown, fstat, mkdirat, openat, renameat, unlinkat,
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

/// Folders on the way only need to be passed through, not listed.
#[cfg(target_os = "linux")]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = OFlags::RDONLY;

/// Opens a regular file for reading. Never waits: a pipe or a device is an error.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let (folder, name) = folder_of(path, false)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(openat(&folder, name, flags, Mode::empty()).map_err(explain)?)
}

/// Opens what is there for change, if there is anything.
pub(crate) fn open_for_change(path: &Path) -> io::Result<Option<File>> {
    let (folder, name) = match folder_of(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(&folder, name, flags, Mode::empty()) {
        Ok(file) => regular(file).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(explain(errno)),
    }
}

/// Puts `bytes` into the place of `path`, all or nothing, making its folders. `old` is the file
/// that was there: its mode bits and, where possible, its owner are kept.
pub(crate) fn replace(path: &Path, bytes: &[u8], old: Option<&File>) -> io::Result<()> {
    let (folder, name) = folder_of(path, true)?;
    let (temporary, mut file) = create_beside(&folder)?;
    let written = (|| {
        file.write_all(bytes)?;
        if let Some(old) = old {
            let (old, new) = (fstat(old)?, fstat(&file)?);
            if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
                // Only root can; for others the file becomes their own.
                let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
                let _ = fchown(&file, Some(uid), Some(gid));
            }
            fchmod(&file, Mode::from_raw_mode(old.st_mode))?;
        }
        renameat(&folder, &*temporary, &folder, name).map_err(explain)
    })();
    if written.is_err() {
        let _ = unlinkat(&folder, &*temporary, AtFlags::empty());
    }
    written
}

/// A new file in the folder, under a name that nobody has.
fn create_beside(folder: &OwnedFd) -> io::Result<(String, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".turnery-{}-{count}.tmp", process::id());
        match openat(folder, &*name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(explain(errno)),
        }
    }
}

/// The folder that `path` lies in, reached without following a link, and its name there.
fn folder_of(path: &Path, create: bool) -> io::Result<(OwnedFd, &OsStr)> {
    let unusable = || io::Error::new(io::ErrorKind::InvalidInput, "the path is not resolved");
    let name = path.file_name().ok_or_else(unusable)?;
    let flags = PASS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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
                    Err(errno) => return Err(explain(errno)),
                }
                openat(&folder, step, flags, Mode::empty())
            }
            opened => opened,
        }
        .map_err(explain)?;
    }
    Ok((folder, name))
}

fn regular(file: OwnedFd) -> io::Result<File> {
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

fn explain(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP => io::Error::other("a link has taken its place"),
        errno => errno.into(),
    }
}
