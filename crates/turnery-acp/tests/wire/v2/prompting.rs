//! Prompts: answered when they are part of the conversation, told by updates.

use super::{is_idle, of_kind, states};
use crate::harness::{World, error_of, prompt, result_of};
use serde_json::{Value, json};

// proves: V2-4, V2-6, V2-8, V2-11
/// The answer names the message, which is echoed under that id; then come
/// the words, each message under an id of its own, and the end.
#[test]
fn a_prompt_is_answered_at_once_and_told_by_updates() {
    let world = World::new(json!([{"steps": [{"thinking": "hm"}, {"text": ["hel", "lo"]}]}]));
    let (mut client, id) = world.session_v2();
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(is_idle);
    let seen = client.seen();
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
/// The answer does not wait for the work, and the work's end is told with its reason.
#[test]
fn an_answer_waits_for_no_work() {
    let world = World::new(json!([
        {"steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"steps": [{"text": "cut"}], "end": "length"},
        {"steps": [], "end": "refusal"},
    ]));
    let (mut client, id) = world.session_v2();
    let answer = client.call("session/prompt", prompt(&id, "one"));
    assert!(result_of(&answer)["messageId"].is_string());
    client.wait(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.tell("session/cancel", json!({"sessionId": id}));
    for (text, reason) in [("two", "cancelled"), ("three", "max_tokens")] {
        let idle = client.wait(is_idle);
        assert_eq!(idle["params"]["update"]["stopReason"], reason);
        let turnery = &idle["params"]["update"]["_meta"]["turnery"];
        assert!(turnery["outcome"].is_string(), "{idle}");
        let answer = client.call("session/prompt", prompt(&id, text));
        assert!(result_of(&answer)["messageId"].is_string());
    }
    let idle = client.wait(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "refusal");
}

// proves: V2-5
/// Once the message is part of the conversation, a failure is no answer but an end.
#[test]
fn a_failure_after_the_answer_is_told_with_the_state() {
    let world = World::new(json!([
        {"steps": [{"text": "a"}], "end": {"error": {"kind": "bad_request", "message": "no good"}}},
        {"steps": [{"text": "alive"}]},
    ]));
    let (mut client, id) = world.session_v2();
    let answer = client.call("session/prompt", prompt(&id, "hi"));
    assert!(result_of(&answer)["messageId"].is_string());
    let idle = client.wait(is_idle)["params"]["update"].clone();
    assert_eq!(idle["stopReason"], "error", "{idle}");
    assert_eq!(idle["error"]["code"], -32603);
    let details = idle["error"]["data"]["details"].as_str().expect("details");
    assert!(details.contains("no good"), "{details}");
    client.call("session/prompt", prompt(&id, "again"));
    let idle = client.wait(is_idle)["params"]["update"].clone();
    assert_eq!(idle["stopReason"], "end_turn");
}

// proves: V2-5, V2-18
/// What is refused is an error, and no message of it was shown.
#[test]
fn what_is_refused_is_no_part_of_the_conversation() {
    let world = World::silent();
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
        let answer = client.call("session/prompt", params);
        assert_eq!(error_of(&answer), code, "{blocks}");
    }
    let answer = client.call("session/prompt", prompt("nobody", "hi"));
    assert_eq!(error_of(&answer), -32002);
    assert_eq!(answer["error"]["data"]["sessionId"], "nobody");
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

// proves: V2-7, V2-8
/// A prompt that comes while another one works is held, and follows it. Each has its
/// beginning and its end.
#[test]
fn a_prompt_is_held_while_another_one_works() {
    let world = World::new(json!([
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
        {"steps": [{"text": "first"}]},
        {"steps": [{"text": "second"}]},
    ]));
    let (mut client, id) = world.session_v2();
    let first = client.ask("session/prompt", prompt(&id, "one"));
    let question = client.asked("session/request_permission");
    let second = client.ask("session/prompt", prompt(&id, "two"));
    // Something that is answered at once, to be sure that the prompt has been read.
    client.call("session/list", json!({}));
    let seen = client.seen();
    assert!(seen.iter().any(|message| message["id"] == first));
    assert!(!seen.iter().any(|message| message["id"] == second));
    client.reply(
        &question,
        json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
    );
    client.wait(is_idle);
    assert_eq!(of_kind(&client.updates(), "user_message").len(), 0);
    client.wait(is_idle);
    let seen = client.seen();
    let answered = seen.iter().find(|message| message["id"] == second);
    let message_id = &result_of(answered.expect("answered"))["messageId"];
    let echo = seen
        .iter()
        .map(|message| &message["params"]["update"])
        .find(|update| update["sessionUpdate"] == "user_message");
    assert_eq!(&echo.expect("echoed")["messageId"], message_id);
}
