//! A client that resumes a session ends up with the same state as one that was there.

use crate::harness::{FoldedSession, TestClient, TestEnv, result_of};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Generates a model answer: any text in any chunks, any calls, any end.
fn answer() -> impl Strategy<Value = Value> {
    let words = || prop::collection::vec("[a-z é\n]{1,6}", 1..4);
    let tools = prop::sample::select(vec![
        "look",
        "change",
        "print",
        "hang",
        "finish",
        "fail",
        "fail_with",
        "nonsense",
    ]);
    let ends = prop::sample::select(vec![
        json!(null),
        json!(null),
        json!("length"),
        json!("refusal"),
        json!({"error": {"kind": "bad_request", "message": "no good"}}),
    ]);
    (
        prop::option::of(words()),
        prop::option::of(words()),
        prop::collection::vec(tools, 0..3),
        prop::bool::weighted(0.1),
        ends,
    )
        .prop_map(|(thinking, text, tools, waits, end)| {
            let mut steps = Vec::new();
            steps.extend(thinking.map(|thinking| json!({"thinking": thinking})));
            steps.extend(text.map(|text| json!({"text": text})));
            steps.extend(
                tools
                    .iter()
                    .map(|name| json!({"tool_call": {"name": name, "args": {"command": "x"}}})),
            );
            if waits {
                steps.extend([json!({"text": "wait"}), json!({"wait_for_cancel": true})]);
            }
            let mut answer = json!({"steps": steps});
            if !end.is_null() && tools.is_empty() {
                answer["end"] = end;
            }
            answer
        })
}

/// Runs one prompt to its end and returns its updates: answers permission requests with the next reply, and
/// cancels the prompt when a tool or the model hangs.
fn play(client: &mut TestClient, id: &str, replies: &mut dyn Iterator<Item = &str>) -> Vec<Value> {
    client.send_prompt(id, "go");
    let mut updates = Vec::new();
    let mut hanging = HashSet::new();
    loop {
        let message = client.next_message().expect("the agent still talks");
        if message["method"] == "session/request_permission" {
            let outcome = match replies.next() {
                None | Some("cancelled") => json!({"outcome": "cancelled"}),
                Some(option) => json!({"outcome": "selected", "optionId": option}),
            };
            client.respond(&message, json!({"outcome": outcome}));
        }
        if message["method"] != "session/update" {
            continue;
        }
        let update = message["params"]["update"].clone();
        let call = update["toolCallId"].to_string();
        if update["name"] == "hang" {
            hanging.insert(call.clone());
        }
        let hangs = update["status"] == "in_progress" && hanging.contains(&call);
        if hangs || update["content"]["text"] == "wait" {
            client.cancel(id);
        }
        let idle = update["state"] == "idle";
        updates.push(update);
        if idle {
            return updates;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    // proves: V2-10, V2-11, V2-12
    #[test]
    fn replay_equals_live_session(
        answers in prop::collection::vec(answer(), 1..8),
        prompts in 1usize..4,
        replies in prop::collection::vec(
            prop::sample::select(vec!["allow_once", "reject_once", "cancelled"]), 0..4,
        ),
    ) {
        let world = TestEnv::new(json!(answers));
        let (mut client, id) = world.session_v2();
        let mut replies = replies.into_iter();
        let mut live = Vec::new();
        for _ in 0..prompts {
            live.extend(play(&mut client, &id, &mut replies));
        }
        client.close_and_join();
        let mut client = world.client_v2();
        let params = json!({"sessionId": id, "cwd": world.cwd(), "replayFrom": {"type": "start"}});
        let answer = client.request("session/resume", params);
        result_of(&answer);
        let replayed = client.take_updates();
        let (live, later) = FoldedSession::live_and_replayed(&live, &replayed);
        prop_assert_eq!(live, later);
    }
}
