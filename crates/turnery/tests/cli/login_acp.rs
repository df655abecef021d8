//! Logging in while an agent runs, and the first messages of an agent without configuration.

use crate::{
    editor::Editor,
    home::{Home, wait_with_output},
    login::{VALID_KEY, start_provider},
};
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Without a key `session/new` fails; after `turnery login` in a terminal the same process continues, and it
/// deletes the key when the editor logs out. The verbose logs do not contain the key.
// proves: AUTH-4, AUTH-6, AUTH-7, ELIC-7, G-11, THEME-20
#[tokio::test]
async fn running_agent_uses_newly_stored_key() {
    let home = Home::new();
    let (address, _) = start_provider();
    home.write_file(
        "turnery/config.toml",
        &format!(
            "model = \"desk/m\"\n[providers.desk]\napi = \"openai\"\nbase_url = \"{address}\"\n\
             key_env = \"DESK_KEY\"\n"
        ),
    );
    let mut editor = Editor::spawn(&home, &["acp"], &[("TURNERY_LOG", "trace")]);
    editor.initialize().await;
    let new = json!({"cwd": home.project_folder(), "mcpServers": []});
    let answer = editor.request(1, "session/new", new.clone()).await;
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert_eq!(
        answer["error"]["data"]["details"],
        "There is no key for desk: run `turnery login desk` in a terminal or set DESK_KEY, or choose \
         another model."
    );
    let login = ["login", "desk", "--with-key"];
    let done = home.run_with_stdin(&login, VALID_KEY).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let none = json!({"methodId": "none"});
    let answer = editor.request(2, "authenticate", none).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    let answer = editor.request(3, "session/new", new.clone()).await;
    let id = answer["result"]["sessionId"].clone();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "x"}]});
    let answer = editor.request(4, "session/prompt", prompt.clone()).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");

    let answer = editor.request(5, "logout", json!({})).await;
    assert_eq!(answer["result"], json!({}), "{answer}");
    for (n, method, params) in [
        (6, "session/new", new),
        (7, "session/prompt", prompt.clone()),
    ] {
        let answer = editor.request(n, method, params).await;
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
    }
    // In the same session, without notifying the agent.
    home.run_with_stdin(&login, VALID_KEY).await;
    let answer = editor.request(8, "session/prompt", prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let done = editor.close_input().await;
    assert!(!done.stderr.contains("sk-"), "{done:?}");
    assert!(done.stderr.contains("DEBUG"), "logs are loud: {done:?}");
}

/// With an empty home folder and without network, as in the registry's check, the first line of output is the
/// response to `initialize`, with an agent login method; nothing is created or logged.
// proves: INIT-14, AUTH-3, AUTH-11, G-27
#[tokio::test]
async fn first_line_in_empty_home_is_the_answer() {
    let home = TempDir::new().expect("a folder");
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_turnery"))
        .arg("acp")
        .env_clear()
        .env("HOME", home.path())
        .env("TERM", "dumb")
        .env("http_proxy", "http://127.0.0.1:9")
        .env("https_proxy", "http://127.0.0.1:9")
        .env("TURNERY_LOCAL_SERVERS", "off")
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": 1,
        "clientInfo": {"name": "registry", "version": "1"},
        "clientCapabilities": {
            "fs": {"readTextFile": true, "writeTextFile": true},
            "terminal": true,
            "_meta": {"terminal_output": true, "terminal-auth": true},
        },
    }});
    let mut input = child.stdin.take().expect("piped");
    input
        .write_all(format!("{initialize}\n").as_bytes())
        .await
        .expect("sent");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    output.read_line(&mut line).await.expect("a line");
    let answer: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(answer["id"], 1);
    let methods = answer["result"]["authMethods"].as_array().expect("methods");
    let is_agent = |it: &Value| it.get("type").is_none_or(|kind| kind == "agent");
    assert!(methods.iter().any(is_agent), "{answer}");
    let command = &methods[1]["_meta"]["terminal-auth"];
    assert_eq!(command["args"], json!(["login"]), "{answer}");
    assert_eq!(command["command"], env!("CARGO_BIN_EXE_turnery"));
    drop(input);
    let done = wait_with_output(child).await;
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let left = std::fs::read_dir(home.path()).expect("read").count();
    assert_eq!(left, 0, "nothing is made");
}
