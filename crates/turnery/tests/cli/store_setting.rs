//! Tests of `--store`, `TURNERY_STORE` and `store` of the configuration.

use crate::{
    editor::Editor,
    home::{CommandOutput, Home, new_postgres_schema},
};
use serde_json::{Value, json};

/// Returns the password of an address.
fn password(url: &str) -> &str {
    let user = url.split('@').next().expect("a user");
    user.rsplit(':').next().expect("a password")
}

fn listed_titles(listed: &CommandOutput) -> Vec<String> {
    let sessions = listed.stdout_json();
    let sessions = sessions.as_array().expect("a list").iter();
    sessions
        .map(|it| it["title"].as_str().unwrap_or_default().to_owned())
        .collect()
}

const LIST: [&str; 3] = ["sessions", "list", "--json"];

#[tokio::test]
async fn store_is_chosen_by_flag_variable_and_file() {
    let home = Home::new();
    home.write_file("turnery/config.toml", "store = \"file.db\"\n");
    let run = |prompt| ["run", "--model", "offline", prompt];
    let flag = [&run("by flag")[..], &["--store", "flag.db"]].concat();
    assert_eq!(home.run(&flag).await.code, Some(0));
    let by_variable = home
        .run_in_store("sqlite:variable.db", &run("by variable"))
        .await;
    assert_eq!(by_variable.code, Some(0), "{by_variable:?}");
    assert_eq!(home.run(&run("by file")).await.code, Some(0));
    let project = home.project_folder();
    let database = home.database_path().with_file_name("file.db");
    for file in [
        &project.join("flag.db"),
        &project.join("variable.db"),
        &database,
    ] {
        assert!(file.is_file(), "{}", file.display());
    }
    let flag = home
        .run(&[&LIST[..], &["--store", "flag.db"]].concat())
        .await;
    assert_eq!(listed_titles(&flag), ["by flag"]);
    let variable = home.run_in_store("variable.db", &LIST).await;
    assert_eq!(listed_titles(&variable), ["by variable"]);
    assert_eq!(listed_titles(&home.run(&LIST).await), ["by file"]);
    assert!(!home.database_path().exists());
}

#[tokio::test]
async fn store_in_memory_ends_with_the_process() {
    let home = Home::new();
    let ran = home
        .run_in_store("memory:", &["run", "--model", "offline", "hi"])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        home.run_in_store("memory:", &LIST).await.stdout_json(),
        json!([])
    );
    assert!(!home.database_path().exists());
}

/// No other store is used in its place.
#[tokio::test]
async fn misspelt_store_is_an_error_without_its_password() {
    let home = Home::new();
    let wrong = "postgress://ann:s3cret@host/db";
    for args in [
        &["run", "--model", "offline", "hi"][..],
        &LIST,
        &["store", "info"],
    ] {
        let flag = home.run(&[args, &["--store", wrong]].concat()).await;
        let variable = home.run_in_store(wrong, args).await;
        for refused in [flag, variable] {
            assert!(matches!(refused.code, Some(1 | 2)), "{refused:?}");
            let reason = "write a path, sqlite:PATH, memory: or postgres://";
            assert!(refused.stderr.contains(reason), "{refused:?}");
            assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
        }
    }
    assert!(!home.database_path().exists());
}

#[tokio::test]
async fn misspelt_store_is_reported_to_the_editor() {
    let home = Home::new();
    let variable = [("TURNERY_STORE", "postgress://ann:s3cret@host/db")];
    let mut editor = Editor::spawn(&home, &["acp", "--model", "offline"], &variable);
    editor.initialize().await;
    let cwd = home.project_folder();
    let answer = editor
        .request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
        .await;
    let error = answer["error"].to_string();
    assert!(
        error.contains("TURNERY_STORE: there is no such kind of store"),
        "{answer}"
    );
    assert!(!error.contains("s3cret"), "{answer}");
    assert_eq!(editor.close_input().await.code, Some(0));
}

#[tokio::test]
async fn project_cannot_choose_the_store() {
    let home = Home::new();
    home.write_file("project/.turnery/config.toml", "store = \"mine.db\"\n");
    let ran = home.run(&["run", "--model", "offline", "hi"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("it could send your sessions anywhere"),
        "{ran:?}"
    );
    assert!(home.database_path().is_file());
    assert!(!home.project_folder().join("mine.db").exists());
}

#[tokio::test]
async fn commands_work_on_sessions_in_postgresql() {
    let home = Home::new();
    let store = new_postgres_schema();
    let model = home.scripted_model(json!([
        {"steps": [{"tool_call": {"name": "shell", "args": {"command": "env"}}}]},
        {"steps": [{"text": "Zebras."}]},
        {"steps": [{"text": "Gnus."}]},
    ]));
    let run = [
        "run",
        "--model",
        &model,
        "--mode",
        "auto",
        "--verbose",
        "Which animals?",
    ];
    let first = home.run_in_store(&store, &run).await;
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (Some(0), "Zebras.\n"),
        "{first:?}"
    );
    let second = home
        .run_in_store(&store, &["run", "--model", &model, "--continue", "More?"])
        .await;
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(!home.database_path().exists());

    let listed = home.run_in_store(&store, &LIST).await;
    assert_eq!(listed_titles(&listed), ["Which animals?"]);
    let shown = home
        .run_in_store(&store, &["sessions", "show", "latest", "--full"])
        .await;
    for text in ["Which animals?", "PATH=", "Zebras.", "More?"] {
        assert!(shown.stdout.contains(text), "{text} in {shown:?}");
    }
    let found = home
        .run_in_store(&store, &["sessions", "list", "--search", "zebras"])
        .await;
    assert!(found.stdout.contains("Which animals?"), "{found:?}");
    let info = home
        .run_in_store(&store, &["store", "info", "--json"])
        .await;
    assert_eq!(info.stdout_json()["kind"], "PostgreSQL");
    assert_eq!(info.stdout_json()["sessions"], 1);
    let check = home.run_in_store(&store, &["store", "check"]).await;
    assert_eq!(check.code, Some(0), "{check:?}");
    // Neither commands, nor the log, nor the description see the password.
    let secret = password(&store);
    for output in [&first, &shown, &info] {
        assert!(!format!("{output:?}").contains(secret), "{output:?}");
    }
    let deleted = home
        .run_in_store(&store, &["sessions", "delete", "latest"])
        .await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    assert_eq!(
        home.run_in_store(&store, &LIST).await.stdout_json(),
        json!([])
    );
}

#[tokio::test]
async fn sessions_move_to_postgresql_and_back() {
    let home = Home::new();
    let store = new_postgres_schema();
    assert_eq!(
        home.run(&["run", "--model", "offline", "moved"]).await.code,
        Some(0)
    );
    let moved = "1 session(s) copied and compared, 0 were there already, 0 left out\n";
    let there = home.run(&["store", "migrate", "--to", &store]).await;
    assert_eq!(
        (there.code, there.stdout.as_str()),
        (Some(0), moved),
        "{there:?}"
    );
    assert_eq!(
        listed_titles(&home.run_in_store(&store, &LIST).await),
        ["moved"]
    );
    let same = home
        .run_in_store(&store, &["store", "migrate", "--to", &store])
        .await;
    assert_eq!(same.code, Some(1), "{same:?}");
    assert!(
        same.stderr
            .contains("is the store that the sessions are in"),
        "{same:?}"
    );
    let back = home
        .run_in_store(&store, &["store", "migrate", "--to", "back.db"])
        .await;
    assert_eq!(
        (back.code, back.stdout.as_str()),
        (Some(0), moved),
        "{back:?}"
    );
    let back = home
        .run(&[&LIST[..], &["--store", "back.db"]].concat())
        .await;
    assert_eq!(listed_titles(&back), ["moved"]);
}

#[tokio::test]
async fn editor_continues_a_session_in_postgresql() {
    let home = Home::new();
    let store = new_postgres_schema();
    let model = home.scripted_model(json!([{"steps": [{"text": "Fine."}]}]));
    let args = ["acp", "--model", &model, "--store", &store];
    let (mut editor, id) = Editor::with_session(&home, &args).await;
    let answer = editor.prompt(10, &id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.close_input().await.code, Some(0));

    let mut editor = Editor::spawn(&home, &args, &[]);
    editor.initialize().await;
    let list = editor.request(1, "session/list", json!({})).await;
    assert_eq!(
        list["result"]["sessions"][0]["sessionId"],
        id.as_str(),
        "{list}"
    );
    let cwd = home.project_folder();
    let load = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
    let answer = editor.request(2, "session/load", load).await;
    assert!(answer["error"].is_null(), "{answer}");
    let exit = editor.close_input().await;
    assert_eq!(exit.code, Some(0));
    let replayed = |message: &Value| message.to_string().contains("Fine.");
    assert!(exit.said.iter().any(replayed), "{:?}", exit.said);
}

#[tokio::test]
async fn unreachable_server_is_named_without_its_password() {
    let home = Home::new();
    // Nothing listens at port 1.
    let store = "postgres://ann:s3cret@127.0.0.1:1/team";
    let refused = home.run_in_store(store, &LIST).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("127.0.0.1:1"), "{refused:?}");
    assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
}
