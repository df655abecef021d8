//! Determines which git commands show file contents, and which files those may be.

use super::{
    SimpleCommand, config, covered_commands,
    git_dir::{
        EntryKind, can_git_enter, entry_kind, find_common_dir, git_dir_has_links, is_valid_head,
        may_be_git_dir, read_pointer,
    },
    index, program_name, work_tree,
};
use crate::{
    policy::{command_starters::git_subcommand, shell_word::ShellWord},
    workspace::{canonicalize, normalise_lexically},
};
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// Returns true if the command may show the contents of files that its words do not name.
pub(crate) fn may_show_content(command: &SimpleCommand) -> bool {
    match program_name::base_name(&command.name) {
        "git" => {}
        name => return name.starts_with("git-"),
    }
    let args = git_subcommand(command).unwrap_or(&command.args);
    let mut words = args.iter().map(ShellWord::known_text);
    let mut has = |may_show: fn(&str) -> bool| words.any(|arg| arg.is_none_or(may_show));
    let word_at = |at: usize| args.get(at).and_then(ShellWord::known_text);
    let is_option = |arg: &ShellWord| arg.known_text().is_none_or(|arg| arg.starts_with('-'));
    match word_at(0) {
        Some("log" | "reflog" | "shortlog") => {
            has(|arg| arg.starts_with('-') && !is_patchless_log_option(arg))
        }
        // `git stash` passes its options to `git log`.
        Some("stash") if word_at(1) == Some("list") => {
            has(|arg| arg.starts_with('-') && !is_patchless_log_option(arg))
        }
        Some("add" | "checkout" | "commit" | "reset" | "restore" | "stash") => has(|arg| {
            has_short_option(arg, &['e', 'i', 'p', 'v'])
                || arg == "show"
                || ["--d", "--e", "--i", "--p", "--v"]
                    .iter()
                    .any(|option| arg.starts_with(option))
        }),
        Some("status") => has(|arg| has_short_option(arg, &['v']) || arg.starts_with("--v")),
        // `--exec` runs other command lines.
        Some("rebase") => has(|arg| {
            has_short_option(arg, &['i', 'x']) || arg.starts_with("--e") || arg.starts_with("--sh")
        }),
        Some("remote") => false,
        // Another option may name another file, or an object.
        Some("config") => word_at(1) != Some("--get") || args.iter().skip(2).any(is_option),
        // A tag may point to a file.
        Some("branch" | "for-each-ref" | "tag") => {
            has(|arg| matches!(arg, "-v" | "-vv") || arg.contains("%(") && arg.contains("raw"))
        }
        Some(
            "--version" | "cherry-pick" | "clean" | "clone" | "count-objects" | "describe"
            | "fetch" | "gc" | "help" | "init" | "ls-files" | "ls-remote" | "ls-tree" | "merge"
            | "merge-base" | "mv" | "name-rev" | "prune" | "pull" | "push" | "revert" | "rev-list"
            | "rev-parse" | "rm" | "switch" | "symbolic-ref" | "version" | "worktree",
        ) => has(|arg| matches!(arg, "-v" | "-vv" | "--patch")),
        _ => true,
    }
}

/// Returns true for commands that may show files not tracked by the repository itself, such as those of a
/// submodule.
pub(crate) fn may_show_untracked(command: &SimpleCommand) -> bool {
    let program = program_name::base_name(&command.name).strip_prefix("git-");
    let words = command.args.iter().map(|arg| arg.known_text());
    program.map(Some).into_iter().chain(words).any(|word| {
        word.is_none_or(|word| {
            let starts = ["--no-i", "--recurse", "--subm", "--unt", "submodule"];
            matches!(word, "--u" | "--un" | "for-each-repo")
                || starts.iter().any(|start| word.starts_with(start))
        })
    })
}

/// Returns the folders below which git looks for files that match patterns among the words, which the shell leaves as
/// they are: `git rm '[x]/a'`, `git rm 'x/../*'`.
pub(crate) fn pathspec_folders(command: &SimpleCommand, bases: &[PathBuf]) -> Vec<PathBuf> {
    if program_name::base_name(&command.name) == "gh" {
        return Vec::new();
    }
    let folders = super::working_folders(command, bases);
    let folders = folders.as_deref().unwrap_or(bases);
    let resolve = |folder: &PathBuf| canonicalize(folder).unwrap_or_else(|_| folder.clone());
    let folders: Vec<PathBuf> = folders.iter().map(resolve).collect();
    let folders = folders.as_slice();
    let patterns = possible_pathspecs(command).into_iter().filter_map(|word| {
        let start = word.get(..word.find(['*', '?', '[', '\\'])?)?;
        Some(start.rsplit_once('/').map_or("", |(folder, _)| folder))
    });
    patterns
        .flat_map(|folder| folders.iter().map(move |base| base.join(folder)))
        .map(|folder| normalise_lexically(&folder))
        .collect()
}

/// Returns true if part of the repository of a git command, which git reads unasked (`gc.log`, `SQUASH_MSG`), is a
/// link.
pub(crate) fn may_follow_link(command: &SimpleCommand, bases: &[PathBuf]) -> bool {
    let has_link = |folder: &PathBuf| {
        let Ok(folder) = canonicalize(folder) else {
            return true;
        };
        if folder.ancestors().any(may_be_git_dir) {
            return true;
        }
        let Some((work_tree, _)) = find_work_tree(&folder) else {
            return false;
        };
        config_folders(work_tree).any(|git_dir| git_dir_has_links(&git_dir, true))
    };
    super::is_git(command)
        && super::working_folders(command, bases).is_none_or(|folders| folders.iter().any(has_link))
}

/// Returns the words of a git command but its messages.
fn possible_pathspecs(command: &SimpleCommand) -> Vec<&str> {
    let args = git_subcommand(command).unwrap_or(&command.args);
    let name = args.first().and_then(ShellWord::known_text);
    if let (Some("commit"), [_, args @ ..]) = (name, args) {
        return super::words_but_messages(args);
    }
    let takes_messages = matches!(name, Some("merge" | "notes" | "stash" | "tag"));
    let mut is_message = false;
    // An option before it may take the `-m` itself, and after `--` it is a file.
    let mut is_unclear = !takes_messages;
    let words = args.iter().filter_map(|arg| {
        let skipped = is_message;
        let word = arg.known_text();
        is_message = !is_unclear && !skipped && word == Some("-m");
        let may_take_next = |word: &str| match word.strip_prefix("--") {
            Some(long) => long.is_empty() || long.starts_with('m'),
            None => word != "-m" && word.starts_with('-') && word.contains('m'),
        };
        is_unclear |= word.is_none_or(may_take_next) && !skipped;
        word.filter(|_| !skipped)
    });
    words.collect()
}

/// Returns true for commands that track more files before they show any.
pub(crate) fn may_track_more(command: &SimpleCommand) -> bool {
    let mut words = command.args.iter().map(|arg| arg.known_text());
    let adds = |word: Option<&str>| {
        word.is_none_or(|word| matches!(word, "add" | "commit" | "stash" | "update-index"))
    };
    super::is_git(command) && words.any(adds)
}

/// Returns true if the argument is a group of short options that contains, as an option or in a value, one of
/// `letters`.
fn has_short_option(arg: &str, letters: &[char]) -> bool {
    arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letters)
}

/// Returns true for options of `git log` that show no patch.
fn is_patchless_log_option(arg: &str) -> bool {
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

/// Returns true if a repository that git finds from one of `bases` currently tracks a file that fulfils
/// `is_met`, and also if that is uncertain. Files that only earlier commits contain are not considered.
pub(crate) fn may_track(
    command: &SimpleCommand,
    bases: &[PathBuf],
    is_met: &dyn Fn(&Path) -> bool,
) -> bool {
    super::working_folders(command, bases).is_none_or(|folders| {
        folders.iter().any(|folder| {
            let folder = canonicalize(folder);
            folder.map_or(true, |folder| may_track_in_folder(&folder, is_met))
        })
    })
}

/// Returns true for a command of git that shows no other files than the repository tracks, as each folder that it
/// starts in lies in one: not outside, where `git diff` compares any files. `is_rest_read_only` is false if the rest of
/// the line may take the repository away.
pub(crate) fn shows_only_tracked(
    command: &SimpleCommand,
    bases: &[PathBuf],
    is_rest_read_only: bool,
) -> bool {
    let compares_two = git_subcommand(command).is_some_and(|subcommand| {
        let name = subcommand.first().and_then(ShellWord::known_text);
        name == Some("diff") && subcommand.len() > 2
    });
    if compares_two && !is_rest_read_only {
        return false;
    }
    let is_in_repository = |folder: &PathBuf| {
        let Ok(folder) = canonicalize(folder) else {
            return false;
        };
        match find_work_tree(&folder) {
            Some((work_tree, DotGitKind::Repository)) => {
                // Git does not look for a repository beyond the file system of the folder.
                let device = |path: &Path| path.metadata().map(|it| it.dev()).ok();
                device(&folder) == device(work_tree)
                    && (!compares_two || is_surely_opened(work_tree))
            }
            Some((_, DotGitKind::Uncertain | DotGitKind::NotRepository)) | None => false,
        }
    };
    super::is_git(command)
        && !may_show_untracked(command)
        && git_subcommand(command).is_some_and(only_reads_tracked)
        && super::working_folders(command, bases)
            .is_some_and(|folders| folders.iter().all(is_in_repository))
}

/// Returns true if git does not ignore the repository because of its format or owner. Otherwise it would work as if
/// outside, where `git diff` compares any files.
fn is_surely_opened(work_tree: &Path) -> bool {
    let Some(git_dir) = find_git_dir(work_tree) else {
        return false;
    };
    let dot_git = work_tree.join(".git");
    if ![work_tree, &dot_git, &git_dir].into_iter().all(is_own) {
        return false;
    }
    let config = find_common_dir(&git_dir).unwrap_or(git_dir).join("config");
    config::read_plain_config(&config).is_some_and(|config| !config.has_reftable)
}

/// Returns true for subcommands that only read what is tracked, unless an option adds other files.
fn only_reads_tracked(subcommand: &[ShellWord]) -> bool {
    let Some((name, args)) = subcommand.split_first() else {
        return false;
    };
    match name.known_text() {
        Some("diff") => !may_compare_any_files(args),
        Some("blame" | "grep" | "log" | "rev-list" | "shortlog" | "show" | "status") => true,
        Some(_) | None => false,
    }
}

/// Returns true for `git diff` of two files or folders, of which one may be outside the repository or stdin: it compares
/// them as `diff` would.
fn may_compare_any_files(args: &[ShellWord]) -> bool {
    let is_end = |arg: &ShellWord| matches!(arg.known_text(), Some("--" | "--end-of-options"));
    let (before, after) = match args.iter().position(is_end) {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &[][..]),
    };
    let is_operand = |arg: &&ShellWord| match arg.known_text() {
        Some(word) => word == "-" || !word.starts_with('-'),
        None => true,
    };
    let operands = before.iter().filter(is_operand).chain(after);
    // A revision such as `main..topic` contains no part that is `..`.
    let may_be_outside = |arg: &ShellWord| {
        arg.known_text().is_none_or(|word| {
            word == "-" || word.starts_with('/') || word.split('/').any(|it| it == "..")
        })
    };
    operands.clone().count() >= 2 && operands.clone().any(may_be_outside)
}

/// Returns true for `git blame`, which quotes lists of ignored commits that the user's configuration names in the work
/// tree.
pub(super) fn is_blame(command: &SimpleCommand) -> bool {
    let command = &covered_commands::as_plain_git(command);
    let mut names = ["annotate", "blame", "pickaxe"].into_iter();
    command.name == "git" && names.any(|word| super::has_word(command, word))
}

/// Returns true for a `git blame` that may quote a file that fulfils `is_met`, because a link in the work tree leads to
/// it. Also true if that is uncertain.
pub(crate) fn may_quote_linked_file(
    command: &SimpleCommand,
    bases: &[PathBuf],
    is_met: &dyn Fn(&Path) -> bool,
) -> bool {
    if !is_blame(command) {
        return false;
    }
    let may_link_to = |folder: &PathBuf| {
        let Ok(folder) = canonicalize(folder) else {
            return true;
        };
        find_work_trees(&folder).any(|work_tree| work_tree::may_link_to(work_tree, is_met))
    };
    super::working_folders(command, bases).is_none_or(|folders| folders.iter().any(may_link_to))
}

/// Returns git's own configuration files for commands that show lines of them; `None` if these include others.
pub(crate) fn settings_files(command: &SimpleCommand, bases: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let command = &covered_commands::as_plain_git(command);
    let has = |word| super::has_word(command, word);
    if command.name != "git"
        || !["config", "ls-remote", "remote", "var"]
            .into_iter()
            .any(has)
    {
        return Some(Vec::new());
    }
    let folders = super::working_folders(command, bases).unwrap_or_else(|| bases.to_vec());
    let folders: Vec<PathBuf> = folders
        .iter()
        .filter_map(|it| canonicalize(it).ok())
        .collect();
    let above = folders.iter().flat_map(|folder| folder.ancestors());
    let files = above
        .flat_map(config_folders)
        .flat_map(|folder| ["config", "config.worktree"].map(|name| folder.join(name)))
        .filter(|path| entry_kind(path) != EntryKind::Absent);
    let files: Vec<PathBuf> = files.collect();
    let may_include = |file: &PathBuf| {
        config::read_plain_config(file).is_none()
            && fs::read_to_string(file).map_or(true, |text| text.to_lowercase().contains("include"))
    };
    (!files.iter().any(may_include)).then_some(files)
}

/// Returns the folders that hold the configuration of the repository of `work_tree/.git`, if there is one.
fn config_folders(work_tree: &Path) -> impl Iterator<Item = PathBuf> {
    let git_dir = find_git_dir(work_tree).unwrap_or_else(|| work_tree.join(".git"));
    let common_dir = find_common_dir(&git_dir);
    let folders = std::iter::once(git_dir).chain(common_dir);
    folders.filter_map(|folder| canonicalize(&folder).ok())
}

/// How git may treat a `.git`: as a repository, or by continuing in the folder above.
enum DotGitKind {
    Repository,
    NotRepository,
    Uncertain,
}

fn classify_dot_git(dot_git: &Path) -> DotGitKind {
    match entry_kind(dot_git) {
        EntryKind::Absent => DotGitKind::NotRepository,
        EntryKind::Folder => {
            let parts = ["HEAD", "objects", "refs"];
            let has = |part: &&str| entry_kind(&dot_git.join(part)) != EntryKind::Absent;
            match parts.iter().any(has) {
                false => DotGitKind::NotRepository,
                true if is_valid_head(&dot_git.join("HEAD")) && can_git_enter(dot_git, dot_git) => {
                    DotGitKind::Repository
                }
                true => DotGitKind::Uncertain,
            }
        }
        EntryKind::File | EntryKind::Other => DotGitKind::Repository,
    }
}

fn may_track_in_folder(folder: &Path, is_met: &dyn Fn(&Path) -> bool) -> bool {
    for above in folder.ancestors() {
        match classify_dot_git(&above.join(".git")) {
            DotGitKind::Repository => {
                return read_repository_paths(above).is_none_or(|(top, paths)| {
                    let mut paths = paths.iter();
                    paths.any(|path| is_met(&above.join(path)) || is_met(&top.join(path)))
                });
            }
            DotGitKind::Uncertain => return true,
            // Git's own folder or a bare repository.
            DotGitKind::NotRepository if may_be_git_dir(above) => return true,
            DotGitKind::NotRepository => {}
        }
    }
    false
}

/// Returns the nearest folder, from this one upwards, whose `.git` git does not skip.
fn find_work_tree(folder: &Path) -> Option<(&Path, DotGitKind)> {
    let mut kinds = folder
        .ancestors()
        .map(|above| (above, classify_dot_git(&above.join(".git"))));
    kinds.find(|(_, kind)| !matches!(kind, DotGitKind::NotRepository))
}

/// Returns the folders, from this one upwards, that contain a `.git` of any kind.
fn find_work_trees(folder: &Path) -> impl Iterator<Item = &Path> {
    let above = folder.ancestors();
    above.filter(|above| entry_kind(&above.join(".git")) != EntryKind::Absent)
}

/// Returns true if the file or folder belongs to the user that turnery runs as.
fn is_own(path: &Path) -> bool {
    let metadata = path.symlink_metadata();
    metadata.is_ok_and(|it| it.uid() == rustix::process::geteuid().as_raw())
}

/// Returns the folder that `work_tree/.git` is or points to.
fn find_git_dir(work_tree: &Path) -> Option<PathBuf> {
    let dot_git = work_tree.join(".git");
    match entry_kind(&dot_git) {
        EntryKind::Folder => Some(dot_git),
        EntryKind::File => {
            let named = read_pointer(&dot_git)?;
            canonicalize(&work_tree.join(named.strip_prefix("gitdir: ")?)).ok()
        }
        EntryKind::Absent | EntryKind::Other => None,
    }
}

/// Returns the folder above the common git folder (for a linked work tree, the main work tree) and the paths
/// that the repository currently tracks; `None` if that is uncertain.
fn read_repository_paths(work_tree: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let git_dir = find_git_dir(work_tree)?;
    let is_pointed_to = git_dir != work_tree.join(".git");
    let shared = is_pointed_to.then(|| find_common_dir(&git_dir));
    let common_dir = match shared.flatten() {
        Some(named) => canonicalize(&named).ok()?,
        None => git_dir.clone(),
    };
    let index = git_dir.join("index");
    // Without an index, for example in a linked work tree, git may still show any commit.
    if may_lead_elsewhere(&git_dir, work_tree)
        || shares_other_repository(&common_dir)
        || entry_kind(&index) == EntryKind::Absent
    {
        return None;
    }
    // The configuration holds the length of a hash. It need not be read, because the wrong length does not
    // parse.
    let paths = match (
        index::read_tracked_paths(&index, false),
        index::read_tracked_paths(&index, true),
    ) {
        (Some(paths), None) | (None, Some(paths)) => paths,
        (Some(one), Some(other)) if one.is_empty() && other.is_empty() => one,
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let top = common_dir.parent().map_or(PathBuf::new(), Path::to_owned);
    (!super::are_behind_links(work_tree, &paths)).then_some((top, paths))
}

/// Returns true if the repository shares parts with another one.
fn shares_other_repository(common_dir: &Path) -> bool {
    entry_kind(&common_dir.join("commondir")) != EntryKind::Absent
        || entry_kind(&common_dir.join("objects/info/alternates")) != EntryKind::Absent
        || git_dir_has_links(common_dir, true)
}

/// Starts of settings that place the files of a repository elsewhere, or name files that git quotes.
const LEADING_SETTINGS: &[&str] = &[
    "attributesfile",
    "excludesfile",
    "ignorerevsfile",
    "include",
    "mailmap",
    "orderfile",
    "signaturefile",
    "template",
    "worktree",
];

/// Returns true if settings may place the files of a repository elsewhere than in `work_tree`, or name others.
fn may_lead_elsewhere(git_dir: &Path, work_tree: &Path) -> bool {
    let folders = [Some(git_dir.to_owned()), find_common_dir(git_dir)];
    let files = folders.iter().flatten();
    let mut files = files.flat_map(|it| ["config", "config.worktree"].map(|name| it.join(name)));
    files.any(|file| match config::read_plain_config(&file) {
        Some(config) => config.worktree.is_some_and(|named| {
            let named = canonicalize(&git_dir.join(named)).ok();
            named.is_none() || named != canonicalize(work_tree).ok()
        }),
        // A configuration that names programs is allowed for the commands checked here.
        None => fs::read_to_string(&file).map_or(true, |text| {
            let text = text.to_lowercase();
            LEADING_SETTINGS.iter().any(|name| text.contains(name))
        }),
    })
}
