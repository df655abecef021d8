//! `list_dir` and `find_files`.

use crate::fixture::ToolFixture;
use serde_json::json;
use turnery_engine::ToolErrorKind;

fn tree() -> ToolFixture {
    let bench = ToolFixture::new();
    bench.write_file(".gitignore", "target\n*.log\n");
    bench.write_file(".github/ci.yml", "ci");
    bench.write_file(".git/config", "git");
    bench.write_file("a.log", "log");
    bench.write_file("src/main.rs", "fn main() {}");
    bench.write_file("src/deep/er/mod.rs", vec![b'x'; 1536]);
    bench.write_file("target/debug/out.rs", "built");
    bench
}

#[tokio::test]
async fn folder_tree_omits_ignored_files() {
    let bench = tree();
    let told = bench.call_text("list_dir", json!({})).await;
    assert_eq!(
        told,
        ".github/\n  ci.yml  2 B\n.gitignore  13 B\nsrc/\n  deep/\n  main.rs  12 B\n"
    );
    let told = bench
        .call_text("list_dir", json!({"path": "src", "depth": "9"}))
        .await;
    assert_eq!(told, "deep/\n  er/\n    mod.rs  1.5 KiB\nmain.rs  12 B\n");
    // A folder that was named directly is shown although git ignores it.
    let told = bench.call_text("list_dir", json!({"path": "target"})).await;
    assert_eq!(told, "debug/\n  out.rs  5 B\n");
    let (_, message) = bench
        .call_failure("list_dir", json!({"path": "src/main.rs"}))
        .await;
    assert_eq!(message, "src/main.rs is not a folder: use read_file");
}

#[tokio::test]
async fn long_lists_are_truncated() {
    let bench = ToolFixture::new();
    for index in 0..510 {
        bench.write_file(&format!("f{index:03}"), "");
    }
    let told = bench.call_text("list_dir", json!({})).await;
    assert!(
        told.ends_with("f499  0 B\n[cut here: list a folder further down, or use find_files]\n")
    );
    let told = bench
        .call_text("find_files", json!({"pattern": "f*"}))
        .await;
    assert!(told.ends_with("f199\n[the first 200 of 510; narrow the pattern or the path]"));
}

#[tokio::test]
async fn files_are_found_by_glob() {
    let bench = tree();
    let absolute = format!("{}/src/**/*.rs", bench.root.display());
    for (args, expected) in [
        (
            json!({"pattern": "*.rs"}),
            "src/deep/er/mod.rs\nsrc/main.rs\n",
        ),
        (json!({"pattern": "src/*.rs"}), "src/main.rs\n"),
        (
            json!({"pattern": "**/*.rs", "path": "src/deep"}),
            "src/deep/er/mod.rs\n",
        ),
        (json!({"pattern": "*.{log,yml}"}), "[no file matches]"),
        (json!({"pattern": ".github/**"}), ".github/ci.yml\n"),
        (
            json!({"pattern": "*.rs", "path": "target"}),
            "target/debug/out.rs\n",
        ),
        (
            json!({"pattern": absolute}),
            "src/deep/er/mod.rs\nsrc/main.rs\n",
        ),
    ] {
        assert_eq!(
            bench.call_text("find_files", args.clone()).await,
            expected,
            "{args}"
        );
    }
    let (kind, message) = bench
        .call_failure("find_files", json!({"pattern": "a{b"}))
        .await;
    assert_eq!(kind, ToolErrorKind::Validation);
    assert!(
        message.starts_with("\"a{b\" is not a valid glob"),
        "{message}"
    );
    let detail = bench
        .prepare("find_files", json!({"pattern": "*.rs", "path": "src"}))
        .await;
    assert_eq!(detail.unwrap().detail.title, "Find *.rs in src");
}
