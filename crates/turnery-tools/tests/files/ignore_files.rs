//! Ignore files come from anybody: what they may say, and what they may not be.

use crate::bench::Bench;
use serde_json::json;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn a_device_or_a_pipe_in_the_place_of_an_ignore_file_is_not_read() {
    let bench = Bench::new();
    bench.put("a/one.rs", "needle");
    bench.put("b/two.rs", "needle");
    symlink("/dev/zero", bench.root.join(".gitignore")).unwrap();
    symlink("/dev/zero", bench.root.join("a/.ignore")).unwrap();
    let pipe = bench.root.join("b/.gitignore");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let told = bench.told("search", json!({"pattern": "needle"})).await;
    assert_eq!(told, "a/one.rs:1: needle\nb/two.rs:1: needle\n");
}

#[tokio::test]
async fn nearer_files_win_and_later_lines_win() {
    let bench = Bench::new();
    bench.put(".git/info/exclude", "*.tmp\nexcluded\n");
    bench.put(
        ".gitignore",
        "*.log\n!keep.log\n/top.txt\nbuilt/\n!.github\n",
    );
    bench.put("sub/.gitignore", "\u{feff}!*.log\nown\n");
    bench.put("sub/.ignore", "!built\nquiet.txt\n");
    for path in [
        "a.log",
        "keep.log",
        "top.txt",
        "x.tmp",
        "excluded",
        "built/b",
        ".github/ci",
        ".hidden",
        "sub/a.log",
        "sub/top.txt",
        "sub/own",
        "sub/quiet.txt",
        "sub/built/b",
        "own",
    ] {
        bench.put(path, "");
    }
    let told = bench.told("find_files", json!({"pattern": "**"})).await;
    assert_eq!(
        told,
        ".github/ci\nkeep.log\nown\nsub/a.log\nsub/built/b\nsub/top.txt\n"
    );
    // The files above the folder that is looked into count as well, up to the repository.
    let told = bench
        .told("find_files", json!({"pattern": "**", "path": "sub"}))
        .await;
    assert_eq!(told, "sub/a.log\nsub/built/b\nsub/top.txt\n");
}
