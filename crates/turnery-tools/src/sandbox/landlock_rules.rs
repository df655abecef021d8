//! Applies landlock to the calling thread: which files a command may read and write, which TCP ports it may
//! use, and which processes it may signal.
//!
//! Landlock rules only allow, and a rule for a folder covers everything below. To exclude a path, its
//! siblings are allowed one by one, along the way down to it.

use super::{
    confinement::Confinement,
    known_paths,
    linked_keys::LinkedKeys,
    links::{self, ResolvedPath, links_within},
    repository_folders::RepositoryFolders,
    unreadable_folders,
};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};
use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
};

/// Newest landlock version whose access rights and scopes are requested; older kernels enforce those they
/// know.
const ABI_VERSION: ABI = ABI::V6;
/// Maximum number of siblings allowed for one excluded file; a larger folder takes too long to list.
const MAX_SIBLINGS: usize = 4096;

/// Returns the version of the kernel's landlock, up to the newest this crate can use.
pub(super) fn landlock_version() -> Option<u32> {
    // The library reports the version only after restricting a thread, so a thread is used for nothing else.
    let restricted = thread::spawn(|| {
        Ruleset::default()
            .handle_access(AccessFs::Execute)
            .and_then(Ruleset::create)
            .and_then(RulesetCreated::restrict_self)
    });
    effective_version(restricted.join().ok()?.ok()?.landlock)
}

fn effective_version(status: LandlockStatus) -> Option<u32> {
    match status {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u32),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    }
}

fn read_access() -> BitFlags<AccessFs> {
    AccessFs::from_read(ABI_VERSION)
}

/// Excludes creating devices, which would give root access to the disks.
fn write_access() -> BitFlags<AccessFs> {
    AccessFs::from_write(ABI_VERSION)
        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn device_access() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate
}

/// Confines the calling thread, which then has no new privileges. Returns the version of landlock.
pub(super) fn restrict(confinement: &Confinement) -> io::Result<Option<u32>> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI_VERSION))
        .and_then(|ruleset| match confinement.network {
            true => Ok(ruleset),
            false => ruleset.handle_access(AccessNet::from_all(ABI_VERSION)),
        })
        .and_then(|ruleset| ruleset.scope(Scope::from_all(ABI_VERSION)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let places = confinement.temporary_and_cache_paths();
    let mut untrusted = confinement.untrusted(&places);
    let repositories = RepositoryFolders::find(confinement, &untrusted);
    untrusted.extend(repositories.git_folders.iter().cloned());
    let mut writable = confinement.writable_among(&places, &untrusted);
    if !confinement.is_git_folder_read_only {
        writable.extend(repositories.git_folders.iter().cloned());
    }
    let rules = LandlockRules {
        ruleset,
        writable,
        untrusted,
        excluded: Vec::new(),
        is_truncated: false,
    };
    let rules = rules.add_all_rules(confinement, repositories)?;
    let status = rules.ruleset.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            Ok(effective_version(status.landlock))
        }
        RulesetStatus::NotEnforced => Err(io::Error::other("landlock is not available")),
    }
}

/// Restricts the calling thread to signalling what is confined with it or within that confinement.
pub(super) fn restrict_signals() -> io::Result<()> {
    let status = Ruleset::default()
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self)
        .map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err(io::Error::other("landlock does not confine signals"))
        }
    }
}

struct LandlockRules {
    ruleset: RulesetCreated,
    /// Paths that the session's commands can write: [`Confinement::writable`], and git folders.
    writable: Vec<PathBuf>,
    /// Folders whose links are not followed.
    untrusted: Vec<PathBuf>,
    /// Files and folders that the next rules exclude, under all their names.
    excluded: Vec<PathBuf>,
    /// A folder had more than [`MAX_SIBLINGS`] entries.
    is_truncated: bool,
}

impl LandlockRules {
    fn add_all_rules(
        mut self,
        confinement: &Confinement,
        repositories: RepositoryFolders,
    ) -> io::Result<Self> {
        let home = confinement.home.as_deref();
        let in_home = |names: &[&str]| -> Vec<PathBuf> {
            let joined = names.iter().flat_map(|name| home.map(|it| it.join(name)));
            joined.collect()
        };
        let toolchains = [
            in_home(known_paths::TOOLCHAINS),
            confinement.toolchains.clone(),
        ]
        .concat();
        let profiles = in_home(known_paths::APPLICATION_PROFILES);
        let keys = [in_home(known_paths::KEY_PATHS), confinement.private.clone()].concat();
        let existing = |paths: &[PathBuf]| -> io::Result<Vec<PathBuf>> {
            let mut existing = Vec::new();
            for path in paths {
                if unreadable_folders::exists(path)? {
                    existing.push(path.clone());
                }
            }
            Ok(existing)
        };
        let mut hidden: Vec<PathBuf> = confinement.hidden.iter().map(PathBuf::from).collect();
        // A reader opens no folder that is closed to its owner.
        hidden.retain(|path| confinement.writes || path.symlink_metadata().is_ok());
        let hidden = existing(&hidden)?;
        let (existing, existing_profiles) = (existing(&keys)?, existing(&profiles)?);
        let linked = LinkedKeys::new(&self.writable, &toolchains, home);
        let linked = linked.find_targets(&existing, &existing_profiles)?;
        let keys = [keys, profiles].concat();
        let mut links = LinkResolver::new(self.writable.clone());
        let existing = existing.iter().chain(&existing_profiles);
        self.excluded = links.resolve_all(existing.chain(&linked).chain(&hidden))?;
        let mut readable = toolchains;
        if confinement.writes {
            // Names are no secrets, and a program may look for itself or for its settings anywhere.
            self = self.allow(Path::new("/"), AccessFs::ReadDir.into())?;
            self.excluded.push("/dev".into());
            self = self.allow_below(Path::new("/"), read_access())?;
            self.excluded.pop();
            if !self.is_truncated {
                readable.clear();
            }
            readable.push("/dev/shm".into());
        } else {
            readable.extend(known_paths::SYSTEM_FOLDERS.iter().map(PathBuf::from));
            readable.extend(repositories.work_trees);
            readable.extend(repositories.git_folders);
        }
        for path in &readable {
            if let Some(path) = links::follow_links(path, &self.untrusted) {
                self = self.allow_below(&path, read_access())?;
            }
        }
        for path in known_paths::DEVICES {
            self = self.allow(Path::new(path), device_access())?;
        }
        if let Some(scratch) = &confinement.scratch {
            self = self.allow(scratch, read_access() | write_access())?;
        }
        if !confinement.writes {
            for root in &confinement.roots {
                self = self.allow(root, AccessFs::ReadDir.into())?;
                self = self.allow_files_below(root, read_access())?;
            }
            return Ok(self);
        }
        // Includes paths that do not exist yet.
        let started_later = in_home(known_paths::AUTOSTART_PATHS);
        let later = keys.iter().chain(&started_later).chain(&linked);
        self.excluded = links.resolve_all(later)?;
        for path in &std::mem::take(&mut self.writable) {
            self = self.allow_files_below(path, read_access() | write_access())?;
        }
        Ok(self)
    }

    /// Allows access to a link-free path and all files below it; in the root of the file system, except
    /// terminals and the kernel's interfaces.
    fn allow_files_below(mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<Self> {
        let before = self.excluded.len();
        if path.parent().is_none() {
            self.excluded
                .extend(known_paths::PSEUDO_FILE_SYSTEMS.map(PathBuf::from));
        }
        self = self.allow_below(path, access)?;
        self.excluded.truncate(before);
        Ok(self)
    }

    /// Allows access to a link-free path and everything below it except the excluded paths.
    fn allow_below(self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<Self> {
        let mut excluded = Vec::new();
        for other in &self.excluded {
            match other.strip_prefix(path) {
                Ok(below) => excluded.push(below.to_owned()),
                Err(_) if path.starts_with(other) => return Ok(self),
                Err(_) => {}
            }
        }
        self.allow_except(path, &excluded, access)
    }

    /// Allows access to a path and everything below it except `excluded`, which is relative to the path.
    /// Follows no link, since it may lead to an excluded path.
    fn allow_except(
        mut self,
        path: &Path,
        excluded: &[PathBuf],
        access: BitFlags<AccessFs>,
    ) -> io::Result<Self> {
        if excluded.is_empty() {
            return self.allow(path, access);
        }
        let mut by_name: HashMap<OsString, Vec<PathBuf>> = HashMap::new();
        for below in excluded {
            let mut parts = below.components();
            let Some(name) = parts.next() else {
                return Ok(self);
            };
            let deeper = by_name.entry(name.as_os_str().to_owned()).or_default();
            deeper.push(parts.as_path().to_owned());
        }
        let Ok(entries) = fs::read_dir(path) else {
            return Ok(self);
        };
        // Names are no secrets.
        self = self.allow_kind(path, access & AccessFs::ReadDir, true)?;
        let entries = entries.flatten().take(MAX_SIBLINGS + 1);
        let mut siblings: Vec<_> = entries.map(|it| (it.file_name(), it.file_type())).collect();
        let is_truncated = siblings.len() > MAX_SIBLINGS;
        siblings.truncate(MAX_SIBLINGS);
        self.is_truncated |= is_truncated;
        // The way to an excluded path stays open however many entries are listed before it.
        if is_truncated {
            siblings.retain(|(name, _)| !by_name.contains_key(name));
            let kind = |name: &OsString| Ok(fs::symlink_metadata(path.join(name))?.file_type());
            siblings.extend(by_name.keys().map(|name| (name.clone(), kind(name))));
        }
        let names: Vec<&OsStr> = siblings.iter().map(|it| it.0.as_os_str()).collect();
        let identify = |name: &OsStr| {
            let metadata = fs::symlink_metadata(path.join(name)).ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        if !exclude_other_names(&mut by_name, &names, identify) && !is_truncated {
            return Ok(self);
        }
        for (name, kind) in &siblings {
            if let Ok(kind) = kind
                && !kind.is_symlink()
            {
                let sibling = path.join(name);
                self = match by_name.get(name).map_or(&[][..], Vec::as_slice) {
                    [] => self.allow_kind(&sibling, access, kind.is_dir())?,
                    deeper => self.allow_except(&sibling, deeper, access)?,
                };
            }
        }
        Ok(self)
    }

    /// Allows access to a path and everything below it, if the path exists.
    fn allow(self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => self.allow_kind(path, access, metadata.is_dir()),
            Err(_) => Ok(self),
        }
    }

    fn allow_kind(
        mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
        is_folder: bool,
    ) -> io::Result<Self> {
        // Links were resolved before, so a link found here was planted since.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let at = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(at) => at,
            Err(Errno::NOSYS | Errno::PERM) => {
                return Err(io::Error::other("openat2 is not available"));
            }
            Err(_) => return Ok(self),
        };
        let access = match is_folder {
            true => access,
            false => access & AccessFs::from_file(ABI_VERSION),
        };
        self.ruleset = self
            .ruleset
            .add_rule(PathBeneath::new(at, access))
            .map_err(io::Error::other)?;
        Ok(self)
    }
}

/// Adds the names under which a folder lists excluded files that exist under another one: a file system that
/// ignores case finds `.SSH` as `.ssh`. Some of those have different numbers for each name. Returns false if
/// an excluded file is listed under none of `siblings`.
fn exclude_other_names<Id: PartialEq>(
    excluded: &mut HashMap<OsString, Vec<PathBuf>>,
    siblings: &[&OsStr],
    identify: impl Fn(&OsStr) -> Option<Id>,
) -> bool {
    let listed: HashSet<&OsStr> = siblings.iter().copied().collect();
    let mut others = Vec::new();
    for (name, deeper) in excluded
        .iter()
        .filter(|it| !listed.contains(it.0.as_os_str()))
    {
        let Some(id) = identify(name) else {
            continue;
        };
        let folded = name.to_string_lossy().to_lowercase();
        let is_same = |it: &&&OsStr| {
            it.to_string_lossy().to_lowercase() == folded || identify(it).as_ref() == Some(&id)
        };
        let before = others.len();
        others.extend(
            siblings
                .iter()
                .filter(is_same)
                .map(|it| (it.to_os_string(), deeper.clone())),
        );
        if others.len() == before {
            return false;
        }
    }
    for (name, deeper) in others {
        excluded.entry(name).or_default().extend(deeper);
    }
    true
}

/// Resolves links, those of each folder only once, since many of the paths are in the home folder.
struct LinkResolver {
    writable: Vec<PathBuf>,
    folders: HashMap<PathBuf, Option<ResolvedPath>>,
}

impl LinkResolver {
    fn new(writable: Vec<PathBuf>) -> Self {
        Self {
            writable,
            folders: HashMap::new(),
        }
    }

    /// Returns these paths, their link targets, and the links on the way that commands could replace.
    ///
    /// # Errors
    ///
    /// Fails if a folder on the way of a link is closed to its owner.
    fn resolve_all<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a PathBuf>,
    ) -> io::Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for path in paths {
            let resolved = match unreadable_folders::is_link(path)? {
                true => unreadable_folders::follow_link(path)?,
                false => None,
            };
            let resolved = match resolved {
                Some(resolved) => Some(resolved),
                None => self.resolve_parent(path)?,
            };
            if let Some(ResolvedPath { target, links }) = resolved {
                all.extend(links_within(links, &self.writable));
                all.extend(Some(target).filter(|it| it != path));
            }
            all.push(path.clone());
        }
        Ok(all)
    }

    /// Resolves the links of a path's parent folder but not of its last component.
    fn resolve_parent(&mut self, path: &Path) -> io::Result<Option<ResolvedPath>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let folder = match self.folders.get(parent) {
            Some(folder) => folder.clone(),
            None => {
                let folder = unreadable_folders::follow_link(parent)?;
                self.folders.insert(parent.to_owned(), folder.clone());
                folder
            }
        };
        Ok(folder.map(|folder| ResolvedPath {
            target: folder.target.join(name),
            links: folder.links,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::tests::without_root_capabilities;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn excluded_names_are_found_in_other_case() {
        let excluded_of = |siblings: &[(&str, u32)], lookup: Option<(&str, u32)>| {
            let mut excluded = HashMap::from([("ssh".into(), vec![PathBuf::from("key")])]);
            let listed: Vec<&OsStr> = siblings.iter().map(|it| OsStr::new(it.0)).collect();
            let is_found = exclude_other_names(&mut excluded, &listed, |name| {
                let mut all = siblings.iter().chain(&lookup);
                all.find(|it| it.0 == name).map(|it| it.1)
            });
            let is_excluded = |it: &&str| excluded.contains_key(OsStr::new(it));
            let names = siblings.iter().map(|it| it.0).filter(is_excluded);
            is_found.then(|| names.collect::<Vec<_>>().join(" "))
        };
        let both = [("ssh", 1), ("SSH", 2), ("x", 3)];
        let other = [("SSH", 2), ("SSH~1", 4), ("x", 3)];
        for (siblings, lookup, expected) in [
            (&both, None, Some("ssh")),
            (&other, None, Some("")),
            (&other, Some(("ssh", 2)), Some("SSH")),
            (&other, Some(("ssh", 9)), Some("SSH")),
            (&other, Some(("ssh", 4)), Some("SSH SSH~1")),
            (&[("a", 2), ("SSH~1", 4), ("x", 3)], Some(("ssh", 9)), None),
        ] {
            let excluded = excluded_of(siblings, lookup);
            assert_eq!(excluded.as_deref(), expected, "{siblings:?} {lookup:?}");
        }
    }

    /// A command may close the folder after its links were resolved.
    #[test]
    fn link_in_unreadable_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().canonicalize().unwrap().join("closed");
        fs::create_dir(&closed).unwrap();
        let set = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
        let key = closed.join("key");
        let found = || {
            without_root_capabilities(|| {
                LinkResolver::new(Vec::new()).resolve_all([&key].into_iter())
            })
        };
        assert_eq!(found().unwrap().as_slice(), std::slice::from_ref(&key));
        set(0o000);
        let refused = found();
        set(0o755);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("chmod u+rx"), "{error}");
    }
}
