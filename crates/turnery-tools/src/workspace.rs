//! The roots that a session may access, and the files and terminals in them.

use crate::{SandboxBaseline, SandboxSettings};
use futures_util::future::BoxFuture;
use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};
use turnery_engine::{ToolError, ToolErrorKind};

mod approved_state;
pub(crate) mod disk;
mod encoding;
mod local_files;
mod resolve;
mod terminals;

pub(crate) use approved_state::{ApprovedStates, FileState};
pub use local_files::LocalFiles;
#[cfg(test)]
pub(crate) use resolve::make_path_too_long_to_look_up;
pub(crate) use resolve::{
    canonicalize, may_lead_into, names_through_links, normalise_lexically, resolve_path,
};
pub use terminals::{TerminalCommandOutput, TerminalError, Terminals};

/// The files and folders of one session. The first root is the working directory.
#[derive(Clone)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    files: Arc<dyn Files>,
    terminals: Option<Arc<dyn Terminals>>,
    approved_states: Arc<ApprovedStates>,
    sandbox: SandboxSettings,
    sandbox_baseline: SandboxBaseline,
    /// Value of `PATH`.
    search_path: OsString,
    /// Folders of the project. Determined when the first command is judged, because most sessions begin
    /// without one.
    project_folders: Arc<OnceLock<Vec<PathBuf>>>,
    /// Folders of `PATH` whose programs belong to the project, including relative ones. Determined like
    /// `project_folders`.
    project_program_folders: Arc<OnceLock<Vec<PathBuf>>>,
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
    /// Creates a workspace of `cwd` and further roots. All must be absolute, readable folders (DIR-1, DIR-3).
    /// Links are resolved once, here.
    pub fn new(
        cwd: PathBuf,
        more_roots: Vec<PathBuf>,
        files: Arc<dyn Files>,
        terminals: Option<Arc<dyn Terminals>>,
    ) -> Result<Self, PathError> {
        let cwd = resolve::resolve_root(&cwd)?;
        let mut roots = vec![cwd.clone()];
        for root in more_roots {
            let root = resolve::resolve_root(&root)?;
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
        Ok(Self::from_roots(cwd, roots, files, terminals))
    }

    /// Creates a workspace without folders: every path is outside of it. Commands start in the root folder.
    #[must_use]
    pub fn without_folder() -> Self {
        Self::from_roots(PathBuf::from("/"), Vec::new(), Arc::new(LocalFiles), None)
    }

    fn from_roots(
        cwd: PathBuf,
        roots: Vec<PathBuf>,
        files: Arc<dyn Files>,
        terminals: Option<Arc<dyn Terminals>>,
    ) -> Self {
        Self {
            cwd,
            roots,
            files,
            terminals,
            approved_states: Arc::default(),
            sandbox: SandboxSettings::default(),
            sandbox_baseline: SandboxBaseline::default(),
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            project_folders: Arc::default(),
            project_program_folders: Arc::default(),
        }
    }

    /// Sets the folders in which commands are looked up, in the format of `PATH`.
    #[cfg(test)]
    pub(crate) fn with_search_path(self, path: &std::ffi::OsStr) -> Self {
        Self {
            search_path: path.to_owned(),
            project_program_folders: Arc::default(),
            ..self
        }
    }

    fn find_project_program_folders(&self) -> Vec<PathBuf> {
        let folders = std::env::split_paths(&self.search_path);
        let is_of_project = |folder: &PathBuf| self.may_be_in_project(folder);
        folders.filter(is_of_project).collect()
    }

    /// Returns the folders of the project: the roots and the work trees around them.
    pub(crate) fn project_folders(&self) -> &[PathBuf] {
        let find = || find_project_folders(&self.roots, std::env::home_dir().as_deref());
        self.project_folders.get_or_init(find)
    }

    fn is_in_project(&self, path: &Path) -> bool {
        let mut folders = self.project_folders().iter();
        folders.any(|folder| path.starts_with(folder))
    }

    /// Returns true if a path named by a variable is or may be in the project; a relative one may be.
    pub(crate) fn may_be_in_project(&self, path: &Path) -> bool {
        !path.is_absolute()
            || self.is_in_project(path)
            || may_lead_into(path, &|target| self.is_in_project(target))
    }

    /// Returns true if a program called `name`, looked up from `base`, may be provided by the project, so
    /// that the name does not tell which program runs. A trailing `*` stands for any text.
    pub(crate) fn may_provide_program(&self, name: &str, base: &Path) -> bool {
        let folders = self
            .project_program_folders
            .get_or_init(|| self.find_project_program_folders());
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

    /// Returns true if a program that a shell may find by this name is a link into the project.
    fn is_linked_program(&self, name: &str) -> bool {
        let places = std::env::split_paths(&self.search_path).map(|folder| folder.join(name));
        let mut links = places.filter(|place| place.symlink_metadata().is_ok());
        links.any(|place| may_lead_into(&place, &|target| self.is_in_project(target)))
    }

    /// Creates a workspace with one root on the local disk.
    pub fn local(cwd: PathBuf) -> Result<Self, PathError> {
        Self::new(cwd, Vec::new(), Arc::new(LocalFiles), None)
    }

    /// Sets how the commands of this workspace are confined. Searches the roots for repositories.
    #[must_use]
    pub fn with_sandbox(self, sandbox: SandboxSettings) -> Self {
        Self {
            sandbox_baseline: SandboxBaseline::new(&self.roots, &sandbox),
            sandbox,
            ..self
        }
    }

    /// Returns the repository folders and keys around the roots, as found before the session's first command.
    pub(crate) fn sandbox_baseline(&self) -> &SandboxBaseline {
        &self.sandbox_baseline
    }

    /// Returns how commands are confined.
    #[must_use]
    pub fn sandbox(&self) -> &SandboxSettings {
        &self.sandbox
    }

    /// Returns the working directory, the base of relative paths.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns all roots, the working directory first; empty without a folder.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Returns true if the path can be resolved, inside the roots or not.
    pub(crate) fn can_resolve(&self, path: &Path) -> bool {
        let path = path.to_str();
        path.is_some_and(|path| resolve_path(&self.cwd, path).is_ok())
    }

    /// Resolves the links of a path; a part that does not exist yet is kept. Relative paths start at the
    /// working directory only (DIR-4). Fails if the result is outside all roots (DIR-5).
    pub fn resolve(&self, path: &str) -> Result<PathBuf, PathError> {
        let resolved = resolve_path(&self.cwd, path)?;
        if self.roots.iter().any(|root| resolved.starts_with(root)) {
            return Ok(resolved);
        }
        let roots = self.roots.iter().map(|root| root.display().to_string());
        let roots = roots.collect::<Vec<_>>().join(", ");
        Err(PathError {
            path: path.to_owned(),
            reason: match roots.is_empty() {
                true => "is outside of this session, which has no folder".to_owned(),
                false => format!("is outside the folders of this session ({roots})"),
            },
        })
    }

    /// Returns all names of a path, inside the roots or not: the path as written and, if it can be resolved,
    /// its names without links.
    pub(crate) fn all_path_aliases(&self, path: &Path) -> Vec<PathBuf> {
        let text = path.to_str();
        match text.and_then(|text| resolve_path(&self.cwd, text).ok()) {
            Some(resolved) => self.path_aliases(resolved, path),
            None => vec![path.to_owned()],
        }
    }

    /// Returns the resolved name of a file and, if it was called by another name, that name and every one
    /// between the two. Rules may apply to any of them.
    pub(crate) fn path_aliases(&self, resolved: PathBuf, called: impl AsRef<Path>) -> Vec<PathBuf> {
        let mut names = vec![resolved];
        let on_the_way = names_through_links(&self.cwd.join(&called));
        for name in [self.absolute(called)].into_iter().chain(on_the_way) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Makes a path absolute by its text alone, without looking at the disk. For showing a call before it is
    /// prepared, never for accessing a file.
    #[must_use]
    pub fn absolute(&self, path: impl AsRef<Path>) -> PathBuf {
        normalise_lexically(&self.cwd.join(path))
    }

    /// Returns a path for display: relative to the working directory where possible.
    #[must_use]
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Returns access to the files, possibly through the editor.
    #[must_use]
    pub fn files(&self) -> &dyn Files {
        &*self.files
    }

    /// Returns the client's terminals, if it has any.
    #[must_use]
    pub fn terminals(&self) -> Option<&dyn Terminals> {
        self.terminals.as_deref()
    }

    /// Returns the state of files as shown to the user before permission was asked.
    pub(crate) fn approved_states(&self) -> &ApprovedStates {
        &self.approved_states
    }
}

/// Returns the roots and the work trees around them. A work tree with the home folder in it holds the user's
/// own settings and is no project.
pub(crate) fn find_project_folders(roots: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let home = home.and_then(|home| canonicalize(home).ok());
    let is_work_tree = |folder: &&Path| {
        let holds_home = home.as_ref().is_some_and(|home| home.starts_with(folder));
        !holds_home && folder.join(".git").symlink_metadata().is_ok()
    };
    let with_outer = |root: &PathBuf| -> Vec<PathBuf> {
        let outer = root.ancestors().skip(1).filter(is_work_tree);
        std::iter::once(root.as_path())
            .chain(outer)
            .map(Path::to_owned)
            .collect()
    };
    roots.iter().flat_map(with_outer).collect()
}

/// Error for a path that may not be accessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {reason}")]
pub struct PathError {
    /// The path as given.
    pub path: String,
    /// Reason, worded to follow the path: `is outside the folders of this session (...)`.
    pub reason: String,
}

impl From<PathError> for ToolError {
    fn from(refused: PathError) -> Self {
        Self::new(ToolErrorKind::Validation, refused.to_string())
    }
}

/// Reads and writes text files, on disk or through an editor whose unsaved text takes precedence. Paths are
/// already resolved and confined.
pub trait Files: Send + Sync {
    /// Returns the whole text of a file.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<String, FileError>>;
    /// Replaces or creates a file, creating its folders.
    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<(), FileError>>;
}

/// Error of reading or writing a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file does not exist.
    #[error("no such file: {0}")]
    NotFound(PathBuf),
    /// The file is not text. Images are read separately.
    #[error("not a text file: {0}")]
    NotText(PathBuf),
    /// Any other error; the message contains the path.
    #[error("{0}")]
    Other(String),
}

impl From<FileError> for ToolError {
    fn from(error: FileError) -> Self {
        Self::new(ToolErrorKind::ExecutionError, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_trees_around_roots_are_of_project_unless_they_hold_home() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let [home, outer, inner] =
            ["home", "home/outer", "home/outer/a/inner"].map(|it| top.join(it));
        let root = inner.join("root");
        std::fs::create_dir_all(&root).unwrap();
        for folder in [&top, &home, &outer] {
            std::fs::create_dir(folder.join(".git")).unwrap();
        }
        std::fs::write(inner.join(".git"), "gitdir: x").unwrap();
        let roots = [root.clone()];
        let expected = [root, inner, outer];
        assert_eq!(find_project_folders(&roots, Some(&home)), expected);
        let without_home = find_project_folders(&roots, None);
        assert_eq!(without_home, [&expected[..], &[home, top]].concat());
    }
}
