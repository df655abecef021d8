//! Gives the readers of a repository's files traps of a megabyte.

use super::super::hostile_input_tests::spring_traps;
use super::{config::read_plain_config, index};
use std::fs;

#[test]
fn configuration_and_index_end_on_hostile_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    spring_traps(|text| {
        for start in ["", "DIRC\0\0\0\u{2}\u{7f}\u{7f}\u{7f}\u{7f}"] {
            fs::write(&path, [start, text].concat()).unwrap();
            read_plain_config(&path);
            index::read_tracked_paths(&path, false);
        }
    });
}

/// In version 4 of the index, an entry of seventy bytes may repeat a name of any length.
#[test]
fn index_with_repeated_long_name_is_refused() {
    const COUNT: usize = 2000;
    let entry = |removed: u8, name: &[u8]| {
        let mut entry = [0; 62];
        entry[24..28].copy_from_slice(&0o160_000_u32.to_be_bytes());
        entry[60..].copy_from_slice(&0xfff_u16.to_be_bytes());
        [&entry[..], &[removed], name, b"\0"].concat()
    };
    let mut text = b"DIRC\0\0\0\x04".to_vec();
    text.extend(u32::try_from(COUNT).unwrap().to_be_bytes());
    text.extend(entry(0, &[b'a'; 1 << 19]));
    for _ in 1..COUNT {
        text.extend(entry(1, b"b"));
    }
    text.extend([0; 20]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    fs::write(&path, text).unwrap();
    assert!(index::read_gitlinks(&path, false).is_none());
}
