//! `write_file`.

use crate::fixture::ToolFixture;
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt as _};
use turnery_engine::{Artifact, CallKind, Location, ToolErrorKind};
use turnery_tools::Access;

// proves: ACP-25
#[tokio::test]
async fn new_file_creates_folders_and_shows_diff() {
    let bench = ToolFixture::new();
    let path = bench.root.join("a/b/c.txt");
    let args = json!({"path": "a/b/c.txt", "content": "one\ntwo\n"});
    let diff = Artifact::Diff {
        path: path.clone(),
        old: None,
        new: "one\ntwo\n".to_owned(),
        from_line: None,
    };
    let prepared = bench.prepare("write_file", args.clone()).await.unwrap();
    assert_eq!(prepared.access, Access::Edit(vec![path.clone()]));
    assert_eq!(prepared.detail.title, "Write a/b/c.txt");
    assert_eq!(prepared.detail.kind, CallKind::Edit);
    assert_eq!(prepared.detail.artifacts, vec![diff.clone()]);
    assert!(!path.exists(), "preparing changes nothing");
    let envelope = bench.run("write_file", args).await;
    assert_eq!(envelope.artifacts, vec![diff]);
    let content = envelope.result.unwrap();
    assert_eq!(content[0].as_text(), Some("Created a/b/c.txt: 2 lines"));
    assert_eq!(bench.read_bytes("a/b/c.txt"), b"one\ntwo\n");
    let beside: Vec<_> = fs::read_dir(bench.root.join("a/b")).unwrap().collect();
    assert_eq!(beside.len(), 1, "no temporary file stays");
}

#[tokio::test]
async fn replaced_file_keeps_mode_and_shows_change() {
    let bench = ToolFixture::new();
    let path = bench.write_file("run.sh", "a\nb\nc\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let args = json!({"path": "run.sh", "content": "a\nb\nd\n"});
    let prepared = bench.prepare("write_file", args.clone()).await.unwrap();
    let line = Some(3);
    assert_eq!(
        prepared.detail.locations,
        vec![Location {
            path: path.clone(),
            line
        }]
    );
    let told = bench.call_text("write_file", args).await;
    assert_eq!(told, "Replaced run.sh: 3 lines");
    assert_eq!(bench.read_bytes("run.sh"), b"a\nb\nd\n");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o751);
}

#[tokio::test]
async fn file_changed_after_preview_is_not_replaced() {
    let bench = ToolFixture::new();
    bench.write_file("a.txt", "old");
    let args = json!({"path": "a.txt", "content": "new"});
    bench.prepare("write_file", args.clone()).await.unwrap();
    bench.write_file("a.txt", "somebody else's");
    let (kind, message) = bench.call_failure("write_file", args.clone()).await;
    assert_eq!(kind, ToolErrorKind::ExecutionError);
    assert_eq!(
        message,
        "a.txt has changed since this was shown for permission, so it was not replaced: \
         read it and try again"
    );
    assert_eq!(bench.read_bytes("a.txt"), b"somebody else's");
    // Shown again, the call may run.
    bench.prepare("write_file", args.clone()).await.unwrap();
    bench.call_text("write_file", args).await;
    assert_eq!(bench.read_bytes("a.txt"), b"new");
}

#[tokio::test]
async fn encoding_and_line_endings_are_preserved() {
    let bench = ToolFixture::new();
    let cases: [(&[u8], &[u8]); 4] = [
        (b"\xEF\xBB\xBFa\r\nb\r\n", b"\xEF\xBB\xBF\xC3\xA4\r\nc\r\n"),
        (b"\xFF\xFEa\0\n\0", b"\xFF\xFE\xE4\0\n\0c\0\n\0"),
        (b"\xFE\xFF\0a\0\n", b"\xFE\xFF\0\xE4\0\n\0c\0\n"),
        (b"\xDF\n", b"\xE4\nc\n"),
    ];
    for (before, after) in cases {
        bench.write_file("a.txt", before);
        let args = json!({"path": "a.txt", "content": "ä\nc\n"});
        bench.call_text("write_file", args).await;
        assert_eq!(bench.read_bytes("a.txt"), after);
    }
    bench.write_file("a.txt", b"\xDF\n");
    let args = json!({"path": "a.txt", "content": "λ\n"});
    let (_, message) = bench.call_failure("write_file", args).await;
    assert!(message.contains("which has no 'λ'"), "{message}");
    assert_eq!(bench.read_bytes("a.txt"), b"\xDF\n");
}

#[tokio::test]
async fn binary_files_and_folders_are_not_replaced() {
    let bench = ToolFixture::new();
    bench.write_file("a.bin", b"\0\x01");
    bench.write_file("dir/x", "");
    let args = json!({"path": "a.bin", "content": "x"});
    let (_, message) = bench.call_failure("write_file", args).await;
    assert!(message.starts_with("a.bin is not a text file"), "{message}");
    assert_eq!(bench.read_bytes("a.bin"), b"\0\x01");
    let args = json!({"path": "dir", "content": "x"});
    let (_, message) = bench.call_failure("write_file", args).await;
    assert!(message.ends_with("is a folder, not a file"), "{message}");
    let args = json!({"path": "dir/x/y", "content": "x"});
    let (kind, _) = bench.call_failure("write_file", args).await;
    assert_eq!(kind, ToolErrorKind::ExecutionError);
}
