//! `turnery acp` with a client that reads late or never, or asks for a lot at once.

use crate::{editor::Editor, home::Home};
use serde_json::{Value, json};
use std::fmt::Write as _;

fn prompt(session: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
}

/// More than any pipe holds is logged, and nobody reads it. Then somebody does, and is told that there was
/// more.
// proves: TR-3, TR-4
#[tokio::test]
async fn a_stderr_that_nobody_reads_stops_nothing() {
    let home = Home::new();
    let text: Vec<String> = (0..2000).map(|n| format!("word {n} ")).collect();
    let model = home.scripted(json!([{"steps": [{"text": text}]}]));
    let args = ["acp", "-vv", "--model", &model];
    let mut editor = Editor::open(&home, &args, &[("RUST_LOG", "trace")]);
    let unread = editor.stderr.take().expect("piped");
    editor.initialize().await;
    let session = editor.new_session(&home.project()).await;
    for id in 2..5 {
        // More than the system's pipe and both of our buffers hold.
        let junk = "x".repeat(300 << 10);
        editor.write(&format!("{{\"junk\": \"{junk}\"\n")).await;
        let params = json!({"sessionId": session, "modeId": "ask"});
        let answer = editor.request(id, "session/set_mode", params).await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    let answer = editor.request(5, "session/prompt", prompt(&session)).await;
    assert_eq!(answer["error"], Value::Null, "{answer}");
    let left = editor.leave().await;
    assert_eq!(left.code, Some(0));
    drop(unread);
}

/// Of a thousand prompts the session takes as many as may wait. The others are refused, and each of them
/// is answered once.
// proves: RPC-12, RPC-18, PROMPT-4
#[tokio::test]
async fn a_thousand_requests_in_flight() {
    let home = Home::new();
    let model = home.scripted(json!([{"steps": [{"text": "on"}, {"wait_for_cancel": true}]}]));
    let (mut editor, session) = Editor::session(&home, &["acp", "--model", &model]).await;
    let mut lines = String::new();
    for id in 1000..2000 {
        let (method, params) = match id % 4 {
            0 => ("session/list", json!({})),
            1 => ("nope/nope", json!({})),
            2 => (
                "session/set_mode",
                json!({"sessionId": session, "modeId": "ask"}),
            ),
            _ => ("session/prompt", prompt(&session)),
        };
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(lines, "{line}").expect("memory");
    }
    editor.write(&lines).await;
    let left = editor.leave().await;
    assert_eq!(left.code, Some(0));
    let (mut taken, mut refused) = (0, 0);
    for id in 1000..2000 {
        let answer = left.answer(id);
        match id % 4 {
            0 => assert!(answer["result"]["sessions"].is_array(), "{answer}"),
            1 => assert_eq!(answer["error"]["code"], -32601),
            2 => assert_eq!(answer["result"], json!({})),
            _ if answer["result"]["stopReason"] == "cancelled" => taken += 1,
            // On a slow machine.
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

/// The updates of a prompt, more than memory may hold, and a client that goes away for a while.
// proves: TR-8
#[tokio::test]
async fn a_client_that_stops_reading_costs_no_memory_and_misses_nothing() {
    const PIECES: usize = 4096;
    let home = Home::new();
    home.write(
        "turnery/config.toml",
        "[limits]\nanswer_bytes = 67_108_864\n",
    );
    let pieces: Vec<String> = (0..PIECES).map(|n| format!("{n:>8192}")).collect();
    let model = home.scripted(json!([{"steps": [{"text": pieces}]}]));
    let (mut editor, session) = Editor::session(&home, &["acp", "--model", &model]).await;
    let before = editor.memory();
    editor.ask(2, "session/prompt", prompt(&session)).await;
    editor.until_it_rests().await;
    let grown = editor.memory().saturating_sub(before);
    assert!(
        grown < 16 << 20,
        "{grown} bytes for {} bytes",
        PIECES * 8192
    );
    let mut text = String::new();
    loop {
        let message = editor.next().await.expect("an answer");
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

/// A conversation of many megabytes is loaded by a client that goes away for a while, and misses nothing.
// proves: THEME-18, TR-8
#[tokio::test]
async fn a_large_session_is_loaded_by_a_client_that_stops_reading() {
    const PROMPTS: u64 = 64;
    const SIZE: usize = 256 << 10;
    let home = Home::new();
    let page = " ".repeat(SIZE);
    let said = |n: u64| format!("{page}{n}");
    let answers = (0..PROMPTS).map(|n| json!({"steps": [{"text": said(n)}]}));
    let model = home.scripted(answers.collect());
    let args = ["acp", "--model", &model];
    let (mut editor, session) = Editor::session(&home, &args).await;
    for n in 0..PROMPTS {
        let answer = editor.request(10 + n, "session/prompt", prompt(&session));
        assert_eq!(answer.await["result"]["stopReason"], "end_turn");
    }
    editor.leave().await;
    let mut editor = Editor::open(&home, &args, &[]);
    editor.initialize().await;
    let before = editor.memory();
    let params = json!({"sessionId": session, "cwd": home.project(), "mcpServers": []});
    editor.ask(2, "session/load", params).await;
    editor.until_it_rests().await;
    let grown = editor.memory().saturating_sub(before);
    // It is held for the next prompt, and read in its stored form; but not several times over.
    let size = PROMPTS * SIZE as u64;
    assert!(grown < 8 * size, "{grown} bytes for {size}");
    let mut shown = String::new();
    loop {
        let message = editor.next().await.expect("an answer");
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
    assert_eq!(editor.leave().await.code, Some(0));
}
