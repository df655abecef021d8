//! Inspects a repository's `.git` folder on disk, for anything that leads git to other files or programs.

use super::super::bounded_walk;
use crate::workspace::canonicalize;
use rustix::fs::Access;
use std::{
    ffi::OsStr,
    fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

/// Maximum number of inspected files and folders of a repository, not counting loose objects.
const MAX_GIT_DIR_ENTRIES: usize = 20_000;
/// Maximum number of inspected files and folders of `git lfs`.
const MAX_LFS_ENTRIES: usize = 200_000;
/// Maximum size of a `HEAD`, `.git` or `commondir`; longer files are not understood, because git reads on.
/// Unit: bytes.
const MAX_POINTER_BYTES: u64 = 4096;

/// Maximum size of a file of packed refs; larger ones are not understood. Unit: bytes.
const MAX_PACKED_REFS_BYTES: u64 = 64 << 20;

/// Kind of the entry at a path, links not followed.
#[derive(PartialEq, Eq)]
pub(super) enum EntryKind {
    Absent,
    Folder,
    File,
    Other,
}

/// Returns true if the name of a file or folder is `.git`, in any case, as file systems may ignore that.
pub(super) fn has_git_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

pub(super) fn entry_kind(path: &Path) -> EntryKind {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => EntryKind::Folder,
        Ok(found) if found.is_file() => EntryKind::File,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            EntryKind::Absent
        }
        Ok(_) | Err(_) => EntryKind::Other,
    }
}

/// Returns true if git may treat the folder itself as a repository. Git also requires `refs` and a valid
/// `HEAD`.
pub(super) fn may_be_git_dir(folder: &Path) -> bool {
    let holds = |name: &str| entry_kind(&folder.join(name)) != EntryKind::Absent;
    holds("HEAD") && (holds("objects") || holds("commondir"))
}

/// Returns true if a folder on the way to the submodule is a link.
pub(super) fn has_link_on_path(work_tree: &Path, gitlink: &Path) -> bool {
    gitlink
        .ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .any(|part| {
            !matches!(
                entry_kind(&work_tree.join(part)),
                EntryKind::Folder | EntryKind::Absent
            )
        })
}

/// Returns true if the folder of a linked work tree points back to the `.git` file that names it.
pub(super) fn points_back(git_dir: &Path, dot_git: &Path) -> bool {
    let named = read_pointer(&git_dir.join("gitdir")).map(|named| git_dir.join(named));
    let named = named.and_then(|named| canonicalize(&named).ok());
    named.is_some() && named == canonicalize(dot_git).ok()
}

/// Returns the single line of a file that points to another; `None` if the file holds more.
pub(super) fn read_pointer(path: &Path) -> Option<String> {
    if entry_kind(path) != EntryKind::File {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    let read = file
        .take(MAX_POINTER_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    if read as u64 == MAX_POINTER_BYTES {
        return None;
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let is_plain = !line.is_empty() && !line.chars().any(char::is_control);
    is_plain.then(|| line.to_owned())
}

/// Returns the folder that the git folder shares with other work trees, if it names one.
pub(super) fn find_common_dir(git_dir: &Path) -> Option<PathBuf> {
    read_pointer(&git_dir.join("commondir")).map(|named| git_dir.join(named))
}

/// Returns true if git may track files of a git folder, because it lies in a work tree and not below a folder named
/// `.git`: a command that changes the work tree may change its hooks and settings too.
pub(super) fn may_be_tracked(git_dir: &Path) -> bool {
    for folder in git_dir.ancestors() {
        if folder.file_name().is_some_and(|name| name == ".git") {
            return false;
        }
        if entry_kind(&folder.join(".git")) != EntryKind::Absent {
            return true;
        }
    }
    false
}

/// Returns true if every version of git understands this `HEAD`.
pub(super) fn is_valid_head(path: &Path) -> bool {
    read_pointer(path).is_some_and(|line| {
        line.starts_with("ref: refs/")
            || matches!(line.len(), 40 | 64) && line.chars().all(|c| c.is_ascii_hexdigit())
    })
}

/// Returns true if a ref of the git folder, or of its work trees, may stand for another file than a ref. Git follows such
/// a ref when it writes, and would so write any of its own files.
pub(super) fn has_foreign_symbolic_ref(git_dir: &Path) -> bool {
    let mut entry_budget = MAX_GIT_DIR_ENTRIES;
    let is_foreign = |path: &Path| entry_kind(path) == EntryKind::File && names_no_ref(path);
    let refs = git_dir.join("refs");
    let work_trees = git_dir.join("worktrees");
    let Ok(entries) = fs::read_dir(git_dir) else {
        return true;
    };
    let mut files = entries.map(|entry| entry.map(|entry| entry.path()));
    let exists = |folder: &Path| entry_kind(folder) != EntryKind::Absent;
    files.any(|path| path.map_or(true, |path| is_foreign(&path)))
        || [refs, work_trees].iter().any(|folder| {
            exists(folder) && bounded_walk::may_contain(folder, &mut entry_budget, &is_foreign)
        })
}

/// Returns true if a file names another file, and not a ref.
fn names_no_ref(path: &Path) -> bool {
    let mut start = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(MAX_POINTER_BYTES).read_to_end(&mut start));
    let Some(named) = start.strip_prefix(b"ref:") else {
        return read.is_err();
    };
    let named = named.trim_ascii();
    !named.starts_with(b"refs/") || named.windows(2).any(|pair| pair == b"..")
}

/// Returns true if each linked work tree of the repository has a valid `HEAD` and reads refs from no other
/// repository.
pub(super) fn are_work_tree_heads_valid(common_dir: &Path) -> bool {
    let work_trees = match fs::read_dir(common_dir.join("worktrees")) {
        Ok(work_trees) => work_trees,
        Err(error) => return error.kind() == ErrorKind::NotFound,
    };
    let common = canonicalize(common_dir).ok();
    let is_plain = |git_dir: &Path| {
        let named = find_common_dir(git_dir).and_then(|named| canonicalize(&named).ok());
        is_valid_head(&git_dir.join("HEAD")) && named.is_some() && named == common
    };
    work_trees
        .map(|entry| entry.map(|entry| entry.path()))
        .all(|path| path.is_ok_and(|path| entry_kind(&path) == EntryKind::File || is_plain(&path)))
}

/// Returns true if a folder in which git keeps parts of a repository may contain a whole one, at any depth.
pub(super) fn may_contain_repository(folder: &Path) -> bool {
    let mut entry_budget = MAX_GIT_DIR_ENTRIES;
    may_be_git_dir(folder) || bounded_walk::may_contain(folder, &mut entry_budget, &may_be_git_dir)
}

/// Returns true if no operation is pending: no rebase commands, no stash that the next commit applies, and no
/// recorded paths whose files the next commit copies or replaces.
pub(super) fn has_no_pending_operation(git_dir: &Path) -> bool {
    let parts = [
        "BISECT_NAMES",
        "BISECT_START",
        "BISECT_TERMS",
        "MERGE_AUTOSTASH",
        "rebase-apply",
        "rebase-merge",
        "sequencer",
    ];
    let is_absent = |part: &&str| entry_kind(&git_dir.join(part)) == EntryKind::Absent;
    parts.iter().all(is_absent)
        && has_plain_packed_refs(&git_dir.join("packed-refs"))
        && match git_dir.join("MERGE_RR").symlink_metadata() {
            Ok(found) => found.is_file() && found.len() == 0,
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
}

/// Returns true if a `packed-refs` file is absent or names only refs below `refs/`. Git would also read
/// `MERGE_AUTOSTASH` from it, the stash that the next commit applies.
fn has_plain_packed_refs(path: &Path) -> bool {
    let is_ref = |line: &[u8]| match line.first() {
        None | Some(b'#' | b'^') => true,
        Some(_) => {
            let name = line.splitn(2, |byte| *byte == b' ').nth(1);
            name.is_some_and(|name| name.starts_with(b"refs/"))
        }
    };
    match path.symlink_metadata() {
        Ok(found) if found.len() > MAX_PACKED_REFS_BYTES => false,
        Ok(_) => fs::read(path).is_ok_and(|bytes| bytes.split(|byte| *byte == b'\n').all(is_ref)),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Returns true if a repository refers to no other one, neither for its objects nor in the legacy folders
/// from which git still reads remotes.
pub(super) fn is_self_contained(common_dir: &Path) -> bool {
    entry_kind(&common_dir.join("objects/info/alternates")) == EntryKind::Absent
        && is_empty_or_absent(&common_dir.join("remotes"))
        && is_empty_or_absent(&common_dir.join("branches"))
}

/// Returns true if git has permission to enter the folders. Otherwise it does not treat them as a repository
/// and continues in the folder above.
pub(super) fn can_git_enter(git_dir: &Path, common_dir: &Path) -> bool {
    [
        git_dir,
        &common_dir.join("objects"),
        &common_dir.join("refs"),
    ]
    .into_iter()
    .all(|folder| rustix::fs::access(folder, Access::EXEC_OK).is_ok())
}

/// Returns true if the folder is absent or empty.
pub(super) fn is_empty_or_absent(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Returns true if some part of the repository that git reads lies elsewhere, behind a link. The walk skips
/// submodule repositories, which are checked where git enters them; the folders of loose objects; and hooks
/// if `may_link_hooks`. Everything else counts, because git may read it as a ref and show a file that
/// contains only digits.
pub(super) fn git_dir_has_links(git_dir: &Path, may_link_hooks: bool) -> bool {
    let mut entry_budget = MAX_GIT_DIR_ENTRIES;
    let Ok(entries) = fs::read_dir(git_dir) else {
        return true;
    };
    for entry in entries {
        let found = entry.and_then(|entry| Ok((entry.file_type()?, entry)));
        let Ok((found, entry)) = found else {
            return true;
        };
        let name = entry.file_name();
        let is_met = match name.to_str() {
            Some("hooks") if may_link_hooks => false,
            // Git's file system monitor has its socket here.
            Some("fsmonitor--daemon.ipc") => !found.is_socket() && !found.is_file(),
            Some("modules") if found.is_dir() => {
                folder_has_link(&entry.path(), |_| true, &mut entry_budget)
            }
            // The `git lfs` filter writes there.
            Some("lfs") if found.is_dir() => {
                let mut entry_budget = MAX_LFS_ENTRIES;
                folder_has_link(&entry.path(), |_| false, &mut entry_budget)
            }
            Some("objects") if found.is_dir() => {
                folder_has_link(&entry.path(), is_loose_object_folder, &mut entry_budget)
            }
            _ if found.is_dir() => folder_has_link(&entry.path(), |_| false, &mut entry_budget),
            _ => !found.is_file(),
        };
        if is_met {
            return true;
        }
    }
    false
}

/// Returns true if a folder of this name holds loose objects: the first two digits of their names.
fn is_loose_object_folder(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Returns true if a link lies below the folder, or if more than the allowed number of entries do. Folders
/// directly in it for which `is_left_out` is true are skipped.
fn folder_has_link(
    folder: &Path,
    is_left_out: fn(&OsStr) -> bool,
    entry_budget: &mut usize,
) -> bool {
    let enters =
        |path: &Path| path.parent() != Some(folder) || !path.file_name().is_some_and(is_left_out);
    let is_odd = |path: &Path| !matches!(entry_kind(path), EntryKind::Folder | EntryKind::File);
    bounded_walk::may_contain_where(folder, entry_budget, &enters, &is_odd)
}

/// Returns true if there may be hooks other than the samples that `git init` creates.
pub(super) fn has_hooks(common_dir: &Path) -> bool {
    let hooks = common_dir.join("hooks");
    if entry_kind(&hooks) == EntryKind::Absent {
        return false;
    }
    let is_sample = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "sample"))
    };
    !fs::read_dir(hooks).is_ok_and(|mut entries| entries.all(is_sample))
}
