//! Commands on the history of a session: `/rerun`, `/branch`, `/compact` and `/export`; and the loop ids in
//! responses.

use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

/// Runs a prompt or command to its end; returns the text of the agent's messages and the reported
/// continuation kinds of loops.
fn run_prompt(client: &mut TestClient, id: &str, text: &str) -> (String, Vec<Value>) {
    assert_eq!(client.prompt(id, text), "end_turn", "{text}");
    let updates = client.take_updates();
    let text = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect();
    let kinds = updates
        .iter()
        .map(|update| update["_meta"]["turnery"]["loop"]["continuationKind"].clone())
        .filter(|kind| !kind.is_null())
        .collect();
    (text, kinds)
}

/// Returns the texts that a load replays.
fn load_texts(client: &mut TestClient, world: &TestEnv, id: &str) -> Vec<String> {
    client.take_buffered();
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", at));
    client
        .take_updates()
        .iter()
        .filter_map(|update| update["content"]["text"].as_str())
        .map(str::to_owned)
        .collect()
}

/// Returns an environment whose model answers `1`, `2` or `3` to a prompt that contains `one`, `two` or `three`.
fn env_with_numbered_answers() -> TestEnv {
    TestEnv::new(json!([
        {"when": {"last_user_contains": "one"}, "steps": [{"text": "1"}]},
        {"when": {"last_user_contains": "two"}, "steps": [{"text": "2"}]},
        {"when": {"last_user_contains": "three"}, "steps": [{"text": "3"}]},
    ]))
}

// proves: LOOP-19, LOOP-86, UP-12
#[test]
fn rerun_replaces_the_last_prompt() {
    let world = env_with_numbered_answers();
    let (mut client, id) = world.session();
    let nothing = run_prompt(&mut client, &id, "/rerun").0;
    assert!(nothing.contains("nothing has run"), "{nothing}");
    run_prompt(&mut client, &id, "one");
    run_prompt(&mut client, &id, "two");
    let again = run_prompt(&mut client, &id, "/rerun");
    assert_eq!(again, ("2".to_owned(), vec![json!("rerun")]));
    let shown = load_texts(&mut client, &world, &id);
    assert_eq!(shown, ["/rerun", &nothing, "one", "1", "two", "2"]);
}

// proves: LOOP-20, LOOP-87
#[test]
fn branch_continues_from_earlier_point() {
    let world = env_with_numbered_answers();
    let (mut client, id) = world.session();
    let none = run_prompt(&mut client, &id, "/branch").0;
    assert!(none.contains("nothing to go back to"), "{none}");
    run_prompt(&mut client, &id, "one");
    run_prompt(&mut client, &id, "two");
    let points = run_prompt(&mut client, &id, "/branch").0;
    let point = points
        .lines()
        .find(|line| line.ends_with(": one"))
        .and_then(|line| line.split('`').nth(1))
        .unwrap_or_else(|| panic!("{points}"))
        .to_owned();
    let branched = run_prompt(&mut client, &id, &format!("/branch {point} three"));
    assert_eq!(branched, ("3".to_owned(), vec![json!("branch")]));
    let shown = load_texts(&mut client, &world, &id);
    let expected = [
        "/branch", &none, "one", "1", "/branch", &points, "three", "3",
    ];
    assert_eq!(shown, expected);

    let unknown = run_prompt(&mut client, &id, "/branch nowhere three").0;
    assert!(unknown.contains("no loop"), "{unknown}");
    let empty = run_prompt(&mut client, &id, &format!("/branch {point}")).0;
    assert!(empty.contains("Add a prompt"), "{empty}");
}

/// `/compact` says that there is nothing to summarise, and calls no model (the scenario has no answer for a
/// summary).
#[test]
fn a_short_conversation_is_not_compacted() {
    let world = env_with_numbered_answers();
    let (mut client, id) = world.session();
    let empty = run_prompt(&mut client, &id, "/compact").0;
    assert!(empty.contains("conversation is empty"), "{empty}");
    run_prompt(&mut client, &id, "one");
    let (text, kinds) = run_prompt(&mut client, &id, "/compact");
    assert!(text.starts_with("Nothing was summarised"), "{text}");
    assert_eq!(kinds, [json!("compaction")]);
    assert_eq!(run_prompt(&mut client, &id, "two").0, "2");
}

/// A compaction is reported as such, and its usage is separate from the turns.
// proves: LOOP-21, UP-13, I10, COMP-2
#[test]
fn a_long_conversation_is_compacted() {
    let tokens = json!({"input": 500, "output": 5});
    let world = TestEnv::new(json!([
        {
            "when": {"last_user_contains": "Sum up this conversation"},
            "steps": [{"text": "They talked."}],
            "usage": tokens,
        },
        {"when": {"last_user_contains": "talk"}, "steps": [{"text": "words ".repeat(50)}]},
    ]));
    let (mut client, id) = world.session_with(json!({"session": {"compaction": {}}}));
    for _ in 0..16 {
        run_prompt(&mut client, &id, &format!("talk {}", "more ".repeat(50)));
    }
    assert_eq!(client.prompt(&id, "/compact"), "end_turn");
    let updates = client.take_updates();
    let passes: Vec<&Value> = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "compaction_update")
        .collect();
    assert_eq!(passes.len(), 2, "{updates:?}");
    assert_eq!(passes[0]["status"], "in_progress");
    assert_eq!(passes[1]["status"], "completed");
    assert_eq!(passes[0]["compactionId"], passes[1]["compactionId"]);
    let summary = passes[1]["summary"][0]["text"].as_str().expect("text");
    assert!(summary.contains("They talked."), "{summary}");
    let last = updates.last().expect("an update");
    assert_eq!(last["content"]["text"], "Older messages were summarised.");

    let cost = run_prompt(&mut client, &id, "/cost").0;
    let row = cost.lines().find(|line| line.starts_with("| compaction |"));
    assert!(
        row.expect("a row").ends_with("| 500 | 0 | 0 | 5 |"),
        "{cost}"
    );
    assert_eq!(run_prompt(&mut client, &id, "talk").0, "words ".repeat(50));
}

/// These commands are rejected while a prompt runs, with a reason.
#[test]
fn branch_rerun_and_compact_need_an_idle_session() {
    let world = TestEnv::new(json!([{"steps": [{"text": "w"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "w");
    for command in ["/rerun", "/branch", "/compact"] {
        let answer = client.request("session/prompt", prompt_params(&id, command));
        assert_eq!(error_code_of(&answer), -32603, "{command}");
        assert_eq!(answer["error"]["data"]["kind"], "session_busy");
        assert_eq!(answer["error"]["data"]["retryable"], true);
    }
    // Commands that need no idle session still work.
    for command in ["/help", "/cost", "/model", "/mode"] {
        assert_eq!(client.prompt(&id, command), "end_turn", "{command}");
    }
    client.cancel(&id);
    assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
}

/// CANCEL-9: a command's prompt is cancelled like any prompt, in the same write too.
// proves: ACP-46, CANCEL-9
#[test]
fn command_cancelled_in_same_write_is_cancelled() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "one"}, "steps": [{"text": "1"}]},
        {"when": {"last_user_contains": "hang"}, "steps": [{"text": "w"}, {"wait_for_cancel": true}]},
    ]));
    let (mut client, id) = world.session();
    run_prompt(&mut client, &id, "one");
    let points = run_prompt(&mut client, &id, "/branch").0;
    let point = points.split('`').nth(1).expect("a point");
    for n in 0..20 {
        let typed = prompt_params(&id, &format!("/branch {point} hang"));
        let request = json!({"jsonrpc": "2.0", "id": format!("b{n}"), "method": "session/prompt", "params": typed});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
        client.write_raw(format!("{request}\n{cancel}\n"));
        let answer = client.wait_for_response(&request["id"]);
        assert_eq!(result_of(&answer)["stopReason"], "cancelled", "{n}");
    }
}

/// The response names the loops, so that programs can go back to them.
#[test]
fn an_answer_names_its_loops() {
    let world = env_with_numbered_answers();
    let (mut client, id) = world.session();
    let answer = client.request("session/prompt", prompt_params(&id, "one"));
    let loops = &result_of(&answer)["_meta"]["turnery"]["loopIds"];
    let loops = loops.as_array().expect("a list");
    assert_eq!(loops.len(), 1);
    let first = loops[0].as_str().expect("an id");
    assert!(first.starts_with(&format!("{id}.")), "{first}");
    assert!(first.ends_with(".1"), "{first}");
}

/// `/export` writes the session to a private file (mode 0600) in the working folder or at the given path, and
/// never overwrites a file.
#[test]
fn export_writes_session_to_file() {
    let world = env_with_numbered_answers();
    let (mut client, id) = world.session();
    run_prompt(&mut client, &id, "one");
    run_prompt(&mut client, &id, "two");
    let told = run_prompt(&mut client, &id, "/export").0;
    let path = world.file(&format!("turnery-{id}.json"));
    assert!(told.contains(&path.display().to_string()), "{told}");
    let text = std::fs::read_to_string(&path).expect("a file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["format"], 1);
    assert_eq!(document["session"]["id"], json!(id));
    let loops = document["loops"].as_array().expect("a list");
    assert_eq!(loops.len(), 2);
    assert_eq!(loops[1]["parent_loop_id"], loops[0]["loop_id"]);
    assert_eq!(document["session"]["tip_loop_id"], loops[1]["loop_id"]);
    let mode = std::fs::metadata(&path).expect("a file").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);

    let again = run_prompt(&mut client, &id, "/export").0;
    assert!(again.contains("already exists"), "{again}");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), text);
    run_prompt(&mut client, &id, "/export out.json");
    let other = std::fs::read_to_string(world.file("out.json")).expect("a file");
    let mut other: Value = serde_json::from_str(&other).expect("JSON");
    // Two commands have been run since.
    let remarks = other["remarks"].take();
    assert_eq!(remarks.as_array().map(Vec::len), Some(4));
    other.as_object_mut().expect("an object").remove("remarks");
    assert_eq!(other, document);
    let nowhere = run_prompt(&mut client, &id, "/export missing/out.json").0;
    assert!(nowhere.contains("cannot be written"), "{nowhere}");
}
