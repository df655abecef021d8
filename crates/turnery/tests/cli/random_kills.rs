//! Kills a busy run at random moments, again and again until it ends by itself.

use crate::home::{Home, wait_with_output};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, hash_map::RandomState},
    fs,
    hash::BuildHasher as _,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;
use turnery_engine::{EventKind, LoopRecord, LoopStatus, ToolErrorKind};
use turnery_store::{ListQuery, Store as _};

/// Number of kills, and of runs at the same time.
const KILLS: usize = 500;
const PARALLEL_RUNS: usize = 4;

/// Number of responses with calls. Each has a command and a notification with its number, and two calls that read.
const RESPONSES: usize = 6;

/// Returns a model that is busy, and then says "done", however many of its responses were cut off.
fn busy_model(home: &Home) -> String {
    let path = home.write_file("project/read.txt", "text\n");
    let call = |name: &str, args: Value| json!({"tool_call": {"name": name, "args": args}});
    let read = call("read_file", json!({"path": path}));
    let mut answers: Vec<Value> = (0..RESPONSES)
        .map(|number| {
            json!({"steps": [
                {"text": "next"},
                call("shell", json!({"command": command(&number.to_string())})),
                read,
                call("notify", json!({"message": number.to_string()})),
                read,
            ]})
        })
        .collect();
    answers.extend((0..50).map(|_| json!({"steps": [{"text": "done"}]})));
    home.scripted_model(Value::from(answers))
}

fn command(number: &str) -> String {
    format!("echo {number} >> log")
}

/// Runs one session to its end, and kills it at random moments; returns the number of kills.
async fn run_with_kills(longest: Duration) -> usize {
    let home = Home::new();
    let notify = json!(["sh", "-c", "cat >> told"]);
    home.write_file("turnery/config.toml", &format!("notify = {notify}\n"));
    let model = busy_model(&home);
    let mut kills = 0;
    let mut was_empty = false;
    loop {
        let stored = home.store().list(ListQuery::default()).await;
        let is_stored = stored.is_ok_and(|stored| !stored.sessions.is_empty());
        let args = match (is_stored, was_empty) {
            (true, false) => &["run", "--mode", "auto", "--continue"][..],
            (true, true) => &["run", "--mode", "auto", "--continue", "go"],
            (false, _) => &["run", "--mode", "auto", "--model", &model, "go"],
        };
        let mut child = home.command(args).spawn().expect("started");
        let moment = longest * random_permille() / 1000;
        if timeout(moment, child.wait()).await.is_err() {
            child.start_kill().expect("killed");
            child.wait().await.expect("waited");
            kills += 1;
            continue;
        }
        let end = wait_with_output(child).await;
        // A kill may come before anything of the prompt is stored.
        was_empty = end.stderr.contains("the conversation is empty");
        if was_empty {
            continue;
        }
        // Or after the commit and before the exit.
        let is_over = end.stderr.contains("the model has already answered");
        assert!(end.code == Some(0) || is_over, "{end:?}");
        break;
    }
    // A notification may still be due.
    let last = ["run", "--mode", "auto", "--continue", "anything else?"];
    let last = home.run(&last).await;
    assert_eq!(last.code, Some(0), "{last:?}");
    check_session(&home).await;
    kills
}

fn random_permille() -> u32 {
    let random = RandomState::new().hash_one(0) % 1000;
    u32::try_from(random).expect("less than 1000")
}

/// Checks that each call ran as often as its result says, and that each notification has one key.
async fn check_session(home: &Home) {
    let stored = home.store().list(ListQuery::default()).await.expect("read");
    assert_eq!(stored.sessions.len(), 1);
    let loops = home.store().loops(&stored.sessions[0].id, 0).await;
    let loops = loops.expect("read");
    let last = loops.last().expect("a loop");
    assert_eq!(last.status, LoopStatus::Completed, "{last:?}");

    let ran = read_lines(home, "log");
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in read_lines(home, "told") {
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let field = |name: &str| line[name].as_str().expect("a text").to_owned();
        told.entry(field("message")).or_default().push(field("key"));
    }
    for keys in told.values_mut() {
        keys.dedup();
        assert_eq!(
            keys.len(),
            1,
            "a notification is told under two keys: {told:?}"
        );
    }
    let fates: Vec<_> = loops.iter().map(|it| (it.status, calls(it))).collect();
    for (name, args, fate) in fates.iter().flat_map(|(_, calls)| calls) {
        let count = match name.as_str() {
            "shell" => ran
                .iter()
                .filter(|line| args["command"] == command(line))
                .count(),
            "notify" => usize::from(told.contains_key(args["message"].as_str().expect("a text"))),
            _ => continue,
        };
        let fits = match fate {
            CallFate::Done => count == 1,
            CallFate::Interrupted => count <= 1,
            CallFate::NotRun => count == 0,
        };
        assert!(
            fits,
            "{name} {args} ran {count} times, and is {fate:?}: {fates:?}, {told:?}"
        );
    }
}

fn read_lines(home: &Home, name: &str) -> Vec<String> {
    let text = fs::read_to_string(home.project_folder().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Result of a call as the model was told it.
#[derive(Clone, Copy, Debug)]
enum CallFate {
    Done,
    Interrupted,
    NotRun,
}

/// Returns name, arguments and fate of each call of a loop.
fn calls(record: &LoopRecord) -> Vec<(String, Arc<Value>, CallFate)> {
    let args: BTreeMap<_, _> = record
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallRequested { call, .. } => Some((&call.call_id, &call.args)),
            _ => None,
        })
        .collect();
    let ends = record.events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolExecutionEnd {
            call_id,
            tool_name,
            envelope,
            ..
        } => {
            let fate = match &envelope.result {
                Ok(_) => CallFate::Done,
                Err(error) if error.kind == ToolErrorKind::Cancelled => CallFate::Interrupted,
                Err(error) if error.kind == ToolErrorKind::Skipped => CallFate::NotRun,
                Err(error) => panic!("{tool_name}: {error:?}"),
            };
            Some((tool_name.clone(), Arc::clone(args[call_id]), fate))
        }
        _ => None,
    });
    ends.collect()
}

/// No call that has run is run again, and none is told as done that was not; each notification of a call that was done
/// is delivered, under one key.
// proves: S5
#[tokio::test]
async fn calls_run_once_and_effects_last_through_random_kills() {
    let began = Instant::now();
    let home = Home::new();
    let model = busy_model(&home);
    let done = home
        .run(&["run", "--mode", "auto", "--model", &model, "go"])
        .await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let longest = began.elapsed();
    let lanes = (0..PARALLEL_RUNS).map(|_| async {
        let mut kills = 0;
        while kills < KILLS / PARALLEL_RUNS {
            kills += run_with_kills(longest).await;
        }
        kills
    });
    let kills: usize = join_all(lanes).await.into_iter().sum();
    assert!(kills >= KILLS, "{kills}");
}
