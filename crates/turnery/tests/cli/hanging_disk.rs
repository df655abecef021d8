//! The agent on a disk that hangs forever in the middle of a commit: other sessions, requests that need no
//! disk, cancels and the shutdown do not wait for it.

use crate::{
    editor::{Editor, EditorExit, StartedProcess},
    home::{Home, send_signal, wait_for_file},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::process::Command;

/// Timeout, exceeded only by a hang. The disk hangs until the test ends, so any response proves that it was not
/// awaited.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A disk that hangs while the file `switch` exists.
struct HangingDisk {
    switch: PathBuf,
    library: PathBuf,
}

impl HangingDisk {
    /// Compiles the library that makes writes hang, with the C compiler that also links Rust programs.
    async fn new(home: &Home) -> Self {
        let source = home.write_file("hanging_disk.c", include_str!("hanging_disk.c"));
        let library = source.with_extension("so");
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        let compiled = compiler.arg(&library).arg(&source).arg("-ldl").status();
        let compiled = compiled.await.expect("a C compiler: install cc, or set CC");
        assert!(compiled.success(), "hanging_disk.c does not compile");
        Self {
            switch: source.with_extension("hangs"),
            library,
        }
    }

    fn open_editor(&self, home: &Home, model: &str) -> Editor {
        let variables = [
            ("LD_PRELOAD", self.library.to_str().expect("UTF-8")),
            ("HANG_WHILE", self.switch.to_str().expect("UTF-8")),
        ];
        let args = ["acp", "--model", model, "--mode", "auto"];
        Editor::spawn(home, &args, &variables)
    }

    /// Makes every write to and flush of the session database hang from now on.
    fn hang(&self) {
        File::create(&self.switch).expect("made");
    }

    /// Waits until a write hangs.
    async fn wait_until_hanging(&self) {
        let seen = self.switch.with_extension("hangs.seen");
        // The library is loaded then.
        wait_for_file(&seen).await;
    }
}

impl Drop for HangingDisk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.switch);
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

async fn wait_until_shown(editor: &mut Editor, session: &str, text: &str) {
    let shown = |message: &Value| {
        let params = &message["params"];
        params["sessionId"] == session && params["update"].to_string().contains(text)
    };
    editor.wait_for(shown).await;
}

async fn cancel(editor: &mut Editor, session: &str) {
    let params = json!({"sessionId": session});
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
    editor.send(cancel).await;
}

/// Returns the time until a cancelled prompt is answered, which must be long before the store gives up.
async fn cancel_latency(editor: &mut Editor, session: &str, id: u64) -> Duration {
    let since = Instant::now();
    cancel(editor, session).await;
    let answer = editor.wait_for(|message| message["id"] == id).await;
    let took = since.elapsed();
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert_eq!(answer["result"]["_meta"]["turnery"]["stored"], json!(false));
    took
}

/// Three sessions: one whose commit hangs, one that runs a command, and one whose model streams.
#[expect(
    clippy::print_stdout,
    reason = "the figures, for whoever asks for them"
)]
async fn assert_exits_while_disk_hangs(stop_signal: Option<Signal>) {
    let home = Home::new();
    let disk = HangingDisk::new(&home).await;
    let command = "mkfifo never; sh -c 'read -r _ < never & echo $! > grandchild; wait' & \
         echo $! > child; echo $$ > leader; until test -s grandchild; do :; done; echo rea''dy; wait";
    let streams = json!([{"text": "streaming"}, {"wait_for_cancel": true}]);
    let runs = json!([{"tool_call": {"name": "shell", "args": {"command": command}}}]);
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "stream"}, "steps": streams},
        {"when": {"last_user_contains": "run"}, "steps": runs},
    ]));
    let mut editor = disk.open_editor(&home, &model);
    editor.initialize().await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(editor.new_session(&home.project_folder()).await);
    }
    let [first, second, third] = &sessions[..] else {
        unreachable!("three sessions");
    };
    for (id, session) in [(11, first), (12, second)] {
        editor
            .send_request(id, "session/prompt", prompt(session, "stream"))
            .await;
        wait_until_shown(&mut editor, session, "streaming").await;
    }
    editor
        .send_request(13, "session/prompt", prompt(third, "run"))
        .await;
    wait_until_shown(&mut editor, third, "ready").await;
    let started = ["leader", "child", "grandchild"];
    let started =
        started.map(|name| StartedProcess::from_pid_file(&home.project_folder().join(name)));

    disk.hang();
    let since = Instant::now();
    cancel(&mut editor, first).await;
    disk.wait_until_hanging().await;
    // The session's own prompt is answered although its commit hangs.
    let own = editor.wait_for(|message| message["id"] == 11).await;
    let own_took = since.elapsed();
    assert_eq!(own["result"]["stopReason"], "cancelled", "{own}");
    assert_eq!(own["result"]["_meta"]["turnery"]["stored"], json!(false));
    let since = Instant::now();
    let listed = editor.request(14, "session/list", json!({})).await;
    let list_took = since.elapsed();
    assert_eq!(
        listed["result"]["sessions"].as_array().map(Vec::len),
        Some(3),
        "{listed}"
    );
    let other_took = cancel_latency(&mut editor, second, 12).await;

    let left: EditorExit = match stop_signal {
        Some(sent) => {
            send_signal(&editor.child, sent);
            editor.wait_for_exit().await
        }
        None => editor.close_input().await,
    };
    assert!(disk.switch.exists(), "it hangs to the end");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(
        left.response(13)["result"]["stopReason"],
        "cancelled",
        "{left:?}"
    );
    for process in started {
        process.wait_for_exit();
    }
    for took in [own_took, list_took, other_took, left.took] {
        assert!(took < TIMEOUT, "{took:?}");
    }
    println!(
        "while a commit hung: own cancel {own_took:?}, list {list_took:?}, cancel of another session \
         {other_took:?}, exit {:?}",
        left.took
    );
}

// proves: TR-6, TR-7, CANCEL-2, CANCEL-3, THEME-1
#[tokio::test]
async fn hanging_disk_stops_neither_cancel_nor_exit() {
    assert_exits_while_disk_hangs(None).await;
}

// proves: TR-6, CANCEL-2
#[tokio::test]
async fn hanging_disk_stops_no_signal() {
    assert_exits_while_disk_hangs(Some(Signal::TERM)).await;
}
