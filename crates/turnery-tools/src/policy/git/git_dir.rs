//! Looks at the parts of a repository's folder on the disk, links not followed.

use super::super::walk;
use rustix::fs::Access;
use std::{
    ffi::OsStr,
    fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::Path,
};

/// Files and folders of a repository that are looked at, those of single objects left out.
const MOST_REFS: usize = 20_000;
/// Files and folders of `git lfs` that are looked at.
const MOST_LARGE_FILES: usize = 200_000;
/// A `HEAD`, `.git` or `commondir` of this length is not understood: git reads on. Unit: bytes.
const LONGEST_POINTER: u64 = 4096;

/// Larger files of packed refs are not understood. Unit: bytes.
const LONGEST_PACKED_REFS: u64 = 64 << 20;

/// What lies at a path, links not followed.
#[derive(PartialEq, Eq)]
pub(super) enum EntryKind {
    Absent,
    Folder,
    File,
    Other,
}

pub(super) fn kind(path: &Path) -> EntryKind {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => EntryKind::Folder,
        Ok(found) if found.is_file() => EntryKind::File,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            EntryKind::Absent
        }
        Ok(_) | Err(_) => EntryKind::Other,
    }
}

/// Whether git may take the folder itself for a repository. `refs` and a valid `HEAD` are needed too.
pub(super) fn may_be_bare(folder: &Path) -> bool {
    let holds = |name: &str| kind(&folder.join(name)) != EntryKind::Absent;
    holds("HEAD") && (holds("objects") || holds("commondir"))
}

/// Whether a folder on the way to the submodule is a link.
pub(super) fn is_led_elsewhere(work_tree: &Path, link: &Path) -> bool {
    link.ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .any(|part| {
            !matches!(
                kind(&work_tree.join(part)),
                EntryKind::Folder | EntryKind::Absent
            )
        })
}

/// Whether the folder of a linked work tree names the `.git` that led to it.
pub(super) fn points_back(git_dir: &Path, dot_git: &Path) -> bool {
    let named = read_pointer(&git_dir.join("gitdir")).map(|named| git_dir.join(named));
    let named = named.and_then(|named| named.canonicalize().ok());
    named.is_some() && named == dot_git.canonicalize().ok()
}

/// The one line of a file that names another; `None` if there is more in it.
pub(super) fn read_pointer(path: &Path) -> Option<String> {
    if kind(path) != EntryKind::File {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    let read = file.take(LONGEST_POINTER).read_to_string(&mut text).ok()?;
    if read as u64 == LONGEST_POINTER {
        return None;
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let is_plain = !line.is_empty() && !line.chars().any(char::is_control);
    is_plain.then(|| line.to_owned())
}

/// Whether this is a `HEAD` that every version of git understands.
pub(super) fn is_head(path: &Path) -> bool {
    read_pointer(path).is_some_and(|line| {
        line.starts_with("ref: refs/")
            || matches!(line.len(), 40 | 64) && line.chars().all(|c| c.is_ascii_hexdigit())
    })
}

/// Whether each linked work tree of the repository has a `HEAD` that is understood, and no other repository to read
/// refs from.
pub(super) fn have_plain_heads(common_dir: &Path) -> bool {
    let work_trees = match fs::read_dir(common_dir.join("worktrees")) {
        Ok(work_trees) => work_trees,
        Err(error) => return error.kind() == ErrorKind::NotFound,
    };
    let common = common_dir.canonicalize().ok();
    let is_plain = |git_dir: &Path| {
        let named = read_pointer(&git_dir.join("commondir"))
            .and_then(|named| git_dir.join(named).canonicalize().ok());
        is_head(&git_dir.join("HEAD")) && named.is_some() && named == common
    };
    work_trees
        .map(|entry| entry.map(|entry| entry.path()))
        .all(|path| path.is_ok_and(|path| kind(&path) == EntryKind::File || is_plain(&path)))
}

/// Checks whether a folder that git keeps parts of a repository in may hold a whole one, at any depth.
pub(super) fn may_hold_repository(folder: &Path) -> bool {
    let mut left = MOST_REFS;
    may_be_bare(folder) || walk::may_contain(folder, &mut left, &may_be_bare)
}

/// Whether nothing is left that a command goes on with: commands of a rebase, the stash that the next commit applies, and
/// paths, in the work tree or elsewhere, whose files the next commit copies or replaces.
pub(super) fn is_at_rest(git_dir: &Path) -> bool {
    let parts = [
        "MERGE_AUTOSTASH",
        "rebase-apply",
        "rebase-merge",
        "sequencer",
    ];
    let is_absent = |part: &&str| kind(&git_dir.join(part)) == EntryKind::Absent;
    parts.iter().all(is_absent)
        && packs_only_refs(&git_dir.join("packed-refs"))
        && match git_dir.join("MERGE_RR").symlink_metadata() {
            Ok(found) => found.is_file() && found.len() == 0,
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
}

/// Checks that a file of packed refs is absent or holds nothing but refs: git also takes the stash that the next commit
/// applies out of it.
fn packs_only_refs(path: &Path) -> bool {
    let is_ref = |line: &[u8]| match line.first() {
        None | Some(b'#' | b'^') => true,
        Some(_) => {
            let name = line.splitn(2, |byte| *byte == b' ').nth(1);
            name.is_some_and(|name| name.starts_with(b"refs/"))
        }
    };
    match path.symlink_metadata() {
        Ok(found) if found.len() > LONGEST_PACKED_REFS => false,
        Ok(_) => fs::read(path).is_ok_and(|bytes| bytes.split(|byte| *byte == b'\n').all(is_ref)),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Checks that a repository names no other, neither for its objects nor in the folders of old, out of which git still
/// reads remotes.
pub(super) fn names_no_other(common_dir: &Path) -> bool {
    kind(&common_dir.join("objects/info/alternates")) == EntryKind::Absent
        && is_empty(&common_dir.join("remotes"))
        && is_empty(&common_dir.join("branches"))
}

/// Whether git may enter the folders, as it must to take them for a repository; else it goes on to the one above.
pub(super) fn git_takes_it(git_dir: &Path, common_dir: &Path) -> bool {
    [
        git_dir,
        &common_dir.join("objects"),
        &common_dir.join("refs"),
    ]
    .into_iter()
    .all(|folder| rustix::fs::access(folder, Access::EXEC_OK).is_ok())
}

/// Whether the folder is absent or holds nothing. Git still reads remotes from such folders of old.
pub(super) fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Whether a part of the repository that git reads lies elsewhere. What is left out of the walk: the repositories of
/// submodules, which are checked where git enters them; the folders of single objects; and, if `may_link_hooks`, hooks.
/// Git takes all of them for refs too, and shows a file of nothing but digits.
pub(super) fn holds_links(git_dir: &Path, may_link_hooks: bool) -> bool {
    let mut left = MOST_REFS;
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
            // Git's own daemon has its socket here.
            Some("fsmonitor--daemon.ipc") => !found.is_socket() && !found.is_file(),
            Some("modules") if found.is_dir() => has_link(&entry.path(), |_| true, &mut left),
            // The filter of `git lfs` writes there.
            Some("lfs") if found.is_dir() => {
                let mut left = MOST_LARGE_FILES;
                has_link(&entry.path(), |_| false, &mut left)
            }
            Some("objects") if found.is_dir() => {
                has_link(&entry.path(), is_folder_of_objects, &mut left)
            }
            _ if found.is_dir() => has_link(&entry.path(), |_| false, &mut left),
            _ => !found.is_file(),
        };
        if is_met {
            return true;
        }
    }
    false
}

/// Whether single objects lie in a folder of this name: the first two digits of theirs.
fn is_folder_of_objects(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a link lies below the folder, or more than `left` entries. Folders in it that `is_left_out` names are not
/// looked into.
fn has_link(folder: &Path, is_left_out: fn(&OsStr) -> bool, left: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return true;
    };
    for entry in entries {
        let Some(rest) = left.checked_sub(1) else {
            return true;
        };
        *left = rest;
        let Ok(entry) = entry else {
            return true;
        };
        match entry.file_type() {
            Ok(found) if found.is_dir() => {
                if !is_left_out(&entry.file_name()) && has_link(&entry.path(), |_| false, left) {
                    return true;
                }
            }
            Ok(found) if found.is_file() => {}
            Ok(_) | Err(_) => return true,
        }
    }
    false
}

/// Whether there may be hooks besides the samples that `git init` leaves.
pub(super) fn has_hooks(common_dir: &Path) -> bool {
    let hooks = common_dir.join("hooks");
    if kind(&hooks) == EntryKind::Absent {
        return false;
    }
    let is_sample = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "sample"))
    };
    !fs::read_dir(hooks).is_ok_and(|mut entries| entries.all(is_sample))
}
