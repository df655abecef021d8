//! Decides whether a git command may run in a folder without approval.
//!
//! Git starts programs named in a repository's configuration (`core.fsmonitor`, diff drivers, filters,
//! hooks), and treats some folders as repositories that nobody created as such. A repository is *plain* if
//! everything that git reads from it is known to name no program. The checks only read the disk; anything not
//! understood is not plain.

mod commit_args;
mod config;
mod covered_commands;
mod covered_options;
#[cfg(test)]
mod embedded_repository_tests;
pub(crate) mod environment;
mod git_dir;
mod index;

#[cfg(test)]
mod attack_vector_tests;
#[cfg(test)]
mod attack_vectors;
mod content_disclosure;
#[cfg(test)]
mod content_disclosure_tests;
#[cfg(test)]
mod covered_command_tests;
#[cfg(test)]
mod hostile_file_tests;
#[cfg(test)]
mod ignored_repository_tests;
#[cfg(test)]
mod pointer_tests;
mod remotes;
#[cfg(test)]
mod repository_layout_tests;
mod work_tree;
#[cfg(test)]
mod written_file_tests;

use super::{command_line::SimpleCommand, program_name};
use crate::{
    Workspace,
    workspace::{canonicalize, normalise_lexically},
};
pub(crate) use commit_args::{is_index_commit, words_but_messages};
use config::PlainConfig;
pub(crate) use content_disclosure::{
    may_follow_link, may_quote_linked_file, may_show_content, may_show_untracked, may_track,
    may_track_more, pathspec_folders, settings_files, shows_only_tracked,
};
pub use environment::GitSettings;
use git_dir::{
    EntryKind, are_work_tree_heads_valid, can_git_enter, entry_kind, find_common_dir,
    git_dir_has_links, has_foreign_symbolic_ref, has_hooks, has_link_on_path,
    has_no_pending_operation, is_self_contained, is_valid_head, may_be_git_dir, may_be_tracked,
    may_contain_repository, points_back, read_pointer,
};
use remotes::{RemoteAccess, may_fetch_submodules};
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Git's own folders in a repository, in which no submodules are stored.
const GIT_DIR_FOLDERS: &[&str] = &[
    "branches", "hooks", "info", "lfs", "logs", "objects", "refs", "rr-cache",
];
/// Maximum number of repositories that one command may involve, including submodules.
const MAX_REPOSITORIES: usize = 64;

/// Conditions under which a checked git command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitRun {
    /// Read-only, in the [hardened environment](environment); the kernel denies access to files elsewhere.
    Confined,
    /// Read-only, in the hardened environment.
    Hardened,
    /// Read-only, in the usual environment, in which hooks run: there must be none.
    Usual,
    /// May change files, the index or refs, in the usual environment, in which hooks run: there must be none.
    Changing,
}

impl GitRun {
    fn runs_hooks(self) -> bool {
        matches!(self, Self::Usual | Self::Changing)
    }
}

/// Returns true if the program runs git in its working directory.
pub(crate) fn is_git(command: &SimpleCommand) -> bool {
    let program = program_name::base_name(&command.name);
    matches!(program, "git" | "gh") || program.starts_with("git-") && !program.contains('.')
}

/// Returns true if a git command, started in any of `bases`, runs nothing that a repository names.
pub(crate) fn runs_no_configured_program(
    command: &SimpleCommand,
    bases: &[PathBuf],
    workspace: &Workspace,
    run: GitRun,
) -> bool {
    let command = &covered_commands::as_plain_git(command);
    if starts_gpg(command) {
        return false;
    }
    let Some(folders) = working_folders(command, bases) else {
        return false;
    };
    if run.runs_hooks() && !covered_commands::may_be_covered(command) {
        return false;
    }
    let mut check = RepositoryCheck {
        roots: workspace.roots(),
        run,
        is_blame: content_disclosure::is_blame(command),
        applies_patches: run.runs_hooks() && covered_commands::applies_patches(command),
        may_enter_new_submodules: classify_change(command) != GitChange::Nothing,
        fetches_submodules: run.runs_hooks() && may_fetch_submodules(command),
        remote_access: match run.runs_hooks() {
            true => RemoteAccess::from_command(command),
            false => RemoteAccess::None,
        },
        repository_budget: MAX_REPOSITORIES,
    };
    // Outside a repository git follows this link.
    let reads_link = |folder: &Path| {
        run != GitRun::Confined
            && has_word(command, "shortlog")
            && entry_kind(&folder.join(".mailmap")) == EntryKind::Other
    };
    let copies_files =
        |folder: &Path| run.runs_hooks() && covered_commands::may_copy_files(command, folder);
    let mut seen = HashSet::new();
    folders.iter().all(|folder| {
        canonicalize(folder).is_ok_and(|folder| {
            !reads_link(&folder)
                && !covered_commands::may_place_hooks(command, &folder)
                && !copies_files(&folder)
                && !check.remote_access.names_local_path(&folder)
                && (!seen.insert(folder.clone()) || check.finds_plain_repository(&folder))
        })
    })
}

fn has_word(command: &SimpleCommand, word: &str) -> bool {
    command
        .args
        .iter()
        .any(|arg| arg.known_text() == Some(word))
}

/// Change by a git command that affects later git commands of the same line, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GitChange {
    /// No change to the checked repository.
    Nothing,
    /// Possibly another submodule, which git does not enter until the index is committed.
    Index,
    /// Possibly other files, including a repository.
    WorkTree,
}

/// Returns the change that the command may make.
pub(crate) fn classify_change(command: &SimpleCommand) -> GitChange {
    let first = command.args.first().and_then(|arg| arg.known_text());
    // To `git-checkout` the first word is no subcommand.
    match first.filter(|_| program_name::base_name(&command.name) == "git") {
        Some("branch" | "fetch" | "push" | "remote" | "tag") => GitChange::Nothing,
        Some("add" | "commit") => GitChange::Index,
        _ => GitChange::WorkTree,
    }
}

/// Returns true if a format or sort order asks for the signer of a commit, for which git starts gpg: `%G?`,
/// `%+GS`, `%(*signature)`, `--sort=signature`.
fn starts_gpg(command: &SimpleCommand) -> bool {
    let mut words = command.known_args();
    // These have no formats, but messages and names of files.
    let subcommand = words.clone().next();
    if matches!(subcommand, Some("add" | "commit")) && command.name == "git" {
        return false;
    }
    // Files in the archive may have formats, if the repository says so (`export-subst`).
    if subcommand == Some("archive") {
        return true;
    }
    let mut is_sort_key = false;
    words.any(|word| {
        let is_option = word.starts_with("--s") || is_sort_key;
        is_sort_key = word.starts_with("--so");
        word.contains("signature") && (is_option || word.contains("%("))
            || word
                .split('%')
                .skip(1)
                .any(|rest| rest.trim_start_matches(['+', '-', ' ']).starts_with('G'))
    })
}

/// Returns the folders in which the command works: the bases, changed by `-C`. `None` if an option names the
/// repository.
pub(crate) fn working_folders(command: &SimpleCommand, bases: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let mut folders = bases.to_vec();
    let mut args = command.args.iter();
    while let Some(option) = args.next().and_then(|arg| arg.known_text()) {
        match option {
            "-C" => {
                let to = args.next()?.known_text()?;
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

/// Check of the repositories that a git command finds.
struct RepositoryCheck<'a> {
    roots: &'a [PathBuf],
    run: GitRun,
    /// True for `git blame`, which reads lists of ignored commits that the user's configuration names in the
    /// work tree.
    is_blame: bool,
    /// True if the command follows links that the index does not record.
    applies_patches: bool,
    /// True if folders may become submodules that the command enters.
    may_enter_new_submodules: bool,
    /// True if the command may fetch submodules.
    fetches_submodules: bool,
    /// Remotes that the command may contact.
    remote_access: RemoteAccess,
    /// Number of repositories that may still be checked.
    repository_budget: usize,
}

/// Folders of a repository.
struct Repository<'a> {
    /// Folder in which the files are checked out.
    work_tree: &'a Path,
    /// Folder that `.git` is or points to.
    git_dir: PathBuf,
    /// Folder shared by all work trees; equals `git_dir` unless this is a linked work tree.
    common_dir: PathBuf,
}

impl RepositoryCheck<'_> {
    /// Returns true if git, started in `folder`, finds a plain repository or none.
    fn finds_plain_repository(&mut self, folder: &Path) -> bool {
        for above in folder.ancestors() {
            match entry_kind(&above.join(".git")) {
                EntryKind::Absent => {}
                // Without its `.git`, git would take such a folder itself.
                EntryKind::Folder | EntryKind::File => {
                    let may_change = self.run.runs_hooks() && may_be_git_dir(above);
                    return !may_change && self.is_plain_work_tree(above, &[]);
                }
                EntryKind::Other => return false,
            }
            if may_be_git_dir(above) {
                return false;
            }
        }
        true
    }

    /// Returns true if the repository of `work_tree/.git` is plain. `allowed_git_dirs` are folders besides
    /// the roots that may contain the repository's folder.
    fn is_plain_work_tree(&mut self, work_tree: &Path, allowed_git_dirs: &[PathBuf]) -> bool {
        let Some(left) = self.repository_budget.checked_sub(1) else {
            return false;
        };
        self.repository_budget = left;
        let dot_git = work_tree.join(".git");
        match entry_kind(&dot_git) {
            EntryKind::Folder => {
                let is_linked = entry_kind(&dot_git.join("commondir")) != EntryKind::Absent;
                let repository = Repository {
                    work_tree,
                    git_dir: dot_git.clone(),
                    common_dir: dot_git,
                };
                !is_linked && self.check_repository(&repository).is_some()
            }
            EntryKind::File => self.check_git_file(work_tree, allowed_git_dirs).is_some(),
            EntryKind::Absent | EntryKind::Other => false,
        }
    }

    /// Like `is_plain_work_tree`, for a `.git` file, which names the folder of a submodule or a linked work
    /// tree.
    fn check_git_file(&mut self, work_tree: &Path, allowed_git_dirs: &[PathBuf]) -> Option<()> {
        let dot_git = work_tree.join(".git");
        let target = read_pointer(&dot_git)?;
        let target = target.strip_prefix("gitdir: ")?;
        let git_dir = canonicalize(&work_tree.join(target)).ok()?;
        let common_dir = match entry_kind(&git_dir.join("commondir")) {
            EntryKind::Absent => git_dir.clone(),
            EntryKind::File => {
                let worktrees = git_dir.parent()?;
                let common = worktrees.parent()?;
                let named = find_common_dir(&git_dir)?;
                let is_usual = worktrees.ends_with("worktrees")
                    && canonicalize(&named).ok()?.as_path() == common
                    && points_back(&git_dir, &dot_git);
                is_usual.then(|| common.to_owned())?
            }
            EntryKind::Folder | EntryKind::Other => return None,
        };
        if may_be_tracked(&git_dir) || may_be_tracked(&common_dir) {
            return None;
        }
        let repository = Repository {
            work_tree,
            git_dir,
            common_dir,
        };
        let config = self.check_repository(&repository)?;
        let git_dir = &repository.git_dir;
        let is_named = match &config.worktree {
            Some(named) => {
                let named = canonicalize(&git_dir.join(named)).ok()?;
                (named == canonicalize(work_tree).ok()?).then_some(true)?
            }
            None => false,
        };
        let mut known = self.roots.iter().chain(allowed_git_dirs);
        let is_known = known.any(|root| git_dir.starts_with(root));
        (is_known || is_named || points_back(git_dir, &dot_git)).then_some(())
    }

    fn check_repository(&mut self, repository: &Repository<'_>) -> Option<PlainConfig> {
        let Repository {
            work_tree,
            git_dir,
            common_dir,
        } = repository;
        let is_linked = git_dir != common_dir;
        // Linked hooks are common, and the sandbox denies access to their targets.
        let may_link_hooks = self.run == GitRun::Confined;
        let is_whole = is_valid_head(&git_dir.join("HEAD"))
            && entry_kind(&common_dir.join("objects")) == EntryKind::Folder
            && entry_kind(&common_dir.join("refs")) == EntryKind::Folder
            && can_git_enter(git_dir, common_dir)
            && is_self_contained(common_dir)
            && are_work_tree_heads_valid(common_dir)
            && !git_dir_has_links(git_dir, may_link_hooks)
            && !(is_linked && git_dir_has_links(common_dir, may_link_hooks));
        if !is_whole {
            return None;
        }
        // Git follows such a link and quotes what it does not understand.
        if self.run.runs_hooks()
            && (has_foreign_symbolic_ref(common_dir)
                || is_linked && has_foreign_symbolic_ref(git_dir))
        {
            return None;
        }
        let is_linked_file = entry_kind(&work_tree.join(".gitmodules")) == EntryKind::Other;
        if is_linked_file && self.run != GitRun::Confined {
            return None;
        }
        if self.is_blame
            && self.run != GitRun::Confined
            && work_tree::links_lead_outside(work_tree, self.roots)
        {
            return None;
        }
        if self.applies_patches && work_tree::links_lead_astray(work_tree) {
            return None;
        }
        let config = config::read_plain_config(&common_dir.join("config"))?;
        let of_work_tree = config::read_plain_config(&git_dir.join("config.worktree"))?;
        let is_own = git_dir.ends_with(".git") || is_linked;
        if of_work_tree.worktree.is_some() || config.worktree.is_some() && is_own {
            return None;
        }
        // If the user's own format is `ssh`, git signs with the file of that name.
        let mut keys = config.signing_keys.union(&of_work_tree.signing_keys);
        if self.run.runs_hooks()
            && keys.any(|key| entry_kind(&work_tree.join(key)) != EntryKind::Absent)
        {
            return None;
        }
        let has_hooks =
            config.has_hooks_path || of_work_tree.has_hooks_path || has_hooks(common_dir);
        if self.run.runs_hooks() && has_hooks {
            return None;
        }
        if self.run.runs_hooks()
            && !(has_no_pending_operation(git_dir)
                && (!is_linked || has_no_pending_operation(common_dir)))
        {
            return None;
        }
        // The stash that the next commit applies may be a ref, and with reftables the list of tables may
        // point anywhere.
        if self.run != GitRun::Confined && (config.has_reftable || of_work_tree.has_reftable) {
            return None;
        }
        if !self
            .remote_access
            .avoids_local_repositories(work_tree, &[&config, &of_work_tree])
        {
            return None;
        }
        let links = index::read_gitlinks(&git_dir.join("index"), config.uses_sha256)?;
        let modules = [
            common_dir.join("modules"),
            git_dir.join("modules"),
            work_tree.join(".gitmodules"),
        ];
        let has_submodules = config.has_submodules
            || of_work_tree.has_submodules
            || !links.is_empty()
            || modules
                .iter()
                .any(|path| entry_kind(path) != EntryKind::Absent);
        if self.fetches_submodules && has_submodules {
            return None;
        }
        // A merge, a diff or a push looks there for a submodule's commits and uses the configuration that it
        // finds.
        let looks_there =
            self.may_enter_new_submodules || matches!(self.remote_access, RemoteAccess::Pushes(_));
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
        if self.run.runs_hooks()
            && looks_there
            && !kept.all(|it| self.are_stored_submodules_plain(&it, false, &is_inside))
        {
            return None;
        }
        let became_links = match self.run {
            GitRun::Confined => Vec::new(),
            GitRun::Hardened | GitRun::Usual | GitRun::Changing => {
                let tracked =
                    index::read_tracked_paths(&git_dir.join("index"), config.uses_sha256)?;
                find_embedded_repositories(work_tree, tracked)?
            }
        };
        let may_enter_new = self.may_enter_new_submodules || self.fetches_submodules;
        let may_become_links = match may_enter_new && self.run == GitRun::Changing {
            true => work_tree::find_repositories(work_tree)?,
            false => Vec::new(),
        };
        // Git removes its settings from the environment before it starts itself in a submodule.
        let run = std::mem::replace(&mut self.run, GitRun::Usual);
        let allowed_git_dirs = std::slice::from_ref(common_dir);
        let links: BTreeSet<PathBuf> = [links, became_links, may_become_links]
            .concat()
            .into_iter()
            .collect();
        let are_plain = links.iter().all(|link| {
            let folder = work_tree.join(link);
            let is_here = folder.starts_with(work_tree) && !has_link_on_path(work_tree, link);
            // A submodule that is not checked out has no `.git`, and git skips it.
            is_here
                && (entry_kind(&folder.join(".git")) == EntryKind::Absent
                    || self.is_plain_work_tree(&folder, allowed_git_dirs))
        });
        self.run = run;
        are_plain.then_some(config)
    }

    /// Checks that all submodule repositories stored in a folder, at any depth, are plain and have work trees
    /// that fulfil `is_inside`. A submodule whose name continues that of another is stored inside the other's
    /// repository, next to git's own folders.
    fn are_stored_submodules_plain(
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
            if is_repository && GIT_DIR_FOLDERS.iter().any(|name| place.ends_with(name)) {
                // A submodule's name may start like one of git's own folders: `lib/info`.
                if may_contain_repository(&place) {
                    return false;
                }
                continue;
            }
            let Some(left) = self.repository_budget.checked_sub(1) else {
                return false;
            };
            self.repository_budget = left;
            let is_repository = entry_kind(&place.join("HEAD")) != EntryKind::Absent;
            let is_plain_config = |name| {
                let config = config::read_plain_config(&place.join(name));
                config.is_some_and(|config| match config.worktree {
                    None => true,
                    Some(named) => {
                        name == "config" && is_inside(&normalise_lexically(&place.join(named)))
                    }
                })
            };
            let is_plain = entry_kind(&place) == EntryKind::Folder
                && (!is_repository
                    || is_plain_config("config")
                        && is_plain_config("config.worktree")
                        && entry_kind(&place.join("commondir")) == EntryKind::Absent
                        && is_self_contained(&place)
                        && !has_hooks(&place)
                        && !has_foreign_symbolic_ref(&place)
                        && !git_dir_has_links(&place, false))
                && self.are_stored_submodules_plain(&place, is_repository, is_inside);
            if !is_plain {
                return false;
            }
        }
        true
    }
}

/// Returns true if a folder on the way to a tracked path has become a link.
fn are_behind_links(work_tree: &Path, tracked: &[PathBuf]) -> bool {
    let mut folders = HashSet::new();
    tracked.iter().any(|path| {
        let above = path.ancestors().skip(1);
        let mut new = above.take_while(|it| !it.as_os_str().is_empty() && folders.insert(*it));
        new.any(|folder| entry_kind(&work_tree.join(folder)) == EntryKind::Other)
    })
}

/// Returns the tracked paths that have become folders with a repository in them: commands that look for
/// changes treat them as submodules. `None` if a folder on the way has become a link, because git may show
/// files behind it.
fn find_embedded_repositories(work_tree: &Path, mut tracked: Vec<PathBuf>) -> Option<Vec<PathBuf>> {
    if are_behind_links(work_tree, &tracked) {
        return None;
    }
    tracked.retain(|path| {
        let place = work_tree.join(path);
        entry_kind(&place) == EntryKind::Folder
            && entry_kind(&place.join(".git")) != EntryKind::Absent
    });
    Some(tracked)
}
