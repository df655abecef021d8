//! Which git commands show what files hold, and which files those may be.

use super::{
    Command, carriers, config,
    git_dir::{EntryKind, git_takes_it, holds_links, is_head, kind, may_be_bare, read_pointer},
    index,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Whether the command may show the content of files that its words do not name.
pub(crate) fn shows_content(command: &Command) -> bool {
    match carriers::base_name(&command.name) {
        "git" => {}
        name => return name.starts_with("git-"),
    }
    let mut args = command.args.iter().map(|arg| arg.literal());
    let mut has = |may_show: fn(&str) -> bool| args.any(|arg| arg.is_none_or(may_show));
    match command.args.first().and_then(|arg| arg.literal()) {
        Some("log" | "reflog" | "shortlog") => has(|arg| arg.starts_with('-') && !is_of_log(arg)),
        // It hands its options on to `git log`.
        Some("stash")
            if command
                .args
                .get(1)
                .is_some_and(|arg| arg.literal() == Some("list")) =>
        {
            has(|arg| arg.starts_with('-') && !is_of_log(arg))
        }
        Some("add" | "checkout" | "commit" | "reset" | "restore" | "stash") => has(|arg| {
            is_short_with(arg, &['e', 'i', 'p', 'v'])
                || arg == "show"
                || ["--d", "--e", "--i", "--p", "--v"]
                    .iter()
                    .any(|option| arg.starts_with(option))
        }),
        Some("status") => has(|arg| is_short_with(arg, &['v']) || arg.starts_with("--v")),
        // With `--exec` it runs other lines.
        Some("rebase") => has(|arg| {
            is_short_with(arg, &['i', 'x']) || arg.starts_with("--e") || arg.starts_with("--sh")
        }),
        // A tag may be one of a file.
        Some("branch" | "for-each-ref" | "tag") => {
            has(|arg| matches!(arg, "-v" | "-vv") || arg.contains("%(") && arg.contains("raw"))
        }
        Some(
            "--version" | "check-ignore" | "cherry-pick" | "clean" | "clone" | "count-objects"
            | "describe" | "fetch" | "gc" | "help" | "init" | "ls-files" | "ls-remote" | "ls-tree"
            | "merge" | "merge-base" | "mv" | "name-rev" | "prune" | "pull" | "push" | "remote"
            | "revert" | "rev-list" | "rev-parse" | "rm" | "switch" | "symbolic-ref" | "worktree",
        ) => has(|arg| matches!(arg, "-v" | "-vv" | "--patch")),
        _ => true,
    }
}

/// Recognises commands that may show files that the repository does not track itself: those of a submodule, or others.
pub(crate) fn looks_further(command: &Command) -> bool {
    let program = carriers::base_name(&command.name).strip_prefix("git-");
    let words = command.args.iter().map(|arg| arg.literal());
    program.map(Some).into_iter().chain(words).any(|word| {
        word.is_none_or(|word| {
            let starts = ["--no-i", "--recurse", "--subm", "--unt", "submodule"];
            matches!(word, "--u" | "--un" | "for-each-repo")
                || starts.iter().any(|start| word.starts_with(start))
        })
    })
}

/// Recognises commands after which git may track more files.
pub(crate) fn tracks_more(command: &Command) -> bool {
    let mut words = command.args.iter().map(|arg| arg.literal());
    let adds = |word: Option<&str>| {
        word.is_none_or(|word| matches!(word, "add" | "commit" | "stash" | "update-index"))
    };
    super::is_git(command) && words.any(adds)
}

/// Whether these are short options, one of them or a value among `letters`.
fn is_short_with(arg: &str, letters: &[char]) -> bool {
    arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letters)
}

/// Options of `git log` that show no patch.
fn is_of_log(arg: &str) -> bool {
    let name = arg.split_once('=').map_or(arg, |(name, _)| name);
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let counts = |short: &str| arg.strip_prefix(short).is_some_and(is_number);
    counts("-")
        || counts("-n")
        || matches!(
            name,
            "--" | "-i"
                | "--abbrev-commit"
                | "--after"
                | "--all"
                | "--author"
                | "--before"
                | "--branches"
                | "--committer"
                | "--date"
                | "--decorate"
                | "--first-parent"
                | "--follow"
                | "--format"
                | "--graph"
                | "--grep"
                | "--max-count"
                | "--merges"
                | "--name-only"
                | "--name-status"
                | "--no-color"
                | "--no-decorate"
                | "--no-merges"
                | "--no-patch"
                | "--numstat"
                | "--oneline"
                | "--pretty"
                | "--reverse"
                | "--shortstat"
                | "--since"
                | "--stat"
                | "--summary"
                | "--tags"
                | "--until"
        )
}

/// Whether a repository that git finds, started in one of `bases`, tracks a file that fulfils `is_met` now. Also true
/// when that is uncertain. What only earlier commits hold is not looked at.
pub(crate) fn may_track(
    command: &Command,
    bases: &[PathBuf],
    is_met: &dyn Fn(&Path) -> bool,
) -> bool {
    super::folders(command, bases).is_none_or(|folders| {
        folders.iter().any(|folder| {
            let folder = folder.canonicalize();
            folder.map_or(true, |folder| tracks(&folder, is_met))
        })
    })
}

/// Reading of a `.git` as git may take it: for a repository, or else going on to the folder above.
enum Taken {
    Yes,
    No,
    Perhaps,
}

fn taken(dot_git: &Path) -> Taken {
    match kind(dot_git) {
        EntryKind::Absent => Taken::No,
        EntryKind::Folder => {
            let parts = ["HEAD", "objects", "refs"];
            let has = |part: &&str| kind(&dot_git.join(part)) != EntryKind::Absent;
            match parts.iter().any(has) {
                false => Taken::No,
                true if is_head(&dot_git.join("HEAD")) && git_takes_it(dot_git, dot_git) => {
                    Taken::Yes
                }
                true => Taken::Perhaps,
            }
        }
        EntryKind::File | EntryKind::Other => Taken::Yes,
    }
}

fn tracks(folder: &Path, is_met: &dyn Fn(&Path) -> bool) -> bool {
    for above in folder.ancestors() {
        match taken(&above.join(".git")) {
            Taken::Yes => {
                return tracked(above).is_none_or(|(top, paths)| {
                    let mut paths = paths.iter();
                    paths.any(|path| is_met(&above.join(path)) || is_met(&top.join(path)))
                });
            }
            Taken::Perhaps => return true,
            // Git's own folder, or a repository without a work tree.
            Taken::No if may_be_bare(above) => return true,
            Taken::No => {}
        }
    }
    false
}

/// Paths that the repository of a work tree tracks now, and the top of the work tree that its commits are of; `None` if that
/// is uncertain.
fn tracked(work_tree: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let dot_git = work_tree.join(".git");
    let (git_dir, common_dir) = match kind(&dot_git) {
        EntryKind::Folder => (dot_git.clone(), dot_git),
        EntryKind::File => {
            let named = read_pointer(&dot_git)?;
            let git_dir = work_tree.join(named.strip_prefix("gitdir: ")?);
            let git_dir = git_dir.canonicalize().ok()?;
            let common_dir = read_pointer(&git_dir.join("commondir"));
            let common_dir = common_dir.map_or(git_dir.clone(), |it| git_dir.join(it));
            (git_dir, common_dir.canonicalize().ok()?)
        }
        EntryKind::Absent | EntryKind::Other => return None,
    };
    let index = git_dir.join("index");
    // Without an index, in a linked work tree for example, any commit may be shown all the same.
    if may_lie_elsewhere(&git_dir, work_tree)
        || is_of_others(&common_dir)
        || kind(&index) == EntryKind::Absent
    {
        return None;
    }
    // The length of a hash is in a configuration that need not be read for this: the other one does not fit.
    let paths = match (index::tracked(&index, false), index::tracked(&index, true)) {
        (Some(paths), None) | (None, Some(paths)) => paths,
        (Some(one), Some(other)) if one.is_empty() && other.is_empty() => one,
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let top = common_dir.parent().map_or(PathBuf::new(), Path::to_owned);
    (!super::lie_behind_links(work_tree, &paths)).then_some((top, paths))
}

/// Checks for parts of a repository that are those of another one.
fn is_of_others(common_dir: &Path) -> bool {
    kind(&common_dir.join("commondir")) != EntryKind::Absent
        || kind(&common_dir.join("objects/info/alternates")) != EntryKind::Absent
        || holds_links(common_dir, true)
}

/// Checks for settings by which the files of a repository may lie elsewhere than in `work_tree`.
fn may_lie_elsewhere(git_dir: &Path, work_tree: &Path) -> bool {
    let common_dir = read_pointer(&git_dir.join("commondir")).map(|named| git_dir.join(named));
    let folders = [Some(git_dir.to_owned()), common_dir];
    let files = folders.iter().flatten();
    let mut files = files.flat_map(|it| ["config", "config.worktree"].map(|name| it.join(name)));
    files.any(|file| match config::read_plain(&file) {
        Some(config) => config.worktree.is_some_and(|named| {
            let named = git_dir.join(named).canonicalize().ok();
            named.is_none() || named != work_tree.canonicalize().ok()
        }),
        // It names programs, which is allowed where this is asked.
        None => fs::read_to_string(&file).map_or(true, |text| {
            let text = text.to_lowercase();
            text.contains("worktree") || text.contains("include")
        }),
    })
}
