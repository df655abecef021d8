//! Files that make other programs run code, or that configure turnery; changing them needs approval.
//!
//! Editors, shells, git and build tools run commands named in these files, often without asking and outside
//! of turnery. Names are compared case-insensitively, because some file systems ignore case.

use super::{
    command_line::{SimpleCommand, is_invisible_char},
    guarded_names::{
        GIT_FOLDER_FILES, GUARDED_FILE_ENDINGS, GUARDED_FILES, GUARDED_FOLDERS, GUARDED_PATHS,
        GUARDED_PREFIXES, fold_extension,
    },
    linked_dotfiles,
    path_checks::entry_exists,
    program_name::ProgramName,
    version_files,
};
use crate::{
    glob_matcher::{GlobError, compile_glob},
    workspace::names_through_links,
};
use std::{
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Folders of agents that keep work trees in them; those work trees count as ordinary projects.
const WORKTREE_AGENTS: &[&str] = &[".claude", ".codex", ".cursor", ".gemini", ".opencode"];

/// Returns true if changing the file needs approval in every mode but `auto`. `path` has its links resolved.
pub(super) fn is_guarded(path: &Path) -> bool {
    let mut parts = folded_parts_in_work_tree(path);
    if let Some(name) = parts.last_mut() {
        *name = fold_extension(name);
    }
    let is_file = |name: &String| {
        GUARDED_FILES.contains(&name.as_str())
            || GIT_FOLDER_FILES.contains(&name.as_str())
            || GUARDED_FILE_ENDINGS.iter().any(|end| name.ends_with(end))
            || version_files::is_version_file(name)
    };
    is_in_guarded_folder(&parts)
        || parts.last().is_some_and(is_file)
        || version_files::is_mise_config(&parts)
        || is_repository_file(path)
}

/// Subfolders of a git folder that hold only git's own files. Its other subfolders may be work trees, or hold
/// files that git's configuration includes.
const GIT_SUBFOLDERS: &[&str] = &[
    "branches",
    "common",
    "hooks",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "svn",
    "worktrees",
];

/// Returns true if the file belongs to a repository whose folder is not called `.git`: a bare one, or one that a `.git`
/// file names. A line could change its configuration and then run git.
fn is_repository_file(path: &Path) -> bool {
    // What linked work trees share needs no `HEAD`. A change that completes a repository counts as one in it.
    let is_git_folder = |folder: &&Path| {
        let marks = ["HEAD", "commondir", "objects", "refs"];
        let inner = path.strip_prefix(folder).unwrap_or(path);
        let written = folded_parts_in_work_tree(inner)
            .into_iter()
            .next()
            .unwrap_or_default();
        let is_there = |name: &&&str| written == fold_case(name) || entry_exists(folder, name);
        marks.iter().filter(is_there).count() > 1
    };
    path.ancestors()
        .skip(1)
        .filter(is_git_folder)
        .any(|folder| {
            let inner = path.strip_prefix(folder).unwrap_or(path);
            let mut inner = folded_parts_in_work_tree(inner).into_iter();
            match (inner.next(), inner.next()) {
                (Some(first), Some(_)) => {
                    GIT_SUBFOLDERS.contains(&first.as_str())
                        || is_repository(folder) && !is_in_work_tree(path, folder)
                }
                _ => true,
            }
        })
}

/// Returns true if git takes the folder for a repository.
fn is_repository(folder: &Path) -> bool {
    let has = |name| entry_exists(folder, name);
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns true if the file is in a work tree that begins at `folder` or below.
fn is_in_work_tree(path: &Path, folder: &Path) -> bool {
    let above = path.ancestors().skip(1);
    let mut inner = above.take_while(|it| it.starts_with(folder));
    inner.any(|it| entry_exists(it, ".git"))
}

/// Returns the guarded names that are literal, as paths relative to the folder that holds them: not the
/// prefixes, suffixes and patterns, and not git's own files.
pub(super) fn guarded_names() -> impl Iterator<Item = PathBuf> {
    let names = GUARDED_FILES
        .iter()
        .chain(GUARDED_FOLDERS)
        .chain(version_files::VERSION_MANAGER_FILES)
        .map(PathBuf::from);
    let paths = GUARDED_PATHS.iter().map(|parts| parts.iter().collect());
    names.chain(paths)
}

/// Returns true if the name, whose case is folded, begins with one of the [`GUARDED_PREFIXES`].
pub(super) fn has_guarded_prefix(name: &str) -> bool {
    GUARDED_PREFIXES.iter().any(|it| name.starts_with(it))
}

fn is_guarded_folder(name: &str) -> bool {
    GUARDED_FOLDERS.contains(&name) || has_guarded_prefix(name)
}

fn is_in_guarded_folder(parts: &[String]) -> bool {
    parts.iter().any(|part| is_guarded_folder(part))
        || GUARDED_PATHS
            .iter()
            .any(|wanted| has_consecutive_parts(parts, wanted))
}

/// Returns true if the file configures turnery or holds its keys, so that changing it needs approval in
/// `auto` mode too. `own` lists the files and folders of this installation.
pub(super) fn is_own_path(path: &Path, own: &[PathBuf]) -> bool {
    let folded = fold_path(path);
    let is_below = |own: &PathBuf| folded.starts_with(fold_path(own));
    folded_parts_in_work_tree(path)
        .iter()
        .any(|part| part == ".turnery")
        || own.iter().any(is_below)
}

/// Returns true if moving, replacing or removing the folder would affect one of turnery's own files.
pub(super) fn contains_own_path(folder: &Path, own: &[PathBuf]) -> bool {
    let folded = fold_path(folder);
    own.iter().any(|own| fold_path(own).starts_with(&folded))
        || folder.join(".turnery").symlink_metadata().is_ok()
}

pub(super) fn fold_path(path: &Path) -> PathBuf {
    PathBuf::from(fold_case(&path.to_string_lossy()))
}

/// Returns true if a command may move, replace or remove folders, also by a program that it starts (`nice mv`, `git mv`).
pub(super) fn may_move(command: &SimpleCommand) -> bool {
    let words = command.args.iter().filter_map(|word| word.known_text());
    let mut words = words.chain([command.name.as_str()]);
    let moving = ["cp", "find", "install", "ln", "mv", "rm", "rsync"];
    words.any(|word| ProgramName::new(word).is_in(&moving))
}

/// Returns true if a command line mentions one of turnery's own files anywhere.
pub(super) fn mentions_own_path(line: &str, own: &[PathBuf]) -> bool {
    let line = line.to_lowercase();
    let mut own = own.iter().filter_map(|path| path.to_str());
    line.contains(".turnery") || own.any(|path| line.contains(&path.to_lowercase()))
}

/// Returns true if a pattern or a variable in a command line may stand for one of turnery's own files or for
/// a folder that contains one, when the line runs in one of `bases`. A word that begins with `~` or a
/// variable may be any path, and so may a hidden file after a `cd` to the home folder or to a variable.
pub(super) fn may_match_own_path(line: &str, bases: &[PathBuf], own: &[PathBuf]) -> bool {
    let ends_word = |c: char| c.is_whitespace() || "'\"`;|&()<>=:".contains(c);
    let is_pattern = |word: &str| word.starts_with('~') || word.contains(['*', '?', '[', '{', '$']);
    let joined = mask_substitutions(line);
    [line, &joined].into_iter().any(|line| {
        let mut is_moved = false;
        let mut is_folder = false;
        line.split(ends_word).any(|word| {
            is_moved |= is_folder && (word.is_empty() || word.starts_with(['~', '$', '-']));
            is_folder = matches!(word, "cd" | "pushd");
            let word = word.trim_end_matches('/');
            let parts = word.split('/').filter(|part| *part != ".");
            let parts: Vec<&str> = match is_moved && word.starts_with('.') {
                true => std::iter::once("~").chain(parts).collect(),
                false if is_pattern(word) => parts.collect(),
                false => return false,
            };
            parts.iter().any(|part| may_match_turnery_folder(part))
                || own
                    .iter()
                    .any(|own| bases.iter().any(|base| path_matches(&parts, base, own)))
        })
    })
}

/// Removes quotes and backslashes from the line and replaces substitutions and braced variables by `$`.
fn mask_substitutions(line: &str) -> String {
    let mut text = String::new();
    // Opening characters of the substitutions that are not closed yet.
    let mut open = Vec::new();
    let mut last = ' ';
    for c in line.chars() {
        match c {
            '(' | '{' if last == '$' || !open.is_empty() => open.push(c),
            ')' | '}' if !open.is_empty() => drop(open.pop()),
            '`' if open.last() == Some(&c) => drop(open.pop()),
            '`' => {
                if open.is_empty() {
                    text.push('$');
                }
                open.push(c);
            }
            '"' | '\'' | '\\' => {}
            _ if open.is_empty() => text.push(c),
            _ => {}
        }
        last = c;
    }
    text
}

fn may_match_turnery_folder(part: &str) -> bool {
    // A pattern matches hidden files only if it starts with a dot; a lone variable would match everything.
    !part.starts_with(['*', '?', '['])
        && variables_to_stars(part) != "*"
        && pattern_matches_name(part, ".turnery")
}

/// Returns true if the parts of a word, resolved in `base`, may be `own`, a folder above it, or a file below
/// it.
fn path_matches(parts: &[&str], base: &Path, own: &Path) -> bool {
    let names = |path: &Path| -> Vec<String> {
        let names = path.components().skip(1);
        names
            .map(|name| name.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    let own = names(own);
    let fits = |parts: &[&str], own: &[String]| {
        let mut pairs = parts.iter().zip(own);
        pairs.all(|(part, name)| pattern_matches_name(part, name))
    };
    // A parent folder counts only if a pattern may match it or if it is hidden.
    let is_meant = |parts: &[&str], own: &[String]| {
        let mut names = own.iter().take(parts.len());
        parts.len() >= own.len()
            || names.any(|name| name.starts_with('.'))
            || parts.iter().any(|part| part.contains(['*', '?', '[', '{']))
    };
    match parts.split_first() {
        Some((&"", parts)) => fits(parts, &own),
        // A lone variable is no pattern, with or without braces: `${x}`, `$?`.
        Some((first, parts)) if first.starts_with('~') || first.contains('$') => {
            let mut below = (0..own.len()).filter_map(|at| own.get(at..));
            !parts.is_empty() && below.any(|own| is_meant(parts, own) && fits(parts, own))
        }
        _ => {
            let base = names(base);
            let mut all: Vec<&str> = base.iter().map(String::as_str).collect();
            for part in parts {
                match *part {
                    ".." => drop(all.pop()),
                    part => all.push(part),
                }
            }
            fits(&all, &own)
        }
    }
}

/// Matches a name against a shell pattern. The parts of a brace expansion that quotes split are matched one
/// by one; a variable matches anything.
fn pattern_matches_name(part: &str, name: &str) -> bool {
    let part = variables_to_stars(part);
    let part = part.as_str();
    let matches = |part: &str| {
        let matcher = compile_glob(part, |glob| {
            glob.case_insensitive(true);
        });
        match matcher {
            Ok(matcher) => matcher.is_match(name),
            Err(error) => matches!(error, GlobError::TooLarge),
        }
    };
    match part.matches('{').count() == part.matches('}').count() {
        true => matches(part),
        false => part.split(['{', ',', '}']).any(matches),
    }
}

/// Replaces each variable in a path component by `*`.
fn variables_to_stars(part: &str) -> String {
    let mut pieces = part.split('$');
    let mut pattern = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let piece = piece.strip_prefix('{').unwrap_or(piece);
        let rest = match piece.strip_prefix(['@', '*', '#', '?', '!', '-', '$']) {
            Some(rest) => rest,
            None => piece.trim_start_matches(is_of_name),
        };
        if !pattern.ends_with('*') {
            pattern.push('*');
        }
        pattern.push_str(rest.strip_prefix('}').unwrap_or(rest));
    }
    pattern
}

/// Files and folders that need approval in every mode before they change: the host's own configuration, keys
/// and sessions. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardedPaths(Arc<[PathBuf]>);

impl GuardedPaths {
    /// Guards these absolute paths, including everything below folders. Resolving their links reads the disk,
    /// so build the value once and clone it for each session.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self(with_links_resolved(paths).into())
    }
}

impl GuardedPaths {
    /// Guards further paths, whose links are resolved already.
    #[must_use]
    pub fn with_paths(self, more: &[PathBuf]) -> Self {
        match more.is_empty() {
            true => self,
            false => Self([&*self.0, more].concat().into()),
        }
    }
}

impl Deref for GuardedPaths {
    type Target = [PathBuf];

    fn deref(&self) -> &[PathBuf] {
        &self.0
    }
}

/// Returns the given paths, where their links lead, and where links below them lead, whether or not those exist.
fn with_links_resolved(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = paths
        .iter()
        .flat_map(|path| names_through_links(path))
        .collect();
    for path in &paths {
        linked_dotfiles::collect_link_targets(path.clone(), &mut all);
    }
    all.extend(paths);
    all.sort();
    all.dedup();
    all
}

/// Returns the folded components of the path, starting at the innermost agent work tree. Below a guarded
/// folder nothing counts as an agent work tree: a submodule may be called `.claude/worktrees/x`, and git
/// keeps its hooks under that name in `.git/modules`. Nor does a folder with a guarded name.
fn folded_parts_in_work_tree(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path
        .components()
        .map(|part| fold_case(&part.as_os_str().to_string_lossy()))
        // Some of the file systems that ignore case ignore dots at the end of a name too.
        .map(|name| name.trim_end_matches('.').to_owned())
        .collect();
    let is_worktrees_folder = |two: &[String]| match two {
        [agent, folder] => WORKTREE_AGENTS.contains(&agent.as_str()) && folder == "worktrees",
        _ => false,
    };
    while let Some(at) = parts.windows(2).position(is_worktrees_folder) {
        let is_plain = parts
            .get(..at)
            .is_some_and(|above| !is_in_guarded_folder(above));
        // These are the agent's folder, `worktrees` and the name of the work tree.
        let is_work_tree = parts.len() > at + 3
            && parts.get(at + 2).is_some_and(|name| {
                let begins = |wanted: &&[&str]| wanted.first() == Some(&name.as_str());
                !is_guarded_folder(name) && !GUARDED_PATHS.iter().any(begins)
            });
        if !is_plain || !is_work_tree {
            break;
        }
        parts.drain(..at + 3);
    }
    parts
}

/// Folds case as file systems that ignore it do: beyond lower case, `ſ` is `s`, and ligatures are their letters.
pub(super) fn fold_case(name: &str) -> String {
    let name = name.to_lowercase();
    if name.is_ascii() {
        return name;
    }
    let mut folded = String::new();
    for c in name.chars() {
        match c {
            'ſ' => folded.push('s'),
            'ß' => folded.push_str("ss"),
            'ﬀ' => folded.push_str("ff"),
            'ﬁ' => folded.push_str("fi"),
            'ﬂ' => folded.push_str("fl"),
            'ﬃ' => folded.push_str("ffi"),
            'ﬄ' => folded.push_str("ffl"),
            'ﬅ' | 'ﬆ' => folded.push_str("st"),
            // Such file systems ignore characters without a width.
            c if is_invisible_char(c) => {}
            c => folded.push(c),
        }
    }
    folded
}

fn has_consecutive_parts(parts: &[String], wanted: &[&str]) -> bool {
    parts
        .windows(wanted.len())
        .any(|some| some.iter().zip(wanted).all(|(part, wanted)| part == wanted))
}
