//! Prompts ended by a tool: with a value, with an error value, or by a fatal failure.

use crate::harness::{TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};

/// Runs a prompt whose model calls `tool`; returns the message texts and final call statuses in order, and
/// the response.
fn run_prompt_calling(tool: &str) -> (Vec<Value>, Value) {
    let call = json!({"tool_call": {"name": tool, "args": {}}});
    let world = TestEnv::new(json!([{"steps": [call]}]));
    let (mut client, id) = world.session();
    let answer = client.request("session/prompt", prompt_params(&id, "go"));
    let updates = client.take_updates();
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
fn tool_finish_value_ends_prompt() {
    let (shown, answer) = run_prompt_calling("finish");
    assert_eq!(shown, [json!("completed"), json!("{\n  \"n\": 1\n}")]);
    let result = result_of(&answer);
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(result["_meta"]["turnery"]["outcome"], "finished.tool_value");
}

// proves: LASH-27, LASH-68, UP-21
#[test]
fn tool_error_value_ends_prompt() {
    let (shown, answer) = run_prompt_calling("fail_with");
    assert_eq!(shown, [json!("failed"), json!("no way")]);
    let result = result_of(&answer);
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(result["_meta"]["turnery"]["outcome"], "stopped.tool_error");
}

// proves: LASH-22
#[test]
fn fatal_tool_failure_is_an_error() {
    let (shown, answer) = run_prompt_calling("fail");
    assert_eq!(shown, [json!("failed")]);
    assert_eq!(error_code_of(&answer), -32603);
    let data = &answer["error"]["data"];
    assert_eq!(data["kind"], "tool_failure");
    assert_eq!(data["retryable"], false);
    assert_eq!(data["_meta"]["turnery"]["outcome"], "stopped.tool_failure");
}
