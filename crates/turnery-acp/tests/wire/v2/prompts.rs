//! Prompts: answered when they are part of the conversation, then reported by updates.

use super::{is_idle, of_kind, states};
use crate::harness::{TestEnv, error_of, prompt_params, result_of};
use serde_json::{Value, json};

// proves: V2-4, V2-6, V2-8, V2-11
/// The response names the message, which is echoed under that id; then come the texts, each message with its
/// own id, and the end.
#[test]
fn prompt_is_answered_at_once_and_then_updated() {
    let world = TestEnv::new(json!([{"steps": [{"thinking": "hm"}, {"text": ["hel", "lo"]}]}]));
    let (mut client, id) = world.session_v2();
    let asked = client.send_request("session/prompt", prompt_params(&id, "hi"));
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
    client.send_notification("session/cancel", json!({"sessionId": id}));
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

// proves: V2-5
/// Once the message is part of the conversation, a failure is reported in the idle state, not as a response.
#[test]
fn failure_after_response_is_in_idle_state() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "a"}], "end": {"error": {"kind": "bad_request", "message": "no good"}}},
        {"steps": [{"text": "alive"}]},
    ]));
    let (mut client, id) = world.session_v2();
    let answer = client.request("session/prompt", prompt_params(&id, "hi"));
    assert!(result_of(&answer)["messageId"].is_string());
    let idle = client.wait_for(is_idle)["params"]["update"].clone();
    assert_eq!(idle["stopReason"], "error", "{idle}");
    assert_eq!(idle["error"]["code"], -32603);
    let details = idle["error"]["data"]["details"].as_str().expect("details");
    assert!(details.contains("no good"), "{details}");
    client.request("session/prompt", prompt_params(&id, "again"));
    let idle = client.wait_for(is_idle)["params"]["update"].clone();
    assert_eq!(idle["stopReason"], "end_turn");
}

// proves: V2-5, V2-18
/// A rejected prompt gets an error, and its message is not shown.
#[test]
fn refused_prompt_is_not_in_conversation() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session_v2();
    for (blocks, code) in [
        (json!([]), -32602),
        (
            json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
            -32602,
        ),
        (json!([{"type": "_hologram"}]), -32602),
        (json!([{"type": "text", "text": 7}]), -32602),
        (json!("hi"), -32602),
    ] {
        let params = json!({"sessionId": id, "prompt": blocks});
        let answer = client.request("session/prompt", params);
        assert_eq!(error_of(&answer), code, "{blocks}");
    }
    let answer = client.request("session/prompt", prompt_params("nobody", "hi"));
    assert_eq!(error_of(&answer), -32002);
    assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

// proves: V2-7, V2-8
/// A prompt received while another runs is held and follows it. Each has its own start and end.
#[test]
fn prompt_is_held_while_another_runs() {
    let world = TestEnv::new(json!([
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "first"}]},
        {"steps": [{"text": "second"}]},
    ]));
    let (mut client, id) = world.session_v2();
    let first = client.send_request("session/prompt", prompt_params(&id, "one"));
    let question = client.wait_for_request("session/request_permission");
    let second = client.send_request("session/prompt", prompt_params(&id, "two"));
    // Any request that is answered at once shows that the prompt has been read.
    client.request("session/list", json!({}));
    let seen = client.take_buffered();
    assert!(seen.iter().any(|message| message["id"] == first));
    assert!(!seen.iter().any(|message| message["id"] == second));
    client.respond(
        &question,
        json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
    );
    client.wait_for(is_idle);
    assert_eq!(of_kind(&client.take_updates(), "user_message").len(), 0);
    client.wait_for(is_idle);
    let seen = client.take_buffered();
    let answered = seen.iter().find(|message| message["id"] == second);
    let message_id = &result_of(answered.expect("answered"))["messageId"];
    let echo = seen
        .iter()
        .map(|message| &message["params"]["update"])
        .find(|update| update["sessionUpdate"] == "user_message");
    assert_eq!(&echo.expect("echoed")["messageId"], message_id);
}
