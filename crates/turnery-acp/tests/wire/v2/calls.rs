//! Tool calls: upserts, questions, terminals and diffs.

use super::{is_idle, of_kind, states};
use crate::harness::{Client, World, prompt};
use serde_json::{Value, json};

fn calls(tool: &str) -> Value {
    json!([
        {"steps": [{"tool_call": {"name": tool, "args": {"command": "echo hi"}}}]},
        {"steps": [{"text": "done"}]},
    ])
}

/// All updates of a prompt that nobody is asked about.
fn all_of(client: &mut Client, id: &str) -> Vec<Value> {
    client.call("session/prompt", prompt(id, "hi"));
    let idle = client.wait(is_idle);
    let mut updates = client.updates();
    updates.push(idle["params"]["update"].clone());
    updates
}

/// A call as a client knows it in the end: each field as it was said last.
fn merged(updates: &[Value]) -> Value {
    let mut call = json!({});
    for update in of_kind(updates, "tool_call_update") {
        for (key, value) in update.as_object().expect("an object") {
            call[key] = value.clone();
        }
    }
    call
}

// proves: V2-12
/// A call is told of in upserts under one id, from pending to its end.
#[test]
fn a_call_goes_from_pending_to_its_end() {
    let world = World::new(calls("finish"));
    let (mut client, id) = world.session_v2();
    let updates = all_of(&mut client, &id);
    let told = of_kind(&updates, "tool_call_update");
    let statuses: Vec<&Value> = told.iter().map(|update| &update["status"]).collect();
    assert_eq!(statuses, ["pending", "in_progress", "completed"]);
    assert_eq!(told[0]["name"], "finish");
    assert_eq!(told[0]["title"], "Do finish");
    assert_eq!(told[0]["kind"], "execute");
    assert_eq!(told[0]["rawInput"], json!({"command": "echo hi"}));
    // Only what is new is said again.
    assert!(told[1].get("title").is_none());
    assert!(
        told.iter()
            .all(|it| it["toolCallId"] == told[0]["toolCallId"])
    );
}

// proves: V2-12
/// A call that is cut short has a status of its own.
#[test]
fn a_cancelled_call_says_so() {
    let world = World::new(calls("hang"));
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["status"] == "in_progress");
    client.tell("session/cancel", json!({"sessionId": id}));
    client.wait(is_idle);
    assert_eq!(merged(&client.updates())["status"], "cancelled");
}

// proves: V2-13
/// What a call prints is a terminal of ours: told of before it is referred to, its bytes in
/// base64, each chunk alone, and in the end marked as exited.
#[test]
fn what_is_printed_is_a_terminal() {
    let world = World::new(calls("print"));
    let (mut client, id) = world.session_v2();
    let updates = all_of(&mut client, &id);
    let terminal = |update: &Value| update["sessionUpdate"] == "terminal_update";
    let opened = updates.iter().position(terminal).expect("opened");
    let terminal_id = &updates[opened]["terminalId"];
    assert_eq!(updates[opened]["command"], "echo hi");
    let refers = updates
        .iter()
        .position(|update| update["content"][0]["terminalId"] == *terminal_id);
    assert!(refers.expect("referred to") > opened);
    let chunks = of_kind(&updates, "terminal_output_chunk");
    let data: Vec<&Value> = chunks.iter().map(|chunk| &chunk["data"]).collect();
    assert_eq!(data, ["bGluZSAwCg==", "bGluZSAxCg==", "bGluZSAyCg=="]);
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["terminalId"] == *terminal_id)
    );
    let last = updates.iter().rposition(terminal).expect("closed");
    assert!(updates[last]["exitStatus"].is_object());
    assert!(updates[opened].get("exitStatus").is_none());
    let call = merged(&updates);
    assert_eq!(call["status"], "completed");
    assert_eq!(
        call["content"],
        json!([{"type": "terminal", "terminalId": terminal_id}])
    );
}

// proves: V2-14, V2-8
/// A change is a list of changed files and a patch with absolute paths. The question
/// has words of its own, and the session waits for the person.
#[test]
fn a_question_shows_the_change() {
    let world = World::new(calls("change"));
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hi"));
    let question = client.asked("session/request_permission");
    let before = client.updates();
    assert_eq!(states(&before), ["running", "requires_action"]);
    let asked = &question["params"];
    assert_eq!(asked["title"], "Allow this change?");
    assert_eq!(asked["description"], "Do change");
    assert_eq!(asked["subject"]["type"], "tool_call");
    let subject = &asked["subject"]["toolCall"];
    assert_eq!(subject["toolCallId"], merged(&before)["toolCallId"]);
    let path = world.file("a.txt");
    let name = path.display();
    let diff = json!({
        "type": "diff",
        "changes": [{"operation": "add", "path": path, "fileType": "text"}],
        "patch": {
            "format": "git_patch",
            "text": format!(
                "diff --git {name} {name}\nnew file mode 100644\n--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+new\n"
            ),
        },
    });
    assert_eq!(subject["content"][0], diff);
    let ids: Vec<&Value> = asked["options"]
        .as_array()
        .expect("options")
        .iter()
        .map(|option| &option["optionId"])
        .collect();
    assert!(ids.len() > 1 && ids[0] != ids[1]);
    client.reply(
        &question,
        json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
    );
    client.wait(is_idle);
    let after = client.updates();
    assert_eq!(states(&after), ["running"]);
    assert_eq!(merged(&after)["status"], "completed");
    assert_eq!(world.ran.all(), ["change"]);
}

// proves: V2-17, V2-20
/// Only an option that was offered, and means yes, is one.
#[test]
fn nothing_but_a_yes_is_a_yes() {
    let selected = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
    for (reply, runs, reason) in [
        (selected("allow_once"), 1, "end_turn"),
        (selected("reject_once"), 0, "end_turn"),
        (selected("nonsense"), 0, "end_turn"),
        (json!({"outcome": {"outcome": "selected"}}), 0, "end_turn"),
        (json!({"outcome": {"outcome": "_later"}}), 0, "end_turn"),
        (json!({"outcome": {"outcome": "approved"}}), 0, "end_turn"),
        (json!({}), 0, "end_turn"),
        (json!({"outcome": {"outcome": "cancelled"}}), 0, "cancelled"),
    ] {
        let world = World::new(calls("change"));
        let (mut client, id) = world.session_v2();
        client.call("session/prompt", prompt(&id, "hi"));
        let question = client.asked("session/request_permission");
        client.reply_anything(&question, reply.clone());
        let idle = client.wait(is_idle);
        assert_eq!(idle["params"]["update"]["stopReason"], reason, "{reply}");
        assert_eq!(world.ran.all().len(), runs, "{reply}");
    }
}
