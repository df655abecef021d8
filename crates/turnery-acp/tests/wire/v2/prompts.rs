//! Prompts of v2: the response comes once the message is in the conversation, and updates report the work and
//! its end.

use super::{is_idle, of_kind, states};
use crate::harness::{TestEnv, prompt_params, result_of};
use serde_json::{Value, json};

// proves: V2-4, V2-6, V2-8, V2-11
/// The response names the message, which is echoed under that id; then come the texts, each message with its
/// own id, and the end.
#[test]
fn response_names_message_and_updates_follow() {
    let world = TestEnv::new(json!([{"steps": [{"thinking": "hm"}, {"text": ["hel", "lo"]}]}]));
    let (mut client, id) = world.session_v2();
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(is_idle);
    let seen = client.take_buffered();
    let answered = seen.iter().position(|message| message["id"] == asked);
    let answered = answered.expect("answered while it worked");
    let message_id = &result_of(&seen[answered])["messageId"];
    assert_eq!(seen[answered]["result"], json!({"messageId": message_id}));
    let updates: Vec<Value> = seen
        .iter()
        .filter(|message| message["method"] == "session/update")
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(
        of_kind(&updates, "user_message"),
        [
            &json!({"sessionUpdate": "user_message", "messageId": message_id,
            "content": [{"type": "text", "text": "hi"}]})
        ]
    );
    let thoughts = of_kind(&updates, "agent_thought_chunk");
    assert_eq!(thoughts[0]["content"]["text"], "hm");
    let words = of_kind(&updates, "agent_message_chunk");
    let text: String = words
        .iter()
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect();
    assert_eq!(text, "hello");
    assert!(
        words
            .iter()
            .all(|it| it["messageId"] == words[0]["messageId"])
    );
    assert_ne!(&words[0]["messageId"], message_id);
    assert!(of_kind(&updates, "agent_message").is_empty());
    assert_eq!(states(&updates), ["running"]);
}

// proves: V2-4, V2-8
/// The response does not wait for the work, whose end is reported with its stop reason.
#[test]
fn prompt_response_does_not_wait_for_work() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"steps": [{"text": "cut"}], "end": "length"},
        {"steps": [], "end": "refusal"},
    ]));
    let (mut client, id) = world.session_v2();
    let answer = client.request("session/prompt", prompt_params(&id, "one"));
    assert!(result_of(&answer)["messageId"].is_string());
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.cancel(&id);
    for (text, reason) in [("two", "cancelled"), ("three", "max_tokens")] {
        let idle = client.wait_for(is_idle);
        assert_eq!(idle["params"]["update"]["stopReason"], reason);
        let turnery = &idle["params"]["update"]["_meta"]["turnery"];
        assert!(turnery["outcome"].is_string(), "{idle}");
        let answer = client.request("session/prompt", prompt_params(&id, text));
        assert!(result_of(&answer)["messageId"].is_string());
    }
    let idle = client.wait_for(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "refusal");
}
