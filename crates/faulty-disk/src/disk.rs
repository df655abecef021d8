//! A recorded disk with faults.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Disks in use. A file belongs to the disk whose folder it is in.
static DISKS: Mutex<Vec<Weak<Disk>>> = Mutex::new(Vec::new());

/// Index of a file in the order of creation. A name that is removed and created again gets another file.
pub type FileId = usize;

/// A call that succeeded, or an event of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// A new file got this name.
    Create(String, FileId),
    /// The name was removed.
    Remove(String),
    /// Bytes were written at this offset.
    Write(FileId, u64, Vec<u8>),
    /// The file was cut or extended to this size.
    Truncate(FileId, u64),
    /// The file's content reached the disk.
    Sync(FileId),
    /// A flush failed. The system has dropped what was written: later flushes do not write it.
    FailedSync(FileId),
    /// The names in the folder reached the disk.
    SyncFolder,
    /// The test has reached this point.
    Mark(usize),
}

/// A call to the disk that may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    Create,
    Read,
    Write,
    Truncate,
    Sync,
    Remove,
    Size,
    Map,
    Lock,
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No space left: calls that need space fail. Writes write half of their bytes.
    Full,
    /// Input or output error: any call fails.
    Broken,
    /// Flushes fail.
    Sync,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Full, Self::Broken, Self::Sync];

    fn applies_to(self, call: Call) -> bool {
        match self {
            Self::Full => matches!(call, Call::Create | Call::Write | Call::Sync | Call::Map),
            Self::Broken => true,
            Self::Sync => call == Call::Sync,
        }
    }
}

/// Calls that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Number of calls of the kind before the first one that fails.
    pub after: usize,
    /// True if all later calls fail too, until the fault is removed.
    pub lasts: bool,
}

/// A simulated disk: the files of one folder, without its subfolders.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    state: Mutex<DiskState>,
}

#[derive(Debug, Default)]
struct DiskState {
    log: Vec<LogEntry>,
    names: HashMap<String, FileId>,
    file_count: usize,
    fault: Option<Fault>,
    /// Calls of the fault's kind so far.
    calls: usize,
    /// Number of calls that failed because of the fault.
    failures: usize,
    /// Number of failed flushes of each file. Every open handle reports each failure once, like those of Linux.
    sync_failures: HashMap<FileId, usize>,
    /// Failures that the program's own handle of a file has reported.
    outside_seen: HashMap<FileId, usize>,
}

impl Disk {
    /// Records calls for files in this folder from now on, until the disk is dropped. [`install`](crate::install) must
    /// have been called.
    #[must_use]
    pub fn new(folder: &Path) -> Arc<Self> {
        let disk = Arc::new(Self {
            folder: folder.to_owned(),
            state: Mutex::default(),
        });
        let mut disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        disks.retain(|disk| disk.strong_count() > 0);
        disks.push(Arc::downgrade(&disk));
        disk
    }

    /// Returns the disk with a file.
    pub(crate) fn of(path: &Path) -> Option<Arc<Self>> {
        let folder = path.parent()?;
        let disks = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = disks.iter().filter_map(Weak::upgrade);
        open.find(|disk| disk.folder == folder)
    }

    /// Returns a copy of the log.
    #[must_use]
    pub fn log(&self) -> Vec<LogEntry> {
        self.lock().log.clone()
    }

    /// Adds an event of the test to the log.
    pub fn mark(&self, point: usize) {
        self.lock().log.push(LogEntry::Mark(point));
    }

    /// Sets the calls that fail from now on.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut state = self.lock();
        state.fault = fault;
        state.calls = 0;
    }

    /// Returns the number of calls that failed because of a fault.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.lock().failures
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call. Returns true if it must fail.
    pub(crate) fn fails(&self, call: Call) -> bool {
        self.lock().fails(call)
    }

    /// Returns true if a failing write is to write half of its bytes.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state
            .fault
            .is_some_and(|fault| fault.kind == FaultKind::Full)
    }

    /// Returns the file with this name, which is created if the log has none yet.
    pub(crate) fn open_file(&self, path: &Path) -> FileId {
        self.lock().file(&name_of(path))
    }

    /// Returns the number of failed flushes of a file.
    pub(crate) fn sync_failures(&self, file: FileId) -> usize {
        self.lock().sync_failures(file)
    }

    /// Runs a call, and records it if it succeeds. The log is locked meanwhile, so that it has the order of the calls.
    pub(crate) fn record<T>(&self, entry: LogEntry, run: impl FnOnce() -> (bool, T)) -> T {
        let mut state = self.lock();
        let (is_done, value) = run();
        if is_done {
            state.log.push(entry);
        }
        value
    }

    pub(crate) fn record_folder_sync(&self) {
        self.lock().log.push(LogEntry::SyncFolder);
    }

    /// Removes a name after `run` has removed the file.
    pub(crate) fn remove(&self, path: &Path, run: impl FnOnce() -> bool) {
        let mut state = self.lock();
        let name = name_of(path);
        if run() && state.names.remove(&name).is_some() {
            state.log.push(LogEntry::Remove(name));
        }
    }

    /// Flushes a file through a handle that has reported `seen` failures. Returns false if the flush failed.
    pub(crate) fn sync(&self, file: FileId, seen: &mut usize) -> bool {
        self.lock().sync(file, seen)
    }

    pub(crate) fn sync_outside(&self, path: &Path) -> bool {
        let mut state = self.lock();
        let file = state.file(&name_of(path));
        let mut seen = state.outside_seen.get(&file).copied().unwrap_or_default();
        let is_done = state.sync(file, &mut seen);
        state.outside_seen.insert(file, seen);
        is_done
    }

    pub(crate) fn record_outside_write(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.lock();
        let file = state.file(&name_of(path));
        state.log.push(LogEntry::Write(file, 0, bytes));
    }
}

impl DiskState {
    fn fails(&mut self, call: Call) -> bool {
        let Some(fault) = self.fault.filter(|fault| fault.kind.applies_to(call)) else {
            return false;
        };
        let index = self.calls;
        self.calls += 1;
        let fails = index == fault.after || (fault.lasts && index > fault.after);
        self.failures += usize::from(fails);
        fails
    }

    fn file(&mut self, name: &str) -> FileId {
        if let Some(file) = self.names.get(name) {
            return *file;
        }
        let file = self.file_count;
        self.file_count += 1;
        self.names.insert(name.to_owned(), file);
        self.log.push(LogEntry::Create(name.to_owned(), file));
        file
    }

    fn sync_failures(&self, file: FileId) -> usize {
        self.sync_failures.get(&file).copied().unwrap_or_default()
    }

    fn sync(&mut self, file: FileId, seen: &mut usize) -> bool {
        if self.fails(Call::Sync) {
            *self.sync_failures.entry(file).or_default() += 1;
            *seen = self.sync_failures(file);
            self.log.push(LogEntry::FailedSync(file));
            return false;
        }
        let failures = self.sync_failures(file);
        // Reports the failure of another handle, which says nothing about what was written since.
        if std::mem::replace(seen, failures) < failures {
            return false;
        }
        self.log.push(LogEntry::Sync(file));
        true
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
