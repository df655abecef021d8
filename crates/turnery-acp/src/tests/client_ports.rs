//! Tests access to files and terminals of the client: undeclared methods are not called, and every terminal
//! is released (FS-1 to FS-3, TERM-2 to TERM-4).

use super::support::FakeClient;
use crate::client::{editor_files::EditorFiles, quirks::ClientQuirks, terminals::ClientTerminals};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use turnery_engine::SessionId;
use turnery_tools::{FileError, Files, TerminalCommandOutput, TerminalError, Terminals};

fn files(client: &FakeClient, read: bool, write: bool) -> EditorFiles {
    let peer = Arc::clone(&client.peer);
    EditorFiles::new(peer, SessionId::from("s1"), read, write)
}

// proves: ACP-36, FS-2
#[tokio::test]
async fn unsaved_text_is_read_with_carriage_returns() {
    let mut client = FakeClient::new();
    let editor = files(&client, true, false);
    let reading = tokio::spawn(async move { editor.read(Path::new("/w/a")).await });
    let asked = client.expect_method("fs/read_text_file").await;
    assert_eq!(asked["params"], json!({"sessionId": "s1", "path": "/w/a"}));
    client.respond(&asked, json!({"content": "a\r\nb"}));
    assert_eq!(reading.await.unwrap(), Ok("a\r\nb".to_owned()));
}

/// The response to a write may be `{}` or `null` (FS-3).
// proves: ACP-36, FS-2, G-2, THEME-9
#[tokio::test]
async fn write_is_sent_to_editor() {
    for reply in [json!({}), json!(null)] {
        let mut client = FakeClient::new();
        let editor = files(&client, false, true);
        let writing = tokio::spawn(async move { editor.write(Path::new("/w/a"), "x\r\n").await });
        let asked = client.expect_method("fs/write_text_file").await;
        let expected = json!({"sessionId": "s1", "path": "/w/a", "content": "x\r\n"});
        assert_eq!(asked["params"], expected);
        client.respond(&asked, reply);
        assert_eq!(writing.await.unwrap(), Ok(()));
    }
}

/// Creates two folders, each with a file `a`; dropping the first value removes both.
fn two_folders() -> (tempfile::TempDir, [PathBuf; 2]) {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().canonicalize().unwrap();
    let folders = ["folder", "elsewhere"].map(|name| root.join(name));
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("a"), "text").unwrap();
    }
    (top, folders)
}

/// Replaces a folder by a link.
fn replace_with_link(folder: &Path, target: &Path) {
    std::fs::rename(folder, folder.with_extension("moved")).unwrap();
    std::os::unix::fs::symlink(target, folder).unwrap();
}

fn link_error(folder: &Path, elsewhere: &Path) -> String {
    let [path, target] = [folder, elsewhere].map(|it| it.join("a").display().to_string());
    format!("{path} leads to {target} now: a link has taken the place of a folder or file in it")
}

/// An editor follows a link that replaces the folder while the request is pending, so the agent checks the
/// path again.
#[tokio::test]
async fn text_read_through_new_link_is_rejected() {
    let (_top, [folder, elsewhere]) = two_folders();
    let mut client = FakeClient::new();
    let editor = files(&client, true, false);
    let path = folder.join("a");
    let reading = tokio::spawn(async move { editor.read(&path).await });
    let asked = client.expect_method("fs/read_text_file").await;
    replace_with_link(&folder, &elsewhere);
    client.respond(&asked, json!({"content": "private"}));
    let expected = FileError::Other(link_error(&folder, &elsewhere));
    assert_eq!(reading.await.unwrap(), Err(expected));
}

#[tokio::test]
async fn write_through_new_link_is_rejected() {
    let (_top, [folder, elsewhere]) = two_folders();
    let mut client = FakeClient::new();
    let path = folder.join("a");
    let editor = files(&client, false, true);
    let writing = tokio::spawn({
        let path = path.clone();
        async move { (editor.write(&path, "x").await, editor) }
    });
    let asked = client.expect_method("fs/write_text_file").await;
    replace_with_link(&folder, &elsewhere);
    client.respond(&asked, json!({}));
    let (written, editor) = writing.await.unwrap();
    let leads = link_error(&folder, &elsewhere);
    let told = format!("{leads}. The editor may have written the text there: tell the user");
    assert_eq!(written, Err(FileError::Other(told)));

    tokio::select! {
        again = editor.write(&path, "x") => assert_eq!(again, Err(FileError::Other(leads))),
        asked = client.expect_method("fs/write_text_file") => panic!("{asked} is asked for"),
    }
}

/// Writing past an editor that refuses could lose unsaved text.
#[tokio::test]
async fn refused_write_does_not_fall_back_to_disk() {
    let mut client = FakeClient::new();
    let editor = files(&client, true, true);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let writing = tokio::spawn({
        let path = path.clone();
        async move { editor.write(&path, "x").await }
    });
    let asked = client.expect_method("fs/write_text_file").await;
    client.respond_error(&asked, -32603);
    assert!(matches!(writing.await.unwrap(), Err(FileError::Other(_))));
    assert!(!path.exists());
}

/// A client that declared only writing is not asked to read, and one that declared only reading is not asked
/// to write (FS-1).
// proves: FS-1
#[tokio::test]
async fn unsupported_file_methods_are_not_called() {
    let mut client = FakeClient::new();
    let _ = files(&client, false, true)
        .read(Path::new("/nowhere/a"))
        .await;
    let _ = files(&client, true, false)
        .write(Path::new("/dev/null/a"), "x")
        .await;
    assert!(client.lines.try_recv().is_err());
}

type RunningCommand = JoinHandle<Result<TerminalCommandOutput, TerminalError>>;

fn run(client: &FakeClient) -> (RunningCommand, CancellationToken, mpsc::Receiver<String>) {
    run_with(client, ClientQuirks::default())
}

fn run_with(
    client: &FakeClient,
    quirks: ClientQuirks,
) -> (RunningCommand, CancellationToken, mpsc::Receiver<String>) {
    let terminals = ClientTerminals::new(Arc::clone(&client.peer), SessionId::from("s1"), quirks);
    let cancel = CancellationToken::new();
    let (started, told) = mpsc::channel(1);
    let token = cancel.clone();
    let running = tokio::spawn(async move {
        terminals
            .run("echo x | wc", Path::new("/w"), &[], 1000, started, token)
            .await
    });
    (running, cancel, told)
}

fn terminal_params() -> serde_json::Value {
    json!({"sessionId": "s1", "terminalId": "t1"})
}

/// Answers the request for a terminal.
async fn open_terminal(client: &mut FakeClient) {
    let asked = client.expect_method("terminal/create").await;
    client.respond(&asked, json!({"terminalId": "t1"}));
}

async fn expect_release(client: &mut FakeClient) {
    let asked = client.expect_method("terminal/release").await;
    assert_eq!(asked["params"], terminal_params());
}

// proves: ACP-36
#[tokio::test]
async fn command_runs_in_client_terminal() {
    let mut client = FakeClient::new();
    let (running, _cancel, mut told) = run(&client);
    let asked = client.expect_method("terminal/create").await;
    let expected = json!({
        "sessionId": "s1",
        "command": "bash",
        "args": ["-c", "echo x | wc"],
        "cwd": "/w",
        "outputByteLimit": 1000,
    });
    assert_eq!(asked["params"], expected);
    client.respond(&asked, json!({"terminalId": "t1"}));
    let asked = client.expect_method("terminal/wait_for_exit").await;
    assert_eq!(asked["params"], terminal_params());
    assert_eq!(told.recv().await.as_deref(), Some("t1"));
    client.respond(&asked, json!({"exitCode": 3, "signal": null}));
    let asked = client.expect_method("terminal/output").await;
    client.respond(&asked, json!({"output": "1\r\n", "truncated": true}));
    let expected = TerminalCommandOutput {
        output: "1\r\n".to_owned(),
        truncated: true,
        exit_code: Some(3),
        signal: None,
    };
    assert_eq!(running.await.unwrap(), Ok(expected));
    expect_release(&mut client).await;
}

/// A client that joins `args` passes the line to a shell without quoting them, so it gets the plain command
/// line.
#[tokio::test]
async fn client_that_joins_args_gets_plain_command_line() {
    let mut client = FakeClient::new();
    let quirks = ClientQuirks {
        joins_terminal_args: true,
    };
    let (_running, _cancel, _told) = run_with(&client, quirks);
    let asked = client.expect_method("terminal/create").await;
    let expected = json!({
        "sessionId": "s1",
        "command": "echo x | wc",
        "cwd": "/w",
        "outputByteLimit": 1000,
    });
    assert_eq!(asked["params"], expected);
}

/// A cancel kills the command, reads its output and exit status, and releases the terminal (TERM-4).
// proves: TERM-2, TERM-4
#[tokio::test]
async fn cancel_kills_reads_output_and_releases() {
    let mut client = FakeClient::new();
    let (running, cancel, _told) = run(&client);
    open_terminal(&mut client).await;
    let waiting = client.expect_method("terminal/wait_for_exit").await;
    cancel.cancel();
    let back = client.expect_method("$/cancel_request").await;
    assert_eq!(back["params"]["requestId"], waiting["id"]);
    let asked = client.expect_method("terminal/kill").await;
    client.respond(&asked, json!(null));
    let asked = client.expect_method("terminal/output").await;
    let exit = json!({"exitCode": null, "signal": "SIGKILL"});
    client.respond(
        &asked,
        json!({"output": "", "truncated": false, "exitStatus": exit}),
    );
    let ended = running.await.unwrap().unwrap();
    assert_eq!(
        (ended.exit_code, ended.signal.as_deref()),
        (None, Some("SIGKILL"))
    );
    client.expect_method("terminal/release").await;
}

/// The terminal is released after an error, after the call is dropped, and if it is created only after a
/// cancel (TERM-2).
// proves: TERM-2
#[tokio::test]
async fn terminal_is_released_on_every_exit_path() {
    let mut client = FakeClient::new();
    let (running, _cancel, _told) = run(&client);
    open_terminal(&mut client).await;
    let asked = client.expect_method("terminal/wait_for_exit").await;
    client.respond_error(&asked, -32603);
    assert!(running.await.unwrap().is_err());
    expect_release(&mut client).await;

    let (running, _cancel, _told) = run(&client);
    open_terminal(&mut client).await;
    client.expect_method("terminal/wait_for_exit").await;
    running.abort();
    let after = [client.next_message().await, client.next_message().await];
    let methods = after
        .each_ref()
        .map(|message| message["method"].as_str().unwrap());
    assert!(methods.contains(&"terminal/release"), "{methods:?}");
    assert!(methods.contains(&"$/cancel_request"), "{methods:?}");

    let (running, cancel, _told) = run(&client);
    let asked = client.expect_method("terminal/create").await;
    cancel.cancel();
    assert!(running.await.unwrap().is_err());
    client.respond(&asked, json!({"terminalId": "t1"}));
    expect_release(&mut client).await;
}

/// A signal ends the agent while the client still listens: no response is awaited, but the terminal is
/// released.
// proves: TERM-2
#[tokio::test]
async fn terminal_is_released_when_connection_ends() {
    let mut client = FakeClient::new();
    let (running, _cancel, _told) = run(&client);
    open_terminal(&mut client).await;
    client.expect_method("terminal/wait_for_exit").await;
    client.peer.close();
    assert!(running.await.unwrap().is_err());
    expect_release(&mut client).await;
}

/// After a refused create there is nothing to release.
#[tokio::test]
async fn failed_create_sends_no_release() {
    let mut client = FakeClient::new();
    let (running, _cancel, _told) = run(&client);
    let asked = client.expect_method("terminal/create").await;
    client.respond_error(&asked, -32603);
    assert!(matches!(
        running.await.unwrap(),
        Err(TerminalError::NotOpened(_))
    ));
    assert!(client.lines.try_recv().is_err());
}

/// A client may report the exit status in only one of the two responses; the known one counts.
// proves: TERM-3
#[tokio::test]
async fn null_exit_status_does_not_hide_known_one() {
    let nulls = || json!({"exitCode": null, "signal": null});
    let table = [
        (json!({"exitCode": 3}), nulls(), (Some(3), None)),
        (
            json!({"signal": "SIGTERM"}),
            nulls(),
            (None, Some("SIGTERM")),
        ),
        (nulls(), json!({"exitCode": 4}), (Some(4), None)),
        (json!({"exitCode": 5}), json!(null), (Some(5), None)),
        (nulls(), nulls(), (None, None)),
    ];
    for (waited, shown, expected) in table {
        let mut client = FakeClient::new();
        let (running, _cancel, _told) = run(&client);
        open_terminal(&mut client).await;
        let asked = client.expect_method("terminal/wait_for_exit").await;
        client.respond(&asked, waited);
        let asked = client.expect_method("terminal/output").await;
        let output = json!({"output": "", "truncated": false, "exitStatus": shown});
        client.respond(&asked, output);
        let ended = running.await.unwrap().unwrap();
        assert_eq!((ended.exit_code, ended.signal.as_deref()), expected);
    }
}

/// If the client fails to return the output, a known exit code is still reported; without one the outcome is
/// unknown.
// proves: TERM-3
#[tokio::test]
async fn missing_output_keeps_known_exit_code() {
    for (waited, expected) in [(json!({"exitCode": 3}), Ok(Some(3))), (json!({}), Err(()))] {
        let mut client = FakeClient::new();
        let (running, _cancel, _told) = run(&client);
        open_terminal(&mut client).await;
        let asked = client.expect_method("terminal/wait_for_exit").await;
        client.respond(&asked, waited);
        let asked = client.expect_method("terminal/output").await;
        client.respond_error(&asked, -32603);
        let ended = running.await.unwrap();
        match expected {
            Ok(code) => {
                let ended = ended.unwrap();
                assert_eq!(ended.exit_code, code);
                let said = "[the client does not say what the command printed: ";
                assert!(ended.output.starts_with(said), "{ended:?}");
            }
            Err(()) => assert!(
                matches!(ended, Err(TerminalError::UnknownOutcome(_))),
                "{ended:?}"
            ),
        }
    }
}

/// A client that declares a method it does not know is asked once.
// proves: TERM-3, FS-3
#[tokio::test]
async fn unknown_client_method_is_called_once() {
    let mut client = FakeClient::new();
    let terminals = Arc::new(ClientTerminals::new(
        Arc::clone(&client.peer),
        SessionId::from("s1"),
        ClientQuirks::default(),
    ));
    for attempt in 0..2 {
        let terminals = Arc::clone(&terminals);
        let running = tokio::spawn(async move {
            let (started, _told) = mpsc::channel(1);
            let cancel = CancellationToken::new();
            terminals
                .run("true", Path::new("/w"), &[], 1000, started, cancel)
                .await
        });
        if attempt == 0 {
            let asked = client.expect_method("terminal/create").await;
            client.respond_error(&asked, -32601);
        }
        assert_eq!(running.await.unwrap(), Err(TerminalError::Unsupported));
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let editor = Arc::new(files(&client, true, true));
    for attempt in 0..2 {
        let (editor, path) = (Arc::clone(&editor), path.clone());
        let working = tokio::spawn(async move {
            editor.write(&path, "text").await?;
            editor.read(&path).await
        });
        if attempt == 0 {
            for method in ["fs/write_text_file", "fs/read_text_file"] {
                let asked = client.expect_method(method).await;
                client.respond_error(&asked, -32601);
            }
        }
        assert_eq!(working.await.unwrap(), Ok("text".to_owned()));
    }
    assert!(client.lines.try_recv().is_err());
}
