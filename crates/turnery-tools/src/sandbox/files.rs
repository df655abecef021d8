//! Applies landlock to the calling thread: which files a command may read and write, which TCP ports it
//! may use, and which processes it may signal.
//!
//! Landlock only allows, and what it allows for a folder holds for everything below. To leave something
//! out, its siblings are allowed one by one, along the way down to it.

use super::{
    Confinement, closed,
    linked_keys::LinkedKeys,
    links::{self, ResolvedPath, links_within},
    places,
    repositories::Repositories,
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
    collections::HashMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    thread,
};

/// The newest version whose file rights are asked for; older kernels get what they know.
const VERSION: ABI = ABI::V6;
/// More siblings of one left-out file are not allowed: their folder then holds too much to go through.
const MOST_SIBLINGS: usize = 4096;

/// Version of the kernel's landlock, as far as this crate can use it.
pub(super) fn landlock_version() -> Option<u32> {
    // The library tells it only to those that confine themselves: a thread that does nothing else.
    let restricted = thread::spawn(|| {
        Ruleset::default()
            .handle_access(AccessFs::Execute)
            .and_then(Ruleset::create)
            .and_then(RulesetCreated::restrict_self)
    });
    version(restricted.join().ok()?.ok()?.landlock)
}

fn version(status: LandlockStatus) -> Option<u32> {
    match status {
        LandlockStatus::Available { effective_abi, .. } => Some(effective_abi as u32),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    }
}

fn read() -> BitFlags<AccessFs> {
    AccessFs::from_read(VERSION)
}

/// Nobody needs to make devices, which would open the disks to root.
fn write() -> BitFlags<AccessFs> {
    AccessFs::from_write(VERSION) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

fn device() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev | AccessFs::Truncate
}

/// Confines the calling thread, which has no new privileges from then on. Returns the version of landlock.
pub(super) fn restrict(confinement: &Confinement) -> io::Result<Option<u32>> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))
        .and_then(|ruleset| match confinement.network {
            true => Ok(ruleset),
            false => ruleset.handle_access(AccessNet::from_all(VERSION)),
        })
        .and_then(|ruleset| ruleset.scope(Scope::from_all(VERSION)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let rules = Rules {
        ruleset,
        writable: confinement.writable(),
        left_out: Vec::new(),
        is_cut_short: false,
    };
    let rules = rules.allow_all(confinement)?;
    let status = rules.ruleset.restrict_self().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            Ok(version(status.landlock))
        }
        RulesetStatus::NotEnforced => Err(io::Error::other("landlock is not available")),
    }
}

/// Lets the calling thread signal nothing but what is confined with it or within that confinement.
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

struct Rules {
    ruleset: RulesetCreated,
    /// Where commands of the session write: [`Confinement::writable`].
    writable: Vec<PathBuf>,
    /// Files and folders that the next rules leave out, under all their names.
    left_out: Vec<PathBuf>,
    /// Whether a folder held more than [`MOST_SIBLINGS`].
    is_cut_short: bool,
}

impl Rules {
    fn allow_all(mut self, confinement: &Confinement) -> io::Result<Self> {
        let home = confinement.home.as_deref();
        let in_home = |names: &[&str]| -> Vec<PathBuf> {
            let joined = names.iter().flat_map(|name| home.map(|it| it.join(name)));
            joined.collect()
        };
        let toolchains = [in_home(places::TOOLCHAINS), confinement.toolchains.clone()].concat();
        let profiles = in_home(places::PROFILES);
        let keys = [in_home(places::KEYS), confinement.private.clone()].concat();
        let existing = |paths: &[PathBuf]| -> io::Result<Vec<PathBuf>> {
            let mut existing = Vec::new();
            for path in paths {
                if closed::exists(path)? {
                    existing.push(path.clone());
                }
            }
            Ok(existing)
        };
        let (existing, existing_profiles) = (existing(&keys)?, existing(&profiles)?);
        let linked = LinkedKeys::new(&self.writable, &toolchains, home);
        let linked = linked.find(&existing, &existing_profiles)?;
        let keys = [keys, profiles].concat();
        let mut links = Links::new(self.writable.clone());
        let existing = existing.iter().chain(&existing_profiles);
        self.left_out = links.with_targets(existing.chain(&linked))?;
        let (roots, work_trees) = (&confinement.roots, &confinement.work_trees);
        let repositories = Repositories::of(work_trees, roots, home, &self.writable);
        let mut readable = toolchains;
        if confinement.writes {
            // Names are no secrets, and a program may look for itself or for its settings anywhere.
            self = self.allow(Path::new("/"), AccessFs::ReadDir.into())?;
            self.left_out.push("/dev".into());
            self = self.allow_below(Path::new("/"), read())?;
            self.left_out.pop();
            if !self.is_cut_short {
                readable.clear();
            }
            readable.push("/dev/shm".into());
        } else {
            readable.extend(places::SYSTEM.iter().map(PathBuf::from));
            readable.extend(repositories.work_trees);
            readable.extend(repositories.git_folders.iter().cloned());
        }
        for path in &readable {
            if let Some(path) = links::follow(path, &self.writable) {
                self = self.allow_below(&path, read())?;
            }
        }
        for path in places::DEVICES {
            self = self.allow(Path::new(path), device())?;
        }
        if let Some(scratch) = &confinement.scratch {
            self = self.allow(scratch, read() | write())?;
        }
        if !confinement.writes {
            for root in &confinement.roots {
                self = self.allow_files_below(root, read())?;
            }
            return Ok(self);
        }
        // Also what does not exist yet.
        let started_later = in_home(places::STARTED_LATER);
        let later = keys.iter().chain(&started_later).chain(&linked);
        self.left_out = links.with_targets(later)?;
        let writable = [self.writable.clone(), repositories.git_folders].concat();
        for path in &writable {
            self = self.allow_files_below(path, read() | write())?;
        }
        Ok(self)
    }

    /// Allows this for a path without links and all files below: in the top folder of the system, no terminals and
    /// nothing of the kernel's.
    fn allow_files_below(mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<Self> {
        let before = self.left_out.len();
        if path.parent().is_none() {
            self.left_out.extend(places::NO_FILES.map(PathBuf::from));
        }
        self = self.allow_below(path, access)?;
        self.left_out.truncate(before);
        Ok(self)
    }

    /// Allows this for a path without links and all below but what is left out.
    fn allow_below(self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<Self> {
        let mut left_out = Vec::new();
        for other in &self.left_out {
            match other.strip_prefix(path) {
                Ok(below) => left_out.push(below.to_owned()),
                Err(_) if path.starts_with(other) => return Ok(self),
                Err(_) => {}
            }
        }
        self.allow_without(path, &left_out, access)
    }

    /// Allows this for a path and all below but `left_out`, which is relative to it. No link is followed:
    /// it may lead to what is left out.
    fn allow_without(
        mut self,
        path: &Path,
        left_out: &[PathBuf],
        access: BitFlags<AccessFs>,
    ) -> io::Result<Self> {
        if left_out.is_empty() {
            return self.allow(path, access);
        }
        let mut by_name: HashMap<OsString, Vec<PathBuf>> = HashMap::new();
        for below in left_out {
            let mut parts = below.components();
            let Some(name) = parts.next() else {
                return Ok(self);
            };
            let deeper = by_name.entry(name.as_os_str().to_owned()).or_default();
            deeper.push(parts.as_path().to_owned());
        }
        let Ok(siblings) = fs::read_dir(path) else {
            return Ok(self);
        };
        for (place, sibling) in siblings.flatten().enumerate() {
            if place == MOST_SIBLINGS {
                self.is_cut_short = true;
                break;
            }
            if let Ok(kind) = sibling.file_type()
                && !kind.is_symlink()
            {
                let deeper = by_name
                    .get(&sibling.file_name())
                    .map_or(&[][..], Vec::as_slice);
                self = match deeper {
                    [] => self.allow_kind(&sibling.path(), access, kind.is_dir())?,
                    _ => self.allow_without(&sibling.path(), deeper, access)?,
                };
            }
        }
        Ok(self)
    }

    /// Allows this for a path and all below, if it exists.
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
        // Links were followed before: one that is here now was put in since.
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
            false => access & AccessFs::from_file(VERSION),
        };
        self.ruleset = self
            .ruleset
            .add_rule(PathBeneath::new(at, access))
            .map_err(io::Error::other)?;
        Ok(self)
    }
}

/// Follows links, and each folder's only once: many of the paths lie in the home folder.
struct Links {
    writable: Vec<PathBuf>,
    folders: HashMap<PathBuf, Option<ResolvedPath>>,
}

impl Links {
    fn new(writable: Vec<PathBuf>) -> Self {
        Self {
            writable,
            folders: HashMap::new(),
        }
    }

    /// These paths, where their links lead, and the links on the way that commands could replace.
    ///
    /// # Errors
    ///
    /// A folder on the way of a link that is closed to its owner.
    fn with_targets<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a PathBuf>,
    ) -> io::Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for path in paths {
            let resolved = match closed::is_link(path)? {
                true => closed::follow(path)?,
                false => None,
            };
            let resolved = match resolved {
                Some(resolved) => Some(resolved),
                None => self.in_folder(path)?,
            };
            if let Some(ResolvedPath { target, links }) = resolved {
                all.extend(links_within(links, &self.writable));
                all.extend(Some(target).filter(|it| it != path));
            }
            all.push(path.clone());
        }
        Ok(all)
    }

    /// Follows the links of the folder that a path lies in, and leaves its name as it is.
    fn in_folder(&mut self, path: &Path) -> io::Result<Option<ResolvedPath>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let folder = match self.folders.get(parent) {
            Some(folder) => folder.clone(),
            None => {
                let folder = closed::follow(parent)?;
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
    use crate::sandbox::tests::as_anybody;
    use std::os::unix::fs::PermissionsExt as _;

    /// A command may close the folder after its links were looked for.
    #[test]
    fn link_in_a_closed_folder_is_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().canonicalize().unwrap().join("closed");
        fs::create_dir(&closed).unwrap();
        let set = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).unwrap();
        let key = closed.join("key");
        let found = || as_anybody(|| Links::new(Vec::new()).with_targets([&key].into_iter()));
        assert_eq!(found().unwrap().as_slice(), std::slice::from_ref(&key));
        set(0o000);
        let refused = found();
        set(0o755);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("chmod u+rx"), "{error}");
    }
}
