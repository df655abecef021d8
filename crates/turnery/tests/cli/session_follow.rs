//! Tests of `turnery sessions follow`.

use crate::home::{Home, new_postgres_schema, send_signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};

/// Reads lines up to the first one that contains `part`.
async fn read_until(
    lines: &mut Lines<BufReader<tokio::process::ChildStdout>>,
    part: &str,
) -> Vec<String> {
    let mut read = Vec::new();
    while let Some(line) = lines.next_line().await.expect("UTF-8") {
        let is_last = line.contains(part);
        read.push(line);
        if is_last {
            return read;
        }
    }
    panic!("ended without {part}: {read:?}");
}

/// A follower sees a prompt of another process, once, and leaves when it is told to.
async fn follows_another_process(home: &Home, store: &str) {
    let model = home.scripted_model(json!([
        {"when": {"last_user_contains": "first"}, "steps": [{"text": "One zebra."}]},
        {"when": {"last_user_contains": "second"}, "steps": [{"text": "Two zebras."}]},
    ]));
    let first = home
        .run_in_store(store, &["run", "--model", &model, "first"])
        .await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let mut follower = home.command(&["sessions", "follow", "latest"]);
    follower.env("TURNERY_STORE", store);
    let mut follower = follower.spawn().expect("started");
    let stdout = follower.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines();
    let before = read_until(&mut lines, "One zebra.").await;
    assert!(before.iter().any(|line| line == "> first"), "{before:?}");
    let args = ["run", "--model", &model, "--continue", "second"];
    let second = home.run_in_store(store, &args).await;
    assert_eq!(second.code, Some(0), "{second:?}");
    let after = read_until(&mut lines, "Two zebras.").await;
    let expected = ["", "> second", "Two zebras."];
    assert_eq!(after, expected);
    send_signal(&follower, Signal::INT);
    assert_eq!(follower.wait().await.expect("waited").code(), Some(130));
}

#[tokio::test]
async fn prompt_of_another_process_is_followed() {
    follows_another_process(&Home::new(), "sessions.db").await;
}

#[tokio::test]
async fn prompt_of_another_host_is_followed_on_postgresql() {
    follows_another_process(&Home::new(), &new_postgres_schema()).await;
}

#[tokio::test]
async fn follower_goes_on_behind_a_cursor() {
    let home = Home::new();
    for args in [&["what changed?"][..], &["--continue", "show TODOs"]] {
        let ran = home
            .run(&[&["run", "--model", "offline"], args].concat())
            .await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let follow = ["sessions", "follow", "latest", "--until-idle", "--json"];
    let all = home.run(&follow).await;
    assert_eq!(all.code, Some(0), "{all:?}");
    let all: Vec<&str> = all.stdout.lines().collect();
    assert!(all.len() > 10, "{all:?}");
    for at in [0, all.len() / 2, all.len() - 1] {
        let line: Value = serde_json::from_str(all[at]).expect("JSON");
        let cursor = line["cursor"].as_str().expect("a cursor");
        let rest = home.run(&[&follow[..], &["--from", cursor]].concat()).await;
        let rest: Vec<&str> = rest.stdout.lines().collect();
        assert_eq!(rest, all[at + 1..]);
    }
    let now = home.run(&[&follow[..], &["--now"]].concat()).await;
    assert_eq!((now.code, now.stdout.as_str()), (Some(0), ""));
    let wrong = home
        .run(&[&follow[..], &["--from", "nonsense"]].concat())
        .await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
