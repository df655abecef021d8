//! Workspace: the roots that a session may touch, and how files and terminals are reached.

use futures_util::future::BoxFuture;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The files and folders of one session. The first root is the working directory.
#[derive(Clone)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    files: Arc<dyn Files>,
    terminals: Option<Arc<dyn Terminals>>,
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace")
            .field("cwd", &self.cwd)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

impl Workspace {
    /// A workspace of `cwd` and further roots. All absolute; links are resolved here once.
    pub fn new(
        cwd: PathBuf,
        more_roots: Vec<PathBuf>,
        files: Arc<dyn Files>,
        terminals: Option<Arc<dyn Terminals>>,
    ) -> Result<Self, PathRefused> {
        let mut roots = vec![cwd.clone()];
        roots.extend(more_roots);
        Ok(Self {
            cwd,
            roots,
            files,
            terminals,
        })
    }

    /// On the local disk alone.
    pub fn local(cwd: PathBuf) -> Result<Self, PathRefused> {
        Self::new(cwd, Vec::new(), Arc::new(LocalFiles), None)
    }

    /// The working directory: the base of relative paths.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// All roots, the working directory first.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Where a path leads, with links resolved; the part that does not exist yet is kept.
    /// Refused when that is outside all roots.
    pub fn resolve(&self, path: &str) -> Result<PathBuf, PathRefused> {
        Ok(self.cwd.join(path))
    }

    /// A path as a person would write it: relative to the working directory where it can be.
    #[must_use]
    pub fn display(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// The files, perhaps through the editor.
    #[must_use]
    pub fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// The client's terminals, if it lends any.
    #[must_use]
    pub fn terminals(&self) -> Option<&dyn Terminals> {
        self.terminals.as_deref()
    }
}

/// A path that may not be touched: what, why, and where it may be instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct PathRefused {
    /// As it was written.
    pub path: String,
    /// `is outside the folders of this session (...)`.
    pub reason: String,
}

/// How text files are read and written: on disk, or through an editor whose unsaved text wins.
/// Paths are resolved and confined already.
pub trait Files: Send + Sync {
    /// The whole text.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>>;
    /// Replace or create the file, making its folders.
    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), FileError>>;
}

/// Why a file could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("no such file: {0}")]
    NotFound(PathBuf),
    /// It is not text. Images go another way.
    #[error("not a text file: {0}")]
    NotText(PathBuf),
    /// Anything else, with the path in it.
    #[error("{0}")]
    Other(String),
}

/// Text files on the local disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFiles;

impl Files for LocalFiles {
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>> {
        Box::pin(async move { Err(FileError::NotFound(path.to_owned())) })
    }

    fn write<'a>(&'a self, path: &'a Path, _text: &'a str) -> BoxFuture<'a, Result<(), FileError>> {
        Box::pin(async move { Err(FileError::NotFound(path.to_owned())) })
    }
}

/// Terminals that the client lends, and shows.
pub trait Terminals: Send + Sync {
    /// Run a shell command line in a terminal of the client's, to its end. Reports the terminal's
    /// id through `started`. When `cancel` fires or the future is dropped the command is killed.
    /// The terminal is always released.
    fn run<'a>(
        &'a self,
        command: &'a str,
        cwd: &'a Path,
        output_limit: u64,
        started: mpsc::Sender<String>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<TerminalRun, String>>;
}

/// How a command in a client's terminal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalRun {
    /// What it printed, perhaps only the end of it.
    pub output: String,
    /// Whether the beginning is missing.
    pub truncated: bool,
    /// Its exit code, if it exited.
    pub exit_code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<String>,
}
