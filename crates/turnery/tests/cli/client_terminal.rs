//! Commands in the editor's terminals, with editors that follow the protocol and one that does not.

use crate::{editor::Editor, home::Home};
use serde_json::{Value, json};
use std::{fs, process::Command};

/// Command line with several words, quotes, a pipe and a variable, which only a shell can run.
const COMMAND_LINE: &str = "x='a  b'; printf '%s|' \"$x\" | tr a c > 'made here'; cat 'made here'";

/// Output of the command line, and contents of the file that it creates.
const EXPECTED_OUTPUT: &str = "c  b|";

/// Runs a prompt whose model calls `shell` with [`COMMAND_LINE`], with an editor that starts the commands of
/// its terminals with `start`. Asserts that the command created its file; returns the parameters of
/// `terminal/create` and the result of `terminal/output`.
async fn run_in_terminal(
    home: &Home,
    client: Value,
    start: impl Fn(&Value) -> Command,
) -> (Value, Value) {
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": COMMAND_LINE}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let args = ["acp", "--mode", "auto", "--model", &model];
    let mut editor = Editor::spawn(home, &args, &[]);
    let hello = json!({"protocolVersion": 1, "clientInfo": client,
        "clientCapabilities": {"terminal": true}});
    editor.request(0, "initialize", hello).await;
    let session = editor.new_session(&home.project_folder()).await;
    editor.send_prompt(2, &session).await;
    let (mut asked, mut output) = (Value::Null, Value::Null);
    loop {
        let message = editor.next_message().await.expect("it still talks");
        let result = match message["method"].as_str() {
            Some("terminal/create") => {
                asked = message["params"].clone();
                let cwd = asked["cwd"].as_str().expect("a folder").to_owned();
                output = match start(&asked).current_dir(cwd).output() {
                    Ok(done) => json!({
                        "output": String::from_utf8_lossy(&done.stdout),
                        "truncated": false,
                        "exitStatus": {"exitCode": done.status.code(), "signal": null},
                    }),
                    Err(error) => panic!("{asked}: {error}"),
                };
                json!({"terminalId": "t1"})
            }
            Some("terminal/wait_for_exit") => output["exitStatus"].clone(),
            Some("terminal/output") => output.clone(),
            Some("terminal/release") => json!({}),
            Some(_) => continue,
            None if message["id"] == 2 => break,
            None => continue,
        };
        let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        editor.send(reply).await;
    }
    editor.close_input().await;
    let made = fs::read_to_string(home.project_folder().join("made here"));
    assert_eq!(made.ok().as_deref(), Some(EXPECTED_OUTPUT), "{asked}");
    (asked, output)
}

fn argument_strings(asked: &Value) -> impl Iterator<Item = &str> {
    let args = asked["args"].as_array().into_iter().flatten();
    args.map(|word| word.as_str().expect("a word"))
}

// proves: ACP-36
#[tokio::test]
async fn editor_that_execs_directly_gets_bash_and_the_line() {
    let home = Home::new();
    let client = json!({"name": "by-the-book", "version": "1"});
    let (asked, output) = run_in_terminal(&home, client, |asked| {
        let mut command = Command::new(asked["command"].as_str().expect("a program"));
        command.args(argument_strings(asked));
        command
    })
    .await;
    assert_eq!(asked["command"], "bash");
    assert_eq!(asked["args"], json!(["-c", COMMAND_LINE]));
    assert_eq!(output["output"], EXPECTED_OUTPUT);
}

/// The client vscode-acp starts terminals with `spawn(command, args, {shell: true})`, which joins program and
/// arguments with blanks; for it the line still runs unchanged.
#[tokio::test]
async fn line_stays_whole_if_client_joins_arguments() {
    let home = Home::new();
    let client = json!({"name": "vscode-acp-client", "version": "0.2.0"});
    let (_, output) = run_in_terminal(&home, client, |asked| {
        let first = asked["command"].as_str().expect("a program");
        let joined: Vec<&str> = std::iter::once(first)
            .chain(argument_strings(asked))
            .collect();
        let mut command = Command::new("sh");
        command.args(["-c", &joined.join(" ")]);
        command
    })
    .await;
    assert_eq!(output["output"], EXPECTED_OUTPUT);
}
