//! Prompts that a tool ends: with a value, with an error, with nothing (rows 3, 10 and 15).

use crate::harness::{World, error_of, prompt, result_of};
use serde_json::{Value, json};

/// What a prompt whose model calls `tool` says, and how it is answered.
fn ended_by(tool: &str) -> (Vec<Value>, Value) {
    let call = json!({"tool_call": {"name": tool, "args": {}}});
    let world = World::new(json!([{"steps": [call]}]));
    let (mut client, id) = world.session();
    let answer = client.call("session/prompt", prompt(&id, "go"));
    let updates = client.updates();
    let shown = updates.into_iter().filter_map(|update| {
        let status = update["status"].as_str();
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => Some(update["content"]["text"].clone()),
            Some("tool_call_update") if status != Some("in_progress") => {
                Some(update["status"].clone())
            }
            _ => None,
        }
    });
    (shown.collect(), answer)
}

// proves: LASH-7, LASH-64, LASH-68
#[test]
fn a_tool_finishes_with_a_value() {
    let (shown, answer) = ended_by("finish");
    assert_eq!(shown, [json!("completed"), json!("{\n  \"n\": 1\n}")]);
    let result = result_of(&answer);
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(result["_meta"]["turnery"]["outcome"], "finished.tool_value");
}

// proves: LASH-27, LASH-68
#[test]
fn a_tool_ends_with_an_error_of_its_own() {
    let (shown, answer) = ended_by("fail_with");
    assert_eq!(shown, [json!("failed"), json!("no way")]);
    let result = result_of(&answer);
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(result["_meta"]["turnery"]["outcome"], "stopped.tool_error");
}

// proves: LASH-22
#[test]
fn a_failure_that_nobody_can_mend_is_an_error() {
    let (shown, answer) = ended_by("fail");
    assert_eq!(shown, [json!("failed")]);
    assert_eq!(error_of(&answer), -32603);
    let data = &answer["error"]["data"];
    assert_eq!(data["kind"], "tool_failure");
    assert_eq!(data["retryable"], false);
    assert_eq!(data["_meta"]["turnery"]["outcome"], "stopped.tool_failure");
}
