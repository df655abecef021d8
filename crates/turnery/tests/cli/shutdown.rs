//! Shutdown of `turnery acp`: at the end of input, by a signal, after the client is gone (TR-6, TR-7, TR-11).

use crate::{
    editor::{Editor, EditorExit, StartedProcess},
    home::{Home, send_signal},
};
use rusqlite::Connection;
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::{Pid, Resource, Rlimit, Signal, prlimit},
};
use serde_json::json;
use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    time::Duration,
};
use tokio::io::AsyncReadExt as _;

/// Timeout, exceeded only by a hang. The conformance cases `leaving` and `leaving-busy` check how fast
/// turnery exits, with a clock that is fair on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts an editor and a prompt (request 2) whose model runs `command`; waits until the command prints
/// `ready`. The command must write the pid files `leader`, `child` and `grandchild`, whose processes are
/// returned, and its text must not contain the word `ready`.
async fn open_during_command(home: &Home, command: &str) -> (Editor, [StartedProcess; 3]) {
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": command}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let args = ["acp", "--model", &model, "--mode", "auto"];
    let (mut editor, session) = Editor::with_session(home, &args).await;
    editor.send_prompt(2, &session).await;
    editor
        .wait_for(|message| {
            let update = &message["params"]["update"];
            update["content"].to_string().contains("ready")
        })
        .await;
    let started = ["leader", "child", "grandchild"];
    let started =
        started.map(|name| StartedProcess::from_pid_file(&home.project_folder().join(name)));
    (editor, started)
}

/// Command with a child and a grandchild, all of which run forever.
const ENDLESS_COMMAND: &str = "mkfifo never; sh -c 'read -r _ < never & echo $! > grandchild; wait' & \
     echo $! > child; echo $$ > leader; until test -s grandchild; do :; done; echo rea''dy; wait";

fn assert_clean_exit(left: EditorExit, started: [StartedProcess; 3]) {
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""), "{left:?}");
    assert_eq!(left.response(2)["result"]["stopReason"], "cancelled");
    assert!(left.took < TIMEOUT, "{:?}", left.took);
    for process in started {
        process.wait_for_exit();
    }
}

// proves: TR-6, TR-7, G-9, THEME-1
#[tokio::test]
async fn end_of_input_during_command_exits_cleanly() {
    let home = Home::new();
    let (editor, started) = open_during_command(&home, ENDLESS_COMMAND).await;
    assert_clean_exit(editor.close_input().await, started);
}

// proves: TR-6, TR-7, G-9, THEME-1
#[tokio::test]
async fn signal_during_stubborn_command_exits_cleanly() {
    let home = Home::new();
    let stubborn = format!("trap '' TERM INT HUP; {ENDLESS_COMMAND}");
    let (editor, started) = open_during_command(&home, &stubborn).await;
    send_signal(&editor.child, Signal::TERM);
    assert_clean_exit(editor.wait_for_exit().await, started);
}

// proves: TR-11
#[tokio::test]
async fn closed_output_during_turn_exits_cleanly() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"text": "word ".repeat(1 << 18), "chunks": 10_000}, {"wait_for_cancel": true}]},
    ]));
    let (mut editor, session) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    editor.send_prompt(2, &session).await;
    editor
        .wait_for(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor.output = None;
    let left = editor.wait_for_exit().await;
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
    assert!(left.took < TIMEOUT, "{:?}", left.took);
}

/// Without `--drain` the prompts would be cancelled.
// proves: TR-7
#[tokio::test]
async fn drain_finishes_accepted_prompts() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"delay_ms": 200}, {"text": "one"}]},
        {"steps": [{"text": "two"}]},
    ]));
    let args = ["acp", "--drain", "--model", &model];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    editor.send_prompt(2, &session).await;
    editor.send_prompt(3, &session).await;
    let left = editor.close_input().await;
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
    for id in [2, 3] {
        assert_eq!(left.response(id)["result"]["stopReason"], "end_turn");
    }
}

/// A signal is not the end of input: its sender does not want to wait.
// proves: TR-6
#[tokio::test]
async fn signal_ends_drain() {
    let home = Home::new();
    let model =
        home.scripted_model(json!([{"steps": [{"text": "on"}, {"wait_for_cancel": true}]}]));
    let args = ["acp", "--drain", "--model", &model];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    editor.send_prompt(2, &session).await;
    editor
        .wait_for(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor.input = None;
    send_signal(&editor.child, Signal::TERM);
    let left = editor.wait_for_exit().await;
    assert_eq!(left.response(2)["result"]["stopReason"], "cancelled");
    assert_eq!(left.code, Some(0));
    assert!(left.took < TIMEOUT, "{:?}", left.took);
}

/// Requests that wait for a locked session store, as for a hanging disk, are still answered, and the process
/// exits.
// proves: TR-6, TR-7, RPC-12
#[tokio::test]
async fn requests_pending_at_exit_are_answered() {
    let home = Home::new();
    let (mut editor, session) = Editor::with_session(&home, &["acp", "--model", "offline"]).await;
    let home_folder = home.project_folder().parent().expect("home").to_owned();
    let store = Connection::open(home_folder.join("turnery/sessions.db")).expect("the store");
    store.execute_batch("BEGIN IMMEDIATE").expect("locked");
    editor.send_prompt(2, &session).await;
    let new = json!({"cwd": home.project_folder(), "mcpServers": []});
    editor.send_request(3, "session/new", new).await;
    let left = editor.close_input().await;
    assert_eq!(left.code, Some(0), "{left:?}");
    let answer = &left.response(2)["result"];
    assert_eq!(answer["stopReason"], "cancelled", "{left:?}");
    assert_eq!(answer["_meta"]["turnery"]["stored"], json!(false));
    assert_eq!(left.response(3)["error"]["code"], -32800, "{left:?}");
    assert!(left.took < TIMEOUT, "{:?}", left.took);
}

/// Starts an editor whose agent is stuck during a command. The agent stays stuck while the returned file is open.
async fn open_stuck_during_command(home: &Home) -> (Editor, [StartedProcess; 3], File) {
    let (mut editor, started) = open_during_command(home, ENDLESS_COMMAND).await;
    let pipe = block_agent_thread(home, &mut editor).await;
    (editor, started, pipe)
}

/// Blocks the thread that runs the agent: creating a session (request 3) reads a pipe that nothing has been
/// written to.
async fn block_agent_thread(home: &Home, editor: &mut Editor) -> File {
    let scenario = home.write_file("scenario.json", "");
    fs::remove_file(&scenario).expect("removed");
    mknodat(CWD, &scenario, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let new = json!({"cwd": home.project_folder(), "mcpServers": []});
    editor.send_request(3, "session/new", new).await;
    // Opening succeeds once the agent has opened the other end to read.
    let opening =
        tokio::task::spawn_blocking(move || OpenOptions::new().write(true).open(scenario));
    let pipe = tokio::time::timeout(TIMEOUT, opening).await;
    let pipe = pipe.expect("it reads").expect("no panic");
    pipe.expect("opened")
}

/// Asserts that the agent ended itself with the exit code and message of the watchdog, and all its processes
/// with it.
async fn assert_ended_by_watchdog(mut editor: Editor, started: [StartedProcess; 3]) {
    let ended = tokio::time::timeout(TIMEOUT, editor.child.wait()).await;
    let code = ended.expect("it ends").expect("waited").code();
    assert_eq!(code, Some(75));
    let mut told = String::new();
    let mut stderr = editor.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).await.expect("UTF-8");
    assert!(told.contains("its main thread did not answer"), "{told}");
    for process in started {
        process.wait_for_exit();
    }
}

// proves: TR-6, G-9
#[tokio::test]
async fn end_of_input_ends_a_stuck_agent() {
    let home = Home::new();
    let (mut editor, started, _pipe) = open_stuck_during_command(&home).await;
    editor.input = None;
    assert_ended_by_watchdog(editor, started).await;
}

// proves: TR-6, G-9
#[tokio::test]
async fn signals_end_a_stuck_agent() {
    for sent in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let (editor, started, _pipe) = open_stuck_during_command(&home).await;
        send_signal(&editor.child, sent);
        assert_ended_by_watchdog(editor, started).await;
    }
}

/// A closed stdout ends the agent even if it has nothing to write and stdin stays open.
// proves: TR-11
#[tokio::test]
async fn closed_stdout_ends_an_idle_agent() {
    let home = Home::new();
    let model = home.scripted_model(json!([]));
    let (mut editor, _) = Editor::with_session(&home, &["acp", "--model", &model]).await;
    editor.output = None;
    let ended = tokio::time::timeout(TIMEOUT, editor.child.wait()).await;
    assert_eq!(ended.expect("it ends").expect("waited").code(), Some(0));
}

/// If the watchdog can no longer poll for signals, it reports that and keeps counting.
// proves: TR-6
#[tokio::test]
async fn watchdog_survives_failing_poll() {
    let home = Home::new();
    let (mut editor, _started, _pipe) = open_stuck_during_command(&home).await;
    let pid = editor.child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("running");
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Below the number of open descriptors, so that the next poll fails.
    prlimit(Some(pid), Resource::Nofile, none).expect("limited");
    send_signal(&editor.child, Signal::TERM);
    let ended = tokio::time::timeout(TIMEOUT, editor.child.wait()).await;
    assert_eq!(ended.expect("it ends").expect("waited").code(), Some(75));
    let mut told = String::new();
    let mut stderr = editor.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).await.expect("UTF-8");
    assert!(told.contains("failed to wait for signals"), "{told}");
}

/// Work that blocks the agent for a while does not keep it from finishing accepted prompts.
// proves: TR-7
#[tokio::test]
async fn drain_survives_blocking_work() {
    let home = Home::new();
    let answers = json!([{"steps": [{"delay_ms": 200}, {"text": "one"}]}]);
    let model = home.scripted_model(answers.clone());
    let args = ["acp", "--drain", "--model", &model];
    let (mut editor, session) = Editor::with_session(&home, &args).await;
    editor.send_prompt(2, &session).await;
    let pipe = block_agent_thread(&home, &mut editor).await;
    fs::remove_file(home.project_folder().with_file_name("scenario.json")).expect("removed");
    editor.input = None;
    // Longer than the limit for a stuck agent that must exit at once.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    // Later reads find a regular file.
    home.scripted_model(answers.clone());
    let scenario = json!({ "answers": answers }).to_string();
    let written = tokio::task::spawn_blocking(move || (&pipe).write_all(scenario.as_bytes()));
    written.await.expect("no panic").expect("written");
    let left = editor.wait_for_exit().await;
    assert_eq!(left.response(2)["result"]["stopReason"], "end_turn");
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
}
