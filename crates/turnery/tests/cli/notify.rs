//! The `notify` command of the configuration gets the messages that the model sends, once their prompt is stored.

use crate::{
    editor::{Editor, StartedProcess},
    home::{CommandOutput, Home, send_signal, wait_for_file, wait_with_output},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{fs, time::Duration};
use turnery_store::{ListQuery, Store as _};

/// Model responses: these messages are sent in the first prompt of a session, and each prompt ends with "done".
fn answers(messages: &[&str]) -> Value {
    let call =
        |message: &&str| json!({"tool_call": {"name": "notify", "args": {"message": message}}});
    let calls: Vec<Value> = messages.iter().map(call).collect();
    let done = json!({"steps": [{"text": "done"}]});
    json!([{"steps": calls}, done, done, done])
}

/// Configures a shell script as the command; `$1` is the message.
fn configure(home: &Home, script: &str) {
    let words = json!(["sh", "-c", script, "sh"]);
    home.write_file("turnery/config.toml", &format!("notify = {words}\n"));
}

async fn run_prompt(home: &Home, messages: &[&str], more: &[&str]) -> CommandOutput {
    let model = home.scripted_model(answers(messages));
    let mut run = vec!["run", "--format", "json", "--model", &model];
    run.extend(more);
    run.push("do it");
    home.run(&run).await
}

/// Returns the lines of a file in the project's folder, each a JSON value.
fn json_lines(home: &Home, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(home.project_folder().join(name)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// A session is stored before the command runs, with the loop that sent the message: `sessions list` shows it.
// proves: JIDO-44, JIDO-46
#[tokio::test]
async fn notify_runs_once_after_the_commit() {
    let home = Home::new();
    let turnery = env!("CARGO_BIN_EXE_turnery");
    configure(
        &home,
        &format!(
            "cat >> told; printf '%s\\n' \"$1\" >> said; '{turnery}' sessions list --json >> listed"
        ),
    );
    let messages = ["All 12 tests pass", "--help", "one\u{1b}[31m\ntwo"];
    let done = run_prompt(&home, &messages, &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.stdout_json()["text"], "done", "{done:?}");
    let told = json_lines(&home, "told");
    let texts: Vec<&str> = told
        .iter()
        .filter_map(|it| it["message"].as_str())
        .collect();
    assert_eq!(texts, ["All 12 tests pass", "--help", "one [31m two"]);
    let cwd = home.project_folder().canonicalize().expect("a folder");
    let session = &done.stdout_json()["session_id"];
    for (number, told) in told.iter().enumerate() {
        assert_eq!(told["cwd"], json!(cwd), "{told}");
        assert_eq!(told["session_id"], *session, "{told}");
        assert_eq!(told["title"], "turnery", "{told}");
        let key = told["key"].as_str().expect("a key");
        assert!(key.starts_with(session.as_str().expect("an id")), "{key}");
        let others = told_keys(&home).into_iter().filter(|it| it == key);
        assert_eq!(others.count(), 1, "{number}");
    }
    let said = fs::read_to_string(home.project_folder().join("said")).expect("it ran");
    assert_eq!(said, "All 12 tests pass\n --help\none [31m two\n");
    let listed = fs::read_to_string(home.project_folder().join("listed")).expect("it ran");
    assert!(
        listed.contains("\"head_version\": 1") || listed.contains("\"head_version\":1"),
        "{listed}"
    );
    let next = run_prompt(&home, &[], &["--continue"]).await;
    assert_eq!(next.code, Some(0), "{next:?}");
    assert_eq!(json_lines(&home, "told").len(), 3);
}

fn told_keys(home: &Home) -> Vec<String> {
    let told = json_lines(home, "told");
    let keys = told.iter().filter_map(|it| it["key"].as_str());
    keys.map(str::to_owned).collect()
}

/// The first program never ends: turnery is killed after the commit and before the message is known as delivered.
#[tokio::test]
async fn killed_run_notifies_again_with_the_same_key() {
    let home = Home::new();
    configure(
        &home,
        "cat >> told; if [ ! -e second ]; then mkfifo fifo; touch begun; read -r _ < fifo; fi",
    );
    let model = home.scripted_model(answers(&["half way"]));
    let mut run = home.command(&["run", "--model", &model, "do it"]);
    let child = run.spawn().expect("started");
    wait_for_file(&home.project_folder().join("begun")).await;
    send_signal(&child, Signal::KILL);
    wait_with_output(child).await;
    let listed = home.store().list(ListQuery::default()).await.expect("read");
    assert_eq!(listed.sessions[0].head_version, 1);
    home.write_file("project/second", "");
    let next = run_prompt(&home, &[], &["--continue"]).await;
    assert_eq!(next.code, Some(0), "{next:?}");
    let keys = told_keys(&home);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(keys[0], keys[1]);
    let again = run_prompt(&home, &[], &["--continue"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(told_keys(&home).len(), 2);
}

/// A prompt is answered while the program still runs, and the end of input ends both it and turnery, long before its
/// time is over.
#[tokio::test]
async fn hanging_notify_delays_neither_response_nor_exit() {
    let home = Home::new();
    configure(
        &home,
        "echo $$ > pid; mkfifo fifo; touch begun; read -r _ < fifo",
    );
    let model = home.scripted_model(answers(&["ready"]));
    let (mut editor, session) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let response = editor.prompt(2, &session).await;
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    wait_for_file(&home.project_folder().join("begun")).await;
    let program = StartedProcess::from_pid_file(&home.project_folder().join("pid"));
    let left = editor.close_input().await;
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.took < Duration::from_secs(12), "{:?}", left.took);
    program.wait_for_exit();
}

#[tokio::test]
async fn failing_notify_is_reported_and_changes_nothing() {
    let home = Home::new();
    for (script, reason) in [
        ("echo 'no bus' >&2; exit 3", "exit code 3: no bus"),
        ("kill -9 $$", "it was killed by a signal"),
    ] {
        configure(&home, script);
        let done = run_prompt(&home, &["ready"], &[]).await;
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(done.stdout_json()["text"], "done", "{done:?}");
        let warning = format!(
            "the notify command failed, and is tried again in 5 s, or when the session is opened: {reason}"
        );
        assert!(done.stderr.contains(&warning), "{done:?}");
    }
    home.write_file("turnery/config.toml", "notify = [\"no-such-program\"]\n");
    let done = run_prompt(&home, &["ready"], &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stderr.contains("cannot start \"no-such-program\""),
        "{done:?}"
    );
}

/// Neither the command nor the tool comes from a project.
// proves: JIDO-45
#[tokio::test]
async fn project_cannot_set_notify() {
    let home = Home::new();
    home.write_file(
        "project/.turnery/config.toml",
        "notify = [\"touch\", \"owned\"]\n",
    );
    let done = run_prompt(&home, &["hello"], &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stderr.contains("the project's notify is not run"),
        "{done:?}"
    );
    assert!(!home.project_folder().join("owned").exists());
    configure(&home, "cat >> told");
    let done = run_prompt(&home, &["hello"], &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!home.project_folder().join("owned").exists());
    assert_eq!(json_lines(&home, "told").len(), 1);
}

/// The tool is offered only if there is a command, and a rule may deny it.
#[tokio::test]
async fn notify_is_denied_by_a_rule() {
    let home = Home::new();
    let words = json!(["sh", "-c", "cat >> told", "sh"]);
    home.write_file(
        "turnery/config.toml",
        &format!("notify = {words}\ndeny = [\"notify\"]\n"),
    );
    let done = run_prompt(&home, &["hello"], &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(json_lines(&home, "told"), [] as [Value; 0]);
}
