//! `turnery run`: where the prompt comes from and where the answer goes.

use crate::home::{Home, wait_with_output};
use serde_json::{Value, json};
use std::process::Stdio;

#[tokio::test]
async fn stdout_holds_only_the_answer() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": ["Hel", "lo"]}]}]));
    let done = home.run(&["run", "--model", &model, "hi"]).await;
    assert_eq!(
        (done.code, done.stdout.as_str(), done.stderr.as_str()),
        (Some(0), "Hello\n", "")
    );
}

#[tokio::test]
async fn prompt_is_argument_blank_line_stdin() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "review this\n\n+ one line"}, "steps": [{"text": "both"}]},
        {"when": {"last_user_contains": "+ one line"}, "steps": [{"text": "stdin"}]},
        {"when": {"last_user_contains": "review this"}, "steps": [{"text": "argument"}]},
    ]));
    let argument = home.run(&["run", "--model", &model, "review this"]).await;
    assert_eq!(argument.stdout, "argument\n");
    let piped = home
        .run_with_stdin(&["run", "--model", &model], "+ one line\n")
        .await;
    assert_eq!(piped.stdout, "stdin\n");
    let both = home
        .run_with_stdin(&["run", "--model", &model, "review this"], "+ one line\n")
        .await;
    assert_eq!(both.stdout, "both\n");
}

#[tokio::test]
async fn silent_stdin_is_ignored() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "answered"}]}]));
    let mut child = home
        .command(&["run", "--model", &model, "hi"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("started");
    let open = child.stdin.take();
    let done = wait_with_output(child).await;
    drop(open);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "answered\n"));
    assert!(
        done.stderr.contains("nothing came on it for 3 seconds"),
        "{done:?}"
    );
}

#[tokio::test]
async fn dash_reads_prompt_from_stdin() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "-"}, "steps": [{"text": "dash"}]},
        {"steps": [{"text": "stdin"}]},
    ]));
    let done = home
        .run_with_stdin(&["run", "--model", &model, "-"], "hello\n")
        .await;
    assert_eq!(done.stdout, "stdin\n");
    let nothing = home.run(&["run", "--model", &model, "-"]).await;
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.stderr.contains("there is no prompt"), "{nothing:?}");
}

#[tokio::test]
async fn settings_before_the_command_count_too() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "scripted"}]}]));
    let done = home.run(&["--model", &model, "run", "hi"]).await;
    assert_eq!(done.stdout, "scripted\n", "{done:?}");
    let later = home
        .run(&["--model", "nope", "run", "--model", &model, "hi"])
        .await;
    assert_eq!(later.stdout, "scripted\n", "{later:?}");
}

#[tokio::test]
async fn json_is_one_object() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"text": "four"}], "usage": {"input": 11, "output": 2}}
    ]));
    let done = home
        .run(&["run", "--model", &model, "--format", "json", "2+2"])
        .await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let result = done.stdout_json();
    assert_eq!(done.stdout.lines().count(), 1);
    assert!(result["session_id"].is_string());
    assert!(result["duration_ms"].is_u64());
    assert_eq!(result["type"], "result");
    assert_eq!(result["outcome"], "finished");
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["text"], "four");
    assert_eq!(result["usage"]["input"], 11);
    assert_eq!(result["usage"]["output"], 2);
    assert_eq!(result["turns"], 1);
    assert_eq!(result["exit_code"], 0);
    assert_eq!(result.get("error"), None);
}

#[tokio::test]
async fn stream_json_prints_events_then_result() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": ["a", "b"]}]}]));
    let done = home
        .run(&["run", "--model", &model, "--format", "stream-json", "hi"])
        .await;
    let lines: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let (result, events) = lines.split_last().expect("lines");
    assert!(
        events.iter().all(|line| line["type"] == "event"),
        "{done:?}"
    );
    let first = events.first().expect("an event");
    assert_eq!(
        (&first["event"], &first["seq"]),
        (&json!("loop_start"), &json!(0))
    );
    let text: String = events
        .iter()
        .filter(|line| line["event"] == "delta")
        .filter_map(|line| line["delta"]["text"].as_str())
        .collect();
    assert_eq!(text, "ab");
    let last = events.last().expect("an event");
    assert_eq!(last["event"], "loop_end");
    assert_eq!(last["session_id"], result["session_id"]);
    assert_eq!(
        (&result["type"], &result["text"]),
        (&json!("result"), &json!("ab"))
    );
}

#[tokio::test]
async fn session_is_continued_by_id_or_as_newest() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"text": "first"}]},
        {"steps": [{"text": "second"}]},
        {"steps": [{"text": "third"}]},
    ]));
    let none = home
        .run(&["run", "--model", &model, "--continue", "hi"])
        .await;
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("no session was held in "), "{none:?}");

    let run = ["run", "--model", &model, "--format", "json", "hi"];
    let first = home.run(&run).await.stdout_json();
    assert_eq!(first["text"], "first");
    let second = home
        .run(&[&run[..], &["--continue"]].concat())
        .await
        .stdout_json();
    assert_eq!(second["text"], "second", "{second}");
    let id = first["session_id"].as_str().expect("an id");
    let third = home
        .run(&[&run[..], &["--session", id]].concat())
        .await
        .stdout_json();
    assert_eq!(third["text"], "third", "{third}");
    assert_eq!(second["session_id"], id);
    assert_eq!(third["session_id"], id);

    let unknown = home.run(&[&run[..], &["--session", "nope"]].concat()).await;
    assert_eq!(unknown.code, Some(1));
    assert_eq!(
        unknown.stdout_json()["error"],
        "there is no session nope; list the sessions to see which there are"
    );
}

#[tokio::test]
async fn the_offline_model_answers_without_a_key() {
    let home = Home::new();
    let done = home.run(&["run", "help"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.stdout.is_empty());
    let result = home
        .run(&["run", "--format", "json", "help"])
        .await
        .stdout_json();
    assert_eq!(result["model"], "offline");
}

#[tokio::test]
async fn invalid_picture_is_a_usage_error() {
    let home = Home::new();
    let file = home.write_file("note.png", "text");
    let done = home
        .run(&["run", "--image", file.to_str().expect("UTF-8"), "look"])
        .await;
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.stderr,
        format!(
            "turnery: --image {}: is no PNG, JPEG, GIF or WebP picture\n",
            file.display()
        )
    );
}

#[tokio::test]
async fn the_suggested_prompt_needs_no_model() {
    let home = Home::new();
    let empty = home.run(&["run"]).await;
    let suggested = empty.stderr.split('"').nth(1).expect("a prompt in quotes");
    let answer = home.run(&["run", suggested]).await;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        !answer.stdout.contains("can do nothing but the commands"),
        "{answer:?}"
    );
}
