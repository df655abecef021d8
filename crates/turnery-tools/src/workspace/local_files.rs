//! Reads and writes text files on the local disk, keeping their encoding.

use super::{
    FileError, Files, disk,
    encoding::{self, Encoding},
};
use futures_util::future::BoxFuture;
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

/// Larger files are refused: models do not read them and users do not edit them by hand.
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// Text files on the local disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFiles;

impl LocalFiles {
    /// Fails if a link has replaced a folder or file in this path since it was resolved. For callers that let
    /// another program open the file, which would follow links. Like resolving, this opens no file, so it runs on the
    /// caller's thread.
    pub fn check_links(self, path: &Path) -> Result<(), FileError> {
        if !path.ancestors().any(Path::is_symlink) {
            return Ok(());
        }
        let target = fs::canonicalize(path);
        let target = target.map_or_else(|_| "nowhere".to_owned(), |it| it.display().to_string());
        let path = path.display();
        Err(FileError::Other(format!(
            "{path} leads to {target} now: a link has taken the place of a folder or file in it"
        )))
    }
}

impl Files for LocalFiles {
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>> {
        let path = path.to_owned();
        Box::pin(run_blocking(move || {
            let mut file = disk::open(&path).map_err(|error| file_error("read", &path, &error))?;
            Ok(read_text(&mut file, &path)?.0)
        }))
    }

    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), FileError>> {
        let (path, text) = (path.to_owned(), text.to_owned());
        Box::pin(run_blocking(move || replace_file(&path, &text)))
    }
}

fn replace_file(path: &Path, text: &str) -> Result<(), FileError> {
    let written = |error: io::Error| file_error("written", path, &error);
    let mut old = disk::open_for_change(path).map_err(written)?;
    let encoding = match &mut old {
        Some(file) => read_text(file, path)?.1,
        None => Encoding::Utf8 { has_bom: false },
    };
    let bytes = encoding::encode(text, encoding).map_err(|lacking| {
        FileError::Other(format!(
            "{} is in {encoding:?}, which has no {lacking:?}: use only characters that it has, \
             or convert the file to UTF-8 first",
            path.display()
        ))
    })?;
    disk::replace(path, &bytes, old.as_ref()).map_err(written)
}

fn read_text(file: &mut File, path: &Path) -> Result<(String, Encoding), FileError> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| file_error("read", path, &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileError::Other(format!(
            "{} is larger than 20 MiB, the most that is read at once: look at parts of it with a shell command",
            path.display()
        )));
    }
    encoding::decode(&bytes).ok_or_else(|| FileError::NotText(path.to_owned()))
}

fn file_error(done: &str, path: &Path, error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound(path.to_owned()),
        io::ErrorKind::IsADirectory => {
            FileError::Other(format!("{} is a folder, not a file", path.display()))
        }
        _ => FileError::Other(format!("{} cannot be {done}: {error}", path.display())),
    }
}

/// Disks may hang, so files are never opened on the thread that drives sessions.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(gone) => match gone.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(FileError::Other("the program is shutting down".to_owned())),
        },
    }
}
