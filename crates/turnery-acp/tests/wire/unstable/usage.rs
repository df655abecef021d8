//! The usage in a prompt's answer: for clients that say that they know it, and of what was counted.

use super::valid;
use crate::harness::{World, prompt, result_of};
use agent_client_protocol_schema::v1::PromptResponse;
use serde_json::{Value, json};

fn answer(usage: Value, abilities: Value) -> Value {
    let mut said = json!({"steps": [{"text": "hello"}]});
    if !usage.is_null() {
        said["usage"] = usage;
    }
    let world = World::new(json!([said]));
    let (mut client, id) = world.session_with(abilities);
    let answer = client.call("session/prompt", prompt(&id, "hi"));
    let result = result_of(&answer);
    valid::<PromptResponse>(result);
    result.clone()
}

// proves: G-23
#[test]
fn usage_is_told_to_those_who_know_it() {
    let counted =
        json!({"input": 10, "output": 5, "reasoning": 2, "cache_read": 3, "cache_write": 4});
    let knows = json!({"_meta": {"turnery": {"promptUsage": true}}});
    let told = answer(counted.clone(), knows.clone());
    assert_eq!(
        told["usage"],
        json!({"totalTokens": 22, "inputTokens": 10, "outputTokens": 5, "thoughtTokens": 2,
            "cachedReadTokens": 3, "cachedWriteTokens": 4})
    );
    // What is not known is not zero.
    let some = answer(json!({"input": 1, "output": 1}), knows.clone());
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
        let answer = answer(counted.clone(), not.clone());
        assert!(answer.get("usage").is_none(), "{not}");
        assert_eq!(answer["_meta"]["turnery"]["usage"]["input"], 10);
    }
}

/// A prompt that was cancelled before the model counted anything says nothing, and not zero.
#[test]
fn nothing_is_made_up_of_a_cancelled_prompt() {
    let world = World::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let knows = json!({"_meta": {"turnery": {"promptUsage": true}}});
    let (mut client, id) = world.session_with(knows);
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.tell("session/cancel", json!({"sessionId": id}));
    let answer = client.answer(&asked);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(answer["result"].get("usage").is_none());
}
