//! `read_file`.

use crate::fixture::ToolFixture;
use serde_json::json;
use turnery_engine::{CallKind, Content, DocumentData, Location, ToolErrorKind};
use turnery_tools::Access;

#[tokio::test]
async fn lines_are_numbered() {
    let bench = ToolFixture::new();
    bench.write_file("a.txt", "one\ntwo\r\nthree");
    let told = bench.call_text("read_file", json!({"path": "a.txt"})).await;
    assert_eq!(told, "1\tone\n2\ttwo\n3\tthree\n");
}

#[tokio::test]
async fn line_range_is_read() {
    let bench = ToolFixture::new();
    bench.write_file("a.txt", "1\n2\n3\n4\n5\n");
    let args = json!({"path": "a.txt", "start_line": 2, "end_line": 3});
    assert_eq!(bench.call_text("read_file", args).await, "2\t2\n3\t3\n");
    let args = json!({"path": "a.txt", "start_line": 9});
    assert_eq!(
        bench.call_failure("read_file", args).await,
        (
            ToolErrorKind::Validation,
            "a.txt has 5 lines; start_line is 9".to_owned()
        )
    );
    let args = json!({"path": "a.txt", "start_line": 3, "end_line": 2});
    let failure = bench.prepare("read_file", args).await.unwrap_err();
    assert_eq!(failure.message, "start_line 3 is after end_line 2");
}

#[tokio::test]
async fn long_file_is_cut_with_continuation_hint() {
    let bench = ToolFixture::new();
    bench.write_file("long.txt", "x\n".repeat(2_500));
    let told = bench
        .call_text("read_file", json!({"path": "long.txt"}))
        .await;
    assert!(told.ends_with("2000\tx\n[lines 1-2000 of 2500; read on with start_line 2001]"));
    let args = json!({"path": "long.txt", "start_line": 2001});
    let told = bench.call_text("read_file", args).await;
    assert!(told.starts_with("2001\tx\n") && told.ends_with("2500\tx\n"));

    bench.write_file("wide.txt", format!("{}\n", "y".repeat(999)).repeat(100));
    let told = bench
        .call_text("read_file", json!({"path": "wide.txt"}))
        .await;
    // 52 lines of about 1,000 bytes are the first to reach 51,200.
    assert!(told.ends_with("[lines 1-52 of 100; read on with start_line 53]"));

    bench.write_file("line.txt", "é".repeat(1_500));
    let told = bench
        .call_text("read_file", json!({"path": "line.txt"}))
        .await;
    assert_eq!(
        told,
        format!("1\t{} [1000 more bytes]\n", "é".repeat(1_000))
    );
}

#[tokio::test]
async fn images_are_returned_as_content() {
    let bench = ToolFixture::new();
    let heads: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0........", "image/jpeg"),
        (b"GIF89a......", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ];
    for (bytes, mime_type) in heads {
        bench.write_file("picture", bytes);
        let envelope = bench.run("read_file", json!({"path": "picture"})).await;
        let content = envelope.result.unwrap();
        let Some(Content::Image(image)) = content.last() else {
            panic!("{mime_type} is an image");
        };
        assert_eq!(image.mime_type, mime_type);
    }
    bench.write_file("picture", b"\x89PNG\r\n\x1a\n");
    let content = bench
        .run("read_file", json!({"path": "picture"}))
        .await
        .result
        .unwrap();
    let Some(Content::Image(image)) = content.last() else {
        panic!("an image");
    };
    assert_eq!(&*image.base64, "iVBORw0KGgo=");

    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize(6 * 1024 * 1024, 0);
    bench.write_file("picture", large);
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "picture"}))
        .await;
    assert_eq!(
        message,
        "picture is an image of 6.0 MiB, more than the 5 MiB that can be shown"
    );
}

#[tokio::test]
async fn pdf_is_returned_as_document() {
    let bench = ToolFixture::new();
    bench.write_file("a report.txt", b"%PDF-1.7");
    let envelope = bench
        .run("read_file", json!({"path": "a report.txt"}))
        .await;
    let document = DocumentData {
        name: "a report.txt".to_owned(),
        mime_type: "application/pdf".to_owned(),
        base64: "JVBERi0xLjc=".into(),
    };
    assert_eq!(
        envelope.result.unwrap(),
        [
            Content::text("a report.txt: application/pdf, 8 B"),
            Content::Document(document)
        ]
    );
    let mut large = b"%PDF-1.7".to_vec();
    large.resize(6 * 1024 * 1024, b' ');
    bench.write_file("large.pdf", large);
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "large.pdf"}))
        .await;
    assert_eq!(
        message,
        "large.pdf is a PDF of 6.0 MiB, more than the 5 MiB that can be shown: extract the text of the pages that matter"
    );
}

#[tokio::test]
async fn encodings_are_decoded() {
    let bench = ToolFixture::new();
    let cases: [&[u8]; 4] = [
        b"\xEF\xBB\xBFgr\xC3\xBCn",
        b"\xFF\xFEg\0r\0\xFC\0n\0",
        b"\xFE\xFF\0g\0r\0\xFC\0n",
        b"gr\xFCn",
    ];
    for bytes in cases {
        bench.write_file("a.txt", bytes);
        let told = bench.call_text("read_file", json!({"path": "a.txt"})).await;
        assert_eq!(told, "1\tgrün\n", "{bytes:?}");
    }
}

#[tokio::test]
async fn binary_file_is_rejected() {
    let bench = ToolFixture::new();
    bench.write_file("a.bin", b"ab\0cd");
    bench.write_file("dir/x", "");
    bench.write_file("main.rs", "");
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "a.bin"}))
        .await;
    assert_eq!(message, "a.bin is not a text file");
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "dir"}))
        .await;
    assert_eq!(message, "dir is a folder: use list_dir");
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "mian.rs"}))
        .await;
    assert_eq!(message, "mian.rs does not exist; did you mean main.rs?");
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "dirr/x"}))
        .await;
    assert_eq!(
        message,
        "dirr/x does not exist: there is no folder dirr; did you mean dir?"
    );
    let told = bench
        .call_text("read_file", json!({"path": "main.rs"}))
        .await;
    assert_eq!(told, "[main.rs is empty]");
    bench.write_file("huge", vec![b'x'; 20 * 1024 * 1024 + 1]);
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "huge"}))
        .await;
    assert!(message.contains("is larger than 20 MiB"), "{message}");
}

#[tokio::test]
async fn pipe_does_not_hang() {
    let bench = ToolFixture::new();
    let path = bench.root.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo is there").success());
    let (_, message) = bench
        .call_failure("read_file", json!({"path": "pipe"}))
        .await;
    assert!(message.ends_with("it is not a regular file"), "{message}");
}

// proves: ACP-25
#[tokio::test]
async fn call_is_described_as_read_of_absolute_path() {
    let bench = ToolFixture::new();
    let path = bench.write_file("src/a.rs", "x");
    let args = json!({"path": "./src/a.rs", "start_line": 10, "end_line": 40});
    let prepared = bench.prepare("read_file", args).await.unwrap();
    assert_eq!(prepared.access, Access::Read(vec![path.clone()]));
    assert_eq!(prepared.detail.title, "Read src/a.rs:10-40");
    assert_eq!(prepared.detail.kind, CallKind::Read);
    let line = Some(10);
    assert_eq!(prepared.detail.locations, vec![Location { path, line }]);
}
