//! Settings of the sandbox, and the confinement of a command derived from them.

use super::{
    confinement::{Confinement, SandboxSupport},
    known_paths,
};
use std::{
    env,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// Degree to which commands are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Commands are not confined.
    #[default]
    Off,
    /// Commands write only to the session's roots, temporary folders and caches.
    Workspace,
    /// Commands write nothing.
    ReadOnly,
}

impl SandboxMode {
    /// All modes, from the widest to the narrowest.
    pub const ALL: [Self; 3] = [Self::Off, Self::Workspace, Self::ReadOnly];

    /// Returns the mode's name in configuration and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::ReadOnly => "read-only",
        }
    }

    /// Returns true if commands may do more under this mode than under `other`.
    #[must_use]
    pub fn is_wider_than(self, other: Self) -> bool {
        let place = |mode| Self::ALL.iter().position(|it| *it == mode);
        place(self) < place(other)
    }
}

/// Sandbox settings of the shell tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// Degree to which commands are confined.
    pub mode: SandboxMode,
    /// Approved commands may use the network.
    pub network: bool,
    /// Approved commands run locally, confined, even if the client has terminals, where they would not be.
    pub replaces_terminals: bool,
    /// Files and folders that no command reads or writes, such as turnery's own.
    pub private: Vec<PathBuf>,
    /// The git folder outside of the roots belongs to another work tree: commands read it and do not write it.
    pub is_git_folder_read_only: bool,
    /// Key files that no command reads or writes, unless they are among files that commands write.
    pub key_files: Vec<PathBuf>,
}

impl SandboxSettings {
    /// Returns true if commands are confined: the mode is not `Off`, and the system supports it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.mode != SandboxMode::Off && SandboxSupport::detect().is_usable()
    }

    /// Describes in one sentence how the commands of a session are confined. `has_terminals`: the client
    /// provides terminals.
    #[must_use]
    pub fn describe(&self, has_terminals: bool) -> String {
        let support = SandboxSupport::detect();
        let network = match self.network {
            true => "can use the network",
            false => "have no network",
        };
        match self.mode {
            SandboxMode::Off => "Commands are not confined: the sandbox is off.".to_owned(),
            SandboxMode::Workspace | SandboxMode::ReadOnly if !support.is_usable() => {
                format!("{}.", support.describe())
            }
            SandboxMode::Workspace | SandboxMode::ReadOnly
                if has_terminals && !self.replaces_terminals =>
            {
                "Commands that only read are confined; approved ones run in the editor's terminals and are not, unless you set `sandbox`.".to_owned()
            }
            SandboxMode::Workspace => format!(
                "Commands write only to this session's folders, temporary folders and caches, read no keys, and {network}."
            ),
            SandboxMode::ReadOnly => format!("Commands write nothing, read no keys, and {network}."),
        }
    }

    /// Returns the confinement of one command; `None` if it is not confined. `only_reads`: the command is
    /// known to be read-only, so it may do no more than read.
    #[must_use]
    pub fn confinement(
        &self,
        roots: &[PathBuf],
        baseline: &SandboxBaseline,
        only_reads: bool,
    ) -> Option<Confinement> {
        if !self.is_active() {
            return None;
        }
        let toolchains = (known_paths::TOOLCHAIN_VARIABLES.iter().copied()).chain(["PATH"]);
        let mut temporary = vec![env::temp_dir()];
        temporary
            .extend([known_paths::TEMPORARY_FOLDER, "/var/tmp", "/dev/shm"].map(PathBuf::from));
        // New files can only be allowed in a whole folder. A folder with keys is read like any other.
        let home = env::home_dir().map(canonicalize_or_keep);
        let keys = home.iter().chain(&self.private).chain(&self.key_files);
        let keys: Vec<PathBuf> = keys.map(canonicalize_or_keep).collect();
        temporary.retain(|folder| {
            let folder = canonicalize_or_keep(folder);
            !keys.iter().any(|key| key.starts_with(&folder))
        });
        let mut confinement = Confinement {
            writes: self.mode == SandboxMode::Workspace && !only_reads,
            network: self.network && !only_reads,
            roots: roots.to_vec(),
            work_trees: baseline.work_trees.clone(),
            projects: baseline.projects.clone(),
            home,
            temporary,
            scratch: None,
            toolchains: toolchains.flat_map(absolute_paths_in).collect(),
            caches: paths_below(known_paths::CACHE_VARIABLES, absolute_paths_in),
            private: self.private.clone(),
            is_git_folder_read_only: self.is_git_folder_read_only,
            hidden: Vec::new(),
        };
        // A key among files that commands write belongs to them; excluding it would prevent all new files
        // beside it.
        let writable = confinement.writable();
        let is_apart = |key: &PathBuf| !writable.iter().any(|it| key.starts_with(it));
        // Resolved, since a link among those files may lead elsewhere.
        let named: Vec<PathBuf> = self
            .find_named_keys(roots)
            .into_iter()
            .map(canonicalize_or_keep)
            .collect();
        let before = baseline.keys.get_or_init(|| named.clone());
        let further = before.iter().chain(&named).filter(|key| is_apart(key));
        confinement.private.extend(further.cloned());
        confinement.private.sort();
        confinement.private.dedup();
        Some(confinement)
    }

    /// Returns the files and folders of keys that settings and variables name.
    fn find_named_keys(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let home = env::home_dir();
        let found = |variable: &str| key_paths_in(variable, roots, home.as_deref());
        let below = |usual: &str| -> Vec<&str> {
            let keys = known_paths::KEY_PATHS
                .iter()
                .chain(known_paths::APPLICATION_PROFILES);
            keys.filter_map(|key| key.strip_prefix(usual)).collect()
        };
        [
            self.key_files.clone(),
            paths_below(known_paths::KEY_VARIABLES, found),
            paths_below(
                &[("XDG_CONFIG_HOME", &below(".config/"))],
                absolute_paths_in,
            ),
            paths_below(
                &[("XDG_DATA_HOME", &below(".local/share/"))],
                absolute_paths_in,
            ),
        ]
        .concat()
    }
}

/// Repositories around the roots and key files named by settings and variables, found before a session's
/// first command, so that commands cannot widen their access by moving them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxBaseline {
    /// For each root the nearest folder with a `.git`.
    work_trees: Vec<PathBuf>,
    /// All folders with a `.git` around the roots, except those that contain the home folder.
    projects: Vec<PathBuf>,
    /// Files and folders of keys that settings and variables name, links resolved. Determined at the first
    /// command, since many sessions run none.
    keys: OnceLock<Vec<PathBuf>>,
}

impl SandboxBaseline {
    /// Finds the surroundings of `roots` for commands with these settings. Reads the disk.
    #[must_use]
    pub fn new(roots: &[PathBuf], settings: &SandboxSettings) -> Self {
        if !settings.is_active() {
            return Self::default();
        }
        Self {
            work_trees: find_work_trees(roots),
            projects: find_projects(roots, env::home_dir().map(canonicalize_or_keep).as_deref()),
            keys: OnceLock::new(),
        }
    }
}

pub(super) fn find_work_trees(roots: &[PathBuf]) -> Vec<PathBuf> {
    let tops = roots
        .iter()
        .filter_map(|root| work_trees_around(root).next());
    tops.map(Path::to_owned).collect()
}

/// Returns all work trees that contain a root, except `/` and those that contain the home folder, in which
/// links are the user's.
pub(super) fn find_projects(roots: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let tops = roots.iter().flat_map(|root| work_trees_around(root));
    let inside = tops
        .filter(|top| top.parent().is_some() && !home.is_some_and(|home| home.starts_with(top)));
    inside.map(Path::to_owned).collect()
}

/// Returns the folders with a `.git` around a root, the nearest first.
fn work_trees_around(root: &Path) -> impl Iterator<Item = &Path> {
    root.ancestors()
        .filter(|it| it.join(".git").symlink_metadata().is_ok())
}

/// Returns the absolute paths in a variable, which may list several.
fn absolute_paths_in(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    let paths = env::split_paths(&value).filter(|it| it.is_absolute());
    paths.collect()
}

/// Returns the paths in a variable that names one or several keys: relative paths as seen from turnery's
/// folder and from each root, and those below `~`, which some programs expand.
fn key_paths_in(variable: &str, roots: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    let own = env::current_dir().ok();
    let bases: Vec<&Path> = roots.iter().chain(&own).map(PathBuf::as_path).collect();
    let whole = PathBuf::from(&value);
    let several = env::split_paths(&value).filter(|path| *path != whole);
    let paths = several
        .chain([whole.clone()])
        .filter(|path| !path.as_os_str().is_empty());
    let absolute = |path: PathBuf| -> Vec<PathBuf> {
        let in_home = path.strip_prefix("~").ok().zip(home);
        let in_home = in_home.map(|(below, home)| home.join(below));
        in_home
            .into_iter()
            .chain(bases.iter().map(|base| base.join(&path)))
            .collect()
    };
    let mut paths: Vec<PathBuf> = paths.flat_map(absolute).collect();
    paths.dedup();
    paths
}

/// Returns paths of the table's names below the folders that `found` returns for each variable.
fn paths_below(table: &[(&str, &[&str])], found: impl Fn(&str) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for (variable, names) in table {
        for folder in found(variable) {
            match names {
                [] => all.push(folder),
                names => all.extend(names.iter().map(|name| folder.join(name))),
            }
        }
    }
    all
}

fn canonicalize_or_keep(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn temporary_folder_that_holds_keys_is_not_writable() {
        let place = vec![env::temp_dir().join("home/turnery")];
        let settings = |private: &[PathBuf], key_files: &[PathBuf]| SandboxSettings {
            mode: SandboxMode::Workspace,
            private: private.to_vec(),
            key_files: key_files.to_vec(),
            ..SandboxSettings::default()
        };
        let roots = [PathBuf::from("/srv")];
        for (private, key_files, is_writable) in [
            (&place[..], &[][..], false),
            (&[], &place, false),
            (&[], &[], true),
        ] {
            let confinement = settings(private, key_files).confinement(
                &roots,
                &SandboxBaseline::default(),
                false,
            );
            assert_eq!(confinement.is_some(), SandboxSupport::detect().is_usable());
            if let Some(it) = confinement {
                assert_eq!(it.temporary.contains(&env::temp_dir()), is_writable);
                assert_eq!(it.needs_scratch(), !is_writable);
            }
        }
    }

    #[test]
    fn key_file_is_closed_unless_commands_write_beside_it() {
        if !SandboxSupport::detect().is_usable() {
            return;
        }
        let folder = crate::sandbox::temp_folder_outside_sandbox();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("root");
        fs::create_dir(&root).unwrap();
        for path in [top.join("key"), root.join("key")] {
            fs::write(path, "key").unwrap();
        }
        std::os::unix::fs::symlink(top.join("key"), root.join("link")).unwrap();
        let settings = SandboxSettings {
            mode: SandboxMode::Workspace,
            key_files: vec![root.join("key"), root.join("link")],
            ..SandboxSettings::default()
        };
        let roots = [root];
        let surroundings = SandboxBaseline::new(&roots, &settings);
        let closed = || -> Vec<PathBuf> {
            let confinement = settings.confinement(&roots, &surroundings, false).unwrap();
            let private = confinement.private.into_iter();
            private.filter(|it| it.starts_with(&top)).collect()
        };
        assert_eq!(closed(), [top.join("key")]);
        // A command may remove the link that leads there.
        fs::remove_file(roots[0].join("link")).unwrap();
        assert_eq!(closed(), [top.join("key")]);
    }

    #[test]
    fn modes_are_ordered_from_wide_to_narrow() {
        use SandboxMode::{Off, ReadOnly, Workspace};
        assert!(Off.is_wider_than(Workspace) && Workspace.is_wider_than(ReadOnly));
        assert!(!Workspace.is_wider_than(Workspace) && !ReadOnly.is_wider_than(Off));
    }
}
