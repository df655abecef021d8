//! Slash commands: messages like any other.

use super::{is_idle, of_kind, states};
use crate::harness::{TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};

// proves: V2-4, V2-6, V2-8
/// A command that needs no model has a message, a state and an end too.
#[test]
fn local_command_reports_running_then_idle() {
    let world = TestEnv::without_answers();
    let (mut client, id) = world.session_v2();
    let answer = client.request("session/prompt", prompt_params(&id, "/help"));
    let message_id = result_of(&answer)["messageId"].clone();
    let mut updates = client.take_updates();
    if states(&updates).last().map(String::as_str) != Some("idle end_turn") {
        let idle = client.wait_for(is_idle);
        updates.extend(client.take_updates());
        updates.push(idle["params"]["update"].clone());
    }
    let echo = of_kind(&updates, "user_message");
    assert_eq!(echo[0]["messageId"], message_id);
    assert_eq!(echo[0]["content"][0]["text"], "/help");
    let said = of_kind(&updates, "agent_message");
    let text = said[0]["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("`/compact`"), "{text}");
    assert_eq!(states(&updates), ["running", "idle end_turn"]);
}

// proves: V2-8
/// A command during a prompt does not end that prompt.
#[test]
fn command_during_prompt_changes_no_state() {
    let world = TestEnv::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.take_buffered();
    client.request("session/prompt", prompt_params(&id, "/mode plan"));
    client.request("session/list", json!({}));
    let updates = client.take_updates();
    assert_eq!(states(&updates), [] as [String; 0]);
    assert_eq!(of_kind(&updates, "user_message").len(), 1);
    let options = of_kind(&updates, "config_option_update");
    assert_eq!(options[0]["configOptions"][0]["currentValue"], "plan");
    // A command that needs an idle session is rejected and never part of the conversation (V2-5).
    let refused = client.request("session/prompt", prompt_params(&id, "/compact"));
    assert_eq!(error_code_of(&refused), -32603);
    assert_eq!(client.take_updates(), [] as [Value; 0]);
}

// proves: V2-8
/// Regression: a command answered between the states of queued prompts wrote its message while idle.
#[test]
fn command_beside_a_queued_prompt_reports_running() {
    let world = TestEnv::new(json!([{"steps": [{"text": "one"}]}]));
    let (mut client, id) = world.session_v2();
    let lines = ["hi", "/help"].map(|text| {
        let params = prompt_params(&id, text);
        json!({"jsonrpc": "2.0", "id": text, "method": "session/prompt", "params": params})
    });
    client.write_raw(lines.map(|line| format!("{line}\n")).concat());
    for id in ["hi", "/help"] {
        result_of(&client.wait_for_response(&json!(id)));
    }
    // The judge checks the state before each message.
    let (_, rest) = client.close_and_join();
    assert!(rest.last().is_some_and(is_idle), "{rest:?}");
}

/// A command with its own prompt is answered at once, and that prompt's end is reported.
#[test]
fn command_with_own_prompt_reports_its_end() {
    let world = TestEnv::new(json!([
        {"steps": [{"text": "one"}]},
        {"steps": [{"text": "two"}]},
    ]));
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hi"));
    client.wait_for(is_idle);
    client.take_buffered();
    let asked = client.send_prompt(&id, "/rerun");
    client.wait_for(is_idle);
    let seen = client.take_buffered();
    assert!(seen.iter().any(|message| message["id"] == asked));
    let updates: Vec<Value> = seen
        .iter()
        .filter(|message| message["method"] == "session/update")
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(states(&updates), ["running"]);
    assert_eq!(
        of_kind(&updates, "user_message")[0]["content"][0]["text"],
        "/rerun"
    );
}
