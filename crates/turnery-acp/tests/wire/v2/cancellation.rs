//! Cancel and close: running prompts end, held prompts are cancelled, and nothing is sent afterwards.

use super::{is_idle, of_kind, states};
use crate::harness::{TestClient, TestEnv, error_of, prompt_params, result_of};
use serde_json::{Value, json};
use turnery_acp::{ExitReason, ServeOptions};

fn hanging_answers() -> Value {
    json!([
        {"when": {"last_user_contains": "hang"},
            "steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "live"}, "steps": [{"text": "alive"}]},
    ])
}

fn is_agent_text(message: &Value) -> bool {
    message["params"]["update"]["content"]["text"] == "wait"
}

// proves: V2-7, V2-15
/// A cancel ends the running prompt with `cancelled` and held prompts with an error, without showing any of
/// them.
#[test]
fn cancel_ends_running_and_held_prompts() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hang"));
    client.wait_for(is_agent_text);
    let mut held: Vec<Value> = (0..3)
        .map(|_| client.send_request("session/prompt", prompt_params(&id, "hang again")))
        .collect();
    client.take_buffered();
    client.send_notification("session/cancel", json!({"sessionId": id}));
    // In any order.
    while !held.is_empty() {
        let answer = client.wait_for(|message| held.contains(&message["id"]));
        assert_eq!(error_of(&answer), -32800);
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

// proves: V2-7
/// A held prompt is cancelled alone and at once, while the running one continues.
#[test]
fn held_prompt_is_cancelled_by_request_id() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hang"));
    client.wait_for(is_agent_text);
    let held = client.send_request("session/prompt", prompt_params(&id, "live"));
    client.send_notification("$/cancel_request", json!({"requestId": held}));
    assert_eq!(error_of(&client.wait_for_response(&held)), -32800);
    assert_eq!(states(&client.take_updates()), ["running"]);
    client.send_notification("session/cancel", json!({"sessionId": id}));
    let idle = client.wait_for(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
    client.take_buffered();
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
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
            assert_eq!(error_of(&answer), -32800);
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

// proves: V2-15, V2-8
/// A cancel withdraws the permission request and does not run the call, whatever the late response says.
#[test]
fn a_cancel_withdraws_the_question() {
    let world = TestEnv::new(json!([{"steps": [{"tool_call": {"name": "change", "args": {}}}]}]));
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hi"));
    let question = client.wait_for_request("session/request_permission");
    assert_eq!(
        states(&client.take_updates()),
        ["running", "requires_action"]
    );
    client.send_notification("session/cancel", json!({"sessionId": id}));
    let idle = client.wait_for(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
    let seen = client.take_buffered();
    let withdrawn = seen.iter().find(|it| it["method"] == "$/cancel_request");
    let withdrawn = withdrawn.expect("the question is taken back");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let ended = seen
        .iter()
        .map(|message| &message["params"]["update"])
        .rfind(|update| update["sessionUpdate"] == "tool_call_update");
    assert_eq!(ended.expect("ended")["status"], "cancelled");
    client.respond(
        &question,
        json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
    );
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
    assert_eq!(world.run_log.all(), [] as [String; 0]);
}

// proves: V2-16, V2-7
/// Close ends running and held prompts; the end is reported before the response, and afterwards the session is
/// gone.
#[test]
fn close_reports_idle_before_its_response() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hang"));
    client.wait_for(is_agent_text);
    client.take_buffered();
    let held = client.send_request("session/prompt", prompt_params(&id, "live"));
    let closed = client.request("session/close", json!({"sessionId": id}));
    assert_eq!(result_of(&closed), &json!({}));
    let seen = client.take_buffered();
    let told: Vec<Value> = seen
        .iter()
        .filter(|message| message["method"] == "session/update")
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(states(&told), ["idle cancelled"]);
    match seen.iter().find(|message| message["id"] == held) {
        Some(answer) => assert_eq!(error_of(answer), -32800),
        None => assert_eq!(error_of(&client.wait_for_response(&held)), -32800),
    }
    let gone = client.request("session/prompt", prompt_params(&id, "live"));
    assert_eq!(error_of(&gone), -32002);
    assert_eq!(gone["error"]["data"]["sessionId"], json!(id));
    // Closing again, and closing an unknown session, succeeds.
    for id in [id.as_str(), "nobody"] {
        let closed = client.request("session/close", json!({"sessionId": id}));
        assert_eq!(result_of(&closed), &json!({}));
    }
    assert_eq!(client.close_and_join().1, [] as [Value; 0]);
}

// proves: V2-16
/// A running session is ended before it is deleted.
#[test]
fn delete_cancels_running_prompt() {
    let world = TestEnv::new(hanging_answers());
    let (mut client, id) = world.session_v2();
    client.request("session/prompt", prompt_params(&id, "hang"));
    client.wait_for(is_agent_text);
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
/// The end of input ends running work and reports it, although the prompt was answered before.
#[test]
fn end_of_input_cancels_running_prompt() {
    for waits in [true, false] {
        let world = TestEnv::new(hanging_answers());
        let (mut client, id) = world.session_v2();
        let asked = client.send_request("session/prompt", prompt_params(&id, "hang"));
        if waits {
            client.wait_for(is_agent_text);
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
            Some(_) => assert_eq!((error_of(answer), told), (-32800, Vec::new())),
        }
    }
}

/// A drain lets accepted prompts finish, although they were answered before.
#[test]
fn drain_waits_for_running_prompt() {
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
        client.send_request("session/prompt", prompt_params(id, "go"));
    }
    let (_, said) = client.close_and_join();
    let told: Vec<Value> = said
        .iter()
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(states(&told), ["running", "idle end_turn"].repeat(3));
}
