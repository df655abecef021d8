//! `turnery acp` with a client that reads late or never, or sends many requests at once.

use crate::{
    editor::{Editor, prompt_params},
    home::Home,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Logs more than the stderr pipe and the log queue hold while nobody reads stderr: all requests are still
/// answered.
// proves: TR-3, TR-4
#[tokio::test]
async fn unread_stderr_does_not_block_agent() {
    let home = Home::new();
    let text: Vec<String> = (0..2000).map(|n| format!("word {n} ")).collect();
    let model = home.scripted_model(json!([{"steps": [{"text": text}]}]));
    let args = ["acp", "-vv", "--model", &model];
    let mut editor = Editor::spawn(&home, &args, &[("RUST_LOG", "trace")]);
    let unread = editor.stderr.take().expect("piped");
    editor.initialize().await;
    let session = editor.new_session(&home.project_folder()).await;
    for id in 2..5 {
        // More than the pipe and both internal buffers hold.
        let junk = "x".repeat(300 << 10);
        editor.write_raw(&format!("{{\"junk\": \"{junk}\"\n")).await;
        let params = json!({"sessionId": session, "modeId": "ask"});
        let answer = editor.request(id, "session/set_mode", params).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let answer = editor.prompt(5, &session).await;
    assert_eq!(answer["error"], Value::Null, "{answer}");
    let left = editor.close_input().await;
    assert_eq!(left.code, Some(0));
    drop(unread);
}

/// Sends a thousand requests at once; each gets exactly one response. Of the 250 prompts among them, the
/// session queues as many as its limit allows and rejects the others.
// proves: RPC-12, RPC-18, PROMPT-4
#[tokio::test]
async fn thousand_concurrent_requests_are_answered() {
    let home = Home::new();
    let model =
        home.scripted_model(json!([{"steps": [{"text": "on"}, {"wait_for_cancel": true}]}]));
    let (mut editor, session) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let mut lines = String::new();
    for id in 1000..2000 {
        let (method, params) = match id % 4 {
            0 => ("session/list", json!({})),
            1 => ("nope/nope", json!({})),
            2 => (
                "session/set_mode",
                json!({"sessionId": session, "modeId": "ask"}),
            ),
            _ => ("session/prompt", prompt_params(&session)),
        };
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(lines, "{line}").expect("memory");
    }
    editor.write_raw(&lines).await;
    let left = editor.close_input().await;
    assert_eq!(left.code, Some(0));
    let (mut taken, mut refused) = (0, 0);
    for id in 1000..2000 {
        let answer = left.response(id);
        match id % 4 {
            0 => assert!(answer["result"]["sessions"].is_array(), "{answer}"),
            1 => assert_eq!(answer["error"]["code"], -32601),
            2 => assert_eq!(answer["result"], json!({})),
            _ if answer["result"]["stopReason"] == "cancelled" => taken += 1,
            // Cancelled before it started, on a slow machine.
            _ if answer["error"]["code"] == -32800 => taken += 1,
            _ => {
                assert_eq!(answer["error"]["data"]["kind"], "queue_full", "{answer}");
                refused += 1;
            }
        }
    }
    assert!(taken > 32, "{taken}");
    assert_eq!(taken + refused, 250);
}

/// Shows the first line of a command that goes on only once the editor has seen it.
// proves: THEME-8
#[tokio::test]
async fn output_of_running_command_is_shown() {
    let home = Home::new();
    let args = json!({"command": "mkfifo go; echo first; cat go; echo second"});
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": args}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let args = ["acp", "--model", &model, "--mode", "auto"];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    editor.send_prompt(2, &session).await;
    let shows = |message: &Value, line: &str| {
        let content = &message["params"]["update"]["content"];
        content.to_string().contains(line)
    };
    let first = editor.wait_for(|message| shows(message, "first\\n")).await;
    assert!(!shows(&first, "second"), "{first}");
    let fifo = home.project_folder().join("go");
    std::fs::write(fifo, "go\n").expect("the command reads it");
    editor.wait_for(|message| shows(message, "second\\n")).await;
    let answer = editor.wait_for(|message| message["id"] == 2).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}

/// A prompt sends more updates than may be held in memory, while the client stops reading for some time.
// proves: TR-8
#[tokio::test]
async fn paused_client_costs_no_memory_and_loses_nothing() {
    const PIECES: usize = 4096;
    let home = Home::new();
    home.write_file(
        "turnery/config.toml",
        "[limits]\nanswer_bytes = 67_108_864\n",
    );
    let pieces: Vec<String> = (0..PIECES).map(|n| format!("{n:>8192}")).collect();
    let model = home.scripted_model(json!([{"steps": [{"text": pieces}]}]));
    let (mut editor, session) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let before = editor.resident_memory();
    editor.send_prompt(2, &session).await;
    editor.wait_until_blocked().await;
    let grown = editor.resident_memory().saturating_sub(before);
    assert!(
        grown < 16 << 20,
        "{grown} bytes for {} bytes",
        PIECES * 8192
    );
    let mut text = String::new();
    loop {
        let message = editor.next_message().await.expect("an answer");
        if message["id"] == 2 {
            assert_eq!(message["result"]["stopReason"], "end_turn");
            break;
        }
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            text.push_str(update["content"]["text"].as_str().expect("a text"));
        }
    }
    assert!(text == pieces.concat(), "{} bytes came", text.len());
}

/// A client that pauses while it loads a conversation of many megabytes misses nothing.
// proves: THEME-18, TR-8, THEME-2
#[tokio::test]
async fn large_session_loads_for_paused_client() {
    const PROMPTS: u64 = 64;
    const SIZE: usize = 256 << 10;
    let home = Home::new();
    let page = " ".repeat(SIZE);
    let said = |n: u64| format!("{page}{n}");
    let answers = (0..PROMPTS).map(|n| json!({"steps": [{"text": said(n)}]}));
    let model = home.scripted_model(answers.collect());
    let args = ["acp", "--model", &model];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    for n in 0..PROMPTS {
        let answer = editor.prompt(10 + n, &session);
        assert_eq!(answer.await["result"]["stopReason"], "end_turn");
    }
    editor.close_input().await;
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    let list = editor.request(1, "session/list", json!({})).await;
    assert_eq!(
        list["result"]["sessions"][0]["sessionId"], session,
        "{list}"
    );
    let before = editor.resident_memory();
    let params = json!({"sessionId": session, "cwd": home.project_folder(), "mcpServers": []});
    editor.send_request(2, "session/load", params).await;
    editor.wait_until_blocked().await;
    let grown = editor.resident_memory().saturating_sub(before);
    // The agent may hold several copies of the conversation (for the next prompt, stored, encoded), but a bounded
    // number.
    let size = PROMPTS * SIZE as u64;
    assert!(grown < 8 * size, "{grown} bytes for {size}");
    let mut shown = String::new();
    loop {
        let message = editor.next_message().await.expect("an answer");
        if message["id"] == 2 {
            assert_eq!(message["error"], Value::Null);
            break;
        }
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            shown.push_str(update["content"]["text"].as_str().expect("a text"));
        }
    }
    let whole: String = (0..PROMPTS).map(said).collect();
    assert!(shown == whole, "{} bytes for {}", shown.len(), whole.len());
    assert_eq!(editor.close_input().await.code, Some(0));
}

/// Loading thousands of small messages takes little CPU time, and other requests are answered while the client
/// is slow to read them.
// proves: THEME-18
#[tokio::test]
async fn session_of_many_messages_loads_without_freezing() {
    const PROMPTS: u64 = 20;
    const CALLS: usize = 100;
    /// Several times what the load takes. Unit: hundredths of a second.
    const MAX_LOAD_TICKS: u64 = 100;
    let home = Home::new();
    let call = json!({"tool_call": {"name": "list_dir", "args": {}}});
    let calls = json!({"steps": vec![call; CALLS]});
    let answers: Value = (0..PROMPTS)
        .flat_map(|_| [calls.clone(), json!({"steps": [{"text": "done"}]})])
        .collect();
    let model = home.scripted_model(answers);
    let args = ["acp", "--model", &model];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    for n in 0..PROMPTS {
        let answer = editor.prompt(10 + n, &session).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn");
    }
    editor.close_input().await;
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    let before = editor.cpu_ticks();
    let params = json!({"sessionId": session, "cwd": home.project_folder(), "mcpServers": []});
    editor.send_request(2, "session/load", params).await;
    editor.wait_until_blocked().await;
    let list = editor.request(3, "session/list", json!({})).await;
    assert_eq!(list["result"]["sessions"][0]["sessionId"], session);
    let early = editor.said.iter().all(|message| message["id"] != 2);
    assert!(early, "the load was over first");
    let loaded = editor.wait_for(|message| message["id"] == 2).await;
    assert_eq!(loaded["error"], Value::Null, "{loaded}");
    assert!(editor.said.len() > 2000, "{}", editor.said.len());
    let computed = editor.cpu_ticks() - before;
    assert!(computed < MAX_LOAD_TICKS, "{computed} ticks");
}

/// No line is longer than the output that a client can show: that of a tool is cut, live and after a load.
// proves: G-14
#[tokio::test]
async fn long_output_of_tool_is_cut_for_the_client() {
    const MAX_LINE: usize = 600 << 10;
    let home = Home::new();
    let command = json!({"command": "yes 0123456789 | head -c 3000000"});
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": command}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let args = ["acp", "--model", &model, "--mode", "auto"];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    editor.prompt(2, &session).await;
    let longest = |said: &[Value]| said.iter().map(|it| it.to_string().len()).max();
    assert!(
        longest(&editor.said) < Some(MAX_LINE),
        "{:?}",
        longest(&editor.said)
    );
    editor.close_input().await;
    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    let params = json!({"sessionId": session, "cwd": home.project_folder(), "mcpServers": []});
    let loaded = editor.request(3, "session/load", params).await;
    assert!(loaded.get("error").is_none(), "{loaded}");
    let shown = editor
        .said
        .iter()
        .any(|it| it.to_string().contains("0123456789"));
    assert!(shown, "the output is shown");
    assert!(
        longest(&editor.said) < Some(MAX_LINE),
        "{:?}",
        longest(&editor.said)
    );
}
