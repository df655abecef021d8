//! Tests of power cuts and failing disks: whatever is left on the disk, the store opens, has everything that it
//! promised and nothing by half, and goes on.

mod driver;
mod faults;
mod images;
mod mutations;
mod snapshot;
mod workload;

use crate::{SqliteStore, Store, samples};
use faulty_disk::{Disk, LogEntry};
use std::path::PathBuf;

/// Returns a new folder, in memory if there is such a disk.
pub(super) fn temp_folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    folder.unwrap()
}

#[tokio::test]
async fn names_of_new_folders_are_flushed() {
    let root = temp_folder();
    let disk = Disk::new(root.path());
    let store = SqliteStore::open(root.path().join("new/newer/sessions.db"));
    store.create(samples::new_session("s1")).await.unwrap();
    assert_eq!(disk.log(), [LogEntry::SyncFolder]);
}
