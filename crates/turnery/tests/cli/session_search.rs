//! `sessions list --search` finds words of titles, prompts and answers.

use crate::home::Home;
use serde_json::json;

async fn say(home: &Home, prompt: &str, answer: &str) -> String {
    let model = home.scripted_model(json!([{"steps": [{"text": answer}]}]));
    let run = ["run", "--model", &model, "--format", "json", prompt];
    let ran = home.run(&run).await.stdout_json();
    ran["session_id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn search_shows_sessions_with_all_words() {
    let home = Home::new();
    let cache = say(
        &home,
        "Why is the cache stale?",
        "Its invalidation runs too late.",
    )
    .await;
    say(&home, "How is the parser tested?", "By fuzzing the cache.").await;

    let found = home
        .run(&["sessions", "list", "--search", "cache late"])
        .await;
    let lines: Vec<&str> = found.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{found:?}");
    assert!(lines[0].contains("  Why is the cache stale?"), "{found:?}");
    assert_eq!(lines[1], "    Why is the cache stale?");

    let phrase = [
        "sessions",
        "list",
        "--all",
        "--json",
        "--search",
        "\"invalidation runs\" stale",
    ];
    let rows = home.run(&phrase).await.stdout_json();
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    assert_eq!(rows[0]["id"], cache.as_str());
    assert_eq!(rows[0]["snippet"], "Its invalidation runs too late.");

    let none = home
        .run(&["sessions", "list", "--search", "nothing OR ("])
        .await;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(
        none.stderr
            .contains("no session of this folder has these words"),
        "{none:?}"
    );
}

/// The snippet is text of the model: nothing in it reaches the terminal as a command.
#[tokio::test]
async fn snippet_has_no_terminal_commands() {
    let home = Home::new();
    say(&home, "needle", "needle \u{1b}[2J\u{202e}end needle2").await;
    let found = home.run(&["sessions", "list", "--search", "needle2"]).await;
    assert!(found.stdout.contains("end needle2"), "{found:?}");
    assert!(!found.stdout.contains(['\u{1b}', '\u{202e}']), "{found:?}");
}
