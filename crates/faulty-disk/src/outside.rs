//! Calls of a program that writes to the files itself, beside SQLite.

use crate::disk::{Call, Disk};
use std::{io, path::Path};

/// Flushes a file of a simulated disk; `None` if the file is on no simulated disk.
#[must_use]
pub fn sync_file(path: &Path) -> Option<io::Result<()>> {
    Disk::of(path).map(|disk| match disk.sync_outside(path) {
        true => Ok(()),
        false => Err(io::Error::other("simulated failure of a flush")),
    })
}

/// Records that every byte of a file was written again. Does nothing for a file on no simulated disk.
pub fn rewrite_file(path: &Path) -> io::Result<()> {
    let Some(disk) = Disk::of(path) else {
        return Ok(());
    };
    if disk.fails(Call::Write) {
        return Err(io::Error::other("simulated failure of a write"));
    }
    let bytes = std::fs::read(path)?;
    disk.record_outside_write(path, bytes);
    Ok(())
}

/// Flushes the names in a folder; `None` if the folder is on no simulated disk.
#[must_use]
pub fn sync_folder(folder: &Path) -> Option<io::Result<()>> {
    Disk::of(&folder.join("file")).map(|disk| {
        disk.record_folder_sync();
        Ok(())
    })
}
