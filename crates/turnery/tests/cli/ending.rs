//! How `turnery acp` ends: at the end of input, by a signal, with a client that has gone (TR-6, TR-7, TR-11).

use crate::{
    editor::{Editor, Left, Started},
    home::{Home, signal},
};
use rusqlite::Connection;
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::{Pid, Resource, Rlimit, Signal, prlimit},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    time::Duration,
};
use tokio::io::AsyncReadExt as _;

/// Only a hang takes longer, on whatever machine. How soon turnery leaves is for the cases `leaving` and `leaving-busy`
/// to judge, on a clock that is fair on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

fn prompt(session: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
}

/// An editor with a prompt (its id is 2) in the middle of this command, which says `ready` but does not spell it, and the
/// processes that the command has started.
async fn in_mid_shell(home: &Home, command: &str) -> (Editor, [Started; 3]) {
    let model = home.scripted(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": command}}}]},
        {"steps": [{"text": "done"}]},
    ]));
    let args = ["acp", "--model", &model, "--mode", "auto"];
    let (mut editor, session) = Editor::session(home, &args).await;
    editor.ask(2, "session/prompt", prompt(&session)).await;
    editor
        .wait(|message| {
            let update = &message["params"]["update"];
            update["content"].to_string().contains("ready")
        })
        .await;
    let started = ["leader", "child", "grandchild"];
    let started = started.map(|name| Started::read(&home.project().join(name)));
    (editor, started)
}

/// A command with a child and a grandchild, all of which would go on for ever.
const FOR_EVER: &str = "mkfifo never; sh -c 'read -r _ < never & echo $! > grandchild; wait' & \
     echo $! > child; echo $$ > leader; until test -s grandchild; do :; done; echo rea''dy; wait";

fn ended_well(left: Left, started: [Started; 3]) {
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""), "{left:?}");
    assert_eq!(left.answer(2)["result"]["stopReason"], "cancelled");
    assert!(left.took < BOUND, "{:?}", left.took);
    for process in started {
        process.gone();
    }
}

// proves: TR-6, TR-7, G-9, THEME-1
#[tokio::test]
async fn the_end_of_input_in_mid_shell() {
    let home = Home::new();
    let (editor, started) = in_mid_shell(&home, FOR_EVER).await;
    ended_well(editor.leave().await, started);
}

// proves: TR-6, TR-7, G-9, THEME-1
#[tokio::test]
async fn a_signal_in_mid_shell_that_heeds_none() {
    let home = Home::new();
    let stubborn = format!("trap '' TERM INT HUP; {FOR_EVER}");
    let (editor, started) = in_mid_shell(&home, &stubborn).await;
    signal(&editor.child, Signal::TERM);
    ended_well(editor.ended().await, started);
}

// proves: TR-11
#[tokio::test]
async fn a_client_that_closes_our_output_in_mid_turn() {
    let home = Home::new();
    let model = home.scripted(json!([
        {"steps": [{"text": "word ".repeat(1 << 18), "chunks": 10_000}, {"wait_for_cancel": true}]},
    ]));
    let (mut editor, session) = Editor::session(&home, &["acp", "--model", &model]).await;
    editor.ask(2, "session/prompt", prompt(&session)).await;
    editor
        .wait(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor.output = None;
    let left = editor.ended().await;
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
    assert!(left.took < BOUND, "{:?}", left.took);
}

/// Without `--drain` they would be answered `cancelled`.
// proves: TR-7
#[tokio::test]
async fn a_drain_finishes_what_was_accepted() {
    let home = Home::new();
    let model = home.scripted(json!([
        {"steps": [{"delay_ms": 200}, {"text": "one"}]},
        {"steps": [{"text": "two"}]},
    ]));
    let args = ["acp", "--drain", "--model", &model];
    let (mut editor, session) = Editor::session(&home, &args).await;
    editor.ask(2, "session/prompt", prompt(&session)).await;
    editor.ask(3, "session/prompt", prompt(&session)).await;
    let left = editor.leave().await;
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
    for id in [2, 3] {
        assert_eq!(left.answer(id)["result"]["stopReason"], "end_turn");
    }
}

/// A signal is not the end of input: whoever sends it does not want to wait.
// proves: TR-6
#[tokio::test]
async fn a_signal_ends_a_drain() {
    let home = Home::new();
    let model = home.scripted(json!([{"steps": [{"text": "on"}, {"wait_for_cancel": true}]}]));
    let args = ["acp", "--drain", "--model", &model];
    let (mut editor, session) = Editor::session(&home, &args).await;
    editor.ask(2, "session/prompt", prompt(&session)).await;
    editor
        .wait(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor.input = None;
    signal(&editor.child, Signal::TERM);
    let left = editor.ended().await;
    assert_eq!(left.answer(2)["result"]["stopReason"], "cancelled");
    assert_eq!(left.code, Some(0));
    assert!(left.took < BOUND, "{:?}", left.took);
}

/// A disk that does not answer. There is an answer all the same, and an end.
// proves: TR-6, TR-7, RPC-12
#[tokio::test]
async fn what_cannot_be_done_in_time_is_answered_too() {
    let home = Home::new();
    let (mut editor, session) = Editor::session(&home, &["acp", "--model", "offline"]).await;
    let home_folder = home.project().parent().expect("home").to_owned();
    let store = Connection::open(home_folder.join("turnery/sessions.db")).expect("the store");
    store.execute_batch("BEGIN IMMEDIATE").expect("locked");
    editor.ask(2, "session/prompt", prompt(&session)).await;
    let new = json!({"cwd": home.project(), "mcpServers": []});
    editor.ask(3, "session/new", new).await;
    let left = editor.leave().await;
    assert_eq!(left.code, Some(0), "{left:?}");
    let answer = &left.answer(2)["result"];
    assert_eq!(answer["stopReason"], "cancelled", "{left:?}");
    assert_eq!(answer["_meta"]["turnery"]["stored"], json!(false));
    assert_eq!(left.answer(3)["error"]["code"], -32800, "{left:?}");
    assert!(left.took < BOUND, "{:?}", left.took);
}

/// Only a process that hangs for ever is waited for so long.
const HANGS: Duration = Duration::from_secs(60);

/// An editor in the middle of a command, whose agent has got stuck. Whoever holds the file that is given back
/// keeps it so.
async fn stuck_in_mid_shell(home: &Home) -> (Editor, [Started; 3], File) {
    let (mut editor, started) = in_mid_shell(home, FOR_EVER).await;
    let pipe = block(home, &mut editor).await;
    (editor, started, pipe)
}

/// Blocks the thread that runs the agent: it makes a session (request 3), for which it reads a pipe into which nobody
/// has written yet.
async fn block(home: &Home, editor: &mut Editor) -> File {
    let scenario = home.write("scenario.json", "");
    fs::remove_file(&scenario).expect("removed");
    mknodat(CWD, &scenario, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let new = json!({"cwd": home.project(), "mcpServers": []});
    editor.ask(3, "session/new", new).await;
    // Opened once the other end is: from then on the agent reads.
    let opening =
        tokio::task::spawn_blocking(move || OpenOptions::new().write(true).open(scenario));
    let pipe = tokio::time::timeout(HANGS, opening).await;
    let pipe = pipe.expect("it reads").expect("no panic");
    pipe.expect("opened")
}

/// It has ended itself, with a code and a text that say so, and so have all that it started.
async fn ended_by_the_watchdog(mut editor: Editor, started: [Started; 3]) {
    let ended = tokio::time::timeout(HANGS, editor.child.wait()).await;
    let code = ended.expect("it ends").expect("waited").code();
    assert_eq!(code, Some(75));
    let mut told = String::new();
    let mut stderr = editor.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).await.expect("UTF-8");
    assert!(told.contains("its main thread did not answer"), "{told}");
    for process in started {
        process.gone();
    }
}

// proves: TR-6, G-9
#[tokio::test]
async fn end_of_input_ends_a_stuck_agent() {
    let home = Home::new();
    let (mut editor, started, _pipe) = stuck_in_mid_shell(&home).await;
    editor.input = None;
    ended_by_the_watchdog(editor, started).await;
}

// proves: TR-6, G-9
#[tokio::test]
async fn signals_end_a_stuck_agent() {
    for sent in [Signal::TERM, Signal::INT, Signal::HUP] {
        let home = Home::new();
        let (editor, started, _pipe) = stuck_in_mid_shell(&home).await;
        signal(&editor.child, sent);
        ended_by_the_watchdog(editor, started).await;
    }
}

/// Nothing is to be written, and stdin stays open.
// proves: TR-11
#[tokio::test]
async fn closed_stdout_ends_an_idle_agent() {
    let home = Home::new();
    let model = home.scripted(json!([]));
    let (mut editor, _) = Editor::session(&home, &["acp", "--model", &model]).await;
    editor.output = None;
    let ended = tokio::time::timeout(HANGS, editor.child.wait()).await;
    assert_eq!(ended.expect("it ends").expect("waited").code(), Some(0));
}

/// Where the watch cannot ask the system for signals any more, it says so and goes on counting.
// proves: TR-6
#[tokio::test]
async fn watch_outlives_a_failing_poll() {
    let home = Home::new();
    let (mut editor, _started, _pipe) = stuck_in_mid_shell(&home).await;
    let pid = editor.child.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(Pid::from_raw).expect("running");
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // More descriptors than it may open: the next poll fails.
    prlimit(Some(pid), Resource::Nofile, none).expect("limited");
    signal(&editor.child, Signal::TERM);
    let ended = tokio::time::timeout(HANGS, editor.child.wait()).await;
    assert_eq!(ended.expect("it ends").expect("waited").code(), Some(75));
    let mut told = String::new();
    let mut stderr = editor.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).await.expect("UTF-8");
    assert!(told.contains("failed to wait for signals"), "{told}");
}

/// Work that blocks the agent for a while is no reason not to finish what was accepted.
// proves: TR-7
#[tokio::test]
async fn drain_outlives_blocking_work() {
    let home = Home::new();
    let answers = json!([{"steps": [{"delay_ms": 200}, {"text": "one"}]}]);
    let model = home.scripted(answers.clone());
    let args = ["acp", "--drain", "--model", &model];
    let (mut editor, session) = Editor::session(&home, &args).await;
    editor.ask(2, "session/prompt", prompt(&session)).await;
    let pipe = block(&home, &mut editor).await;
    fs::remove_file(home.project().with_file_name("scenario.json")).expect("removed");
    editor.input = None;
    // Longer than an agent may be stuck that is to leave at once.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    // Whoever reads it again reads a file.
    home.scripted(answers.clone());
    let scenario = json!({ "answers": answers }).to_string();
    let written = tokio::task::spawn_blocking(move || (&pipe).write_all(scenario.as_bytes()));
    written.await.expect("no panic").expect("written");
    let left = editor.ended().await;
    assert_eq!(left.answer(2)["result"]["stopReason"], "end_turn");
    assert_eq!((left.code, left.stderr.as_str()), (Some(0), ""));
}
