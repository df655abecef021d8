//! Messages sent while a prompt runs: the extension methods (C-29, EXT-3 to EXT-5).

use crate::harness::{TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};

const STEER: &str = "_turnery/session/steer";
const FOLLOW_UP: &str = "_turnery/session/follow_up";

fn texts(updates: &[Value]) -> Vec<&str> {
    updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

fn tool_step(name: &str) -> Value {
    json!({"tool_call": {"name": name, "args": {}}})
}

/// UP-5: a steering message is delivered after the running call and before the next model call, and is
/// replayed as a user message.
// proves: C-29, LOOP-91, EXT-3, THEME-16
#[test]
fn a_running_prompt_is_steered() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "turn left"}, "steps": [{"text": "left it is"}]},
        {"when": {"last_tool_result_contains": "new"}, "steps": [{"text": "not steered"}]},
        {"steps": [{"text": "looking"}, tool_step("change")]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "go");
    // The tool needs permission, so the prompt waits until it is given.
    let question = client.wait_for_request("session/request_permission");
    let told = client.send_request(STEER, prompt_params(&id, "turn left"));
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.respond(&question, chosen);
    let taken = client.wait_for_response(&told);
    assert_eq!(result_of(&taken), &json!({"taken": true}));
    assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
    assert_eq!(texts(&client.take_updates()), ["looking", "left it is"]);

    // The message is part of the conversation and is replayed.
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.request("session/load", at));
    let said: Vec<Value> = client
        .take_updates()
        .into_iter()
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .map(|update| update["content"]["text"].clone())
        .collect();
    assert_eq!(said, [json!("go"), json!("turn left")]);
}

/// UP-6: a follow-up is delivered when the prompt would end, and is answered within the same prompt.
// proves: C-29, LOOP-90, THEME-16
#[test]
fn follow_up_is_delivered_when_prompt_would_end() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "and then"}, "steps": [{"text": "then this"}]},
        {"when": {"last_user_contains": "go"}, "steps": [tool_step("change")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.send_prompt(&id, "go");
    let question = client.wait_for_request("session/request_permission");
    let told = client.send_request(FOLLOW_UP, prompt_params(&id, "and then"));
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.respond(&question, chosen);
    let taken = client.wait_for_response(&told);
    assert_eq!(result_of(&taken), &json!({"taken": true}));
    assert_eq!(client.wait_for_stop_reason(&asked), "end_turn");
    assert_eq!(texts(&client.take_updates()), ["done", "then this"]);
}

/// A steering message or follow-up that was not delivered before the prompt is cancelled is rejected with
/// `not_running` and does not become part of the conversation.
// proves: C-29
#[test]
fn late_interjection_is_rejected_and_not_run() {
    for method in [STEER, FOLLOW_UP] {
        let world = TestEnv::new(json!([
            {"steps": [{"text": "w"}, {"wait_for_cancel": true}]},
            {"steps": [{"text": "again"}]},
        ]));
        let (mut client, id) = world.session();
        let asked = client.send_prompt(&id, "hi");
        client.wait_for(|message| message["params"]["update"]["content"]["text"] == "w");
        let told = client.send_request(method, prompt_params(&id, "too late"));
        client.cancel(&id);
        let late = client.wait_for_response(&told);
        assert_eq!(error_code_of(&late), -32603, "{late}");
        assert_eq!(late["error"]["data"]["kind"], "not_running");
        assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
        let next = client.request("session/prompt", prompt_params(&id, "more"));
        assert_eq!(result_of(&next)["stopReason"], "end_turn");
        client.take_updates();
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        result_of(&client.request("session/load", at));
        let said: Vec<Value> = client
            .take_updates()
            .into_iter()
            .filter(|update| update["sessionUpdate"] == "user_message_chunk")
            .map(|update| update["content"]["text"].clone())
            .collect();
        assert_eq!(said, [json!("hi"), json!("more")]);
    }
}

/// Steering messages and follow-ups are rejected in an idle or unknown session, and with malformed content.
#[test]
fn invalid_interjection_is_rejected() {
    let world = TestEnv::new(json!([{"steps": [{"text": "w"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session();
    for method in [STEER, FOLLOW_UP] {
        let idle = client.request(method, prompt_params(&id, "hi"));
        assert_eq!(error_code_of(&idle), -32603, "{idle}");
        assert_eq!(idle["error"]["data"]["kind"], "not_running");
        assert_eq!(idle["error"]["data"]["retryable"], false);
        assert_eq!(
            error_code_of(&client.request(method, prompt_params("bogus", "hi"))),
            -32002
        );
    }
    let asked = client.send_prompt(&id, "hi");
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "w");
    for method in [STEER, FOLLOW_UP] {
        for params in [
            json!({"sessionId": id}),
            json!({"sessionId": id, "prompt": []}),
            json!({"sessionId": id, "prompt": "text"}),
            json!({"prompt": [{"type": "text", "text": "x"}]}),
            json!([]),
        ] {
            let answer = client.request(method, params.clone());
            assert_eq!(error_code_of(&answer), -32602, "{params}");
        }
    }
    client.cancel(&id);
    assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
}
