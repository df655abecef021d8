//! Member `usage` in the response to a prompt: sent to clients that declare `promptUsage`, if the model has
//! reported usage.

use super::assert_valid;
use crate::harness::{TestEnv, prompt_params, result_of};
use agent_client_protocol_schema::v1::PromptResponse;
use serde_json::{Value, json};

fn prompt_response(usage: Value, abilities: Value) -> Value {
    let mut said = json!({"steps": [{"text": "hello"}]});
    if !usage.is_null() {
        said["usage"] = usage;
    }
    let world = TestEnv::new(json!([said]));
    let (mut client, id) = world.session_with(abilities);
    let answer = client.request("session/prompt", prompt_params(&id, "hi"));
    let result = result_of(&answer);
    assert_valid::<PromptResponse>(result);
    result.clone()
}

// proves: G-23, C-16
#[test]
fn usage_is_sent_only_to_clients_that_declare_it() {
    let counted =
        json!({"input": 10, "output": 5, "reasoning": 2, "cache_read": 3, "cache_write": 4});
    let knows = json!({"_meta": {"turnery": {"promptUsage": true}}});
    let told = prompt_response(counted.clone(), knows.clone());
    assert_eq!(
        told["usage"],
        json!({"totalTokens": 22, "inputTokens": 10, "outputTokens": 5, "thoughtTokens": 2,
            "cachedReadTokens": 3, "cachedWriteTokens": 4})
    );
    // Unknown is not zero.
    let some = prompt_response(json!({"input": 1, "output": 1}), knows.clone());
    assert_eq!(
        some["usage"],
        json!({"totalTokens": 2, "inputTokens": 1, "outputTokens": 1})
    );
    for not in [
        json!({}),
        json!({"_meta": null}),
        json!({"_meta": {"turnery": {}}}),
        json!({"_meta": {"turnery": {"promptUsage": 1}}}),
        json!({"_meta": {"promptUsage": true}}),
        json!({"_meta": 7}),
    ] {
        let answer = prompt_response(counted.clone(), not.clone());
        assert!(answer.get("usage").is_none(), "{not}");
        assert_eq!(answer["_meta"]["turnery"]["usage"]["input"], 10);
    }
}

/// A prompt cancelled before the model reported usage has no usage, rather than zero.
#[test]
fn cancelled_prompt_reports_no_invented_usage() {
    let world = TestEnv::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let knows = json!({"_meta": {"turnery": {"promptUsage": true}}});
    let (mut client, id) = world.session_with(knows);
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.cancel(&id);
    let answer = client.wait_for_response(&asked);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(answer["result"].get("usage").is_none());
}
