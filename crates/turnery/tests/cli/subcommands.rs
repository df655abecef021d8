//! The smaller commands: `sessions`, `models`, `tool` and `completions`; and `--help` and `--version`.

use crate::home::Home;
use serde_json::json;
use turnery_store::{Owner, Store as _};

#[tokio::test]
async fn sessions_are_listed_shown_and_deleted() {
    let home = Home::new();
    let empty = home.run(&["sessions", "list"]).await;
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
    assert_eq!(
        home.run(&["sessions", "list", "--json"])
            .await
            .stdout_json(),
        json!([])
    );

    let id = create_session(&home).await;
    let list = home.run(&["sessions", "list"]).await;
    assert!(
        list.stdout.starts_with(&format!("  1  {}  ", &id[..8])),
        "{list:?}"
    );
    assert!(list.stdout.contains("How are you?"), "{list:?}");
    let rows = home
        .run(&["sessions", "list", "--all", "--json"])
        .await
        .stdout_json();
    assert_eq!(rows[0]["id"], id.as_str());
    assert_eq!(rows.as_array().map(Vec::len), Some(1));

    let shown = home.run(&["sessions", "show", &id]).await;
    assert!(
        shown
            .stdout
            .ends_with("\n> How are you?\nFine, thank you.\n"),
        "{shown:?}"
    );
    let records = home
        .run(&["sessions", "show", &id, "--json"])
        .await
        .stdout_json();
    assert_eq!(records[0]["status"], "completed");

    let deleted = home.run(&["sessions", "delete", &id]).await;
    assert_eq!(
        (deleted.code, deleted.stdout),
        (Some(0), format!("deleted {id}\n"))
    );
    let again = home.run(&["sessions", "delete", &id]).await;
    assert_eq!(again.code, Some(1));
    let gone = home.run(&["sessions", "show", &id]).await;
    assert_eq!(gone.code, Some(1));
}

/// Creates a session with one prompt.
async fn create_session(home: &Home) -> String {
    let model = home.scripted_model(json!([{"steps": [{"text": "Fine, thank you."}]}]));
    let run = ["run", "--model", &model, "--format", "json", "How are you?"];
    let id = home.run(&run).await.stdout_json()["session_id"].clone();
    id.as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn a_session_in_use_is_deleted_only_by_force() {
    let home = Home::new();
    let id = create_session(&home).await;
    let owner = Owner::for_this_process();
    let claimed = home.store().claim(&id.as_str().into(), &owner).await;
    claimed.expect("claimed");
    let refused = home.run(&["sessions", "delete", &id]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let holder = format!("process {} is at work in it", std::process::id());
    assert!(refused.stderr.contains(&holder), "{refused:?}");
    assert!(refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(home.run(&["sessions", "show", &id]).await.code, Some(0));

    let forced = home.run(&["sessions", "delete", "--force", &id]).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert_eq!(forced.stdout, format!("deleted {id}\n"));
    let holder = format!("process {} was at work in {id}", std::process::id());
    assert!(forced.stderr.contains(&holder), "{forced:?}");
    assert_eq!(home.run(&["sessions", "show", &id]).await.code, Some(1));
}

#[tokio::test]
async fn damage_is_found_reported_and_repaired() {
    let home = Home::new();
    let id = create_session(&home).await;
    let sound = home.run(&["sessions", "check"]).await;
    assert_eq!(
        (sound.code, sound.stdout.as_str()),
        (Some(0), "no damage was found\n")
    );
    let none = home.run(&["sessions", "check", &id, "--json"]).await;
    assert_eq!((none.code, none.stdout_json()), (Some(0), json!([])));

    let db = rusqlite::Connection::open(home.database_path()).expect("opened");
    let changed = db.execute("UPDATE loops SET messages = '[{'", ());
    assert_eq!(changed, Ok(1));
    drop(db);
    let found = home.run(&["sessions", "check", &id]).await;
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stdout.contains("cannot be read"), "{found:?}");
    assert!(found.stderr.contains("sessions repair"), "{found:?}");
    let found = home.run(&["sessions", "check", "--json"]).await;
    assert_eq!(found.code, Some(1), "{found:?}");
    let rows = found.stdout_json();
    assert_eq!(rows[0]["session_id"], id.as_str());
    assert_eq!(rows[0]["part"], "loop");
    let shown = home.run(&["sessions", "show", &id]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stderr.contains("cannot be read"), "{shown:?}");
    let exported = home.run(&["sessions", "export", &id]).await;
    assert_eq!(exported.code, Some(1), "{exported:?}");
    assert_eq!(exported.stdout_json()["loops"], json!([]));

    let mended = home.run(&["sessions", "repair", &id]).await;
    assert_eq!(mended.code, Some(0), "{mended:?}");
    assert!(mended.stdout.contains("is set aside"), "{mended:?}");
    assert!(mended.stdout.contains("sessions.db.backup-"), "{mended:?}");
    assert_eq!(home.run(&["sessions", "check"]).await.code, Some(0));
    let again = home.run(&["sessions", "check", "--repair"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    let missing = home.run(&["sessions", "repair", "no-such"]).await;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    // The database copies still contain its text.
    let deleted = home.run(&["sessions", "delete", &id]).await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert!(
        deleted.stderr.contains("sessions.db.backup-"),
        "{deleted:?}"
    );
}

#[tokio::test]
async fn a_session_is_exported_and_imported() {
    let home = Home::new();
    let id = create_session(&home).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("session.json").display().to_string();
    let written = home.run(&["sessions", "export", &id, &file]).await;
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""));
    let whole = home.run(&["sessions", "export", &id]).await.stdout_json();
    assert_eq!(
        (&whole["format"], &whole["session"]["id"]),
        (&json!(1), &json!(id))
    );
    // Neither a file nor a session is overwritten.
    let refused = home.run(&["sessions", "export", &id, &file]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let refused = home.run(&["sessions", "import", &file]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("--new"), "{refused:?}");

    let copy = home.run(&["sessions", "import", &file, "--new"]).await;
    let copied = copy.stdout.trim_end();
    assert_ne!(copied, id);
    let shown = home.run(&["sessions", "show", copied]).await;
    assert!(
        shown
            .stdout
            .ends_with("\n> How are you?\nFine, thank you.\n"),
        "{shown:?}"
    );
    home.run(&["sessions", "delete", &id]).await;
    let back = home.run(&["sessions", "import", &file]).await;
    assert_eq!((back.code, back.stdout), (Some(0), format!("{id}\n")));
    assert_eq!(
        home.run(&["sessions", "export", &id]).await.stdout_json()["loops"],
        whole["loops"]
    );
}

#[tokio::test]
async fn models_list_missing_keys() {
    let home = Home::new();
    let done = home.run(&["models"]).await;
    assert!(done.stdout.contains("* offline\n"), "{done:?}");
    let line = done.stdout.lines().find(|line| line.contains("anthropic/"));
    assert!(
        line.is_some_and(
            |line| line.ends_with("needs ANTHROPIC_API_KEY, or turnery login anthropic")
        ),
        "{done:?}"
    );
}

#[tokio::test]
async fn direct_tool_call_needs_no_permission() {
    let home = Home::new();
    let list = home.run(&["tool", "list"]).await;
    assert!(
        list.stdout
            .lines()
            .any(|line| line.starts_with("write_file ")),
        "{list:?}"
    );
    let specs = home.run(&["tool", "list", "--json"]).await.stdout_json();
    assert_eq!(specs[0]["schema"]["type"], "object");

    let args = r#"{"path": "a.txt", "content": "hello\n"}"#;
    let written = home.run(&["tool", "call", "write_file", args]).await;
    assert_eq!(written.code, Some(0), "{written:?}");
    let read = home
        .run_with_stdin(&["tool", "call", "read_file", "-"], r#"{"path": "a.txt"}"#)
        .await;
    assert!(read.stdout.contains("hello"), "{read:?}");
    let elsewhere = home
        .run(&[
            "tool",
            "call",
            "read_file",
            r#"{"path": "a.txt"}"#,
            "--cwd",
            "/",
        ])
        .await;
    assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
    let unknown = home.run(&["tool", "call", "raed_file", "{}"]).await;
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("read_file"), "{unknown:?}");
    let json = home
        .run(&[
            "tool",
            "call",
            "shell",
            r#"{"command": "exit 3"}"#,
            "--json",
        ])
        .await;
    assert_eq!(json.code, Some(1), "{json:?}");
    assert!(
        json.stdout_json()["result"]["Err"]["message"].is_string(),
        "{json:?}"
    );
}

// proves: JIDO-55, JIDO-64, UP-26
#[tokio::test]
async fn direct_tool_call_is_logged_once() {
    let home = Home::new();
    let args = r#"{"path": "a.txt", "content": "hello", "password": "sk-1"}"#;
    let done = home.run(&["-v", "tool", "call", "write_file", args]).await;
    for event in ["turnery.tool.execute.start", "turnery.tool.execute.stop"] {
        let lines = done.stderr.lines().filter(|line| line.contains(event));
        assert_eq!(lines.count(), 1, "{done:?}");
    }
    assert!(!done.stderr.contains("sk-1"), "{done:?}");
    assert!(!done.stdout.contains("turnery.tool"), "{done:?}");
}

#[tokio::test]
async fn help_and_completions_go_to_stdout() {
    let home = Home::new();
    for (args, text) in [
        (&["--help"][..], "Examples:"),
        (&["run", "--help"], "Exit codes:"),
        (
            &["--version"],
            concat!("turnery ", env!("CARGO_PKG_VERSION")),
        ),
        (&["completions", "bash"], "_turnery()"),
        (&["completions", "bash"], "help__subcmd__sessions,list)"),
        (&["completions", "fish"], "complete -c turnery"),
    ] {
        let done = home.run(args).await;
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(done.stdout.contains(text), "{args:?}: {}", done.stdout);
    }
}
