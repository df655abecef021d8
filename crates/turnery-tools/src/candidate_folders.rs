//! Gives each candidate of an evaluation a folder of its own, with the files of the session's folder as they are at
//! the start.
//!
//! In a repository the folders are linked git work trees at `HEAD`, detached, with the uncommitted and untracked
//! files of the session's work tree; elsewhere they are copies. Ignored files are left out. Files are copied
//! byte by byte, so that git runs no filter and no hook.
//!
//! The folders lie together in a private folder for temporary files. It holds a lock as long as it is in use, so
//! that those of a killed process are recognised and removed by the next evaluation.

mod copy;
mod leftovers;
mod repository;

pub use copy::{MAX_COPIED_BYTES, MAX_COPIED_FILES};

use crate::{
    FolderChanges, FolderChangesError, PathError, SandboxSettings, Workspace, workspace::LocalFiles,
};
use copy::CopyLimits;
use leftovers::PrivateFolder;
use repository::SourceRepository;
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use turnery_engine::SessionId;

/// Name of the folder with the files as they were at the start.
const BASE: &str = "base";
/// Name of a copy whose original has none.
const UNNAMED: &str = "folder";

/// Folders of the candidates of one evaluation. Dropping this removes them, which blocks;
/// [`remove`](Self::remove) does not.
pub struct CandidateFolders {
    private: PrivateFolder,
    /// Name of the copied tree in the folder of each candidate.
    name: PathBuf,
    /// Path of the session's folder in the copied tree.
    offset: PathBuf,
    /// Paths of the copied files in the tree.
    files: Arc<[PathBuf]>,
    count: usize,
}

/// Error of making the folders of candidates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CandidateFoldersError {
    /// The session has no folder.
    #[error(
        "the session has no folder, so there is nothing to copy for candidates that change files"
    )]
    NoFolder,
    /// The folder is too large to be copied for each candidate.
    #[error(
        "the folder is too large to be copied for each candidate: more than {MAX_COPIED_FILES} files or {} MiB that \
         git does not ignore",
        MAX_COPIED_BYTES >> 20
    )]
    TooLarge,
    /// Git cannot make the work trees.
    #[error("git could not make the candidates' work trees: {0}")]
    Git(String),
    /// A file cannot be copied.
    #[error("the folder could not be copied for the candidates: {0}")]
    Io(String),
    /// A folder cannot be used as a workspace.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl From<io::Error> for CandidateFoldersError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl CandidateFolders {
    /// Makes `count` folders from the working directory of `workspace`, and removes those that killed processes have
    /// left behind. Dropping the future stops the work and removes everything. Changes nothing in the folder
    /// itself; in its repository it adds the records of the work trees, until they are removed.
    ///
    /// # Errors
    ///
    /// Fails if the session has no folder, if it is too large, or if git or the disk fails; nothing is left then.
    pub async fn create(
        workspace: &Workspace,
        session_id: &SessionId,
        count: usize,
    ) -> Result<Self, CandidateFoldersError> {
        let limits = CopyLimits::default();
        Self::create_within(workspace, session_id, count, limits, &std::env::temp_dir()).await
    }

    async fn create_within(
        workspace: &Workspace,
        session_id: &SessionId,
        count: usize,
        limits: CopyLimits,
        temporary: &Path,
    ) -> Result<Self, CandidateFoldersError> {
        let cwd = workspace.cwd().to_owned();
        if workspace.roots().is_empty() {
            return Err(CandidateFoldersError::NoFolder);
        }
        let (parent, id) = (temporary.to_owned(), session_id.clone());
        let private = blocking(move || {
            leftovers::remove_all(&parent);
            Ok(PrivateFolder::create(&parent, &id)?)
        });
        let mut private = private.await?;
        let repository = SourceRepository::find(&cwd, workspace).await?;
        let top = repository
            .as_ref()
            .map_or(&*cwd, SourceRepository::top)
            .to_owned();
        let offset = cwd.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        let name = top
            .file_name()
            .map_or_else(|| UNNAMED.into(), PathBuf::from);
        let tracked = match &repository {
            Some(repository) => repository.tracked_files().await?,
            None => Vec::new(),
        };
        let trees: Vec<PathBuf> = (1..=count)
            .map(|number| private.path().join(number.to_string()).join(&name))
            .collect();
        if let Some(repository) = &repository {
            for tree in &trees {
                let record = repository.add_work_tree(tree).await?;
                private.remember_record(record)?;
            }
        }
        let base = private.path().join(BASE);
        let stop = CancellationToken::new();
        let _stopped = stop.clone().drop_guard();
        // Moved to the other thread, so that the folder is removed after the last file is copied.
        let (private, files) = blocking(move || {
            let files = copy::list_files(&top, tracked, limits)?;
            copy::copy_files(&top, &base, &files, limits, &stop)?;
            for tree in &trees {
                copy::copy_files(&base, tree, &files, limits, &stop)?;
            }
            Ok((private, files))
        })
        .await?;
        Ok(Self {
            private,
            name,
            offset,
            files: files.into(),
            count,
        })
    }

    /// Returns the folder of the candidate with this index.
    fn tree(&self, index: usize) -> PathBuf {
        self.private
            .path()
            .join((index + 1).to_string())
            .join(&self.name)
    }

    /// Returns the working directory of the candidate with this index.
    #[must_use]
    pub fn folder(&self, index: usize) -> PathBuf {
        self.tree(index).join(&self.offset)
    }

    /// Returns the workspace of the candidate with this index: its own folder alone, on the local disk and without
    /// terminals of the client. Its commands neither read nor write the folders of the others, if `sandbox`
    /// confines them.
    ///
    /// # Errors
    ///
    /// Fails if the folder is gone.
    pub fn workspace(
        &self,
        index: usize,
        sandbox: &SandboxSettings,
    ) -> Result<Workspace, CandidateFoldersError> {
        let mut sandbox = sandbox.clone();
        let others = (0..self.count).filter(|other| *other != index);
        let others = others.map(|other| self.private.path().join((other + 1).to_string()));
        sandbox.private.extend(others);
        sandbox.private.push(self.private.path().join(BASE));
        sandbox.is_git_folder_read_only = true;
        // A folder without a file that git keeps does not exist in the copy yet.
        let folder = self.folder(index);
        std::fs::create_dir_all(&folder)?;
        let workspace = Workspace::new(folder, Vec::new(), Arc::new(LocalFiles), None)?;
        Ok(workspace.with_sandbox(sandbox))
    }

    /// Compares the folder of the candidate with this index with the common start.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or if the changes are too large or lead out of the folder.
    pub async fn changes(&self, index: usize) -> Result<FolderChanges, FolderChangesError> {
        let tree = self.tree(index);
        let (old, new) = (self.private.path().join(BASE), self.folder(index));
        let (files, offset) = (Arc::clone(&self.files), self.offset.clone());
        let compared = spawn_blocking(move || {
            let found = copy::walk(&tree).map_err(|error| FolderChangesError::Io {
                path: tree.display().to_string(),
                message: error.to_string(),
            })?;
            let paths = files.iter().chain(&found);
            let inside = paths.filter_map(|path| path.strip_prefix(&offset).ok());
            let inside: BTreeSet<PathBuf> = inside.map(Path::to_owned).collect();
            FolderChanges::compare(&old.join(&offset), &new, inside)
        });
        compared.await.unwrap_or_else(|error| {
            Err(FolderChangesError::Io {
                path: self.folder(index).display().to_string(),
                message: error.to_string(),
            })
        })
    }

    /// Removes the folders and their records in the repository.
    pub async fn remove(self) {
        // The folders are removed on drop, even if the runtime is shutting down.
        let _ = spawn_blocking(move || drop(self)).await;
    }
}

/// Runs disk access on another thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CandidateFoldersError> + Send + 'static,
) -> Result<T, CandidateFoldersError> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(CandidateFoldersError::Io(error.to_string())))
}

#[cfg(test)]
mod tests;
