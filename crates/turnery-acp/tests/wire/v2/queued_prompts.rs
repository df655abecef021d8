//! Prompts that wait in a session which another process holds: `_turnery/session/queue`.

use super::{is_idle, of_kind, states};
use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};
use std::sync::Arc;
use turnery_acp::ServeOptions;
use turnery_agent::Settings;

const QUEUE: &str = "_turnery/session/queue";

/// Connects a process of its own, whose sessions run prompts that wait.
fn connect(world: &TestEnv) -> TestClient {
    let settings = Settings {
        runs_queued_prompts: true,
        ..world.settings()
    };
    let agent = world.agent_with_settings(Arc::new(settings));
    let options = ServeOptions {
        v2: true,
        ..ServeOptions::default()
    };
    TestClient::connect(agent, options)
}

fn texts(updates: &[Value], kind: &str) -> Vec<Value> {
    let shown = of_kind(updates, kind).into_iter();
    shown
        .map(|update| match update["content"].as_array() {
            Some(blocks) => blocks[0]["text"].clone(),
            None => update["content"]["text"].clone(),
        })
        .collect()
}

// proves: EXT-3
#[test]
fn holder_shows_and_runs_a_prompt_that_waits() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "second"}, "steps": [{"text": "two"}]},
        {"when": {"last_tool_result_contains": ""}, "steps": [{"text": "one"}]},
        {"steps": [{"tool_call": {"name": "change", "args": {}}}]},
    ]));
    let mut holder = connect(&world);
    let hello = holder.initialize_v2();
    let meta = &result_of(&hello)["capabilities"]["_meta"]["turnery"];
    assert_eq!(meta, &json!({"queue": QUEUE}));
    let at = json!({"cwd": world.cwd(), "mcpServers": []});
    let made = holder.request("session/new", at.clone());
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    holder.send_prompt(&id, "first");
    let question = holder.wait_for_request("session/request_permission");
    let mut asker = connect(&world);
    asker.initialize_v2();
    let open = json!({"sessionId": id, "cwd": world.cwd(), "mcpServers": []});
    result_of(&asker.request("session/resume", open));
    let queued = asker.request(QUEUE, prompt_params(&id, "second"));
    let queued = result_of(&queued);
    assert!(queued["promptId"].is_string(), "{queued}");
    assert_eq!(queued["heldBy"], "another client of this process");
    holder.take_updates();
    holder.choose(&question, "allow_once");
    holder.wait_for(is_idle);
    let first = holder.take_updates();
    assert_eq!(texts(&first, "agent_message_chunk"), ["one"]);
    holder.wait_for(is_idle);
    let second = holder.take_updates();
    assert_eq!(texts(&second, "user_message"), ["second"]);
    assert_eq!(texts(&second, "agent_message_chunk"), ["two"]);
    assert_eq!(states(&second), ["running"]);
}

#[test]
fn idle_session_runs_a_queued_prompt_here() {
    let world = TestEnv::new(json!([{"steps": [{"text": "one"}]}]));
    let mut client = connect(&world);
    client.initialize_v2();
    let at = json!({"cwd": world.cwd(), "mcpServers": []});
    let made = client.request("session/new", at);
    let id = result_of(&made)["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let queued = client.request(QUEUE, prompt_params(&id, "first"));
    assert_eq!(result_of(&queued)["heldBy"], Value::Null);
    client.wait_for(is_idle);
    let updates = client.take_updates();
    assert_eq!(texts(&updates, "user_message"), ["first"]);
    assert_eq!(texts(&updates, "agent_message_chunk"), ["one"]);
}

#[test]
fn empty_queued_prompt_is_rejected() {
    let world = TestEnv::new(json!([]));
    let (mut client, id) = world.session_v2();
    let empty = client.request(QUEUE, json!({"sessionId": id, "prompt": []}));
    assert_eq!(error_code_of(&empty), -32602);
    let unknown = client.request(QUEUE, prompt_params("nobody", "first"));
    assert_eq!(error_code_of(&unknown), -32002);
}
