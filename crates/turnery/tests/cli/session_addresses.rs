//! Sessions are named by their id, its start, `latest` and their number in the list.

use crate::home::Home;
use std::path::Path;
use turnery_engine::SessionId;
use turnery_store::{NewSession, SessionPatch, Store as _};

/// Creates a session of a folder with this title.
pub(crate) async fn create_titled(home: &Home, id: &str, folder: &Path, at: &str, title: &str) {
    let at = at.parse().expect("a time");
    let new = NewSession {
        id: id.into(),
        cwd: folder.to_owned(),
        folder: Some(folder.canonicalize().expect("a folder")),
        roots: Vec::new(),
        model: "offline/echo".to_owned(),
        mode: "ask".to_owned(),
        at,
        spawned_by: None,
    };
    home.store().create(new).await.expect("created");
    let patch = SessionPatch {
        title: Some(Some(title.to_owned())),
        updated_at: Some(at),
        ..SessionPatch::default()
    };
    let patched = home.store().patch(&SessionId::from(id), patch).await;
    patched.expect("titled");
}

#[tokio::test]
async fn session_is_named_in_each_way() {
    let home = Home::new();
    let (here, there) = (home.project_folder(), std::env::temp_dir());
    create_titled(
        &home,
        "aaaa0001-x",
        &here,
        "2026-11-21T05:00:01Z",
        "The parser",
    )
    .await;
    create_titled(
        &home,
        "aaaa0001-y",
        &here,
        "2026-11-21T05:00:02Z",
        "The cache",
    )
    .await;
    create_titled(
        &home,
        "bbbb0001-z",
        &there,
        "2026-11-21T05:00:03Z",
        "Elsewhere",
    )
    .await;

    let list = home.run(&["sessions", "list"]).await.stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(
        lines,
        [
            "  1  aaaa0001-y  2026-11-21 05:00  The cache",
            "  2  aaaa0001-x  2026-11-21 05:00  The parser"
        ]
    );
    let list = home.run(&["sessions", "list", "--all"]).await.stdout;
    assert!(
        list.starts_with("bbbb0001  2026-11-21 05:00  Elsewhere"),
        "{list}"
    );

    for (name, title) in [
        ("latest", "The cache"),
        ("1", "The cache"),
        ("2", "The parser"),
        ("aaaa0001-x", "The parser"),
        ("bbbb", "Elsewhere"),
    ] {
        let shown = home.run(&["sessions", "show", name]).await;
        assert!(shown.stdout.starts_with(title), "{name}: {shown:?}");
    }

    let ambiguous = home.run(&["sessions", "show", "aaaa"]).await;
    assert_eq!(ambiguous.code, Some(1));
    assert!(
        ambiguous.stderr.contains("aaaa0001-y  The cache")
            && ambiguous.stderr.contains("aaaa0001-x  The parser"),
        "{ambiguous:?}"
    );
    let missing = home.run(&["sessions", "show", "3"]).await;
    assert!(missing.stderr.contains("has 2 session(s)"), "{missing:?}");
}

/// Each name counts the sessions that there were before the command.
#[tokio::test]
async fn deletion_finds_all_names_first() {
    let home = Home::new();
    let here = home.project_folder();
    for (id, second) in [("aaaa", 1), ("bbbb", 2), ("cccc", 3)] {
        let at = format!("2026-11-21T05:00:0{second}Z");
        create_titled(&home, id, &here, &at, "A title").await;
    }
    let deleted = home.run(&["sessions", "delete", "1", "2", "nope"]).await;
    assert_eq!(
        (deleted.code, deleted.stdout.as_str()),
        (Some(1), "deleted cccc\ndeleted bbbb\n")
    );
    assert!(deleted.stderr.contains("no session nope"), "{deleted:?}");
    assert_eq!(home.run(&["sessions", "show", "aaaa"]).await.code, Some(0));
}

#[tokio::test]
async fn run_continues_a_session_by_its_number() {
    let home = Home::new();
    let first = home
        .run(&["run", "--model", "offline", "--format", "json", "one"])
        .await
        .stdout_json();
    let again = [
        "run",
        "--model",
        "offline",
        "--format",
        "json",
        "--session",
        "1",
        "two",
    ];
    let again = home.run(&again).await.stdout_json();
    assert_eq!(again["session_id"], first["session_id"]);
    let latest = ["sessions", "rerun", "latest", "--format", "json"];
    let latest = home.run(&latest).await.stdout_json();
    assert_eq!(latest["session_id"], first["session_id"]);
}
