//! Workspace: the roots that a session may touch, and how files and terminals are reached.

use crate::{SandboxSettings, Surroundings};
use futures_util::future::BoxFuture;
use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};
use turnery_engine::{FailureKind, ToolFailure};

pub(crate) mod disk;
mod encoding;
mod local_files;
mod promises;
mod resolve;
mod terminals;

pub use local_files::LocalFiles;
pub(crate) use promises::{Promise, Promises};
#[cfg(test)]
pub(crate) use resolve::beyond_lookup;
pub(crate) use resolve::{clean, may_lead};
pub use terminals::{TerminalFault, TerminalRun, Terminals};

/// The files and folders of one session. The first root is the working directory.
#[derive(Clone)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    files: Arc<dyn Files>,
    terminals: Option<Arc<dyn Terminals>>,
    promises: Arc<Promises>,
    sandbox: SandboxSettings,
    surroundings: Surroundings,
    /// As `PATH` names them.
    search_path: OsString,
    /// Folders of `PATH` whose programs are the project's: relative ones, and those in a root. Looked up when a
    /// command is judged: most sessions begin without one.
    program_folders: Arc<OnceLock<Vec<PathBuf>>>,
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
    /// A workspace of `cwd` and further roots. All must be absolute folders that can be read
    /// (DIR-1, DIR-3); links are resolved here once.
    pub fn new(
        cwd: PathBuf,
        more_roots: Vec<PathBuf>,
        files: Arc<dyn Files>,
        terminals: Option<Arc<dyn Terminals>>,
    ) -> Result<Self, PathRefused> {
        let cwd = resolve::root(&cwd)?;
        let mut roots = vec![cwd.clone()];
        for root in more_roots {
            let root = resolve::root(&root)?;
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Ok(Self {
            cwd,
            roots,
            files,
            terminals,
            promises: Arc::default(),
            sandbox: SandboxSettings::default(),
            surroundings: Surroundings::default(),
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            program_folders: Arc::default(),
        })
    }

    /// The same workspace, whose commands are looked for in these folders, as `PATH` names them.
    #[cfg(test)]
    pub(crate) fn with_search_path(self, path: &std::ffi::OsStr) -> Self {
        Self {
            search_path: path.to_owned(),
            program_folders: Arc::default(),
            ..self
        }
    }

    fn find_program_folders(&self) -> Vec<PathBuf> {
        let folders = std::env::split_paths(&self.search_path);
        let is_of_project = |folder: &PathBuf| self.may_be_of_project(folder);
        folders.filter(is_of_project).collect()
    }

    /// Whether a folder that a variable names lies in a root, or may: it is relative.
    pub(crate) fn may_be_of_project(&self, folder: &Path) -> bool {
        let is_in_root = |folder: &Path| self.roots.iter().any(|root| folder.starts_with(root));
        !folder.is_absolute() || is_in_root(folder) || may_lead(folder, &is_in_root)
    }

    /// Whether the project may bring a program of this name, looked for from `base`: the name then says nothing of
    /// what runs. A `*` at its end stands for anything.
    pub(crate) fn brings_program(&self, name: &str, base: &Path) -> bool {
        let folders = self
            .program_folders
            .get_or_init(|| self.find_program_folders());
        let mut folders = folders.iter().map(|folder| base.join(folder));
        match name.strip_suffix('*') {
            None => {
                folders.any(|folder| folder.join(name).symlink_metadata().is_ok())
                    || self.is_linked_program(name)
            }
            Some(start) => folders
                .filter_map(|folder| folder.read_dir().ok())
                .any(|entries| {
                    let is_one = |entry: std::fs::DirEntry| {
                        entry.file_name().to_string_lossy().starts_with(start)
                    };
                    entries.flatten().any(is_one)
                }),
        }
    }

    /// Whether a program that a shell may find by this name is a link into a root.
    fn is_linked_program(&self, name: &str) -> bool {
        let places = std::env::split_paths(&self.search_path).map(|folder| folder.join(name));
        let mut links = places.filter(|place| place.symlink_metadata().is_ok());
        let is_in_root = |target: &Path| self.roots.iter().any(|root| target.starts_with(root));
        links.any(|place| may_lead(&place, &is_in_root))
    }

    /// On the local disk alone.
    pub fn local(cwd: PathBuf) -> Result<Self, PathRefused> {
        Self::new(cwd, Vec::new(), Arc::new(LocalFiles), None)
    }

    /// Confines the commands of this workspace like this. Looks around the roots for repositories.
    #[must_use]
    pub fn confined(self, sandbox: SandboxSettings) -> Self {
        Self {
            surroundings: Surroundings::new(&self.roots, &sandbox),
            sandbox,
            ..self
        }
    }

    /// Repositories and keys around the roots before the session's first command.
    pub(crate) fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// How commands are confined.
    #[must_use]
    pub fn sandbox(&self) -> &SandboxSettings {
        &self.sandbox
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

    /// Whether it can be said where the path leads, inside the roots or not.
    pub(crate) fn can_follow(&self, path: &Path) -> bool {
        let path = path.to_str();
        path.is_some_and(|path| resolve::follow(&self.cwd, path).is_ok())
    }

    /// Where a path leads, with links resolved; the part that does not exist yet is kept. Relative
    /// paths start at the working directory only (DIR-4). Refused when that is outside all roots
    /// (DIR-5).
    pub fn resolve(&self, path: &str) -> Result<PathBuf, PathRefused> {
        let resolved = resolve::follow(&self.cwd, path)?;
        if self.roots.iter().any(|root| resolved.starts_with(root)) {
            return Ok(resolved);
        }
        let roots: Vec<String> = self
            .roots
            .iter()
            .map(|root| root.display().to_string())
            .collect();
        Err(PathRefused {
            path: path.to_owned(),
            reason: format!(
                "is outside the folders of this session ({})",
                roots.join(", ")
            ),
        })
    }

    /// All names of a path, inside the roots or not: as it is written, and those of [`names`](Self::names) where it can be said
    /// where it leads.
    pub(crate) fn all_names(&self, path: &Path) -> Vec<PathBuf> {
        let text = path.to_str();
        match text.and_then(|text| resolve::follow(&self.cwd, text).ok()) {
            Some(resolved) => self.names(resolved, path),
            None => vec![path.to_owned()],
        }
    }

    /// A file by its name without links, and if it was called by another, by that and by each between the two: rules may
    /// be about any of them.
    pub(crate) fn names(&self, resolved: PathBuf, called: impl AsRef<Path>) -> Vec<PathBuf> {
        let mut name = self.absolute(called);
        let mut names = vec![resolved];
        while !names.contains(&name) {
            names.push(name.clone());
            if let Some(next) = resolve::follow_first(&name) {
                name = next;
            }
        }
        names
    }

    /// The path made absolute by its text alone, without looking at the disk: for showing a call
    /// before anything is known of it, never for touching a file.
    #[must_use]
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        clean(&self.cwd.join(path))
    }

    /// A path as a person would write it: relative to the working directory where it can be.
    #[must_use]
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.display().to_string(),
            Err(_) => path.display().to_string(),
        }
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

    /// What was shown of files before permission was asked.
    pub(crate) fn promises(&self) -> &Promises {
        &self.promises
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

impl From<PathRefused> for ToolFailure {
    fn from(refused: PathRefused) -> Self {
        Self {
            kind: FailureKind::Validation,
            message: refused.to_string(),
            details: None,
        }
    }
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

impl From<FileError> for ToolFailure {
    fn from(error: FileError) -> Self {
        Self {
            kind: FailureKind::ExecutionError,
            message: error.to_string(),
            details: None,
        }
    }
}
