//! Commands: a prompt that begins with a slash is a message like any other.

use super::{is_idle, of_kind, states};
use crate::harness::{World, error_of, prompt, result_of};
use serde_json::{Value, json};

// proves: V2-4, V2-6, V2-8
/// A command that needs no model has a message, a state and an end as well.
#[test]
fn a_local_command_has_the_same_life() {
    let world = World::silent();
    let (mut client, id) = world.session_v2();
    let answer = client.call("session/prompt", prompt(&id, "/help"));
    let message_id = result_of(&answer)["messageId"].clone();
    let mut updates = client.updates();
    if states(&updates).last().map(String::as_str) != Some("idle end_turn") {
        let idle = client.wait(is_idle);
        updates.extend(client.updates());
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
/// A command that is typed while a prompt runs does not end that prompt's work.
#[test]
fn a_command_in_mid_prompt_changes_no_state() {
    let world = World::new(json!([{"steps": [{"text": "wait"}, {"wait_for_cancel": true}]}]));
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hi"));
    client.wait(|message| message["params"]["update"]["content"]["text"] == "wait");
    client.seen();
    client.call("session/prompt", prompt(&id, "/mode plan"));
    client.call("session/list", json!({}));
    let updates = client.updates();
    assert_eq!(states(&updates), [] as [String; 0]);
    assert_eq!(of_kind(&updates, "user_message").len(), 1);
    let options = of_kind(&updates, "config_option_update");
    assert_eq!(options[0]["configOptions"][0]["currentValue"], "plan");
    // One that needs the session to itself is refused, and was never part of the conversation (V2-5).
    let refused = client.call("session/prompt", prompt(&id, "/compact"));
    assert_eq!(error_of(&refused), -32603);
    assert_eq!(client.updates(), [] as [Value; 0]);
}

/// A command that runs a prompt of its own is answered at once, and that prompt tells of its end.
#[test]
fn a_command_with_a_prompt_of_its_own_tells_its_end() {
    let world = World::new(json!([
        {"steps": [{"text": "one"}]},
        {"steps": [{"text": "two"}]},
    ]));
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hi"));
    client.wait(is_idle);
    client.seen();
    let asked = client.ask("session/prompt", prompt(&id, "/rerun"));
    client.wait(is_idle);
    let seen = client.seen();
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
