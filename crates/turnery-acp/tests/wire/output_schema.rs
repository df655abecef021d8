//! Prompts with an output schema in `_meta`: the response has a value that fits the schema.

use crate::harness::{TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};

/// Model that answers in prose, then submits a value that the schema rejects, then one that fits.
fn answers() -> Value {
    let finish = |score: i64| {
        let value = json!({"rating": "low", "score": score});
        json!({"steps": [{"tool_call": {"name": "finish", "args": {"value": value}}}]})
    };
    json!([{"steps": [{"text": "It is low."}]}, finish(0), finish(2), {"steps": [{"text": "bye"}]}])
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"score": {"type": "integer", "minimum": 1}},
        "required": ["score"]
    })
}

fn with_meta(mut params: Value, meta: Value) -> Value {
    params["_meta"] = json!({"turnery": meta});
    params
}

/// The value is in the `_meta` of the response, and shown as text. The next prompt ends as usual.
// proves: LASH-63, LASH-119, LASH-120
#[test]
fn value_is_in_the_response_and_shown() {
    let world = TestEnv::new(answers());
    let (mut client, id) = world.session();
    let params = with_meta(
        prompt_params(&id, "rate it"),
        json!({"outputSchema": schema()}),
    );
    let answer = client.request("session/prompt", params);
    let value = json!({"rating": "low", "score": 2});
    let meta = &result_of(&answer)["_meta"]["turnery"];
    assert_eq!(meta["outcome"], "finished.final_value");
    assert_eq!(meta["value"], value);
    let updates = client.take_updates();
    let texts: Vec<&str> = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect();
    let last = texts.last().expect("text");
    assert_eq!(serde_json::from_str::<Value>(last).expect("JSON"), value);
    let failed = updates.iter().filter(|update| update["status"] == "failed");
    assert_eq!(failed.count(), 1, "{updates:?}");
    let next = client.request("session/prompt", prompt_params(&id, "thanks"));
    let meta = &result_of(&next)["_meta"]["turnery"];
    assert_eq!(meta["outcome"], "finished.assistant_message");
    assert_eq!(meta["value"], Value::Null);
}

/// Invalid members of `_meta.turnery` are rejected with a description of the problem; the session stays
/// usable.
#[test]
fn invalid_meta_members_are_rejected() {
    let world = TestEnv::new(json!([{"steps": [{"text": "hello"}]}]));
    let (mut client, id) = world.session();
    for (meta, part) in [
        (
            json!({"outputSchema": {"type": "objekt"}}),
            "outputSchema: this is not a usable JSON Schema",
        ),
        (
            json!({"outputSchema": 1}),
            "outputSchema: this is not a usable JSON Schema",
        ),
        (json!({"temperature": 3}), "temperature must be from 0 to 2"),
        (json!({"thinking": "deep"}), "unknown variant `deep`"),
        (
            json!({"finish": "sometimes"}),
            "unknown variant `sometimes`",
        ),
        (
            json!({"finish": "allowed", "outputSchema": {}}),
            "finish cannot be \"allowed\"",
        ),
    ] {
        let params = with_meta(prompt_params(&id, "rate it"), meta.clone());
        let answer = client.request("session/prompt", params);
        assert_eq!(error_code_of(&answer), -32602, "{meta}");
        let said = answer["error"].to_string().replace("\\\"", "\"");
        assert!(said.contains(part), "{meta}: {said}");
    }
    let answer = client.request("session/prompt", prompt_params(&id, "hi"));
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
}
