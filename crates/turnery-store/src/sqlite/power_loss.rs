//! Tests of power cuts and failing disks: whatever is left on the disk, the store opens, has everything that it
//! promised and nothing by half, and goes on.

mod driver;
mod faults;
mod images;
mod mutations;
#[path = "../../tests/battery/samples.rs"]
#[expect(dead_code, reason = "some samples are for other tests")]
mod samples;
mod snapshot;
mod workload;

use std::path::PathBuf;

/// Returns a new folder, in memory if there is such a disk.
fn temp_folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    folder.unwrap()
}
