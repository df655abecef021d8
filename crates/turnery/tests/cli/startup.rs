//! CPU use until the first session, and CPU and memory use while idle.

use crate::{editor::Editor, home::Home, mcp::SERVER};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Limit of CPU time until the first session. Unit: hundredths of a second. Other agents take seconds, up to
/// thirty; this one milliseconds, and a debug build on a slow machine a few hundredths. Wall-clock time depends
/// on the machine, so the tests count CPU time and context switches.
const MAX_CPU_TICKS: u64 = 100;
/// Limit of context switches: waiting for the two requests, and little else.
const MAX_CONTEXT_SWITCHES: u64 = 20;
/// Limit of the fastest start: much less than the seconds that users complain of.
const MAX_START_TIME: Duration = Duration::from_secs(1);
/// Timeout, sufficient on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Starting the process and creating the first session takes little CPU time and few context switches, even
/// in a project with thousands of files.
// proves: THEME-4, INIT-14
#[tokio::test]
async fn first_session_takes_little_cpu_time() {
    let home = Home::new();
    for folder in 0..20 {
        let folder = home.project_folder().join(format!("folder-{folder}"));
        std::fs::create_dir(&folder).expect("a folder");
        for file in 0..100 {
            std::fs::write(folder.join(format!("{file}.txt")), "text").expect("a file");
        }
    }
    let mut editor = Editor::spawn(&home, &["acp"], &[]);
    let begun = async {
        editor.initialize().await;
        editor.new_session(&home.project_folder()).await;
    };
    timeout(TIMEOUT, begun).await.expect("no long wait");
    let (computed, waited) = (editor.cpu_ticks(), editor.context_switches());
    assert!(computed < MAX_CPU_TICKS, "{computed} ticks");
    assert!(waited < MAX_CONTEXT_SWITCHES, "{waited} waits");
}

/// The first session waits for nothing: no server, no download, no pause. On a busy machine one of many starts still
/// shows that.
// proves: THEME-4
#[tokio::test]
async fn first_session_waits_for_nothing() {
    let home = Home::new();
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let begin = Instant::now();
        let mut editor = Editor::spawn(&home, &["acp"], &[]);
        editor.initialize().await;
        editor.new_session(&home.project_folder()).await;
        best = best.min(begin.elapsed());
        if best < MAX_START_TIME {
            return;
        }
    }
    panic!("the fastest of fifty starts took {best:?}");
}

/// The first session does not wait for its MCP server, which starts only once a file exists.
// proves: THEME-4
#[tokio::test]
async fn first_session_precedes_its_mcp_server() {
    let home = Home::new();
    let go = home.project_folder().join("go");
    let late = format!(
        "while [ ! -e '{}' ]; do sleep 0.05; done\n{SERVER}",
        go.display()
    );
    let script = home.write_file("server.sh", &late);
    let wait = json!({"name": "wait_for_mcp_server", "args": {"server": "desk"}});
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": wait}]},
        {"when": {"last_tool_result_contains": "Its tools: mcp__desk__hello"}, "steps": [{"text": "there"}]},
        {"steps": [{"text": "not there"}]},
    ]));
    let mut editor = Editor::spawn(&home, &["acp", "--model", &model], &[]);
    editor.initialize().await;
    let server = json!({"name": "desk", "command": "/bin/sh", "args": [script], "env": []});
    let params = json!({"cwd": home.project_folder(), "mcpServers": [server]});
    let made = editor.request(1, "session/new", params).await;
    let id = made["result"]["sessionId"].as_str().expect("a session");
    std::fs::write(go, "").expect("a file");
    // A session that had waited until it gave up on the server would not have it now.
    editor.send_prompt(2, id).await;
    let answer =
        editor.wait_for(|it| it["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(answer.await["params"]["update"]["content"]["text"], "there");
}

/// After a prompt the process is idle: no timers, no polling. Periodic work would show in every second, so one
/// quiet second suffices; on a busy machine the first ones may still contain work.
// proves: THEME-18
#[tokio::test]
async fn idle_session_uses_no_cpu() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "hi"}]}]));
    let (mut editor, id) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    let answer = editor.prompt(2, &id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    // Work that follows the prompt's response is done when this response arrives.
    editor.request(3, "session/list", json!({})).await;
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.tick().await;
    let mut busy = Vec::new();
    loop {
        let before = (editor.cpu_ticks(), editor.context_switches());
        seconds.tick().await;
        let (computed, woken) = (
            editor.cpu_ticks() - before.0,
            editor.context_switches() - before.1,
        );
        if computed <= 1 && woken < 10 {
            break;
        }
        busy.push((computed, woken));
        assert!(
            busy.len() < 60,
            "ticks and waits in seconds of nothing: {busy:?}"
        );
    }
    assert!(
        editor.resident_memory() < 200 << 20,
        "{} bytes",
        editor.resident_memory()
    );
}
