//! Tests diffs in Git's format.

use super::super::diff::{self, PATCH_LIMIT};
use serde_json::{Value, json};
use std::path::Path;

fn diff(path: &str, old: Option<&str>, new: &str) -> Value {
    serde_json::to_value(diff::encode_diff(Path::new(path), old, new, false)).unwrap()
}

// proves: V2-14
/// The patch of a changed file has absolute paths, context lines and a mark for a missing newline at the end.
#[test]
fn changed_file_has_patch_with_absolute_paths() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9";
    let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9";
    let patch = "diff --git /w/a b.txt /w/a b.txt\n\
                 --- /w/a b.txt\n\
                 +++ /w/a b.txt\n\
                 @@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
    assert_eq!(
        diff("/w/a b.txt", Some(old), new),
        json!({
            "changes": [{"operation": "modify", "path": "/w/a b.txt", "fileType": "text"}],
            "patch": {"format": "git_patch", "text": patch},
        })
    );
    let end = diff("/w/a", Some("x"), "y\n");
    let text = end["patch"]["text"].as_str().unwrap();
    assert!(
        text.ends_with("@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n"),
        "{text}"
    );
    // Git counts lines by `\n` alone.
    let end = diff("/w/a", Some("a\rb\nc\r"), "a\rx\nc\r");
    let text = end["patch"]["text"].as_str().unwrap();
    assert!(
        text.ends_with("@@ -1,2 +1,2 @@\n-a\rb\n+a\rx\n c\r\n\\ No newline at end of file\n"),
        "{text:?}"
    );
}

// proves: V2-14
/// Unusual paths are quoted as by Git, and a new empty file has only a header.
#[test]
fn paths_and_new_files_follow_git_format() {
    let added = diff("/w/\u{e4} \"q\"\\\n", None, "");
    assert_eq!(added["changes"][0]["operation"], "add");
    assert_eq!(added["changes"][0]["path"], "/w/\u{e4} \"q\"\\\n");
    let name = r#""/w/\303\244 \"q\"\\\n""#;
    assert_eq!(
        added["patch"]["text"],
        format!("diff --git {name} {name}\nnew file mode 100644\n")
    );
}

// proves: V2-14
/// The list of changes is always there, the patch only up to a limit.
#[test]
fn huge_change_has_no_patch() {
    let text = "x\n".repeat(PATCH_LIMIT / 2);
    assert!(diff("/w/a", None, &text)["patch"].is_object());
    let more = format!("{text}x");
    let huge = diff("/w/a", None, &more);
    assert!(huge.get("patch").is_none(), "{huge}");
    assert_eq!(huge["changes"][0]["path"], "/w/a");
}
