//! The loop commands of `turnery sessions` (continue, rerun, branch, compact), and the table of loops.

use crate::home::{CommandOutput, Home};
use serde_json::{Value, json};

/// Creates a session with two prompts; returns its id and the name of its model.
async fn create_session(home: &Home, answers: Value) -> (String, String) {
    let model = home.scripted_model(answers);
    let run = ["run", "--model", &model, "--format", "json", "one"];
    let first = home.run(&run).await.stdout_json();
    let id = first["session_id"].as_str().expect("an id").to_owned();
    let second = ["run", "--session", &id, "two"];
    assert_eq!(home.run(&second).await.code, Some(0));
    (id, model)
}

fn scripted_answers() -> Value {
    json!([
        {"when": {"last_user_contains": "other"}, "steps": [{"text": "another"}]},
        {"when": {"last_user_contains": "one"}, "steps": [{"text": "first"}], "usage": {"input": 10, "output": 1}},
        {"when": {"last_user_contains": "two"}, "steps": [{"text": "second"}], "usage": {"input": 20, "output": 2}},
        {"steps": [{"text": "what was said"}]},
    ])
}

async fn loop_records(home: &Home, id: &str) -> Value {
    home.run(&["sessions", "show", id, "--json"])
        .await
        .stdout_json()
}

/// Returns the words of each row of the table of loops.
fn loop_table_rows(shown: &CommandOutput) -> Vec<Vec<String>> {
    let table = shown.stdout.split("\n\n").nth(1).expect("a table");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    table.lines().skip(1).map(words).collect()
}

// proves: LOOP-16, LOOP-17, LOOP-19, LOOP-62, LOOP-64, UP-16, LOOP-6, LOOP-7
#[tokio::test]
async fn rerun_replaces_old_loop() {
    let home = Home::new();
    let (id, _) = create_session(&home, scripted_answers()).await;
    let again = ["sessions", "rerun", &id, "--format", "json"];
    let result = home.run(&again).await.stdout_json();
    assert_eq!(
        (&result["text"], &result["exit_code"]),
        (&json!("second"), &json!(0))
    );
    let kept = loop_records(&home, &id).await;
    assert_eq!(kept[0]["continuation_kind"], "initial");
    assert_eq!(kept[2]["continuation_kind"], "rerun");
    assert_eq!(kept[2]["parent_loop_id"], kept[1]["loop_id"]);
    assert_eq!(result["loop_ids"], json!([kept[2]["loop_id"]]));
    let children = |at: usize| kept[at].get("children_loop_ids").cloned();
    assert_eq!(children(0), Some(json!([kept[1]["loop_id"]])));
    assert_eq!(children(1), Some(json!([kept[2]["loop_id"]])));
    assert_eq!(children(2), None);
    assert!(
        kept[2]["tag"].as_str().is_some_and(|tag| tag.contains('T')),
        "{kept}"
    );

    let shown = home.run(&["sessions", "show", &id]).await;
    let rows = loop_table_rows(&shown);
    let words = |at: usize, from: usize, to: usize| rows[at][from..to].join(" ");
    assert_eq!(words(0, 0, 5), "1 initial completed finished 11");
    assert_eq!(words(1, 0, 7), "- 2 1 initial completed finished 22");
    assert_eq!(words(2, 0, 7), "* 3 2 rerun completed finished 22");
    assert!(rows[2][7].starts_with("scripted/"), "{shown:?}");
    assert!(
        shown
            .stdout
            .contains("· loop 2, which the model does not see any more\n\n> two\n")
    );

    let first = home.run(&["sessions", "rerun", &id, "1"]).await;
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (Some(0), "first\n"),
        "{first:?}"
    );
    let none = home.run(&["sessions", "rerun", &id, "9"]).await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains(&format!("session {id} has no loop 9")),
        "{none:?}"
    );
}

// proves: LOOP-20, UP-16, LOOP-62, LOOP-64
#[tokio::test]
async fn branch_continues_from_earlier_loop_in_any_folder() {
    let home = Home::new();
    let (id, _) = create_session(&home, scripted_answers()).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let mut command = home.command(&["sessions", "branch", &id, "1", "the other way"]);
    command.current_dir(elsewhere.path());
    let done = crate::home::wait_with_output(command.spawn().expect("started")).await;
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "another\n"),
        "{done:?}"
    );
    let kept = loop_records(&home, &id).await;
    assert_eq!(kept[2]["continuation_kind"], "branch");
    assert_eq!(kept[2]["parent_loop_id"], kept[0]["loop_id"]);
    let children = json!([kept[1]["loop_id"], kept[2]["loop_id"]]);
    assert_eq!(kept[0]["children_loop_ids"], children);
    assert!(kept[2]["tag"].is_string(), "{kept}");
    let piped = home
        .run_with_stdin(&["sessions", "branch", &id, "2"], "some other prompt\n")
        .await;
    assert_eq!(piped.stdout, "another\n", "{piped:?}");
    let nothing = home.run(&["sessions", "branch", &id, "2"]).await;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

// proves: LOOP-18
#[tokio::test]
async fn continue_requires_unanswered_conversation() {
    let home = Home::new();
    let list = json!({"tool_call": {"name": "list_dir", "args": {}}});
    let model = home.scripted_model(json!([{"steps": [list]}, {"steps": [{"text": "there"}]}]));
    home.write_file("turnery/config.toml", "forced_reply = false\n");
    let run = [
        "run",
        "--model",
        &model,
        "--max-turns",
        "1",
        "--format",
        "json",
        "go",
    ];
    let cut = home.run(&run).await;
    assert_eq!(cut.code, Some(4), "{cut:?}");
    let id = cut.stdout_json()["session_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let on = home.run(&["sessions", "continue", &id]).await;
    assert_eq!(
        (on.code, on.stdout.as_str()),
        (Some(0), "there\n"),
        "{on:?}"
    );
    assert_eq!(
        loop_records(&home, &id).await[1]["continuation_kind"],
        "default"
    );
    let answered = home.run(&["sessions", "continue", &id]).await;
    assert_eq!(answered.code, Some(1), "{answered:?}");
    assert!(
        answered.stderr.contains("the model has already answered"),
        "{answered:?}"
    );
    let gone = home.run(&["sessions", "continue", "nope"]).await;
    assert_eq!((gone.code, gone.stdout.as_str()), (Some(1), ""), "{gone:?}");
}

// proves: LOOP-21
#[tokio::test]
async fn compact_summarises_session() {
    let home = Home::new();
    let (id, _) = create_session(&home, scripted_answers()).await;
    let done = home
        .run(&["sessions", "compact", &id, "--format", "json"])
        .await;
    let kept = loop_records(&home, &id).await;
    assert_eq!(kept[2]["continuation_kind"], "compaction", "{done:?}");
    assert_eq!(done.stdout_json()["loop_ids"], json!([kept[2]["loop_id"]]));
}

// proves: LASH-105, I8
#[tokio::test]
async fn usage_is_reported_by_purpose_and_model() {
    let home = Home::new();
    let (id, model) = create_session(&home, scripted_answers()).await;
    let model = model.replacen("scripted:", "scripted/", 1);
    home.run(&["sessions", "rerun", &id]).await;
    let report = home
        .run(&["sessions", "usage", &id, "--json"])
        .await
        .stdout_json();
    let row = &report["rows"][0];
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(
        (&row["source"], &row["model"]),
        (&json!("turn"), &json!(model))
    );
    assert_eq!(
        (&row["input_tokens"], &row["output_tokens"]),
        (&json!(50), &json!(5)),
        "{row}"
    );
    let table = home.run(&["sessions", "usage", &id]).await;
    let last = table.stdout.lines().last().expect("a line");
    let last: Vec<&str> = last.split_whitespace().collect();
    assert_eq!(
        last,
        ["all", "50", "5", "0", "0", "55", "unknown"],
        "{table:?}"
    );
    let none = home.run(&["sessions", "usage", "nope"]).await;
    assert_eq!(none.code, Some(1), "{none:?}");
}
