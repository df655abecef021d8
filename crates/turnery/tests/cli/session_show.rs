//! `sessions show` with whole results and tool calls, and `sessions export` as Markdown.

use crate::home::Home;
use serde_json::{Value, json};
use std::fs;

/// Holds a session that writes a file, reads a long one and fails to read another.
async fn session_with_calls(home: &Home) -> String {
    let long: String = (1..=400).map(|line| format!("line {line} ```\n")).collect();
    fs::write(home.project_folder().join("long.txt"), long).expect("written");
    let call = |name: &str, args: Value| json!({"tool_call": {"name": name, "args": args}});
    let model = home.scripted_model(json!([
        {"steps": [call("write_file", json!({"path": "new.txt", "content": "first\nsecond\n"}))]},
        {"steps": [
            call("read_file", json!({"path": "long.txt"})),
            call("read_file", json!({"path": "missing.txt"}))
        ]},
        {"steps": [{"text": "Done.\n```\nleft open"}]}
    ]));
    let run = [
        "run",
        "--mode",
        "auto",
        "--model",
        &model,
        "--format",
        "json",
        "Do it\n```\nnow",
    ];
    let ran = home.run(&run).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout_json()["session_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

#[tokio::test]
async fn full_session_has_whole_results_and_diffs() {
    let home = Home::new();
    let id = session_with_calls(&home).await;
    let short = home.run(&["sessions", "show", &id]).await.stdout;
    assert!(!short.contains("line 200 "), "{short}");
    let full = home.run(&["sessions", "show", &id, "--full"]).await.stdout;
    assert!(full.contains("line 200 ```\n"), "{full}");
    assert!(full.contains("    +first\n    +second\n"), "{full}");
}

#[tokio::test]
async fn tools_lists_each_call_with_its_status() {
    let home = Home::new();
    let id = session_with_calls(&home).await;
    let list = home.run(&["sessions", "show", &id, "--tools"]).await.stdout;
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 4, "{list}");
    assert!(rows[0].starts_with("loop  status"), "{list}");
    assert!(
        rows[1].contains("executed") && rows[1].contains("write_file"),
        "{list}"
    );
    assert!(
        rows[3].contains("failed") && rows[3].contains("read_file"),
        "{list}"
    );
    let rows = home
        .run(&["sessions", "show", &id, "--tools", "--json"])
        .await;
    let rows = rows.stdout_json();
    let told = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["name"].clone(), row["status"].clone()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (json!("write_file"), json!("executed")),
            (json!("read_file"), json!("executed")),
            (json!("read_file"), json!("failed")),
        ]
    );
    assert_eq!(rows[1]["args"], json!({"path": "long.txt"}));
    assert!(
        rows[1]["result_bytes"].as_u64().expect("a size") > 4000,
        "{rows}"
    );
    assert!(
        rows[1]["seconds"].as_f64().expect("a time") >= 0.0,
        "{rows}"
    );
}

/// Each fence of a result is longer than those in it, and what is left open ends.
#[tokio::test]
async fn markdown_keeps_results_in_their_fences() {
    let home = Home::new();
    let id = session_with_calls(&home).await;
    let file = home.project_folder().join("session.md");
    let path = file.to_str().expect("a path");
    let done = home
        .run(&["sessions", "export", &id, path, "--format", "markdown"])
        .await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = fs::read_to_string(&file).expect("written");
    assert!(text.starts_with("# Do it"), "{text}");
    assert!(
        text.contains("\n## Prompt\n\n> Do it\n> ```\n> now\n"),
        "{text}"
    );
    assert!(text.contains("```diff\n"), "{text}");
    assert!(text.ends_with("Done.\n```\nleft open\n```\n"), "{text}");
    // Outside of fences there is no line of a result.
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => assert!(!line.contains("line 200"), "{line}"),
        }
    }
    assert_eq!(fence, None);
    let refused = home.run(&["sessions", "import", path]).await;
    assert!(
        refused.stderr.contains("not an exported session"),
        "{refused:?}"
    );
}

/// LOOP: a document of a newer turnery is refused with words, and one without the newer fields is read.
#[tokio::test]
async fn export_of_another_version_is_read_or_refused() {
    let home = Home::new();
    let id = session_with_calls(&home).await;
    let mut document = home.run(&["sessions", "export", &id]).await.stdout_json();
    document["format"] = json!(2);
    let newer = home.write_file("newer.json", &document.to_string());
    let refused = home
        .run(&[
            "sessions",
            "import",
            newer.to_str().expect("a path"),
            "--new",
        ])
        .await;
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("exported in format 2")
            && refused.stderr.contains("update turnery"),
        "{refused:?}"
    );
    document["format"] = json!(1);
    document["session"]
        .as_object_mut()
        .expect("a session")
        .remove("protocol");
    document["of_a_later_release"] = json!({"unknown": true});
    let older = home.write_file("older.json", &document.to_string());
    let read = home
        .run(&[
            "sessions",
            "import",
            older.to_str().expect("a path"),
            "--new",
        ])
        .await;
    assert_eq!(read.code, Some(0), "{read:?}");
}
