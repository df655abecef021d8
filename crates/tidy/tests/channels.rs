//! Checks that every channel is bounded, so that a slow receiver slows its senders.

use std::path::Path;

/// Returns true for files below a folder `tests` and files named `…_tests.rs`, which may use unbounded
/// channels.
fn is_test(path: &str) -> bool {
    let name = Path::new(path).file_stem().unwrap_or_default();
    path.contains("/tests/") || name.to_string_lossy().ends_with("_tests")
}

// proves: D-15
#[test]
fn every_channel_is_bounded() {
    let unbounded = [
        concat!("unbounded", "_channel"),
        concat!("unbounded", "()"),
        concat!("Unbounded", "Sender"),
        // std's channel is unbounded unless it is a sync_channel.
        concat!("mpsc::channel", "()"),
    ];
    let mut read = 0;
    for file in tidy::rust_files() {
        if is_test(&file.path) {
            continue;
        }
        read += 1;
        for word in unbounded {
            assert!(!file.text.contains(word), "{} has {word}", file.path);
        }
    }
    assert!(read > 100, "only {read} files were read");
}
