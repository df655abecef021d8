//! Tool calls: upserts, permission requests, terminals and diffs.

use super::{is_idle, of_kind, states};
use crate::harness::{TestClient, TestEnv, prompt_params};
use serde_json::{Value, json};

fn answers_calling(tool: &str) -> Value {
    json!([
        {"steps": [{"tool_call": {"name": tool, "args": {"command": "echo hi"}}}]},
        {"steps": [{"text": "done"}]},
    ])
}

/// Runs a prompt that needs no permission; returns its updates.
fn run_prompt(client: &mut TestClient, id: &str) -> Vec<Value> {
    client.request("session/prompt", prompt_params(id, "hi"));
    let idle = client.wait_for(is_idle);
    let mut updates = client.take_updates();
    updates.push(idle["params"]["update"].clone());
    updates
}

/// Merges the updates of a call: the last value of each field.
fn merge_updates(updates: &[Value]) -> Value {
    let mut call = json!({});
    for update in of_kind(updates, "tool_call_update") {
        for (key, value) in update.as_object().expect("an object") {
            call[key] = value.clone();
        }
    }
    call
}

// proves: V2-13
/// The output of a call is a terminal of the agent: announced before it is referenced, its bytes in base64 by
/// chunk, and finally marked as exited.
#[test]
fn output_is_shown_in_a_terminal() {
    let world = TestEnv::new(answers_calling("print"));
    let (mut client, id) = world.session_v2();
    let updates = run_prompt(&mut client, &id);
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
    let call = merge_updates(&updates);
    assert_eq!(call["status"], "completed");
    assert_eq!(
        call["content"],
        json!([{"type": "terminal", "terminalId": terminal_id}])
    );
}

// proves: V2-14, V2-8
/// A change is a list of changed files and a patch with absolute paths. The permission request has its own
/// title, and the session waits for the user.
#[test]
fn permission_request_shows_the_diff() {
    let world = TestEnv::new(answers_calling("change"));
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hi"));
    let question = client.wait_for_request("session/request_permission");
    let before = client.take_updates();
    assert_eq!(states(&before), ["running", "requires_action"]);
    let asked = &question["params"];
    assert_eq!(asked["title"], "Allow this change?");
    assert_eq!(asked["description"], "Do change");
    assert_eq!(asked["subject"]["type"], "tool_call");
    let subject = &asked["subject"]["toolCall"];
    assert_eq!(subject["toolCallId"], merge_updates(&before)["toolCallId"]);
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
    client.choose(&question, "allow_once");
    client.wait_for(is_idle);
    let after = client.take_updates();
    assert_eq!(states(&after), ["running"]);
    assert_eq!(merge_updates(&after)["status"], "completed");
    assert_eq!(world.run_log.all(), ["change"]);
}

// proves: V2-17, V2-20
/// Only the selection of an option that allows runs the tool; other options, unknown ids and malformed
/// outcomes reject the call, and `cancelled` cancels the prompt.
#[test]
fn only_allow_option_allows() {
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
        let world = TestEnv::new(answers_calling("change"));
        let (mut client, id) = world.session_v2();
        client.request("session/prompt", prompt_params(&id, "hi"));
        let question = client.wait_for_request("session/request_permission");
        client.respond_unchecked(&question, reply.clone());
        let idle = client.wait_for(is_idle);
        assert_eq!(idle["params"]["update"]["stopReason"], reason, "{reply}");
        assert_eq!(world.run_log.all().len(), runs, "{reply}");
    }
}
