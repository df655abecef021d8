//! Tests of `turnery run --queue`: a prompt for a session that another process holds.

use crate::{
    editor::{Editor, prompt_params},
    home::{Home, new_postgres_schema, send_signal, wait_for_file, wait_with_output},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Child,
};
use turnery_store::{ListQuery, Store as _};

/// Creates a model whose answer to "go" takes until the file `done` is there.
fn waiting_model(home: &Home) -> String {
    let command = "touch started; until [ -e done ]; do sleep 0.02; done";
    home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": command}}}]},
        {"steps": [{"text": "One zebra."}]},
        {"when": {"last_user_contains": "second"}, "steps": [{"text": "Two zebras."}]},
        {"when": {"last_user_contains": "third"}, "steps": [{"text": "Three zebras."}]},
    ]))
}

fn let_holder_go_on(home: &Home) {
    fs::write(home.project_folder().join("done"), "").expect("written");
}

/// Starts a process that holds a new session until [`let_holder_go_on`].
async fn start_holder(home: &Home, model: &str) -> (Child, String) {
    let args = ["run", "--mode", "auto", "--model", model, "go"];
    let holder = home.command(&args).spawn().expect("started");
    wait_for_file(&home.project_folder().join("started")).await;
    let listed = home.store().list(ListQuery::default()).await.expect("read");
    (holder, listed.sessions[0].id.to_string())
}

/// Asks in a session that is held, and returns once the prompt waits there.
async fn ask(home: &Home, store: Option<&str>, args: &[&str]) -> Child {
    let mut command = home.command(&[&["run", "--queue"], args].concat());
    if let Some(store) = store {
        command.env("TURNERY_STORE", store);
    }
    let mut asker = command.spawn().expect("started");
    let mut stderr = BufReader::new(asker.stderr.take().expect("piped"));
    let mut line = String::new();
    let read = stderr.read_line(&mut line).await;
    assert!(read.expect("UTF-8") > 0);
    assert!(
        line.contains("is in use by ") && line.contains("; the prompt waits there"),
        "{line}"
    );
    asker.stderr = Some(stderr.into_inner());
    asker
}

/// Returns the number of loops of a session.
async fn loop_count(home: &Home, session: &str) -> usize {
    let loops = home.store().loops(&session.into(), 0).await;
    loops.expect("read").len()
}

/// The editor that holds the session runs the prompts and shows them. In v1, in which every turn answers a request, it
/// only lets them run elsewhere.
async fn prompts_wait_for_the_editor(store: Option<&str>, version: u8) {
    let home = Home::new();
    let model = waiting_model(&home);
    let variables: Vec<_> = store
        .iter()
        .map(|store| ("TURNERY_STORE", *store))
        .collect();
    let args = ["acp", "--acp-v2", "--mode", "auto", "--model", &model];
    let mut editor = Editor::spawn(&home, &args, &variables);
    let info = json!({"name": "a test", "version": "1"});
    let hello = match version {
        1 => json!({"protocolVersion": 1}),
        _ => json!({"protocolVersion": 2, "info": info, "capabilities": {}}),
    };
    editor.request(0, "initialize", hello).await;
    let session = editor.new_session(&home.project_folder()).await;
    editor
        .send_request(2, "session/prompt", prompt_params(&session))
        .await;
    wait_for_file(&home.project_folder().join("started")).await;
    let text = ask(&home, store, &["--session", &session, "second"]).await;
    let format = ["--session", &session, "--format", "json", "third"];
    let json = ask(&home, store, &format).await;
    let_holder_go_on(&home);
    let text = wait_with_output(text).await;
    assert_eq!(
        (text.code, text.stdout.as_str()),
        (Some(0), "Two zebras.\n")
    );
    let json = wait_with_output(json).await;
    assert_eq!(json.code, Some(0), "{json:?}");
    let result = json.stdout_json();
    for (field, value) in [
        ("text", json!("Three zebras.")),
        ("outcome", json!("finished")),
        ("session_id", json!(session)),
        ("turns", json!(1)),
        ("stored", json!(true)),
        ("exit_code", json!(0)),
    ] {
        assert_eq!(result[field], value, "{field}: {result}");
    }
    assert_eq!(result["loop_ids"].as_array().map(Vec::len), Some(1));
    if version == 1 {
        let response = editor.wait_for(|message| message["id"] == 2).await;
        assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
        let said = json!(editor.close_input().await.said).to_string();
        assert!(said.contains("One zebra.") && !said.contains("Two zebras."));
        return;
    }
    let shows = |part: &'static str| move |message: &Value| message.to_string().contains(part);
    editor.wait_for(shows("Three zebras.")).await;
    let said: Vec<String> = editor.said.iter().map(Value::to_string).collect();
    let place = |part: &str| said.iter().position(|it| it.contains(part));
    let parts = [
        "One zebra.",
        "second",
        "Two zebras.",
        "third",
        "Three zebras.",
    ];
    let places: Vec<_> = parts.iter().map(|part| place(part).expect(part)).collect();
    assert!(places.is_sorted(), "{places:?} in {said:?}");
}

#[tokio::test]
async fn editor_that_holds_the_session_runs_waiting_prompts() {
    prompts_wait_for_the_editor(None, 2).await;
}

#[tokio::test]
async fn editor_runs_waiting_prompts_on_postgresql() {
    prompts_wait_for_the_editor(Some(&new_postgres_schema()), 2).await;
}

#[tokio::test]
async fn editor_of_the_first_version_shows_only_its_own_prompts() {
    prompts_wait_for_the_editor(None, 1).await;
}

/// A single prompt runs no others.
#[tokio::test]
async fn prompt_that_waits_runs_once_the_session_is_free() {
    let home = Home::new();
    let model = waiting_model(&home);
    let (holder, session) = start_holder(&home, &model).await;
    let asker = ask(&home, None, &["--continue", "--model", &model, "second"]).await;
    let_holder_go_on(&home);
    let holder = wait_with_output(holder).await;
    assert_eq!(
        (holder.code, holder.stdout.as_str()),
        (Some(0), "One zebra.\n")
    );
    let asker = wait_with_output(asker).await;
    assert_eq!(
        (asker.code, asker.stdout.as_str()),
        (Some(0), "Two zebras.\n")
    );
    assert_eq!(loop_count(&home, &session).await, 2);
    let waiting = home.store().queued_prompts(&session.as_str().into()).await;
    assert_eq!(waiting, Ok(Vec::new()));
}

#[tokio::test]
async fn prompt_that_waits_outlives_a_killed_holder() {
    let home = Home::new();
    let model = waiting_model(&home);
    let (mut holder, session) = start_holder(&home, &model).await;
    let asker = ask(&home, None, &["--continue", "--model", &model, "second"]).await;
    holder.kill().await.expect("killed");
    let asker = wait_with_output(asker).await;
    assert_eq!(
        (asker.code, asker.stdout.as_str()),
        (Some(0), "Two zebras.\n")
    );
    assert_eq!(loop_count(&home, &session).await, 2);
    let_holder_go_on(&home);
}

#[tokio::test]
async fn ctrl_c_withdraws_a_prompt_that_waits() {
    let home = Home::new();
    let model = waiting_model(&home);
    let (holder, session) = start_holder(&home, &model).await;
    let asker = ask(&home, None, &["--continue", "--model", &model, "second"]).await;
    send_signal(&asker, Signal::INT);
    let asker = wait_with_output(asker).await;
    assert_eq!((asker.code, asker.stdout.as_str()), (Some(130), ""));
    let told = "the prompt is withdrawn; it was not run";
    assert!(asker.stderr.contains(told), "{asker:?}");
    let waiting = home.store().queued_prompts(&session.as_str().into()).await;
    assert_eq!(waiting, Ok(Vec::new()));
    let_holder_go_on(&home);
    assert_eq!(wait_with_output(holder).await.code, Some(0));
    assert_eq!(loop_count(&home, &session).await, 1);
}

#[tokio::test]
async fn session_in_use_is_refused_with_its_holder() {
    let home = Home::new();
    let model = waiting_model(&home);
    let (holder, _session) = start_holder(&home, &model).await;
    let refused = home
        .run(&["run", "--continue", "--model", &model, "second"])
        .await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in [
        "the session is busy: ",
        &format!("{}", holder.id().expect("running")),
        "; with --queue, `turnery run` lets the prompt wait there",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let_holder_go_on(&home);
    assert_eq!(wait_with_output(holder).await.code, Some(0));
}

#[tokio::test]
async fn free_session_runs_a_queued_prompt_like_any_other() {
    let home = Home::new();
    let model = waiting_model(&home);
    for (args, answer) in [
        (&["second"][..], "Two zebras.\n"),
        (&["--continue", "--queue", "third"], "Three zebras.\n"),
    ] {
        let ran = home
            .run(&[&["run", "--model", &model], args].concat())
            .await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), answer),
            "{ran:?}"
        );
        assert_eq!(ran.stderr, "");
    }
}

#[tokio::test]
async fn queue_without_a_session_is_a_usage_error() {
    let home = Home::new();
    for (args, told) in [
        (&["second"][..], "use it with --session or --continue"),
        (&["--continue"], "there is no prompt"),
        (
            &["--continue", "--format", "stream-json", "second"],
            "--queue works with --format text and json",
        ),
        (&["--no-store", "second"], "--no-store"),
    ] {
        let refused = home.run(&[&["run", "--queue"], args].concat()).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(told), "{told}: {refused:?}");
    }
}
