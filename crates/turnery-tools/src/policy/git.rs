//! What git runs because a repository says so: whether a git command may run unasked in a folder.
//!
//! Git starts programs that a repository's configuration names (`core.fsmonitor`, diff drivers, filters,
//! hooks), and takes folders for repositories that nobody made as such. A repository is *plain* when all
//! that git reads of it is known to name no program. Everything here only reads the disk; what is not
//! understood is not plain.

mod config;
pub(crate) mod environment;
mod index;

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod matrix_ways;
mod shown;

use super::{carriers, line::Command};
use crate::Workspace;
use config::PlainConfig;
use rustix::fs::Access;
pub(crate) use shown::{may_track, shows_content};
use std::{
    collections::HashSet,
    fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

/// Repositories that one command may concern, submodules included.
const MOST_REPOSITORIES: usize = 64;
/// Files and folders below `refs` and `logs` that are looked at.
const MOST_REFS: usize = 20_000;
/// Bytes of `HEAD`, `.git` and `commondir` that are read.
const LONGEST_POINTER: u64 = 4096;

/// Whether hooks of the repository would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// Not, because of the [hardened environment](environment).
    Disabled,
    /// They would, so there must be none.
    Enabled,
}

/// Whether the program runs git in the folder that it is started in.
pub(crate) fn is_git(command: &Command) -> bool {
    let program = carriers::base_name(&command.name);
    matches!(program, "git" | "gh") || program.starts_with("git-")
}

/// Whether a git command, started in any of `bases`, runs nothing that a repository names.
pub(crate) fn runs_nothing(
    command: &Command,
    bases: &[PathBuf],
    workspace: &Workspace,
    hooks: Hooks,
) -> bool {
    if starts_gpg(command) {
        return false;
    }
    let Some(folders) = folders(command, bases) else {
        return false;
    };
    let mut check = Check {
        roots: workspace.roots(),
        hooks,
        fetches: hooks == Hooks::Enabled && may_fetch(command),
        pushes: (hooks == Hooks::Enabled)
            .then(|| pushes_to(command))
            .flatten(),
        left: MOST_REPOSITORIES,
    };
    let mut seen = HashSet::new();
    folders.iter().all(|folder| {
        folder
            .canonicalize()
            .is_ok_and(|folder| !seen.insert(folder.clone()) || check.is_plain_from(&folder))
    })
}

/// Where a command pushes to, if it may push at all.
enum Target {
    /// A branch's remote, or the usual one.
    Configured,
    /// A remote by its name. What is none is a path to git.
    Named(String),
    /// Not known.
    Unknown,
}

fn pushes_to(command: &Command) -> Option<Target> {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.literal()).collect();
    if words.first() == Some(&Some("stash")) {
        return None;
    }
    let at = words
        .iter()
        .position(|word| word.is_none_or(|word| word == "push"))?;
    let mut operands = Vec::new();
    for word in words.iter().skip(at) {
        match word {
            Some(word) if is_flag_of_push(word) => {}
            Some(word) if !word.starts_with('-') => operands.push(*word),
            // The next word may be its value.
            Some(_) | None => return Some(Target::Unknown),
        }
    }
    Some(match operands.as_slice() {
        ["push"] => Target::Configured,
        ["push", name, ..] => Target::Named((*name).to_owned()),
        _ => Target::Unknown,
    })
}

/// Options of `git push` that take no value, or have it in the same word.
fn is_flag_of_push(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    matches!(
        name,
        "--" | "-4"
            | "-6"
            | "-d"
            | "-f"
            | "-n"
            | "-q"
            | "-u"
            | "-v"
            | "--all"
            | "--atomic"
            | "--branches"
            | "--delete"
            | "--dry-run"
            | "--follow-tags"
            | "--force"
            | "--force-if-includes"
            | "--force-with-lease"
            | "--no-verify"
            | "--porcelain"
            | "--progress"
            | "--prune"
            | "--quiet"
            | "--set-upstream"
            | "--tags"
            | "--verbose"
    )
}

/// Whether the command may fetch. A fetch goes on in the submodules of new commits, also in those that are not
/// checked out: what is kept of them below `.git/modules` may name programs too. That submodules are left out counts
/// only as the one option of the line: git goes by the last one, and the word may be the value of another.
fn may_fetch(command: &Command) -> bool {
    let words: Vec<Option<&str>> = command.args.iter().map(|arg| arg.literal()).collect();
    match words.first() {
        Some(Some("add" | "commit" | "push" | "stash" | "tag")) if command.name == "git" => false,
        _ => !words
            .iter()
            .filter(|word| word.is_none_or(|word| word.starts_with('-')))
            .eq([&Some("--no-recurse-submodules")]),
    }
}

/// What a git command leaves for the git commands after it in the same line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// The repository that was checked.
    AsItWas,
    /// Perhaps one more submodule, which is not looked into before a commit of the index is made.
    Index,
    /// Perhaps other files, a repository among them.
    WorkTree,
}

/// What the command leaves behind.
pub(crate) fn leaves(command: &Command) -> Leaves {
    match command.args.first().and_then(|arg| arg.literal()) {
        Some("branch" | "fetch" | "push" | "remote" | "tag") => Leaves::AsItWas,
        Some("add" | "commit") => Leaves::Index,
        _ => Leaves::WorkTree,
    }
}

/// Whether the command makes a commit of what is in the index and looks at no file.
pub(crate) fn commits_index(command: &Command) -> bool {
    let mut args = command.args.iter().map(|arg| arg.literal());
    if args.next() != Some(Some("commit")) {
        return false;
    }
    while let Some(arg) = args.next() {
        match arg {
            Some("-m" | "-qm" | "-sm" | "--message") if args.next().is_some() => {}
            Some("-q" | "-s" | "--amend" | "--no-edit" | "--quiet" | "--signoff") => {}
            Some(arg) if arg.starts_with("--message=") => {}
            Some(_) | None => return false,
        }
    }
    true
}

/// Formats and orders that ask who signed a commit start gpg: `%G?`, `%+GS`, `%(*signature)`, `--sort=signature`.
fn starts_gpg(command: &Command) -> bool {
    let mut words = command.args.iter().filter_map(|arg| arg.literal());
    words.any(|word| {
        let is_option = word.starts_with("--s");
        word.contains("signature") && (is_option || word.contains("%("))
            || word
                .split('%')
                .skip(1)
                .any(|rest| rest.trim_start_matches(['+', '-', ' ']).starts_with('G'))
    })
}

/// Where the command works: the bases, changed by `-C`. `None` if an option names the repository.
fn folders(command: &Command, bases: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let mut folders = bases.to_vec();
    let mut args = command.args.iter();
    while let Some(option) = args.next().and_then(|arg| arg.literal()) {
        match option {
            "-C" => {
                let to = args.next()?.literal()?;
                for folder in &mut folders {
                    folder.push(to);
                }
            }
            "-c" | "--config-env" | "--namespace" => drop(args.next()?),
            "--bare" => return None,
            _ if option.starts_with("--git-dir") || option.starts_with("--work-tree") => {
                return None;
            }
            _ if option.starts_with('-') => {}
            _ => break,
        }
    }
    Some(folders)
}

/// One check of what git finds in a folder.
struct Check<'a> {
    roots: &'a [PathBuf],
    hooks: Hooks,
    /// Whether submodules may be fetched.
    fetches: bool,
    /// Where the command pushes to, if it does.
    pushes: Option<Target>,
    /// Repositories that may still be looked at.
    left: usize,
}

/// What lies at a path, links not followed.
#[derive(PartialEq, Eq)]
enum Kind {
    Absent,
    Folder,
    File,
    Other,
}

fn kind(path: &Path) -> Kind {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => Kind::Folder,
        Ok(found) if found.is_file() => Kind::File,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Kind::Absent
        }
        Ok(_) | Err(_) => Kind::Other,
    }
}

/// A repository's folders.
struct Repository<'a> {
    /// Folder that its files are checked out in.
    work_tree: &'a Path,
    /// What `.git` is or leads to.
    git_dir: PathBuf,
    /// The same, unless this is a linked work tree.
    common_dir: PathBuf,
}

impl Check<'_> {
    /// Whether git, started in `folder`, finds a plain repository or none.
    fn is_plain_from(&mut self, folder: &Path) -> bool {
        for above in folder.ancestors() {
            match kind(&above.join(".git")) {
                Kind::Absent => {}
                Kind::Folder | Kind::File => return self.is_plain_at(above, &[]),
                Kind::Other => return false,
            }
            if may_be_bare(above) {
                return false;
            }
        }
        true
    }

    /// Whether the repository of the `.git` in `work_tree` is plain. `lenders` are folders beside the roots that it
    /// may be kept in.
    fn is_plain_at(&mut self, work_tree: &Path, lenders: &[PathBuf]) -> bool {
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        let dot_git = work_tree.join(".git");
        match kind(&dot_git) {
            Kind::Folder => {
                let is_linked = kind(&dot_git.join("commondir")) != Kind::Absent;
                let repository = Repository {
                    work_tree,
                    git_dir: dot_git.clone(),
                    common_dir: dot_git,
                };
                !is_linked && self.is_plain(&repository).is_some()
            }
            Kind::File => self.is_plain_link(work_tree, lenders).is_some(),
            Kind::Absent | Kind::Other => false,
        }
    }

    /// The same for a file `.git`, which names the folder of a submodule or a linked work tree.
    fn is_plain_link(&mut self, work_tree: &Path, lenders: &[PathBuf]) -> Option<()> {
        let dot_git = work_tree.join(".git");
        let target = read_pointer(&dot_git)?;
        let target = target.strip_prefix("gitdir: ")?;
        let git_dir = work_tree.join(target).canonicalize().ok()?;
        let common_dir = match kind(&git_dir.join("commondir")) {
            Kind::Absent => git_dir.clone(),
            Kind::File => {
                let worktrees = git_dir.parent()?;
                let common = worktrees.parent()?;
                let named = git_dir.join(read_pointer(&git_dir.join("commondir"))?);
                let is_usual = worktrees.ends_with("worktrees")
                    && named.canonicalize().ok()?.as_path() == common
                    && points_back(&git_dir, &dot_git);
                is_usual.then(|| common.to_owned())?
            }
            Kind::Folder | Kind::Other => return None,
        };
        let repository = Repository {
            work_tree,
            git_dir,
            common_dir,
        };
        let config = self.is_plain(&repository)?;
        let git_dir = &repository.git_dir;
        let is_named = match &config.worktree {
            Some(named) => {
                let named = git_dir.join(named).canonicalize().ok()?;
                (named == work_tree.canonicalize().ok()?).then_some(true)?
            }
            None => false,
        };
        let mut known = self.roots.iter().chain(lenders);
        let is_known = known.any(|root| git_dir.starts_with(root));
        (is_known || is_named || points_back(git_dir, &dot_git)).then_some(())
    }

    fn is_plain(&mut self, repository: &Repository<'_>) -> Option<PlainConfig> {
        let Repository {
            work_tree,
            git_dir,
            common_dir,
        } = repository;
        let is_linked = git_dir != common_dir;
        let is_whole = is_head(&git_dir.join("HEAD"))
            && kind(&common_dir.join("objects")) == Kind::Folder
            && kind(&common_dir.join("refs")) == Kind::Folder
            && kind(&common_dir.join("objects/info/alternates")) == Kind::Absent
            && git_takes_it(git_dir, common_dir)
            && is_empty(&common_dir.join("remotes"))
            && is_empty(&common_dir.join("branches"))
            && !holds_links(git_dir)
            && !(is_linked && holds_links(common_dir));
        if !is_whole {
            return None;
        }
        let config = config::read_plain(&common_dir.join("config"))?;
        let of_work_tree = config::read_plain(&git_dir.join("config.worktree"))?;
        let is_own = git_dir.ends_with(".git") || is_linked;
        if of_work_tree.worktree.is_some() || config.worktree.is_some() && is_own {
            return None;
        }
        let has_hooks = config.has_hooks || of_work_tree.has_hooks || has_hooks(common_dir);
        if self.hooks == Hooks::Enabled && has_hooks {
            return None;
        }
        // What is left of a rebase holds commands to go on with.
        let is_at_rest = ["rebase-apply", "rebase-merge", "sequencer"]
            .iter()
            .all(|part| kind(&git_dir.join(part)) == Kind::Absent);
        if self.hooks == Hooks::Enabled && !is_at_rest {
            return None;
        }
        if let Some(target) = &self.pushes {
            // The hooks of the other repository run too, and what is no remote is a repository here.
            let is_remote = match target {
                Target::Configured => config.remotes.contains("origin"),
                Target::Named(name) => config.remotes.contains(name),
                Target::Unknown => false,
            };
            let mut of_branches = config
                .branch_remotes
                .iter()
                .chain(&of_work_tree.branch_remotes);
            let are_remotes = of_branches.all(|name| name == "." || config.remotes.contains(name));
            let is_local = config.has_local_remotes || of_work_tree.has_local_remotes;
            if is_local || !is_remote || !are_remotes {
                return None;
            }
        }
        let links = index::gitlinks(&git_dir.join("index"), config.sha256)?;
        let modules = [
            common_dir.join("modules"),
            git_dir.join("modules"),
            work_tree.join(".gitmodules"),
        ];
        let has_submodules = config.has_submodules
            || of_work_tree.has_submodules
            || !links.is_empty()
            || modules.iter().any(|path| kind(path) != Kind::Absent);
        if self.fetches && has_submodules {
            return None;
        }
        // Git takes settings out of the environment before it starts itself in a submodule.
        let hooks = std::mem::replace(&mut self.hooks, Hooks::Enabled);
        // What has become a folder with a repository in it is a submodule to those who look for changes to commit.
        let became_links: Vec<PathBuf> = match hooks {
            Hooks::Disabled => Vec::new(),
            Hooks::Enabled => index::tracked(&git_dir.join("index"), config.sha256)?
                .into_iter()
                .filter(|path| {
                    let place = work_tree.join(path);
                    kind(&place) == Kind::Folder && kind(&place.join(".git")) != Kind::Absent
                })
                .collect(),
        };
        let lenders = std::slice::from_ref(common_dir);
        let are_plain = links.iter().chain(&became_links).all(|link| {
            let folder = work_tree.join(link);
            let is_here = folder.starts_with(work_tree) && !is_led_elsewhere(work_tree, link);
            // What is not checked out has no `.git`, and git leaves it alone.
            is_here
                && (kind(&folder.join(".git")) == Kind::Absent
                    || self.is_plain_at(&folder, lenders))
        });
        self.hooks = hooks;
        are_plain.then_some(config)
    }
}

/// Whether git may take the folder itself for a repository. `refs` and a valid `HEAD` are needed too.
fn may_be_bare(folder: &Path) -> bool {
    let holds = |name: &str| kind(&folder.join(name)) != Kind::Absent;
    holds("HEAD") && (holds("objects") || holds("commondir"))
}

/// Whether a folder on the way to the submodule is a link.
fn is_led_elsewhere(work_tree: &Path, link: &Path) -> bool {
    link.ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .any(|part| !matches!(kind(&work_tree.join(part)), Kind::Folder | Kind::Absent))
}

/// Whether the folder of a linked work tree names the `.git` that led to it.
fn points_back(git_dir: &Path, dot_git: &Path) -> bool {
    let named = read_pointer(&git_dir.join("gitdir")).map(|named| git_dir.join(named));
    let same = |named: PathBuf| named.canonicalize().ok() == dot_git.canonicalize().ok();
    named.is_some_and(same)
}

/// The one line of a file that names another.
fn read_pointer(path: &Path) -> Option<String> {
    if kind(path) != Kind::File {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LONGEST_POINTER).read_to_string(&mut text).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let is_plain = !line.is_empty() && !line.chars().any(char::is_control);
    is_plain.then(|| line.to_owned())
}

/// Whether this is a `HEAD` that every version of git understands.
fn is_head(path: &Path) -> bool {
    read_pointer(path).is_some_and(|line| {
        line.starts_with("ref: refs/")
            || matches!(line.len(), 40 | 64) && line.chars().all(|c| c.is_ascii_hexdigit())
    })
}

/// Whether git may enter the folders, as it must to take them for a repository; else it goes on to the one above.
fn git_takes_it(git_dir: &Path, common_dir: &Path) -> bool {
    [
        git_dir,
        &common_dir.join("objects"),
        &common_dir.join("refs"),
    ]
    .into_iter()
    .all(|folder| rustix::fs::access(folder, Access::EXEC_OK).is_ok())
}

/// Whether the folder is absent or holds nothing. Git still reads remotes from such folders of old.
fn is_empty(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Whether a part of the repository that git reads lies elsewhere. What is left out of the walk: hooks, which are
/// looked at by themselves; the repositories of submodules, which are checked where git enters them; files of `git
/// lfs`, which its filter reads; and the folders of single objects.
fn holds_links(git_dir: &Path) -> bool {
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
            Some("hooks") => false,
            // Git's own daemon has its socket here.
            Some("fsmonitor--daemon.ipc") => !found.is_socket() && !found.is_file(),
            Some("lfs" | "modules") if found.is_dir() => false,
            Some("objects") if found.is_dir() => ["", "info", "pack"]
                .iter()
                .any(|part| has_link(&entry.path().join(part), false, &mut left)),
            _ if found.is_dir() => has_link(&entry.path(), true, &mut left),
            _ => !found.is_file(),
        };
        if is_met {
            return true;
        }
    }
    false
}

fn has_link(folder: &Path, deep: bool, left: &mut usize) -> bool {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return error.kind() != ErrorKind::NotFound,
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
                if deep && has_link(&entry.path(), deep, left) {
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
fn has_hooks(common_dir: &Path) -> bool {
    let hooks = common_dir.join("hooks");
    if kind(&hooks) == Kind::Absent {
        return false;
    }
    let is_sample = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "sample"))
    };
    !fs::read_dir(hooks).is_ok_and(|mut entries| entries.all(is_sample))
}
