//! The editor's files and terminals, used as the editor said, and given back (FS-1 to FS-3, TERM-2 to TERM-4).

use super::parts::FakeClient;
use crate::{files::EditorFiles, quirks::Quirks, terminals::ClientTerminals};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use turnery_engine::SessionId;
use turnery_tools::{FileError, Files, TerminalFault, TerminalRun, Terminals};

fn files(client: &FakeClient, read: bool, write: bool) -> EditorFiles {
    let peer = Arc::clone(&client.peer);
    EditorFiles::new(peer, SessionId::from("s1"), read, write)
}

// proves: ACP-36, FS-2
#[tokio::test]
async fn unsaved_text_is_read_and_carriage_returns_are_kept() {
    let mut client = FakeClient::new();
    let editor = files(&client, true, false);
    let reading = tokio::spawn(async move { editor.read(Path::new("/w/a")).await });
    let asked = client.expect("fs/read_text_file").await;
    assert_eq!(asked["params"], json!({"sessionId": "s1", "path": "/w/a"}));
    client.answer(&asked, json!({"content": "a\r\nb"}));
    assert_eq!(reading.await.unwrap(), Ok("a\r\nb".to_owned()));
}

/// The answer to a write may be `{}` or `null` (FS-3).
// proves: ACP-36, FS-2, G-2
#[tokio::test]
async fn a_write_goes_to_the_editor() {
    for reply in [json!({}), json!(null)] {
        let mut client = FakeClient::new();
        let editor = files(&client, false, true);
        let writing = tokio::spawn(async move { editor.write(Path::new("/w/a"), "x\r\n").await });
        let asked = client.expect("fs/write_text_file").await;
        let expected = json!({"sessionId": "s1", "path": "/w/a", "content": "x\r\n"});
        assert_eq!(asked["params"], expected);
        client.answer(&asked, reply);
        assert_eq!(writing.await.unwrap(), Ok(()));
    }
}

/// A folder with a file in it, and one elsewhere; both are removed with what is returned first.
fn folders() -> (tempfile::TempDir, [PathBuf; 2]) {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().canonicalize().unwrap();
    let folders = ["folder", "elsewhere"].map(|name| root.join(name));
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("a"), "text").unwrap();
    }
    (top, folders)
}

/// Puts a link in the place of a folder.
fn exchange(folder: &Path, target: &Path) {
    std::fs::rename(folder, folder.with_extension("moved")).unwrap();
    std::os::unix::fs::symlink(target, folder).unwrap();
}

fn leads_to(folder: &Path, elsewhere: &Path) -> String {
    let [path, target] = [folder, elsewhere].map(|it| it.join("a").display().to_string());
    format!("{path} leads to {target} now: a link has taken the place of a folder or file in it")
}

/// Editors follow links.
#[tokio::test]
async fn text_read_through_a_new_link_is_not_handed_on() {
    let (_top, [folder, elsewhere]) = folders();
    let mut client = FakeClient::new();
    let editor = files(&client, true, false);
    let path = folder.join("a");
    let reading = tokio::spawn(async move { editor.read(&path).await });
    let asked = client.expect("fs/read_text_file").await;
    exchange(&folder, &elsewhere);
    client.answer(&asked, json!({"content": "private"}));
    let expected = FileError::Other(leads_to(&folder, &elsewhere));
    assert_eq!(reading.await.unwrap(), Err(expected));
}

#[tokio::test]
async fn write_through_a_new_link_is_not_asked_for_or_told() {
    let (_top, [folder, elsewhere]) = folders();
    let mut client = FakeClient::new();
    let path = folder.join("a");
    let editor = files(&client, false, true);
    let writing = tokio::spawn({
        let path = path.clone();
        async move { (editor.write(&path, "x").await, editor) }
    });
    let asked = client.expect("fs/write_text_file").await;
    exchange(&folder, &elsewhere);
    client.answer(&asked, json!({}));
    let (written, editor) = writing.await.unwrap();
    let leads = leads_to(&folder, &elsewhere);
    let told = format!("{leads}. The editor may have written the text there: tell the user");
    assert_eq!(written, Err(FileError::Other(told)));

    tokio::select! {
        again = editor.write(&path, "x") => assert_eq!(again, Err(FileError::Other(leads))),
        asked = client.expect("fs/write_text_file") => panic!("{asked} is asked for"),
    }
}

/// Writing past an editor that refuses could lose unsaved text.
#[tokio::test]
async fn an_editor_that_will_not_write_is_obeyed() {
    let mut client = FakeClient::new();
    let editor = files(&client, true, true);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let writing = tokio::spawn({
        let path = path.clone();
        async move { editor.write(&path, "x").await }
    });
    let asked = client.expect("fs/write_text_file").await;
    client.refuse(&asked, -32603);
    assert!(matches!(writing.await.unwrap(), Err(FileError::Other(_))));
    assert!(!path.exists());
}

/// FS-1: each ability on its own.
// proves: FS-1
#[tokio::test]
async fn what_the_editor_cannot_do_is_not_asked_of_it() {
    let mut client = FakeClient::new();
    let _ = files(&client, false, true)
        .read(Path::new("/nowhere/a"))
        .await;
    let _ = files(&client, true, false)
        .write(Path::new("/dev/null/a"), "x")
        .await;
    assert!(client.lines.try_recv().is_err());
}

type Running = JoinHandle<Result<TerminalRun, TerminalFault>>;

fn run(client: &FakeClient) -> (Running, CancellationToken, mpsc::Receiver<String>) {
    run_with(client, Quirks::default())
}

fn run_with(
    client: &FakeClient,
    quirks: Quirks,
) -> (Running, CancellationToken, mpsc::Receiver<String>) {
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

fn which() -> serde_json::Value {
    json!({"sessionId": "s1", "terminalId": "t1"})
}

// proves: ACP-36
#[tokio::test]
async fn a_command_runs_to_its_end_in_a_terminal() {
    let mut client = FakeClient::new();
    let (running, _cancel, mut told) = run(&client);
    let asked = client.expect("terminal/create").await;
    let expected = json!({
        "sessionId": "s1",
        "command": "bash",
        "args": ["-c", "echo x | wc"],
        "cwd": "/w",
        "outputByteLimit": 1000,
    });
    assert_eq!(asked["params"], expected);
    client.answer(&asked, json!({"terminalId": "t1"}));
    let asked = client.expect("terminal/wait_for_exit").await;
    assert_eq!(asked["params"], which());
    assert_eq!(told.recv().await.as_deref(), Some("t1"));
    client.answer(&asked, json!({"exitCode": 3, "signal": null}));
    let asked = client.expect("terminal/output").await;
    client.answer(&asked, json!({"output": "1\r\n", "truncated": true}));
    let expected = TerminalRun {
        output: "1\r\n".to_owned(),
        truncated: true,
        exit_code: Some(3),
        signal: None,
    };
    assert_eq!(running.await.unwrap(), Ok(expected));
    assert_eq!(client.expect("terminal/release").await["params"], which());
}

/// Such a client hands the line to a shell itself, and would drop the quotes of `args`.
#[tokio::test]
async fn a_client_that_joins_args_gets_the_line_alone() {
    let mut client = FakeClient::new();
    let quirks = Quirks {
        joins_terminal_args: true,
    };
    let (_running, _cancel, _told) = run_with(&client, quirks);
    let asked = client.expect("terminal/create").await;
    let expected = json!({
        "sessionId": "s1",
        "command": "echo x | wc",
        "cwd": "/w",
        "outputByteLimit": 1000,
    });
    assert_eq!(asked["params"], expected);
}

/// TERM-4.
// proves: TERM-2, TERM-4
#[tokio::test]
async fn a_cancel_kills_gets_the_output_and_releases() {
    let mut client = FakeClient::new();
    let (running, cancel, _told) = run(&client);
    let asked = client.expect("terminal/create").await;
    client.answer(&asked, json!({"terminalId": "t1"}));
    let waiting = client.expect("terminal/wait_for_exit").await;
    cancel.cancel();
    let back = client.expect("$/cancel_request").await;
    assert_eq!(back["params"]["requestId"], waiting["id"]);
    let asked = client.expect("terminal/kill").await;
    client.answer(&asked, json!(null));
    let asked = client.expect("terminal/output").await;
    let exit = json!({"exitCode": null, "signal": "SIGKILL"});
    client.answer(
        &asked,
        json!({"output": "", "truncated": false, "exitStatus": exit}),
    );
    let ended = running.await.unwrap().unwrap();
    assert_eq!(
        (ended.exit_code, ended.signal.as_deref()),
        (None, Some("SIGKILL"))
    );
    client.expect("terminal/release").await;
}

/// TERM-2, on every way out: an error, a drop, and a terminal that comes too late.
// proves: TERM-2
#[tokio::test]
async fn a_terminal_is_released_whatever_happens() {
    let mut client = FakeClient::new();
    let (running, _cancel, _told) = run(&client);
    let asked = client.expect("terminal/create").await;
    client.answer(&asked, json!({"terminalId": "t1"}));
    let asked = client.expect("terminal/wait_for_exit").await;
    client.refuse(&asked, -32603);
    assert!(running.await.unwrap().is_err());
    assert_eq!(client.expect("terminal/release").await["params"], which());

    let (running, _cancel, _told) = run(&client);
    let asked = client.expect("terminal/create").await;
    client.answer(&asked, json!({"terminalId": "t1"}));
    client.expect("terminal/wait_for_exit").await;
    running.abort();
    let after = [client.next().await, client.next().await];
    let methods = after
        .each_ref()
        .map(|message| message["method"].as_str().unwrap());
    assert!(methods.contains(&"terminal/release"), "{methods:?}");
    assert!(methods.contains(&"$/cancel_request"), "{methods:?}");

    let (running, cancel, _told) = run(&client);
    let asked = client.expect("terminal/create").await;
    cancel.cancel();
    assert!(running.await.unwrap().is_err());
    client.answer(&asked, json!({"terminalId": "t1"}));
    assert_eq!(client.expect("terminal/release").await["params"], which());
}

/// A signal ends us while the client still listens: no answer is waited for any more, but what was lent
/// is given back.
// proves: TERM-2
#[tokio::test]
async fn a_terminal_is_released_at_the_end_of_the_connection() {
    let mut client = FakeClient::new();
    let (running, _cancel, _told) = run(&client);
    let asked = client.expect("terminal/create").await;
    client.answer(&asked, json!({"terminalId": "t1"}));
    client.expect("terminal/wait_for_exit").await;
    client.peer.close();
    assert!(running.await.unwrap().is_err());
    assert_eq!(client.expect("terminal/release").await["params"], which());
}

/// After a refused create there is nothing to release.
#[tokio::test]
async fn no_terminal_no_release() {
    let mut client = FakeClient::new();
    let (running, _cancel, _told) = run(&client);
    let asked = client.expect("terminal/create").await;
    client.refuse(&asked, -32603);
    assert!(matches!(
        running.await.unwrap(),
        Err(TerminalFault::NotOpened(_))
    ));
    assert!(client.lines.try_recv().is_err());
}

/// A client may say in one place how a command ended, and nothing in the other: what is known counts.
// proves: TERM-3
#[tokio::test]
async fn an_exit_status_of_nulls_hides_nothing() {
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
        let asked = client.expect("terminal/create").await;
        client.answer(&asked, json!({"terminalId": "t1"}));
        let asked = client.expect("terminal/wait_for_exit").await;
        client.answer(&asked, waited);
        let asked = client.expect("terminal/output").await;
        let output = json!({"output": "", "truncated": false, "exitStatus": shown});
        client.answer(&asked, output);
        let ended = running.await.unwrap().unwrap();
        assert_eq!((ended.exit_code, ended.signal.as_deref()), expected);
    }
}

/// A command that has ended is not run again because the client fails to show what it printed.
// proves: TERM-3
#[tokio::test]
async fn an_end_is_told_also_without_the_output() {
    for (waited, expected) in [(json!({"exitCode": 3}), Ok(Some(3))), (json!({}), Err(()))] {
        let mut client = FakeClient::new();
        let (running, _cancel, _told) = run(&client);
        let asked = client.expect("terminal/create").await;
        client.answer(&asked, json!({"terminalId": "t1"}));
        let asked = client.expect("terminal/wait_for_exit").await;
        client.answer(&asked, waited);
        let asked = client.expect("terminal/output").await;
        client.refuse(&asked, -32603);
        let ended = running.await.unwrap();
        match expected {
            Ok(code) => {
                let ended = ended.unwrap();
                assert_eq!(ended.exit_code, code);
                let said = "[the client does not say what the command printed: ";
                assert!(ended.output.starts_with(said), "{ended:?}");
            }
            Err(()) => assert!(matches!(ended, Err(TerminalFault::Lost(_))), "{ended:?}"),
        }
    }
}

/// A client that offers what it does not know is asked once (clients that advertise by mistake).
// proves: TERM-3, FS-3
#[tokio::test]
async fn what_the_client_does_not_know_is_asked_for_once() {
    let mut client = FakeClient::new();
    let terminals = Arc::new(ClientTerminals::new(
        Arc::clone(&client.peer),
        SessionId::from("s1"),
        Quirks::default(),
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
            let asked = client.expect("terminal/create").await;
            client.refuse(&asked, -32601);
        }
        assert_eq!(running.await.unwrap(), Err(TerminalFault::Absent));
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
                let asked = client.expect(method).await;
                client.refuse(&asked, -32601);
            }
        }
        assert_eq!(working.await.unwrap(), Ok("text".to_owned()));
    }
    assert!(client.lines.try_recv().is_err());
}
