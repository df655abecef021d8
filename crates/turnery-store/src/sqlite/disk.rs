//! Writes and flushes files beside SQLite.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// Bytes written at once when a file is written again.
const CHUNK_BYTES: usize = 64 * 1024;

/// Flushes the content of a file.
pub(super) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    #[cfg(test)]
    if let Some(flushed) = faulty_disk::sync_file(path) {
        return flushed;
    }
    let _ = path;
    file.sync_data()
}

/// Writes every byte of a file again and flushes them. Nobody else may write to the file meanwhile.
pub(super) fn rewrite(mut file: &File, path: &Path) -> io::Result<()> {
    #[cfg(test)]
    faulty_disk::rewrite_file(path)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    loop {
        file.seek(SeekFrom::Start(offset))?;
        let count = file.read(&mut chunk)?;
        let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)?;
        offset += bytes.len() as u64;
    }
    sync_data(file, path)
}

/// Flushes the names of the files in a folder.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(test)]
    if let Some(flushed) = faulty_disk::sync_folder(folder) {
        return flushed;
    }
    File::open(folder)?.sync_all()
}

/// Folders cannot be flushed on this platform.
#[cfg(not(unix))]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
