//! Cancel, delete, end of input and drain: what becomes of running and queued prompts.

use super::{is_idle, of_kind, states};
use crate::harness::{TestClient, TestEnv, error_code_of, prompt_params, result_of};
use serde_json::{Value, json};
use turnery_acp::{ExitReason, ServeOptions};

fn hanging_answers() -> Value {
    json!([
        {"when": {"last_user_contains": "hang"},
            "steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "live"}, "steps": [{"text": "alive"}]},
    ])
}

fn is_wait_text(message: &Value) -> bool {
    message["params"]["update"]["content"]["text"] == "wait"
}

// proves: V2-7, V2-15
/// A cancel ends the running prompt with `cancelled` and rejects the queued ones, whose messages are never
/// shown.
#[test]
fn cancel_ends_running_and_queued_prompts() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hang"));
    client.wait_for(is_wait_text);
    let mut held: Vec<Value> = (0..3)
        .map(|_| client.send_prompt(&id, "hang again"))
        .collect();
    client.take_buffered();
    client.cancel(&id);
    // In any order.
    while !held.is_empty() {
        let answer = client.wait_for(|message| held.contains(&message["id"]));
        assert_eq!(error_code_of(&answer), -32800);
        held.retain(|id| *id != answer["id"]);
    }
    client.request("session/prompt", prompt_params(&id, "live"));
    let idle = client.wait_for(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
    let updates = client.take_updates();
    assert_eq!(states(&updates), ["idle cancelled", "running"]);
    let said = of_kind(&updates, "user_message");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["content"][0]["text"], "live");
}

// proves: V2-5, V2-15
/// A cancel in the same write as its prompt, many times: each prompt is either rejected or ended, never both
/// or neither.
#[test]
fn cancel_in_same_write_is_not_lost() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
    for n in 0..100 {
        let request = json!({"jsonrpc": "2.0", "id": n, "method": "session/prompt",
            "params": prompt_params(&id, "hang")});
        client.write_raw(format!("{request}\n{cancel}\n"));
        let answer = client.wait_for_response(&json!(n));
        if answer.get("error").is_some() {
            assert_eq!(error_code_of(&answer), -32800);
            assert_eq!(states(&client.take_updates()), [] as [String; 0]);
        } else {
            let idle = client.wait_for(is_idle);
            assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
            client.take_buffered();
        }
    }
    client.request("session/prompt", prompt_params(&id, "live"));
    let idle = client.wait_for(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
}

// proves: V2-16
/// A running session is ended before it is deleted.
#[test]
fn delete_cancels_running_prompt() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hang"));
    client.wait_for(is_wait_text);
    client.take_buffered();
    let deleted = client.request("session/delete", json!({"sessionId": id}));
    assert_eq!(result_of(&deleted), &json!({}));
    assert_eq!(states(&client.take_updates()), ["idle cancelled"]);
    let again = client.request("session/delete", json!({"sessionId": id}));
    assert_eq!(result_of(&again), &json!({}));
    let list = client.request("session/list", json!({}));
    assert_eq!(list["result"]["sessions"], json!([]));
}

// proves: V2-15
/// The end of input cancels a running prompt and reports this; a prompt that is not yet accepted is rejected
/// without any update.
#[test]
fn end_of_input_cancels_running_prompt() {
    for waits in [true, false] {
        let world = TestEnv::new(hanging_answers());
        let (mut client, id) = world.session_v2();
        let asked = client.send_prompt(&id, "hang");
        if waits {
            client.wait_for(is_wait_text);
        }
        let (reason, said) = client.close_and_join();
        assert_eq!(reason, ExitReason::EndOfInput);
        let answer = said.iter().find(|message| message["id"] == asked);
        let answer = answer.expect("answered");
        let told: Vec<Value> = said
            .iter()
            .filter(|message| message["method"] == "session/update")
            .map(|message| message["params"]["update"].clone())
            .collect();
        match answer.get("error") {
            None => assert_eq!(states(&told), ["running", "idle cancelled"]),
            Some(_) => assert_eq!((error_code_of(answer), told), (-32800, Vec::new())),
        }
    }
}

/// With `drain`, prompts sent before the end of input are all run to their end.
#[test]
fn drain_finishes_all_prompts() {
    let world = TestEnv::new(json!([
        {"when": {"last_user_contains": "go"}, "steps": [{"text": "done"}]},
    ]));
    let options = ServeOptions {
        drain: true,
        v2: true,
        ..ServeOptions::default()
    };
    let mut client = TestClient::connect(world.agent(), options);
    client.initialize_v2();
    let made = client.request("session/new", json!({"cwd": world.cwd()}));
    let id = made["result"]["sessionId"].as_str().expect("an id");
    for _ in 0..3 {
        client.send_prompt(id, "go");
    }
    let (_, said) = client.close_and_join();
    let told: Vec<Value> = said
        .iter()
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(states(&told), ["running", "idle end_turn"].repeat(3));
}
