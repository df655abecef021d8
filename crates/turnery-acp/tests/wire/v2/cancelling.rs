//! Cancel and close: what runs ends, what was held is taken back, and nothing is said afterwards.

use super::{is_idle, of_kind, states};
use crate::harness::{Client, World, error_of, prompt, result_of};
use serde_json::{Value, json};
use turnery_acp::{ExitReason, ServeOptions};

fn hangs() -> Value {
    json!([
        {"when": {"last_user_contains": "hang"},
            "steps": [{"text": "wait"}, {"wait_for_cancel": true}]},
        {"when": {"last_user_contains": "live"}, "steps": [{"text": "alive"}]},
    ])
}

fn talks(message: &Value) -> bool {
    message["params"]["update"]["content"]["text"] == "wait"
}

// proves: V2-7, V2-15
/// A cancel ends what runs with `cancelled`, and what was held with an error, of
/// which nothing was shown.
#[test]
fn a_cancel_ends_the_running_prompt_and_takes_back_the_held_ones() {
    let world = World::new(hangs());
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hang"));
    client.wait(talks);
    let mut held: Vec<Value> = (0..3)
        .map(|_| client.ask("session/prompt", prompt(&id, "hang again")))
        .collect();
    client.seen();
    client.tell("session/cancel", json!({"sessionId": id}));
    // In any order.
    while !held.is_empty() {
        let answer = client.wait(|message| held.contains(&message["id"]));
        assert_eq!(error_of(&answer), -32800);
        held.retain(|id| *id != answer["id"]);
    }
    client.call("session/prompt", prompt(&id, "live"));
    let idle = client.wait(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
    let updates = client.updates();
    assert_eq!(states(&updates), ["idle cancelled", "running"]);
    let said = of_kind(&updates, "user_message");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["content"][0]["text"], "live");
}

// proves: V2-7
/// A held prompt is taken back alone, and at once, while the one before it goes on.
#[test]
fn a_held_prompt_is_taken_back_by_its_request() {
    let world = World::new(hangs());
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hang"));
    client.wait(talks);
    let held = client.ask("session/prompt", prompt(&id, "live"));
    client.tell("$/cancel_request", json!({"requestId": held}));
    assert_eq!(error_of(&client.answer(&held)), -32800);
    assert_eq!(states(&client.updates()), ["running"]);
    client.tell("session/cancel", json!({"sessionId": id}));
    let idle = client.wait(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
    client.seen();
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

// proves: V2-5, V2-15
/// A cancel in the same write as its prompt, many times: each is either taken back or
/// ended, and never both or neither.
#[test]
fn a_cancel_in_the_same_write_is_never_lost() {
    let world = World::new(hangs());
    let (mut client, id) = world.session_v2();
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": id}});
    for n in 0..100 {
        let request = json!({"jsonrpc": "2.0", "id": n, "method": "session/prompt",
            "params": prompt(&id, "hang")});
        client.note(&request);
        client.raw(format!("{request}\n{cancel}\n"));
        let answer = client.answer(&json!(n));
        if answer.get("error").is_some() {
            assert_eq!(error_of(&answer), -32800);
            assert_eq!(states(&client.updates()), [] as [String; 0]);
        } else {
            let idle = client.wait(is_idle);
            assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
            client.seen();
        }
    }
    client.call("session/prompt", prompt(&id, "live"));
    let idle = client.wait(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
}

// proves: V2-15, V2-8
/// A cancel stops waiting for the person, takes the question back, and does not run
/// what was asked about, whatever is answered later.
#[test]
fn a_cancel_withdraws_the_question() {
    let world = World::new(json!([{"steps": [{"tool_call": {"name": "change", "args": {}}}]}]));
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hi"));
    let question = client.asked("session/request_permission");
    assert_eq!(states(&client.updates()), ["running", "requires_action"]);
    client.tell("session/cancel", json!({"sessionId": id}));
    let idle = client.wait(is_idle);
    assert_eq!(idle["params"]["update"]["stopReason"], "cancelled");
    let seen = client.seen();
    let withdrawn = seen.iter().find(|it| it["method"] == "$/cancel_request");
    let withdrawn = withdrawn.expect("the question is taken back");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let ended = seen
        .iter()
        .map(|message| &message["params"]["update"])
        .rfind(|update| update["sessionUpdate"] == "tool_call_update");
    assert_eq!(ended.expect("ended")["status"], "cancelled");
    client.reply(
        &question,
        json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
    );
    assert_eq!(client.leave().1, [] as [Value; 0]);
    assert_eq!(world.ran.all(), [] as [String; 0]);
}

// proves: V2-16, V2-7
/// Close ends what runs and what is held; the end is told before the answer, and after
/// it the session is silent and gone.
#[test]
fn a_close_tells_the_end_before_its_answer() {
    let world = World::new(hangs());
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hang"));
    client.wait(talks);
    client.seen();
    let held = client.ask("session/prompt", prompt(&id, "live"));
    let closed = client.call("session/close", json!({"sessionId": id}));
    assert_eq!(result_of(&closed), &json!({}));
    let seen = client.seen();
    let told: Vec<Value> = seen
        .iter()
        .filter(|message| message["method"] == "session/update")
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(states(&told), ["idle cancelled"]);
    match seen.iter().find(|message| message["id"] == held) {
        Some(answer) => assert_eq!(error_of(answer), -32800),
        None => assert_eq!(error_of(&client.answer(&held)), -32800),
    }
    let gone = client.call("session/prompt", prompt(&id, "live"));
    assert_eq!(error_of(&gone), -32002);
    assert_eq!(gone["error"]["data"]["sessionId"], json!(id));
    // Once more, and one that never was: closed already.
    for id in [id.as_str(), "nobody"] {
        let closed = client.call("session/close", json!({"sessionId": id}));
        assert_eq!(result_of(&closed), &json!({}));
    }
    assert_eq!(client.leave().1, [] as [Value; 0]);
}

// proves: V2-16
/// A session that is deleted while it works ends first.
#[test]
fn a_delete_ends_what_runs() {
    let world = World::new(hangs());
    let (mut client, id) = world.session_v2();
    client.call("session/prompt", prompt(&id, "hang"));
    client.wait(talks);
    client.seen();
    let deleted = client.call("session/delete", json!({"sessionId": id}));
    assert_eq!(result_of(&deleted), &json!({}));
    assert_eq!(states(&client.updates()), ["idle cancelled"]);
    let again = client.call("session/delete", json!({"sessionId": id}));
    assert_eq!(result_of(&again), &json!({}));
    let list = client.call("session/list", json!({}));
    assert_eq!(list["result"]["sessions"], json!([]));
}

// proves: V2-15
/// The end of input ends what runs, and says so, though its prompt was answered long ago.
#[test]
fn the_end_of_input_ends_what_runs() {
    for waits in [true, false] {
        let world = World::new(hangs());
        let (mut client, id) = world.session_v2();
        let asked = client.ask("session/prompt", prompt(&id, "hang"));
        if waits {
            client.wait(talks);
        }
        let (reason, said) = client.leave();
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

/// A drain lets what was accepted come to its end, though it was answered long ago.
#[test]
fn a_drain_waits_for_the_work() {
    let world = World::new(json!([
        {"when": {"last_user_contains": "go"}, "steps": [{"text": "done"}]},
    ]));
    let options = ServeOptions {
        drain: true,
        v2: true,
        ..ServeOptions::default()
    };
    let mut client = Client::connect(world.agent(), options);
    client.initialize_v2();
    let made = client.call("session/new", json!({"cwd": world.cwd()}));
    let id = made["result"]["sessionId"].as_str().expect("an id");
    for _ in 0..3 {
        client.ask("session/prompt", prompt(id, "go"));
    }
    let (_, said) = client.leave();
    let told: Vec<Value> = said
        .iter()
        .map(|message| message["params"]["update"].clone())
        .collect();
    assert_eq!(states(&told), ["running", "idle end_turn"].repeat(3));
}
