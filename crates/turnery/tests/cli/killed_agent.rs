//! After the agent was killed, loading the session shows the completed parts of its prompt.

use crate::{
    editor::Editor,
    home::{Home, wait_for_file},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Number of points at which the agent is killed: after each of the first lines of a prompt.
const KILL_POINTS: usize = 40;

/// Returns responses with sequential and parallel calls, one that needs permission, and an answer that never ends.
fn scripted_answers(home: &Home) -> Value {
    let path = home.project_folder().join("a.txt");
    let read = json!({"tool_call": {"name": "read_file", "args": {"path": path}}});
    let shell = json!({"tool_call": {"name": "shell", "args": {"command": "touch made"}}});
    let mut answers = vec![
        json!({"steps": [{"text": "one"}, read]}),
        json!({"steps": [read, read, read]}),
        json!({"steps": [{"text": "may I?"}, shell]}),
    ];
    answers.extend((0..8).map(|_| json!({"steps": [{"text": "more"}, read]})));
    answers.push(json!({"steps": [{"text": "almost"}, {"wait_for_cancel": true}]}));
    Value::from(answers)
}

/// Returns the calls in these messages by id: the last status and all content shown with it.
fn calls(said: &[Value]) -> BTreeMap<String, (String, String)> {
    let mut calls = BTreeMap::new();
    for message in said {
        let update = &message["params"]["update"];
        if let Some(id) = update["toolCallId"].as_str() {
            let call: &mut (String, String) = calls.entry(id.to_owned()).or_default();
            if let Some(status) = update["status"].as_str() {
                status.clone_into(&mut call.0);
            }
            call.1.push_str(&update["content"].to_string());
        }
    }
    calls
}

fn texts(said: &[Value], kind: &str) -> Vec<String> {
    let updates = said.iter().map(|message| &message["params"]["update"]);
    updates
        .filter(|update| update["sessionUpdate"] == kind)
        .map(|update| update["content"]["text"].as_str().unwrap_or("").to_owned())
        .collect()
}

async fn open_editor(home: &Home, model: &str) -> Editor {
    let mut editor = Editor::spawn(home, &["acp", "--model", model], &[]);
    editor.initialize().await;
    editor
}

/// Sends a prompt, kills the agent after `lines` lines, and returns the messages of the prompt.
async fn kill_after_lines(mut editor: Editor, session: &str, lines: usize) -> Vec<Value> {
    let before = editor.said.len();
    editor.send_prompt(2, session).await;
    let mut left = lines;
    loop {
        let message = editor
            .wait_for(|message| message.get("method").is_some())
            .await;
        let of_prompt = message["params"]["update"]["sessionUpdate"] != "available_commands_update";
        left -= usize::from(of_prompt);
        if left == 0 {
            return editor.kill().await.split_off(before);
        }
        if message["method"] == "session/request_permission" {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome});
            editor.send(answer).await;
        }
    }
}

/// After a kill at any line, a load shows every call that was shown as completed as completed, and every
/// other call that had started as completed or as interrupted.
// proves: S5, LOAD-1, LOAD-7
#[tokio::test]
async fn load_shows_prompt_killed_in_any_state() {
    let home = Home::new();
    home.write_file("project/a.txt", "alpha\n");
    let model = home.scripted_model(scripted_answers(&home));
    let mut editor = open_editor(&home, &model).await;
    let mut session = String::new();
    for lines in 1..=KILL_POINTS {
        session = editor.new_session(&home.project_folder()).await;
        let seen = kill_after_lines(editor, &session, lines).await;
        editor = open_editor(&home, &model).await;
        let before = editor.said.len();
        let load = json!({"sessionId": session, "cwd": home.project_folder(), "mcpServers": []});
        let loaded = editor.request(3, "session/load", load).await;
        assert!(loaded.get("error").is_none(), "{lines}: {loaded}");
        let shown = &editor.said[before..];

        assert_eq!(texts(shown, "user_message_chunk"), ["go"], "{lines}");
        let said = texts(shown, "agent_message_chunk");
        let told = said.concat();
        assert!(told.contains("was interrupted"), "{lines}: {said:?}");
        assert!(
            said.last().is_some_and(|it| it.contains("`/continue`")),
            "{lines}: {said:?}"
        );
        let shown = calls(shown);
        for (id, (status, _)) in calls(&seen) {
            // A call that has not started may be missing.
            if matches!(&*status, "" | "pending") && !shown.contains_key(&id) {
                continue;
            }
            let (now, text) = shown.get(&id).unwrap_or_else(|| panic!("{lines}: no {id}"));
            match status.as_str() {
                "completed" => assert_eq!(now, "completed", "{lines}: {id}"),
                _ if now == "completed" => {}
                _ => {
                    assert_eq!(now, "failed", "{lines}: {id} was {status}");
                    let is_told = text.contains("interrupted") || text.contains("not run");
                    assert!(is_told, "{lines}: {text}");
                }
            }
        }
    }
    editor.close_input().await;
    let told = home.run(&["sessions", "show", &session]).await;
    assert!(told.stdout.contains("> go"), "{told:?}");
    assert!(told.stdout.contains("was interrupted"), "{told:?}");
}

/// `sessions show` and `sessions export` recover the killed prompt when they are the first to access its
/// session.
// proves: S5
#[tokio::test]
async fn killed_prompt_is_shown_and_exportable() {
    let home = Home::new();
    home.write_file("project/a.txt", "alpha\n");
    let model = home.scripted_model(scripted_answers(&home));
    for command in ["show", "export"] {
        let mut editor = open_editor(&home, &model).await;
        let session = editor.new_session(&home.project_folder()).await;
        kill_after_lines(editor, &session, 12).await;
        let told = home.run(&["sessions", command, &session]).await;
        assert!(told.stdout.contains("alpha"), "{told:?}");
        assert!(told.stdout.contains("was interrupted"), "{told:?}");
    }
}

/// An interrupted prompt goes on where it stopped, with `/continue` in an editor and `--continue` on the command line:
/// calls that were done are not made again, and the model is told of the one that was running.
// proves: LOOP-18, S5
#[tokio::test]
async fn killed_prompt_goes_on_where_it_stopped() {
    for by_editor in [true, false] {
        let home = Home::new();
        let wait = "echo ran >> log; echo $$ > pid.new; mv pid.new pid; exec sleep 1000";
        let model = home.scripted_model(json!([
            {"when": {"last_user_contains": "go on"}, "steps": [{"text": "unused"}]},
            {"steps": [{"tool_call": {"name": "shell", "args": {"command": "echo first >> log"}}}]},
            {"steps": [{"tool_call": {"name": "shell", "args": {"command": wait}}}]},
            {"steps": [{"text": "I went on."}]},
        ]));
        let args = ["acp", "--model", &model, "--mode", "auto"];
        let mut editor = Editor::spawn(&home, &args, &[]);
        editor.initialize().await;
        let session = editor.new_session(&home.project_folder()).await;
        editor.send_prompt(2, &session).await;
        let pid = home.project_folder().join("pid");
        wait_for_file(&pid).await;
        editor.kill().await;
        let said = if by_editor {
            let mut editor = Editor::spawn(&home, &args, &[]);
            editor.initialize().await;
            let load =
                json!({"sessionId": session, "cwd": home.project_folder(), "mcpServers": []});
            editor.request(3, "session/load", load).await;
            let params =
                json!({"sessionId": session, "prompt": [{"type": "text", "text": "/continue"}]});
            let end = editor.request(4, "session/prompt", params).await;
            assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
            texts(&editor.said, "agent_message_chunk").concat()
        } else {
            let done = home.run(&["run", "--continue", "--mode", "auto"]).await;
            assert_eq!(done.code, Some(0), "{done:?}");
            done.stdout
        };
        assert!(said.contains("I went on."), "{said}");
        let log = std::fs::read_to_string(home.project_folder().join("log")).expect("a log");
        assert_eq!(log, "first\nran\n");
        let shown = home.run(&["sessions", "show", &session, "--json"]).await;
        let records = shown.stdout_json();
        assert_eq!(records[0]["status"], "aborted");
        assert_eq!(records[1]["continuation_kind"], "default");
        assert!(
            shown.stdout.contains("may or may not have had effects"),
            "{shown:?}"
        );
    }
}
