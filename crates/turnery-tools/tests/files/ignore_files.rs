//! Tests of ignore files, which may come from an untrusted source.

use crate::fixture::ToolFixture;
use serde_json::json;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn ignore_file_that_is_device_or_pipe_is_not_read() {
    let bench = ToolFixture::new();
    bench.write_file("a/one.rs", "needle");
    bench.write_file("b/two.rs", "needle");
    symlink("/dev/zero", bench.root.join(".gitignore")).unwrap();
    symlink("/dev/zero", bench.root.join("a/.ignore")).unwrap();
    let pipe = bench.root.join("b/.gitignore");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let told = bench
        .call_text("search", json!({"pattern": "needle"}))
        .await;
    assert_eq!(told, "a/one.rs:1: needle\nb/two.rs:1: needle\n");
}

#[tokio::test]
async fn nearest_ignore_file_and_last_line_win() {
    let bench = ToolFixture::new();
    bench.write_file(".git/info/exclude", "*.tmp\nexcluded\n");
    bench.write_file(
        ".gitignore",
        "*.log\n!keep.log\n/top.txt\nbuilt/\n!.github\n",
    );
    bench.write_file("sub/.gitignore", "\u{feff}!*.log\nown\n");
    bench.write_file("sub/.ignore", "!built\nquiet.txt\n");
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
        bench.write_file(path, "");
    }
    let told = bench
        .call_text("find_files", json!({"pattern": "**"}))
        .await;
    assert_eq!(
        told,
        ".github/ci\nkeep.log\nown\nsub/a.log\nsub/built/b\nsub/top.txt\n"
    );
    // Ignore files above the folder apply as well, up to the top of the repository.
    let told = bench
        .call_text("find_files", json!({"pattern": "**", "path": "sub"}))
        .await;
    assert_eq!(told, "sub/a.log\nsub/built/b\nsub/top.txt\n");
}
