//! A killed agent: what was settled of its prompt is shown when the session is loaded.

use crate::{editor::Editor, home::Home};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many states it is killed in: after each of so many lines of a prompt.
const STATES: usize = 40;

/// Calls one by one, side by side and after a question, and an answer without an end.
fn answers(home: &Home) -> Value {
    let path = home.project().join("a.txt");
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

/// The calls among these messages, by id: the last status, and all that was shown with it.
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

async fn open(home: &Home, model: &str) -> Editor {
    let mut editor = Editor::open(home, &["acp", "--model", model], &[]);
    editor.initialize().await;
    editor
}

/// Prompt, kill after so many lines, and return what was said of the prompt.
async fn killed_after(mut editor: Editor, session: &str, lines: usize) -> Vec<Value> {
    let before = editor.said.len();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    editor.ask(2, "session/prompt", prompt).await;
    let mut left = lines;
    loop {
        let message = editor.wait(|message| message.get("method").is_some()).await;
        let of_prompt = message["params"]["update"]["sessionUpdate"] != "available_commands_update";
        left -= usize::from(of_prompt);
        if left == 0 {
            return editor.killed().await.split_off(before);
        }
        if message["method"] == "session/request_permission" {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome});
            editor.send(answer).await;
        }
    }
}

/// Nothing that was shown as done is lost, and nothing else is shown as done.
// proves: S5, LOAD-1, LOAD-7
#[tokio::test]
async fn prompt_killed_in_any_state_is_shown_by_load() {
    let home = Home::new();
    home.write("project/a.txt", "alpha\n");
    let model = home.scripted(answers(&home));
    let mut editor = open(&home, &model).await;
    let mut session = String::new();
    for lines in 1..=STATES {
        session = editor.new_session(&home.project()).await;
        let seen = killed_after(editor, &session, lines).await;
        editor = open(&home, &model).await;
        let before = editor.said.len();
        let load = json!({"sessionId": session, "cwd": home.project(), "mcpServers": []});
        let loaded = editor.request(3, "session/load", load).await;
        assert!(loaded.get("error").is_none(), "{lines}: {loaded}");
        let shown = &editor.said[before..];

        assert_eq!(texts(shown, "user_message_chunk"), ["go"], "{lines}");
        let said = texts(shown, "agent_message_chunk");
        let last = said.last().expect("a notice");
        assert!(last.contains("was interrupted"), "{lines}: {said:?}");
        let shown = calls(shown);
        for (id, (status, _)) in calls(&seen) {
            // One that has not begun may be gone.
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
    editor.leave().await;
    let told = home.run(&["sessions", "show", &session]).await;
    assert!(told.stdout.contains("> go"), "{told:?}");
    assert!(told.stdout.contains("was interrupted"), "{told:?}");
}

/// The first to look finds it, whichever way; and the next prompt goes on from it.
// proves: S5
#[tokio::test]
async fn killed_prompt_is_shown_and_exported() {
    let home = Home::new();
    home.write("project/a.txt", "alpha\n");
    let model = home.scripted(answers(&home));
    for command in ["show", "export"] {
        let mut editor = open(&home, &model).await;
        let session = editor.new_session(&home.project()).await;
        killed_after(editor, &session, 12).await;
        let told = home.run(&["sessions", command, &session]).await;
        assert!(told.stdout.contains("alpha"), "{told:?}");
        assert!(told.stdout.contains("was interrupted"), "{told:?}");
    }
}
