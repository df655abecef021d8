//! Channels: every one has a bound, so that a slow reader slows whoever fills it.

use std::path::Path;

/// Tests may collect what they like.
fn is_test(path: &str) -> bool {
    let name = Path::new(path).file_stem().unwrap_or_default();
    path.contains("/tests/") || name.to_string_lossy().ends_with("_tests")
}

// proves: D-15
#[test]
fn no_channel_is_without_a_bound() {
    let unbounded = [
        concat!("unbounded", "_channel"),
        concat!("unbounded", "()"),
        concat!("Unbounded", "Sender"),
        // The standard library's channel has no bound unless it is a sync_channel.
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
