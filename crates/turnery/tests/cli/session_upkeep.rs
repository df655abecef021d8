//! `sessions prune` and `stats`, and `turnery store`.

use crate::{editor::Editor, home::Home, session_addresses::create_titled};
use serde_json::json;
use std::fs;
use turnery_engine::SessionId;
use turnery_store::{NewSession, Owner, SessionPatch, SpawnRef, SqliteStore, Store as _};

/// Creates four sessions of this folder, `s1` the oldest, and one of another folder.
async fn create_five(home: &Home) {
    let here = home.project_folder();
    for (id, day) in [("s1-old", 1), ("s2-old", 2), ("s3-old", 3), ("s4-old", 4)] {
        let at = format!("2020-01-0{day}T05:00:00Z");
        create_titled(home, id, &here, &at, &format!("Title of {id}")).await;
    }
    let there = std::env::temp_dir();
    create_titled(
        home,
        "s5-other",
        &there,
        "2020-01-05T05:00:00Z",
        "Elsewhere",
    )
    .await;
}

async fn ids(home: &Home) -> Vec<String> {
    let list = home.run(&["sessions", "list", "--all", "--json"]).await;
    let rows = list.stdout_json();
    let rows = rows.as_array().expect("rows").iter();
    let mut ids: Vec<String> = rows
        .map(|row| row["id"].as_str().expect("an id").to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn prune_keeps_the_newest_of_the_folder() {
    let home = Home::new();
    create_five(&home).await;
    let child = NewSession {
        spawned_by: Some(SpawnRef {
            session_id: "s1-old".into(),
            loop_id: "s1-old.c.1".into(),
            call_id: "c".into(),
        }),
        id: "s6-child".into(),
        cwd: home.project_folder(),
        folder: None,
        roots: Vec::new(),
        model: "offline/echo".to_owned(),
        mode: "ask".to_owned(),
        at: "2026-01-01T00:00:00Z".parse().expect("a time"),
    };
    home.store().create(child).await.expect("created");

    let told = home
        .run(&["sessions", "prune", "--keep", "2", "--dry-run"])
        .await;
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("Title of s1-old") && told.stdout.contains("Title of s2-old"));
    assert!(told.stdout.contains("2 session(s) with about "), "{told:?}");
    let refused = home.run(&["sessions", "prune", "--keep", "2"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("add --yes"), "{refused:?}");
    assert_eq!(ids(&home).await.len(), 5);

    let pruned = home
        .run(&["sessions", "prune", "--keep", "2", "--yes"])
        .await;
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert!(pruned.stdout.contains("deleted 2 session(s)"), "{pruned:?}");
    assert_eq!(ids(&home).await, ["s3-old", "s4-old", "s5-other"]);
    let child = home.run(&["sessions", "show", "s6-child"]).await;
    assert_eq!(child.code, Some(1), "{child:?}");
}

#[tokio::test]
async fn prune_by_age_spares_archived_and_used_ones() {
    let home = Home::new();
    create_five(&home).await;
    let archived = SessionPatch {
        archived: Some(true),
        ..SessionPatch::default()
    };
    home.store()
        .patch(&"s1-old".into(), archived)
        .await
        .expect("archived");
    let held = home
        .store()
        .claim(&"s2-old".into(), &Owner::for_this_process())
        .await
        .expect("claimed");
    let prune = ["sessions", "prune", "--older-than", "30d", "--all", "--yes"];
    let pruned = home.run(&prune).await;
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert!(pruned.stdout.contains("deleted 3 session(s)"), "{pruned:?}");
    assert!(
        pruned.stderr.contains("kept: session s2-old is busy"),
        "{pruned:?}"
    );
    assert_eq!(ids(&home).await, ["s1-old", "s2-old"]);
    home.store().release(&held.lane).await.expect("released");
    let all = home
        .run(&[
            "sessions",
            "prune",
            "--older-than",
            "1w",
            "--archived",
            "--yes",
        ])
        .await;
    assert!(all.stdout.contains("deleted 2 session(s)"), "{all:?}");
    let none = home
        .run(&["sessions", "prune", "--older-than", "1w", "--yes"])
        .await;
    assert_eq!(none.stdout, "there is nothing to delete\n");
}

#[tokio::test]
async fn prune_needs_to_be_told_what() {
    let home = Home::new();
    for wrong in [
        vec!["sessions", "prune", "--yes"],
        vec!["sessions", "prune", "--older-than", "30"],
        vec!["sessions", "prune", "--keep", "-1"],
    ] {
        let refused = home.run(&wrong).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

#[tokio::test]
async fn stats_add_up_sessions_by_model_and_day() {
    let home = Home::new();
    let model = home.scripted_model(json!([
        {"steps": [{"text": "Fine."}], "usage": {"input": 100, "output": 7}},
    ]));
    for _ in 0..2 {
        let ran = home.run(&["run", "--model", &model, "How are you?"]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let stats = home
        .run(&["sessions", "stats", "--json"])
        .await
        .stdout_json();
    assert_eq!(
        (&stats["sessions"], &stats["turns"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(stats["usage"]["input"], 200);
    assert_eq!(stats["usage"]["output"], 14);
    let models = stats["by_model"].as_object().expect("models");
    assert_eq!(models.len(), 1);
    assert_eq!(models.values().next().expect("one")["usage"]["input"], 200);
    let days = stats["by_day"].as_object().expect("days");
    let turns: u64 = days.values().filter_map(|day| day["turns"].as_u64()).sum();
    assert_eq!(turns, 2);
    let table = home
        .run(&["sessions", "stats", "--since", "1d"])
        .await
        .stdout;
    assert!(table.contains("         200           14"), "{table}");
    let later = home
        .run(&["sessions", "stats", "--since", "2999-01-01", "--json"])
        .await
        .stdout_json();
    assert_eq!(
        (&later["sessions"], &later["cost"]),
        (&json!(0), &json!(0.0))
    );
}

#[tokio::test]
async fn store_is_described_checked_and_shrunk() {
    let home = Home::new();
    create_five(&home).await;
    let info = home.run(&["store", "info", "--json"]).await.stdout_json();
    assert_eq!(
        (&info["kind"], &info["sessions"]),
        (&json!("SQLite"), &json!(5))
    );
    assert_eq!(info["location"], json!(home.database_path()));
    assert!(info["bytes"].as_u64().expect("a size") > 8192, "{info}");
    let info = home.run(&["store", "info"]).await.stdout;
    assert!(
        info.contains("sessions  5,") && info.contains("format    version "),
        "{info}"
    );
    let checked = home.run(&["store", "check"]).await;
    assert_eq!(
        (checked.code, &*checked.stdout),
        (Some(0), "no damage was found\n")
    );
    let shrunk = home.run(&["store", "vacuum"]).await;
    assert_eq!(shrunk.code, Some(0), "{shrunk:?}");
    assert!(
        shrunk.stdout.contains("given back to the disk"),
        "{shrunk:?}"
    );
}

#[tokio::test]
async fn migration_copies_all_and_can_be_repeated() {
    let home = Home::new();
    create_five(&home).await;
    let ran = home.run(&["run", "--model", "offline", "one"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let target = home.project_folder().join("copy").join("sessions.db");
    let to = format!("sqlite:{}", target.display());
    let held = home
        .store()
        .claim(&"s1-old".into(), &Owner::for_this_process())
        .await
        .expect("claimed");
    let first = home.run(&["store", "migrate", "--to", &to]).await;
    assert_eq!(first.code, Some(1), "{first:?}");
    assert_eq!(
        first.stdout,
        "5 session(s) copied and compared, 0 were there already, 1 left out\n"
    );
    assert!(first.stderr.contains("session s1-old is busy"), "{first:?}");
    home.store().release(&held.lane).await.expect("released");
    let second = home.run(&["store", "migrate", "--to", &to]).await;
    assert_eq!(
        (second.code, second.stdout.as_str()),
        (
            Some(0),
            "1 session(s) copied and compared, 5 were there already, 0 left out\n"
        )
    );
    let copy = SqliteStore::open(target);
    let info = copy.info(&SessionId::from("s3-old")).await.expect("copied");
    assert_eq!(info.title.as_deref(), Some("Title of s3-old"));
    assert_eq!(
        info.folder,
        home.project_folder().canonicalize().expect("a folder")
    );
}

#[tokio::test]
async fn migration_to_itself_or_elsewhere_is_refused() {
    let home = Home::new();
    create_five(&home).await;
    let own = home.database_path().display().to_string();
    let link = home.project_folder().join("link.db");
    std::os::unix::fs::symlink(home.database_path(), &link).expect("linked");
    for same in [own.as_str(), link.to_str().expect("a path")] {
        let refused = home.run(&["store", "migrate", "--to", same]).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("give another one"), "{refused:?}");
    }
    let secret = "mysql://ann:s3cret@host/db";
    let refused = home.run(&["store", "migrate", "--to", secret]).await;
    assert!(
        refused.stderr.contains("there is no such kind of store")
            && !refused.stderr.contains("s3cret"),
        "{refused:?}"
    );
}

/// A database that a newer turnery has written is refused in words by each command.
#[tokio::test]
async fn store_of_a_newer_version_is_refused() {
    let home = Home::new();
    create_five(&home).await;
    let sql = rusqlite::Connection::open(home.database_path()).expect("opened");
    sql.pragma_update(None, "user_version", 99)
        .expect("changed");
    drop(sql);
    for command in [["store", "info"], ["store", "check"], ["sessions", "list"]] {
        let refused = home.run(&command).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(
            refused.stderr.contains("newer turnery (version 99"),
            "{refused:?}"
        );
    }
    // For the check at the end of the test.
    let sql = rusqlite::Connection::open(home.database_path()).expect("opened");
    sql.pragma_update(None, "user_version", 7).expect("changed");
}

/// Returns the files of a folder and of those in it.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn session_without_a_store_leaves_no_file() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "Fine."}]}]));
    let folder = home.project_folder().with_file_name("");
    let before = files(&folder);
    let ran = home
        .run(&["run", "--no-store", "--model", &model, "How are you?"])
        .await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "Fine.\n"),
        "{ran:?}"
    );
    assert_eq!(files(&folder), before);
    let refused = home.run(&["run", "--no-store", "--continue", "more"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    // Control: without the option the session is stored.
    home.run(&["run", "--model", &model, "How are you?"]).await;
    assert_ne!(files(&folder), before);
}

/// The editor's list has the sessions of this process, and no other.
#[tokio::test]
async fn editor_without_a_store_sees_its_own_sessions() {
    let home = Home::new();
    let model = home.scripted_model(json!([{"steps": [{"text": "Fine."}]}]));
    let folder = home.project_folder().with_file_name("");
    let before = files(&folder);
    let args = ["acp", "--no-store", "--model", &model];
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    let answer = editor.prompt(10, &id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let list = editor.request(11, "session/list", json!({})).await;
    assert_eq!(
        list["result"]["sessions"][0]["sessionId"],
        id.as_str(),
        "{list}"
    );
    assert_eq!(editor.close_input().await.code, Some(0));
    assert_eq!(files(&folder), before);
    let listed = home.run(&["sessions", "list", "--all", "--json"]).await;
    assert_eq!(listed.stdout_json(), json!([]));
}
