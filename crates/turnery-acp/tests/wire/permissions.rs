//! Permission requests for tool calls: what each response does, and that only the first one counts.

use crate::harness::TestEnv;
use serde_json::{Value, json};

fn answers_calling(tool: &str) -> Value {
    json!([
        {"steps": [{"tool_call": {"name": tool, "args": {}}}]},
        {"steps": [{"text": "done"}]},
    ])
}

fn statuses(updates: &[Value]) -> Vec<&str> {
    updates
        .iter()
        .filter(|update| update["toolCallId"].is_string())
        .map(|update| update["status"].as_str().unwrap_or("pending"))
        .collect()
}

/// A call waits for the response to its permission request, which decides whether the tool runs, the final
/// status of the call and the stop reason (PERM-1, PERM-3, PERM-4, PERM-5, PERM-7, PERM-8).
// proves: ACP-22, ACP-23, ACP-31, ACP-32, ACP-33, ACP-34, ACP-37, ACP-50, R2, UP-38, PERM-1, PERM-3, PERM-4, PERM-7, PERM-8, TOOL-3, G-12
// proves: UP-26, ACP-28
#[test]
fn call_waits_for_permission() {
    let selected = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
    let table = [
        (selected("allow_once"), true, "end_turn"),
        (selected("allow_always"), true, "end_turn"),
        (selected("reject_once"), false, "end_turn"),
        (selected("reject_always"), false, "end_turn"),
        (selected("nonsense"), false, "end_turn"),
        (
            json!({"outcome": {"outcome": "approved"}}),
            false,
            "end_turn",
        ),
        (json!({}), false, "end_turn"),
        (
            json!({"outcome": {"outcome": "cancelled"}}),
            false,
            "cancelled",
        ),
    ];
    for (reply, runs, reason) in table {
        let world = TestEnv::new(answers_calling("change"));
        let (mut client, id) = world.session();
        let asked = client.send_prompt(&id, "hi");
        let question = client.wait_for_request("session/request_permission");
        assert_eq!(world.run_log.all(), [] as [String; 0]);
        let before = client.take_updates();
        assert_eq!(before[0]["sessionUpdate"], "tool_call", "{before:?}");
        let call = &question["params"]["toolCall"];
        assert_eq!(call["toolCallId"], before[0]["toolCallId"]);
        assert_eq!(call["content"][0]["type"], "diff");
        assert_eq!(call["content"][0]["path"], json!(world.file("a.txt")));
        client.respond(&question, reply.clone());
        assert_eq!(client.wait_for_stop_reason(&asked), reason, "{reply}");
        assert_eq!(world.run_log.all().len(), usize::from(runs), "{reply}");
        let after = client.take_updates();
        let expected: &[&str] = if runs {
            &["in_progress", "completed"]
        } else {
            &["failed"]
        };
        assert_eq!(statuses(&after), expected, "{reply}: {after:?}");
    }
}

/// Only the first response to a request counts. The second does not answer the next request either.
// proves: PERM-3, RPC-17
#[test]
fn second_permission_response_is_ignored() {
    let selected = |id: &str| json!({"outcome": {"outcome": "selected", "optionId": id}});
    let call = json!({"tool_call": {"name": "change", "args": {}}});
    for (first, second, ran) in [
        ("reject_once", "allow_always", 0),
        ("allow_once", "reject_always", 2),
    ] {
        let world = TestEnv::new(json!([
            {"steps": [call, call]},
            {"steps": [{"text": "done"}]},
        ]));
        let (mut client, id) = world.session();
        let asked = client.send_prompt(&id, "hi");
        for _ in 0..2 {
            let question = client.wait_for_request("session/request_permission");
            client.respond(&question, selected(first));
            client.respond_unchecked(&question, selected(second));
        }
        assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
        assert_eq!(world.run_log.all().len(), ran, "{first} {second}");
    }
}

/// After a cancel the client answers the open question with `cancelled`, although nobody waits for it any more.
// proves: ACP-50, CANCEL-6
#[test]
fn cancelled_answer_after_a_cancel_is_accepted() {
    let call = json!({"tool_call": {"name": "change", "args": {}}});
    let world = TestEnv::new(json!([
        {"steps": [call]},
        {"steps": [call]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "hi");
    let question = client.wait_for_request("session/request_permission");
    client.cancel(&id);
    assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
    client.respond_unchecked(&question, json!({"outcome": {"outcome": "cancelled"}}));
    // The next question is asked, and answered, on the same connection.
    let asked = client.send_prompt(&id, "again");
    let question = client.wait_for_request("session/request_permission");
    client.choose(&question, "allow_once");
    assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
    assert_eq!(world.run_log.all(), ["change"]);
}
