//! What git runs because a repository says so: whether a git command may run unasked in a folder.
//!
//! Git starts programs that a repository's configuration names (`core.fsmonitor`, diff drivers, filters,
//! hooks), and takes folders for repositories that nobody made as such. A repository is *plain* when all
//! that git reads of it is known to name no program. Everything here only reads the disk; what is not
//! understood is not plain.

mod config;
#[cfg(test)]
mod embedded_tests;
pub(crate) mod environment;
mod git_dir;
mod index;

#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod matrix_tests;
#[cfg(test)]
mod matrix_ways;
mod remotes;
mod shown;
#[cfg(test)]
mod shown_tests;
mod work_tree;

use super::{carriers, line::Command};
use crate::{Workspace, workspace::clean};
use config::PlainConfig;
pub use environment::GitSettings;
use git_dir::{
    EntryKind, git_takes_it, has_hooks, have_plain_heads, holds_links, is_at_rest, is_head,
    is_led_elsewhere, kind, may_be_bare, may_hold_repository, names_no_other, points_back,
    read_pointer,
};
use remotes::{Talk, may_fetch};
pub(crate) use shown::{looks_further, may_track, shows_content, tracks_more};
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Folders of git's own in a repository, where submodules are not kept.
const GITS_FOLDERS: &[&str] = &[
    "branches", "hooks", "info", "lfs", "logs", "objects", "refs", "rr-cache",
];
/// Repositories that one command may concern, submodules included.
const MOST_REPOSITORIES: usize = 64;

/// How a git command that is checked would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitRun {
    /// It only reads, in the [hardened environment](environment), and the kernel keeps files elsewhere from it.
    Confined,
    /// It only reads, in the hardened environment.
    Hardened,
    /// It only reads, in the usual environment, with hooks: there must be none.
    Usual,
    /// It may change files, the index or refs, in the usual environment, with hooks: there must be none.
    Changing,
}

impl GitRun {
    fn has_hooks(self) -> bool {
        matches!(self, Self::Usual | Self::Changing)
    }
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
    run: GitRun,
) -> bool {
    if starts_gpg(command) {
        return false;
    }
    let Some(folders) = folders(command, bases) else {
        return false;
    };
    if run.has_hooks() && works_elsewhere(command) {
        return false;
    }
    let mut check = Check {
        roots: workspace.roots(),
        run,
        blames: has_word(command, "blame"),
        enters_new: leaves(command) != Leaves::AsItWas,
        fetches: run.has_hooks() && may_fetch(command),
        talk: match run.has_hooks() {
            true => Talk::of(command),
            false => Talk::Silent,
        },
        left: MOST_REPOSITORIES,
    };
    let mut seen = HashSet::new();
    folders.iter().all(|folder| {
        folder
            .canonicalize()
            .is_ok_and(|folder| !seen.insert(folder.clone()) || check.is_plain_from(&folder))
    })
}

fn has_word(command: &Command, word: &str) -> bool {
    command.args.iter().any(|arg| arg.literal() == Some(word))
}

/// Recognises commands that work where records of work trees or their own words lead, which is not looked at.
fn works_elsewhere(command: &Command) -> bool {
    let has = |word| has_word(command, word);
    let is_folder = |word: &str| word != "init" && !word.starts_with('-');
    let mut words = command.args.iter().filter_map(|arg| arg.literal());
    has("worktree") && ["move", "remove", "repair"].into_iter().any(has)
        || has("init") && words.any(is_folder)
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

/// Recognises a command that makes a commit of what is in the index and looks at no file, as it does to describe the
/// commit where a message is asked for.
pub(crate) fn commits_index(command: &Command) -> bool {
    let mut args = command.args.iter().map(|arg| arg.literal());
    if args.next() != Some(Some("commit")) {
        return false;
    }
    let mut has_message = false;
    while let Some(arg) = args.next() {
        has_message |= match arg {
            Some("-m" | "-qm" | "-sm" | "--message") if args.next().is_some() => true,
            Some("--no-edit") => true,
            Some("-q" | "-s" | "--amend" | "--quiet" | "--signoff") => false,
            Some(arg) if arg.starts_with("--message=") => true,
            Some(_) | None => return false,
        };
    }
    has_message
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
    run: GitRun,
    /// Set for `git blame`, which reads the lists of commits that the person's own settings name in the work tree.
    blames: bool,
    /// Set where folders may become submodules that the command enters.
    enters_new: bool,
    /// Whether submodules may be fetched.
    fetches: bool,
    /// Which remotes the command may talk to.
    talk: Talk,
    /// Repositories that may still be looked at.
    left: usize,
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
                EntryKind::Absent => {}
                EntryKind::Folder | EntryKind::File => return self.is_plain_at(above, &[]),
                EntryKind::Other => return false,
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
            EntryKind::Folder => {
                let is_linked = kind(&dot_git.join("commondir")) != EntryKind::Absent;
                let repository = Repository {
                    work_tree,
                    git_dir: dot_git.clone(),
                    common_dir: dot_git,
                };
                !is_linked && self.is_plain(&repository).is_some()
            }
            EntryKind::File => self.is_plain_link(work_tree, lenders).is_some(),
            EntryKind::Absent | EntryKind::Other => false,
        }
    }

    /// The same for a file `.git`, which names the folder of a submodule or a linked work tree.
    fn is_plain_link(&mut self, work_tree: &Path, lenders: &[PathBuf]) -> Option<()> {
        let dot_git = work_tree.join(".git");
        let target = read_pointer(&dot_git)?;
        let target = target.strip_prefix("gitdir: ")?;
        let git_dir = work_tree.join(target).canonicalize().ok()?;
        let common_dir = match kind(&git_dir.join("commondir")) {
            EntryKind::Absent => git_dir.clone(),
            EntryKind::File => {
                let worktrees = git_dir.parent()?;
                let common = worktrees.parent()?;
                let named = git_dir.join(read_pointer(&git_dir.join("commondir"))?);
                let is_usual = worktrees.ends_with("worktrees")
                    && named.canonicalize().ok()?.as_path() == common
                    && points_back(&git_dir, &dot_git);
                is_usual.then(|| common.to_owned())?
            }
            EntryKind::Folder | EntryKind::Other => return None,
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
        // Links to hooks are usual, and the kernel keeps what they lead to.
        let may_link_hooks = self.run == GitRun::Confined;
        let is_whole = is_head(&git_dir.join("HEAD"))
            && kind(&common_dir.join("objects")) == EntryKind::Folder
            && kind(&common_dir.join("refs")) == EntryKind::Folder
            && git_takes_it(git_dir, common_dir)
            && names_no_other(common_dir)
            && have_plain_heads(common_dir)
            && !holds_links(git_dir, may_link_hooks)
            && !(is_linked && holds_links(common_dir, may_link_hooks));
        if !is_whole {
            return None;
        }
        if self.blames
            && self.run != GitRun::Confined
            && work_tree::links_lead_outside(work_tree, self.roots)
        {
            return None;
        }
        let config = config::read_plain(&common_dir.join("config"))?;
        let of_work_tree = config::read_plain(&git_dir.join("config.worktree"))?;
        let is_own = git_dir.ends_with(".git") || is_linked;
        if of_work_tree.worktree.is_some() || config.worktree.is_some() && is_own {
            return None;
        }
        let has_hooks = config.has_hooks || of_work_tree.has_hooks || has_hooks(common_dir);
        if self.run.has_hooks() && has_hooks {
            return None;
        }
        if self.run.has_hooks() && !(is_at_rest(git_dir) && (!is_linked || is_at_rest(common_dir)))
        {
            return None;
        }
        // A stash that the next commit applies may be a ref, and the list of tables may name some anywhere.
        if self.run != GitRun::Confined && (config.has_reftable || of_work_tree.has_reftable) {
            return None;
        }
        if !self
            .talk
            .keeps_off_this_machine(work_tree, &[&config, &of_work_tree])
        {
            return None;
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
            || modules.iter().any(|path| kind(path) != EntryKind::Absent);
        if self.fetches && has_submodules {
            return None;
        }
        // A merge, a diff or a push looks for a submodule's commits there, with the configuration that it finds.
        let looks_there = self.enters_new || matches!(self.talk, Talk::Pushes(_));
        let mut kept =
            BTreeSet::from([common_dir.join("modules"), git_dir.join("modules")]).into_iter();
        let roots = self.roots;
        let is_inside = |path: &Path| {
            let mut known = roots.iter().map(PathBuf::as_path);
            let mut own = [Some(*work_tree), common_dir.parent()]
                .into_iter()
                .flatten();
            known.any(|root| path.starts_with(root)) || own.any(|above| path.starts_with(above))
        };
        if self.run.has_hooks()
            && looks_there
            && !kept.all(|it| self.are_kept_plain(&it, false, &is_inside))
        {
            return None;
        }
        let became_links = match self.run {
            GitRun::Confined => Vec::new(),
            GitRun::Hardened | GitRun::Usual | GitRun::Changing => {
                let tracked = index::tracked(&git_dir.join("index"), config.sha256)?;
                changed_to_links(work_tree, tracked)?
            }
        };
        let may_enter_new = self.enters_new || self.fetches;
        let may_become_links = match may_enter_new && self.run == GitRun::Changing {
            true => work_tree::repositories(work_tree)?,
            false => Vec::new(),
        };
        // Git takes settings out of the environment before it starts itself in a submodule.
        let run = std::mem::replace(&mut self.run, GitRun::Usual);
        let lenders = std::slice::from_ref(common_dir);
        let links: BTreeSet<PathBuf> = [links, became_links, may_become_links]
            .concat()
            .into_iter()
            .collect();
        let are_plain = links.iter().all(|link| {
            let folder = work_tree.join(link);
            let is_here = folder.starts_with(work_tree) && !is_led_elsewhere(work_tree, link);
            // What is not checked out has no `.git`, and git leaves it alone.
            is_here
                && (kind(&folder.join(".git")) == EntryKind::Absent
                    || self.is_plain_at(&folder, lenders))
        });
        self.run = run;
        are_plain.then_some(config)
    }

    /// Checks that all repositories of submodules that are kept in a folder, at any depth, are plain, with work trees
    /// that fulfil `is_inside`. In one of a submodule lies that of another whose name goes on, between git's own folders.
    fn are_kept_plain(
        &mut self,
        folder: &Path,
        is_repository: bool,
        is_inside: &dyn Fn(&Path) -> bool,
    ) -> bool {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return error.kind() == ErrorKind::NotFound,
        };
        for entry in entries {
            let Ok(entry) = entry else {
                return false;
            };
            let place = entry.path();
            let is_file = entry.file_type().is_ok_and(|found| found.is_file());
            if is_repository && is_file {
                continue;
            }
            if is_repository && GITS_FOLDERS.iter().any(|name| place.ends_with(name)) {
                // The name of a submodule may begin as that of git's own folder does: `lib/info`.
                if may_hold_repository(&place) {
                    return false;
                }
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else {
                return false;
            };
            self.left = left;
            let is_repository = kind(&place.join("HEAD")) != EntryKind::Absent;
            let is_plain_config = |name| {
                let config = config::read_plain(&place.join(name));
                config.is_some_and(|config| match config.worktree {
                    None => true,
                    Some(named) => name == "config" && is_inside(&clean(&place.join(named))),
                })
            };
            let is_plain = kind(&place) == EntryKind::Folder
                && (!is_repository
                    || is_plain_config("config")
                        && is_plain_config("config.worktree")
                        && kind(&place.join("commondir")) == EntryKind::Absent
                        && names_no_other(&place)
                        && !has_hooks(&place)
                        && !holds_links(&place, false))
                && self.are_kept_plain(&place, is_repository, is_inside);
            if !is_plain {
                return false;
            }
        }
        true
    }
}

/// Checks for a folder on the way to something tracked that has become a link.
fn lie_behind_links(work_tree: &Path, tracked: &[PathBuf]) -> bool {
    let mut folders = HashSet::new();
    tracked.iter().any(|path| {
        let above = path.ancestors().skip(1);
        let mut new = above.take_while(|it| !it.as_os_str().is_empty() && folders.insert(*it));
        new.any(|folder| kind(&work_tree.join(folder)) == EntryKind::Other)
    })
}

/// Of what is tracked, the paths that have become folders with a repository in them: submodules to those who look for
/// changes. `None` if a folder on the way has become a link: git may show files behind it.
fn changed_to_links(work_tree: &Path, mut tracked: Vec<PathBuf>) -> Option<Vec<PathBuf>> {
    if lie_behind_links(work_tree, &tracked) {
        return None;
    }
    tracked.retain(|path| {
        let place = work_tree.join(path);
        kind(&place) == EntryKind::Folder && kind(&place.join(".git")) != EntryKind::Absent
    });
    Some(tracked)
}
