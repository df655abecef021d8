//! Settings of the sandbox, and the confinement that they make for one command.

use super::{Confinement, SandboxSupport, places};
use std::{
    env,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// How far commands are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// Not at all.
    #[default]
    Off,
    /// They write to the session's roots, temporary folders and caches only.
    Workspace,
    /// They write nothing.
    ReadOnly,
}

impl SandboxMode {
    /// All modes, from the widest to the narrowest.
    pub const ALL: [Self; 3] = [Self::Off, Self::Workspace, Self::ReadOnly];

    /// The word for it in configuration and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::ReadOnly => "read-only",
        }
    }

    /// Whether commands may do more under this mode than under `other`.
    #[must_use]
    pub fn is_wider_than(self, other: Self) -> bool {
        let place = |mode| Self::ALL.iter().position(|it| *it == mode);
        place(self) < place(other)
    }
}

/// How the commands of the shell tool are confined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// How far.
    pub mode: SandboxMode,
    /// Whether approved commands may use the network.
    pub network: bool,
    /// Whether approved commands run here, confined, even if the client lends terminals, where nothing
    /// confines them.
    pub replaces_terminals: bool,
    /// Files and folders that no command reads or writes, such as turnery's own.
    pub private: Vec<PathBuf>,
    /// Files that hold keys: no command reads or writes them, unless they lie among files that commands write.
    pub key_files: Vec<PathBuf>,
}

impl SandboxSettings {
    /// Whether commands are confined: wanted, and possible on this system.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.mode != SandboxMode::Off && SandboxSupport::detect().is_usable()
    }

    /// One sentence for people: what holds for the commands of a session. `has_terminals`: the client
    /// lends terminals.
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

    /// The confinement of one command; `None` if it is not confined. `only_reads`: the command is known to only read, so it
    /// gets no more than that.
    #[must_use]
    pub fn confinement(
        &self,
        roots: &[PathBuf],
        surroundings: &Surroundings,
        only_reads: bool,
    ) -> Option<Confinement> {
        if !self.is_active() {
            return None;
        }
        let toolchains = (places::TOOLCHAIN_VARIABLES.iter().copied()).chain(["PATH"]);
        let mut temporary = vec![env::temp_dir()];
        temporary.extend([places::TEMPORARY, "/var/tmp", "/dev/shm"].map(PathBuf::from));
        // New files can be allowed in a whole folder only. One that holds keys is read like any other folder.
        let home = env::home_dir().map(resolved);
        let keys = home.iter().chain(&self.private).chain(&self.key_files);
        let keys: Vec<PathBuf> = keys.map(resolved).collect();
        temporary.retain(|folder| {
            let folder = resolved(folder);
            !keys.iter().any(|key| key.starts_with(&folder))
        });
        let mut confinement = Confinement {
            writes: self.mode == SandboxMode::Workspace && !only_reads,
            network: self.network && !only_reads,
            roots: roots.to_vec(),
            work_trees: surroundings.work_trees.clone(),
            home,
            temporary,
            scratch: None,
            toolchains: toolchains.flat_map(folders_of).collect(),
            caches: named(places::CACHE_VARIABLES, folders_of),
            private: self.private.clone(),
        };
        // A key among files that commands write is one of theirs; to leave it out would refuse all new files beside it.
        let writable = confinement.writable();
        let is_apart = |key: &PathBuf| !writable.iter().any(|it| key.starts_with(it));
        // Without links: one that lies among those files may lead elsewhere.
        let named: Vec<PathBuf> = self.named_keys(roots).into_iter().map(resolved).collect();
        let before = surroundings.keys.get_or_init(|| named.clone());
        let further = before.iter().chain(&named).filter(|key| is_apart(key));
        confinement.private.extend(further.cloned());
        confinement.private.sort();
        confinement.private.dedup();
        Some(confinement)
    }

    /// Files and folders of keys that settings and variables name.
    fn named_keys(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let home = env::home_dir();
        let found = |variable: &str| key_paths(variable, roots, home.as_deref());
        let below = |usual: &str| -> Vec<&str> {
            let keys = places::KEYS.iter().chain(places::PROFILES);
            keys.filter_map(|key| key.strip_prefix(usual)).collect()
        };
        [
            self.key_files.clone(),
            named(places::KEY_VARIABLES, found),
            named(&[("XDG_CONFIG_HOME", &below(".config/"))], folders_of),
            named(&[("XDG_DATA_HOME", &below(".local/share/"))], folders_of),
        ]
        .concat()
    }
}

/// Repositories and keys around the roots, as they were before a session's first command: changes by commands open nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// For each root the nearest folder with a `.git`.
    work_trees: Vec<PathBuf>,
    /// Files and folders of keys that settings and variables name, with links resolved. Found with the first command: many
    /// sessions have none.
    keys: OnceLock<Vec<PathBuf>>,
}

impl Surroundings {
    /// Looks around `roots` for commands that are confined like this. Reads the disk.
    #[must_use]
    pub fn new(roots: &[PathBuf], settings: &SandboxSettings) -> Self {
        if !settings.is_active() {
            return Self::default();
        }
        Self {
            work_trees: work_trees(roots),
            keys: OnceLock::new(),
        }
    }
}

pub(super) fn work_trees(roots: &[PathBuf]) -> Vec<PathBuf> {
    let has_git = |it: &&Path| it.join(".git").symlink_metadata().is_ok();
    let tops = roots
        .iter()
        .filter_map(|root| root.ancestors().find(has_git));
    tops.map(Path::to_owned).collect()
}

/// The absolute paths in a variable, which may hold several.
fn folders_of(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    let paths = env::split_paths(&value).filter(|it| it.is_absolute());
    paths.collect()
}

/// Paths in a variable that names keys, one of them or several: relative ones as a program in turnery's folder or in one of
/// the roots reads them, and those below `~`, which some programs know.
fn key_paths(variable: &str, roots: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
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

/// Paths of these names below the folders that `found` gives for each variable.
fn named(table: &[(&str, &[&str])], found: impl Fn(&str) -> Vec<PathBuf>) -> Vec<PathBuf> {
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

fn resolved(path: impl AsRef<Path>) -> PathBuf {
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
            let confinement =
                settings(private, key_files).confinement(&roots, &Surroundings::default(), false);
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
        let folder = crate::sandbox::folder_beside_tests();
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
        let surroundings = Surroundings::new(&roots, &settings);
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
