//! `search`.

use crate::fixture::ToolFixture;
use serde_json::json;
use turnery_engine::{CallKind, ToolErrorKind};

fn tree() -> ToolFixture {
    let bench = ToolFixture::new();
    bench.write_file(".gitignore", "built\n");
    bench.write_file(".env", "needle=1\n");
    bench.write_file("a.rs", "hay\nlet needle = 1;\nhay\nNeedle\r\n");
    bench.write_file("b/c.txt", "a needle (here)\n");
    bench.write_file("b/bin", b"needle\0needle\n");
    bench.write_file("built/x.rs", "needle\n");
    bench
}

#[tokio::test]
async fn matching_lines_are_found() {
    let bench = tree();
    for (args, expected) in [
        (
            json!({"pattern": "needle"}),
            "a.rs:2: let needle = 1;\nb/c.txt:1: a needle (here)\n",
        ),
        (
            json!({"pattern": "^needle$", "ignore_case": "true"}),
            "a.rs:4: Needle\n",
        ),
        (json!({"pattern": "^hay$"}), "a.rs:1: hay\na.rs:3: hay\n"),
        (
            json!({"pattern": "(here)", "literal": true}),
            "b/c.txt:1: a needle (here)\n",
        ),
        (
            json!({"pattern": "needle", "glob": "*.txt"}),
            "b/c.txt:1: a needle (here)\n",
        ),
        (
            json!({"pattern": "needle", "glob": "!*.txt"}),
            "a.rs:2: let needle = 1;\n",
        ),
        (
            json!({"pattern": "needle", "path": "b/c.txt"}),
            "b/c.txt:1: a needle (here)\n",
        ),
        (
            json!({"pattern": "needle", "path": ".env"}),
            ".env:1: needle=1\n",
        ),
        (
            json!({"pattern": "let", "context": 1}),
            "a.rs-1- hay\na.rs:2: let needle = 1;\na.rs-3- hay\n",
        ),
        (
            json!({"pattern": "needle", "max_results": 1}),
            "a.rs:2: let needle = 1;\n[the first 1 matches; narrow the pattern, path or glob]\n",
        ),
        (json!({"pattern": "nowhere"}), "[no match]\n"),
    ] {
        assert_eq!(
            bench.call_text("search", args.clone()).await,
            expected,
            "{args}"
        );
    }
}

#[tokio::test]
async fn invalid_regex_error_suggests_literal() {
    let bench = tree();
    let (kind, message) = bench.call_failure("search", json!({"pattern": "f("})).await;
    assert_eq!(kind, ToolErrorKind::Validation);
    assert!(
        message.ends_with("Set literal to true to look for the text as it is."),
        "{message}"
    );
}

#[tokio::test]
async fn long_line_is_cut_around_match() {
    let bench = ToolFixture::new();
    bench.write_file(
        "min.js",
        format!("{}needle{}\n", "a".repeat(1_000), "b".repeat(1_000)),
    );
    let told = bench
        .call_text("search", json!({"pattern": "needle"}))
        .await;
    let expected = format!(
        "min.js:1: … {}needle{} …\n",
        "a".repeat(100),
        "b".repeat(194)
    );
    assert_eq!(told, expected);
}

#[tokio::test]
async fn call_is_described_as_search() {
    let bench = tree();
    let args = json!({"pattern": "foo", "path": "b"});
    let detail = bench.prepare("search", args).await.unwrap().detail;
    assert_eq!(detail.title, "Search \"foo\" in b");
    assert_eq!(detail.kind, CallKind::Search);
    assert_eq!(detail.locations[0].path, bench.root.join("b"));
}
