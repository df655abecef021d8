//! Something said while a prompt runs: the extension methods (C-29, EXT-3 to EXT-5).

use crate::harness::{World, error_of, prompt, result_of};
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

fn call(name: &str) -> Value {
    json!({"tool_call": {"name": name, "args": {}}})
}

/// UP-5: heard after the call at work, and before the model is asked again.
// proves: C-29, LOOP-91, EXT-3, THEME-16
#[test]
fn a_running_prompt_is_steered() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "turn left"}, "steps": [{"text": "left it is"}]},
        {"when": {"last_tool_result_contains": "new"}, "steps": [{"text": "not steered"}]},
        {"steps": [{"text": "looking"}, call("change")]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "go"));
    // The tool asks a person, so the prompt stands still until it is answered.
    let question = client.asked("session/request_permission");
    let told = client.ask(STEER, prompt(&id, "turn left"));
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.reply(&question, chosen);
    let taken = client.answer(&told);
    assert_eq!(result_of(&taken), &json!({"taken": true}));
    let answer = client.answer(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    assert_eq!(texts(&client.updates()), ["looking", "left it is"]);

    // It is part of what was said: a person who loads the session sees it.
    let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&client.call("session/load", at));
    let said: Vec<Value> = client
        .updates()
        .into_iter()
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .map(|update| update["content"]["text"].clone())
        .collect();
    assert_eq!(said, [json!("go"), json!("turn left")]);
}

/// UP-6: heard when the prompt would end; it is one prompt with one answer.
// proves: C-29, LOOP-90, THEME-16
#[test]
fn a_follow_up_is_heard_at_the_end() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "and then"}, "steps": [{"text": "then this"}]},
        {"when": {"last_user_contains": "go"}, "steps": [call("change")]},
        {"steps": [{"text": "done"}]},
    ]));
    let (mut client, id) = world.session();
    let asked = client.ask("session/prompt", prompt(&id, "go"));
    let question = client.asked("session/request_permission");
    let told = client.ask(FOLLOW_UP, prompt(&id, "and then"));
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.reply(&question, chosen);
    let taken = client.answer(&told);
    assert_eq!(result_of(&taken), &json!({"taken": true}));
    let answer = client.answer(&asked);
    assert_eq!(result_of(&answer)["stopReason"], "end_turn");
    assert_eq!(texts(&client.updates()), ["done", "then this"]);
}

/// Nobody would await the prompt that it would become: it is refused, and nothing is run.
// proves: C-29
#[test]
fn what_comes_too_late_is_refused_and_not_run() {
    for method in [STEER, FOLLOW_UP] {
        let world = World::new(json!([
            {"steps": [{"text": "w"}, {"wait_for_cancel": true}]},
            {"steps": [{"text": "again"}]},
        ]));
        let (mut client, id) = world.session();
        let asked = client.ask("session/prompt", prompt(&id, "hi"));
        client.wait(|message| message["params"]["update"]["content"]["text"] == "w");
        let told = client.ask(method, prompt(&id, "too late"));
        client.tell("session/cancel", json!({"sessionId": id}));
        let late = client.answer(&told);
        assert_eq!(error_of(&late), -32603, "{late}");
        assert_eq!(late["error"]["data"]["kind"], "not_running");
        assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
        let next = client.call("session/prompt", prompt(&id, "more"));
        assert_eq!(result_of(&next)["stopReason"], "end_turn");
        client.updates();
        let at = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
        result_of(&client.call("session/load", at));
        let said: Vec<Value> = client
            .updates()
            .into_iter()
            .filter(|update| update["sessionUpdate"] == "user_message_chunk")
            .map(|update| update["content"]["text"].clone())
            .collect();
        assert_eq!(said, [json!("hi"), json!("more")]);
    }
}

/// An idle session has nobody to hear it; what is malformed is refused like any prompt.
#[test]
fn what_cannot_be_said_is_refused() {
    let world = World::new(json!([{"steps": [{"text": "w"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session();
    for method in [STEER, FOLLOW_UP] {
        let idle = client.call(method, prompt(&id, "hi"));
        assert_eq!(error_of(&idle), -32603, "{idle}");
        assert_eq!(idle["error"]["data"]["kind"], "not_running");
        assert_eq!(idle["error"]["data"]["retryable"], false);
        assert_eq!(
            error_of(&client.call(method, prompt("bogus", "hi"))),
            -32002
        );
    }
    let asked = client.ask("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "w");
    for method in [STEER, FOLLOW_UP] {
        for params in [
            json!({"sessionId": id}),
            json!({"sessionId": id, "prompt": []}),
            json!({"sessionId": id, "prompt": "text"}),
            json!({"prompt": [{"type": "text", "text": "x"}]}),
            json!([]),
        ] {
            let answer = client.call(method, params.clone());
            assert_eq!(error_of(&answer), -32602, "{params}");
        }
    }
    client.tell("session/cancel", json!({"sessionId": id}));
    assert_eq!(result_of(&client.answer(&asked))["stopReason"], "cancelled");
}
