//! Changes that a candidate made in its folder: compared with the common start, shown, and applied to the session's
//! folder as a whole.

use crate::{
    change_preview::render_change,
    text::unified_diff,
    workspace::{Files, disk},
};
use std::{
    fmt::Write as _,
    fs,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
    sync::Arc,
};
use tokio::task::spawn_blocking;
use turnery_engine::{Artifact, Content};

/// Maximum number of changed files that can be applied.
pub const MAX_CHANGED_FILES: usize = 2_000;
/// Maximum size of the changed files, before and after together. Unit: bytes.
pub const MAX_CHANGED_BYTES: u64 = 64 << 20;
/// Maximum number of files whose change is shown.
const MAX_SHOWN_FILES: usize = 100;
/// Size of one read when large files are compared. Unit: bytes.
const COMPARED_BYTES: usize = 1 << 20;
/// Number of lines around each change in the kept diff.
const DIFF_CONTEXT_LINES: usize = 3;
/// Mode bits of an executable file.
const EXECUTABLE_BITS: u32 = 0o111;

/// File or link in a folder.
#[derive(Clone, PartialEq, Eq)]
enum Entry {
    File {
        bytes: Arc<[u8]>,
        is_executable: bool,
    },
    Link(PathBuf),
}

/// Change of one file or link; `None` where there is none.
#[derive(Clone, PartialEq, Eq)]
struct EntryChange {
    /// Path relative to the folder.
    path: PathBuf,
    old: Option<Entry>,
    new: Option<Entry>,
}

/// Changes between two folders. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FolderChanges {
    /// Removals first, then in the order of their paths.
    changes: Arc<[EntryChange]>,
}

/// Error of collecting or applying changes.
#[derive(Debug, thiserror::Error)]
pub enum FolderChangesError {
    /// There are too many changed files, or they are too large.
    #[error(
        "more than {MAX_CHANGED_FILES} files or {} MiB have changed; list build outputs in .gitignore",
        MAX_CHANGED_BYTES >> 20
    )]
    TooLarge,
    /// A link leads out of the folder.
    #[error("{0} became a link that leads out of the folder")]
    LeavingLink(String),
    /// Files of the target folder are not as they were at the start.
    #[error("these files have changed meanwhile: {}", .0.join(", "))]
    Conflict(Vec<String>),
    /// A file cannot be read or written.
    #[error("{path}: {message}")]
    Io {
        /// Path of the file.
        path: String,
        /// Error of the operating system or the client.
        message: String,
    },
}

impl FolderChangesError {
    fn from_io(path: &Path, error: impl ToString) -> Self {
        Self::Io {
            path: path.display().to_string(),
            message: error.to_string(),
        }
    }
}

impl Entry {
    /// Reads the entry at a resolved path, following no links; `None` if there is no file or link.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        if found.is_symlink() {
            return fs::read_link(path).map(|target| Some(Self::Link(target)));
        }
        if !found.is_file() {
            return Ok(None);
        }
        let mut file = disk::open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let is_executable = file.metadata()?.permissions().mode() & EXECUTABLE_BITS != 0;
        Ok(Some(Self::File {
            bytes: bytes.into(),
            is_executable,
        }))
    }

    /// Returns the size of a file's content; 0 without one. Unit: bytes.
    fn size(entry: Option<&Self>) -> u64 {
        match entry {
            Some(Self::File { bytes, .. }) => bytes.len() as u64,
            Some(Self::Link(_)) | None => 0,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::File { bytes, .. } => std::str::from_utf8(bytes)
                .ok()
                .filter(|text| !text.contains('\0') && !text.starts_with('\u{feff}')),
            Self::Link(_) => None,
        }
    }

    /// Describes an entry that has no text.
    fn describe(entry: Option<&Self>) -> String {
        match entry {
            None => "nothing".to_owned(),
            Some(Self::File { bytes, .. }) => format!("a file of {} bytes", bytes.len()),
            Some(Self::Link(target)) => format!("a link to {}", target.display()),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl FolderChanges {
    /// Compares the files `paths`, relative to both folders. Blocks.
    pub(crate) fn compare(
        old: &Path,
        new: &Path,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, FolderChangesError> {
        let mut changes: Vec<EntryChange> = Vec::new();
        let mut size = 0;
        for path in paths {
            let failed = |error: io::Error| FolderChangesError::from_io(&path, error);
            let (at_old, at_new) = (old.join(&path), new.join(&path));
            if is_large(&at_old) || is_large(&at_new) {
                match is_same_content(&at_old, &at_new).map_err(failed)? {
                    true => continue,
                    false => return Err(FolderChangesError::TooLarge),
                }
            }
            let before = Entry::read(&at_old).map_err(failed)?;
            let after = Entry::read(&at_new).map_err(failed)?;
            if before == after {
                continue;
            }
            size += Entry::size(before.as_ref()) + Entry::size(after.as_ref());
            if changes.len() == MAX_CHANGED_FILES || size > MAX_CHANGED_BYTES {
                return Err(FolderChangesError::TooLarge);
            }
            if let Some(Entry::Link(target)) = &after
                && leaves_folder(&path, target)
            {
                return Err(FolderChangesError::LeavingLink(path.display().to_string()));
            }
            changes.push(EntryChange {
                path,
                old: before,
                new: after,
            });
        }
        // A file may take the place of a folder, and the reverse.
        changes.sort_by(|a, b| (a.new.is_some(), &a.path).cmp(&(b.new.is_some(), &b.path)));
        Ok(Self {
            changes: changes.into(),
        })
    }

    /// Returns true if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the paths of the changed files, relative to the folder.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.changes.iter().map(|change| change.path.as_path())
    }

    /// Returns the changes as they would be shown in the folder `root`.
    pub(crate) fn artifacts(&self, root: &Path) -> Vec<Artifact> {
        let shown = self.changes.iter().take(MAX_SHOWN_FILES);
        let mut artifacts: Vec<Artifact> = shown.map(|it| it.artifact(root)).collect();
        let more = self.changes.len().saturating_sub(MAX_SHOWN_FILES);
        if more > 0 {
            let note = format!("{more} more files change.");
            artifacts.push(Artifact::Content(Content::text(note)));
        }
        artifacts
    }

    /// Checks that every changed file of `root` is as it was at the start, on the disk and in the editor.
    pub(crate) async fn check(
        &self,
        root: &Path,
        files: &dyn Files,
    ) -> Result<(), FolderChangesError> {
        let (changes, folder) = (Arc::clone(&self.changes), root.to_owned());
        let on_disk = run_blocking(root, move || {
            let is_same = |it: &EntryChange| {
                Entry::read(&folder.join(&it.path)).is_ok_and(|found| found == it.old)
            };
            Ok(changes.iter().map(is_same).collect::<Vec<bool>>())
        });
        let mut conflicts = Vec::new();
        for (change, is_same) in self.changes.iter().zip(on_disk.await?) {
            let path = root.join(&change.path);
            let is_same = match change.old.as_ref().and_then(Entry::text) {
                Some(text) if is_same => files.read(&path).await.is_ok_and(|found| found == text),
                Some(_) | None => is_same,
            };
            if !is_same {
                conflicts.push(change.path.display().to_string());
            }
        }
        match conflicts.is_empty() {
            true => Ok(()),
            false => Err(FolderChangesError::Conflict(conflicts)),
        }
    }

    /// Applies all changes to `root`, or none: if one fails, those before it are undone. The caller has
    /// [checked](Self::check) the folder.
    pub(crate) async fn apply(
        &self,
        root: &Path,
        files: &dyn Files,
    ) -> Result<(), FolderChangesError> {
        for (place, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.apply(root, files).await {
                for done in self.changes[..=place].iter().rev() {
                    // The error to report is the first one.
                    let _ = done.reverse().apply(root, files).await;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes the changes into an existing folder: `changes.diff` with the text, and below `files` the whole new
    /// files. Blocks.
    pub(crate) fn write_to(&self, folder: &Path) -> io::Result<()> {
        let mut diff = String::new();
        for change in &*self.changes {
            diff.push_str(&change.diff());
            if let Some(Entry::File { bytes, .. }) = &change.new {
                let path = folder.join("files").join(&change.path);
                fs::create_dir_all(path.parent().unwrap_or(folder))?;
                fs::write(path, bytes)?;
            }
        }
        fs::write(folder.join("changes.diff"), diff)
    }
}

impl EntryChange {
    /// Returns the texts before and after, if both sides are text or absent.
    fn texts(&self) -> Option<(Option<&str>, Option<&str>)> {
        let sides = [self.old.as_ref(), self.new.as_ref()];
        let [old, new] = sides.map(|side| side.and_then(Entry::text));
        let mut entries = sides.iter().flatten();
        entries
            .all(|entry| entry.text().is_some())
            .then_some((old, new))
    }

    fn reverse(&self) -> Self {
        Self {
            path: self.path.clone(),
            old: self.new.clone(),
            new: self.old.clone(),
        }
    }

    /// Applies the change to `root`: text through `files`, where an editor may have it open.
    async fn apply(&self, root: &Path, files: &dyn Files) -> Result<(), FolderChangesError> {
        let path = root.join(&self.path);
        if let (Some(Entry::File { is_executable, .. }), Some((_, Some(text)))) =
            (&self.new, self.texts())
        {
            let written = files.write(&path, text).await;
            written.map_err(|error| FolderChangesError::from_io(&self.path, error))?;
            let is_executable = *is_executable;
            let was_executable =
                matches!(&self.old, Some(Entry::File { is_executable, .. }) if *is_executable);
            if is_executable == was_executable {
                return Ok(());
            }
            return run_blocking(&self.path, move || set_executable(&path, is_executable)).await;
        }
        let (change, root) = (self.clone(), root.to_owned());
        let place = move || place_entry(&root, &path, change.old.as_ref(), change.new.as_ref());
        run_blocking(&self.path, place).await
    }

    fn artifact(&self, root: &Path) -> Artifact {
        let path = root.join(&self.path);
        match self.texts() {
            Some((old, Some(new))) if old != Some(new) => render_change(&path, old, new),
            Some((old, None)) => render_change(&path, old, ""),
            Some(_) | None => Artifact::Content(Content::text(self.describe())),
        }
    }

    /// Describes the change in one line.
    fn describe(&self) -> String {
        let path = self.path.display();
        match (&self.old, &self.new) {
            (
                Some(Entry::File { bytes: old, .. }),
                Some(Entry::File {
                    bytes: new,
                    is_executable,
                }),
            ) if old == new => {
                let change = if *is_executable {
                    "becomes"
                } else {
                    "is no longer"
                };
                format!("{path} {change} executable.")
            }
            (old, new) => format!(
                "{path}: {} becomes {}.",
                Entry::describe(old.as_ref()),
                Entry::describe(new.as_ref())
            ),
        }
    }

    /// Returns the change as a part of a unified diff.
    fn diff(&self) -> String {
        let path = self.path.display();
        let Some((old, new)) = self.texts() else {
            return format!("{}\n", self.describe());
        };
        let side = |letter: char, text: Option<&str>| match text {
            Some(_) => format!("{letter}/{path}"),
            None => "/dev/null".to_owned(),
        };
        let mut diff = format!("--- {}\n+++ {}\n", side('a', old), side('b', new));
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        for hunk in unified_diff(old, new, DIFF_CONTEXT_LINES) {
            let _ = write!(diff, "{hunk}");
        }
        diff
    }
}

/// Returns true if a link at `path` with this target leads out of the folder, by its text.
fn leaves_folder(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    target.components().any(|component| match component {
        Component::RootDir | Component::Prefix(_) => true,
        Component::CurDir => false,
        Component::ParentDir => match depth.checked_sub(1) {
            Some(less) => {
                depth = less;
                false
            }
            None => true,
        },
        Component::Normal(_) => {
            depth += 1;
            false
        }
    })
}

/// Puts a file or link at the resolved path `path` of `root`, or removes it. Blocks.
fn place_entry(
    root: &Path,
    path: &Path,
    old: Option<&Entry>,
    new: Option<&Entry>,
) -> io::Result<()> {
    match new {
        None => {
            disk::remove(path)?;
            // As git does; a folder with other files in it stays.
            let parents = path.ancestors().skip(1).take_while(|it| *it != root);
            for parent in parents {
                if fs::remove_dir(parent).is_err() {
                    break;
                }
            }
            Ok(())
        }
        Some(Entry::Link(target)) => {
            if old.is_some() {
                disk::remove(path)?;
            }
            disk::create_link(path, target)
        }
        Some(Entry::File {
            bytes,
            is_executable,
        }) => {
            if matches!(old, Some(Entry::Link(_))) {
                disk::remove(path)?;
            }
            let file = disk::open_for_change(path)?;
            disk::replace(path, bytes, file.as_ref())?;
            set_executable(path, *is_executable)
        }
    }
}

/// Runs disk access on another thread, since a disk may hang. `path` is named in the error.
async fn run_blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, FolderChangesError> {
    let done = spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| FolderChangesError::from_io(path, error))
}

/// Returns true for a file that is too large to be applied.
fn is_large(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_file() && found.len() > MAX_CHANGED_BYTES)
}

/// Compares two files without reading them as a whole.
fn is_same_content(a: &Path, b: &Path) -> io::Result<bool> {
    let size = |path: &Path| path.symlink_metadata().map(|it| (it.is_file(), it.len()));
    match (size(a), size(b)) {
        (Ok(a), Ok(b)) if a == b => {}
        (Ok(_) | Err(_), _) => return Ok(false),
    }
    let (mut a, mut b) = (disk::open(a)?, disk::open(b)?);
    let (mut left, mut right) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
    loop {
        let count = a.read(&mut left)?;
        if count == 0 {
            return Ok(true);
        }
        b.read_exact(&mut right[..count])?;
        if left[..count] != right[..count] {
            return Ok(false);
        }
    }
}

/// Sets or clears the executable bits, for those who may read the file.
fn set_executable(path: &Path, is_executable: bool) -> io::Result<()> {
    let file = disk::open(path)?;
    let mut permissions = file.metadata()?.permissions();
    let mode = permissions.mode();
    if (mode & EXECUTABLE_BITS != 0) == is_executable {
        return Ok(());
    }
    permissions.set_mode(match is_executable {
        true => mode | (mode >> 2) & EXECUTABLE_BITS,
        false => mode & !EXECUTABLE_BITS,
    });
    file.set_permissions(permissions)
}
