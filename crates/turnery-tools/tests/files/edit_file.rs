//! `edit_file`.

use crate::fixture::ToolFixture;
use proptest::prelude::*;
use serde_json::json;
use turnery_engine::{Artifact, Location, ToolErrorKind};
use turnery_tools::Access;

/// Returns the edited text, or the error message.
async fn edit(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    let bench = ToolFixture::new();
    bench.write_file("f", text);
    let args = json!({"path": "f", "old_text": old, "new_text": new, "replace_all": all});
    let envelope = bench.run("edit_file", args).await;
    let after = String::from_utf8(bench.read_bytes("f")).expect("text");
    match envelope.result {
        Ok(_) => Ok(after),
        Err(failure) => {
            assert_eq!(after, text, "a failed edit changes nothing");
            Err(failure.message)
        }
    }
}

#[tokio::test]
async fn diff_is_shown_in_preview_and_result() {
    let bench = ToolFixture::new();
    let path = bench.write_file("src/a.rs", "one\ntwo\nthree\n");
    let args = json!({"path": "src/a.rs", "old_text": "two", "new_text": "2"});
    let diff = |old: &str, new: &str| {
        vec![Artifact::Diff {
            path: path.clone(),
            old: Some(old.to_owned()),
            new: new.to_owned(),
            from_line: None,
        }]
    };
    let prepared = bench.prepare("edit_file", args.clone()).await.unwrap();
    assert_eq!(prepared.access, Access::Edit(vec![path.clone()]));
    assert_eq!(prepared.detail.title, "Edit src/a.rs");
    let line = Some(2);
    let location = Location {
        path: path.clone(),
        line,
    };
    assert_eq!(prepared.detail.locations, vec![location]);
    assert_eq!(
        prepared.detail.artifacts,
        diff("one\ntwo\nthree\n", "one\n2\nthree\n")
    );
    // The file changes meanwhile: the edit applies to its new text.
    bench.write_file("src/a.rs", "zero\none\ntwo\nthree\n");
    let envelope = bench.run("edit_file", args).await;
    assert_eq!(
        envelope.artifacts,
        diff("zero\none\ntwo\nthree\n", "zero\none\n2\nthree\n")
    );
    assert_eq!(
        envelope.result.unwrap()[0].as_text(),
        Some("Edited src/a.rs:\n@@ -1,4 +1,4 @@\n zero\n one\n-two\n+2\n three\n")
    );
    assert_eq!(bench.read_bytes("src/a.rs"), b"zero\none\n2\nthree\n");
}

#[tokio::test]
async fn ambiguous_match_is_rejected() {
    let refused = edit("a\nb\na\n", "a", "c", false).await;
    assert_eq!(
        refused.unwrap_err(),
        "old_text occurs in f 2 times, on lines 1, 3: add lines around it to say which, \
         or set replace_all"
    );
    assert_eq!(
        edit("a\nb\na\n", "a", "c", true).await.unwrap(),
        "c\nb\nc\n"
    );
    // Overlapping places are different places.
    assert!(edit("aaa", "aa", "b", false).await.is_err());
    assert_eq!(edit("aaa", "aa", "b", true).await.unwrap(), "ba");
}

#[tokio::test]
async fn differing_whitespace_matches_and_is_reindented() {
    let cases = [
        // Deeper in the file.
        (
            "fn a() {\n        if x {\n            y();\n        }\n}\n",
            "if x {\n    y();\n}",
            "if x {\n    z();\n    w();\n}",
            "fn a() {\n        if x {\n            z();\n            w();\n        }\n}\n",
        ),
        // Shallower in the file.
        (
            "x:\n  y\n",
            "    x:\n      y\n",
            "    x:\n      z\n",
            "x:\n  z\n",
        ),
        // Tabs in the file, four spaces in the call; a level that was not in the old text.
        (
            "if a {\n\tb();\n}\n",
            "if a {\n    b();\n}",
            "if a {\n    if c {\n        b();\n    }\n}",
            "if a {\n\tif c {\n\t\tb();\n\t}\n}\n",
        ),
        // Space at the end of lines.
        ("one  \ntwo\n", "one\ntwo\n", "1\n2\n", "1\n2\n"),
        // No line feed at the end of the file.
        ("a\n  b", "a\nb\n", "c\nd\n", "c\nd"),
    ];
    for (text, old, new, after) in cases {
        let edited = edit(text, old, new, false).await;
        if after == "c\nd" {
            // `b` is indented and `a` is not, while the call indents neither, so the intended indentation is
            // unknown.
            assert!(edited.is_err(), "{text:?}");
        } else {
            assert_eq!(edited.as_deref(), Ok(after), "{text:?}");
        }
    }
    let twice = edit("  a\nx\n    a\n", "a \n", "b\n", false).await;
    assert!(twice.unwrap_err().contains("on lines 1, 3"));
}

#[tokio::test]
async fn line_endings_and_encoding_are_preserved() {
    let edited = edit("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", false).await;
    assert_eq!(edited.unwrap(), "x\r\ny\r\nz\r\nc\r\n");
    let mixed = edit("a\nb\r\nc\r\nd\r\ne\n", "c", "1\n2", false).await;
    assert_eq!(mixed.unwrap(), "a\nb\r\n1\r\n2\r\nd\r\ne\n");
    let bench = ToolFixture::new();
    bench.write_file("u", b"\xFF\xFEa\0\r\0\n\0b\0");
    let args = json!({"path": "u", "old_text": "b", "new_text": "c"});
    bench.call_text("edit_file", args).await;
    assert_eq!(bench.read_bytes("u"), b"\xFF\xFEa\0\r\0\n\0c\0");
}

#[tokio::test]
async fn unmatched_text_reports_nearest_text() {
    let text = "fn main() {\n    let total = 1;\n    print(total);\n}\n";
    let refused = edit(text, "    let total = 2;\n    print(total);\n", "x", false).await;
    assert_eq!(
        refused.unwrap_err(),
        "old_text is not in f. The nearest text is lines 1-5:\n1\tfn main() {\n\
         2\t    let total = 1;\n3\t    print(total);\n4\t}\n5\t\n"
    );
    let refused = edit(text, "1\tfn main() {\n", "x", false).await;
    assert_eq!(
        refused.unwrap_err(),
        "old_text is not in f. Leave out the line numbers that read_file shows"
    );
    let refused = edit(text, "nothing of the sort 12345", "x", false).await;
    assert_eq!(
        refused.unwrap_err(),
        "old_text is not in f. No text in the file is similar: read the file again"
    );
}

#[tokio::test]
async fn invalid_arguments_are_rejected() {
    let refused = edit("a", "", "b", false).await.unwrap_err();
    assert!(refused.starts_with("old_text is empty"), "{refused}");
    let refused = edit("a", "a", "a", false).await.unwrap_err();
    assert_eq!(refused, "old_text and new_text are the same");
    let bench = ToolFixture::new();
    let args = json!({"path": "none", "old_text": "a", "new_text": "b"});
    let (kind, message) = bench.call_failure("edit_file", args).await;
    assert_eq!(kind, ToolErrorKind::ExecutionError);
    assert!(message.starts_with("none does not exist"), "{message}");
}

/// Each of these took minutes when every place was compared from scratch.
#[tokio::test]
async fn large_file_with_many_matches_is_fast() {
    let letters = "e".repeat(2_000_000);
    assert_eq!(
        edit(&letters, "e", "x", false).await.unwrap_err(),
        "old_text occurs in f at least 1000 times, on lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, more: \
         add lines around it to say which, or set replace_all"
    );
    let long = "e".repeat(100_000);
    assert_eq!(
        edit(&letters, &long, "x", true).await.unwrap(),
        "x".repeat(20)
    );
    let empty = "\n".repeat(1_000_000);
    let old = format!("{}  last", "\n".repeat(20_000));
    let told = edit(&empty, &old, "x", false).await.unwrap_err();
    assert!(told.starts_with("old_text is not in f."), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// An exact match is replaced as the standard library would; several are refused.
    #[test]
    fn exact_edit_equals_plain_replacement(
        text in "[ab \n]{0,12}", old in "[ab\n]{1,3}", new in "[abc\n]{0,4}",
    ) {
        prop_assume!(old != new && text.contains(&old));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let places = text.char_indices().filter(|(at, _)| text[*at..].starts_with(&*old)).count();
        let once = runtime.block_on(edit(&text, &old, &new, false));
        if places == 1 {
            prop_assert_eq!(once, Ok(text.replacen(&old, &new, 1)));
        } else {
            prop_assert!(once.is_err());
        }
        let all = runtime.block_on(edit(&text, &old, &new, true));
        prop_assert_eq!(all, Ok(text.replace(&old, &new)));
    }

    /// Whatever matches, with whatever line endings: text before and after the match stays byte for byte.
    #[test]
    fn text_outside_match_is_unchanged(
        before in "([xy \t]{0,4}\r?\n){0,3}", after in "(\r?\n[xy \t]{0,4}){0,3}",
        indent in "[ \t]{0,4}", end in "[ ]{0,2}", ends in "\r?\n",
    ) {
        let text = format!("{before}{indent}one{end}{ends}{indent}two{after}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let edited = runtime.block_on(edit(&text, "one\ntwo", "1\n2", false)).unwrap();
        prop_assert!(edited.starts_with(&before), "{:?}", edited);
        prop_assert!(edited.ends_with(&after), "{:?}", edited);
        let middle = &edited[before.len()..edited.len() - after.len()];
        let lines: Vec<&str> = middle.lines().collect();
        let expected = [format!("{indent}1"), format!("{indent}2")];
        prop_assert_eq!(lines, expected);
    }
}
